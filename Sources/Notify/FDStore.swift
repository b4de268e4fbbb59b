// SPDX-License-Identifier: Apache-2.0

public import Linux

/// The descriptors that an app has stored (`FDSTORE=1`) and gets back at its next launch.
///
/// They are ordered by arrival, which is also their order at the launch: 3, 4, …
public struct FDStore {
    /// A stored descriptor.
    public struct Entry {
        /// Its name in `LISTEN_FDNAMES`.
        public let name: String
        /// The descriptor, close-on-exec here.
        public let descriptor: Descriptor
        /// Watch it, and drop it when its peer closes (disabled by `FDPOLL=0`).
        public let poll: Bool

        /// Creates one from its parts.
        public init(name: String, descriptor: Descriptor, poll: Bool) {
            self.name = name
            self.descriptor = descriptor
            self.poll = poll
        }
    }

    /// The changes by a datagram.
    public struct Change {
        /// New entries: pass them to the keeper, and watch them if `poll`.
        public var added: [Entry] = []
        /// Removed entries: stop watching and holding them.
        public var removed: [Entry] = []
        /// What failed, a sentence each.
        public var warnings: [String] = []
    }

    /// The maximum of descriptors stored for one app; systemd's equivalent is FileDescriptorStoreMax=.
    public static let limit = 100

    /// How many may be stored: fewer than ``limit`` if the daemon itself may not open enough.
    public var most = FDStore.limit

    /// The stored descriptors.
    public private(set) var entries: [Entry] = []

    /// An empty store.
    public init() {}

    /// A store with the descriptors that the keeper returned.
    public init(restoring entries: [Entry]) {
        self.entries = Array(entries.prefix(FDStore.limit))
    }

    /// The value of `LISTEN_FDNAMES`.
    public var names: String { entries.map(\.name).joined(separator: ":") }

    /// Applies a message and its descriptors. The caller closes descriptors that were not stored.
    public mutating func apply(_ message: NotifyMessage, _ descriptors: [Descriptor]) -> Change {
        var change = Change()
        if message.fdStoreRemove, let name = message.fdName {
            change.removed = remove(named: name)
            if change.removed.isEmpty {
                change.warnings.append("no descriptor named '\(name)' is kept, so none was dropped")
            }
        }
        guard message.fdStore else { return change }
        if descriptors.isEmpty {
            change.warnings.append("FDSTORE=1 came without a descriptor")
        }
        for descriptor in descriptors {
            switch add(descriptor, name: message.fdName ?? FDName.unnamed, poll: message.fdPoll) {
            case .added(let entry): change.added.append(entry)
            case .duplicate: break
            case .refused(let sentence): change.warnings.append(sentence)
            }
        }
        return change
    }

    /// The result of adding a descriptor.
    public enum Outcome {
        /// It was stored.
        case added(Entry)
        /// The same open file is already stored.
        case duplicate
        /// It was not stored, for this reason.
        case refused(String)
    }

    /// Stores a descriptor under a name.
    public mutating func add(_ descriptor: Descriptor, name: String, poll: Bool) -> Outcome {
        guard FDName.isValid(name) else {
            return .refused("a descriptor cannot be named '\(name)': use printable ASCII without a colon")
        }
        if entries.contains(where: { Descriptor.sameFile($0.descriptor.raw, descriptor.raw) }) { return .duplicate }
        guard entries.count < most else {
            let why = most < FDStore.limit ? ", its share of what the supervisor may open (LimitNOFILE=)" : ""
            return .refused("\(most) descriptors are kept already\(why): drop one with FDSTOREREMOVE=1 first")
        }
        let entry = Entry(name: name, descriptor: descriptor, poll: poll)
        entries.append(entry)
        return .added(entry)
    }

    /// Drops all with that name.
    public mutating func remove(named name: String) -> [Entry] {
        let removed = entries.filter { $0.name == name }
        entries.removeAll { $0.name == name }
        return removed
    }

    /// The name prefix of purgeable descriptors: their content may be dropped when memory is short.
    public static let purgeablePrefix = "purgeable"

    /// Whether a purgeable descriptor is stored.
    public var hasPurgeable: Bool { entries.contains { $0.name.hasPrefix(Self.purgeablePrefix) } }

    /// Drops all purgeable descriptors.
    public mutating func removePurgeable() -> [Entry] {
        let removed = entries.filter { $0.name.hasPrefix(Self.purgeablePrefix) }
        entries.removeAll { $0.name.hasPrefix(Self.purgeablePrefix) }
        return removed
    }

    /// Drops one whose peer has closed.
    public mutating func remove(_ entry: Entry) {
        entries.removeAll { $0.descriptor === entry.descriptor }
    }

    /// Drops everything.
    public mutating func removeAll() -> [Entry] {
        defer { entries.removeAll() }
        return entries
    }
}
