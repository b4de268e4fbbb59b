// SPDX-License-Identifier: Apache-2.0

public import Linux

/// The descriptors that an app has stored (`FDSTORE=1`) and gets back at its next launch.
///
/// They are in the order of their arrival. At the launch they get the numbers 3, 4, … in that order.
public struct FDStore {
    /// A descriptor that an app has stored.
    public struct Entry {
        /// The name of the descriptor in `LISTEN_FDNAMES`.
        public let name: String
        /// The descriptor in this process, with close-on-exec set.
        public let descriptor: Descriptor
        /// Whether to watch the descriptor, and drop it when its peer closes (`FDPOLL=0` turns this off).
        public let poll: Bool

        /// Creates an entry from its parts.
        public init(name: String, descriptor: Descriptor, poll: Bool) {
            self.name = name
            self.descriptor = descriptor
            self.poll = poll
        }
    }

    /// What a datagram has changed in the store.
    public struct Change {
        /// New entries, which the caller has to pass to the keeper and, if `poll` is set, watch.
        public var added: [Entry] = []
        /// Removed entries, which the caller must no longer watch or hold.
        public var removed: [Entry] = []
        /// What failed, one sentence each.
        public var warnings: [String] = []
    }

    /// The most descriptors that an app may store; systemd's equivalent is FileDescriptorStoreMax=.
    public static let limit = 100

    /// How many descriptors the app may store: fewer than ``limit`` if torpord itself may not open enough descriptors.
    public var most = FDStore.limit

    /// The stored descriptors, in order of arrival.
    public private(set) var entries: [Entry] = []

    /// An empty store.
    public init() {}

    /// A store with descriptors that the keeper held.
    public init(restoring entries: [Entry]) {
        self.entries = Array(entries.prefix(FDStore.limit))
    }

    /// The value of `LISTEN_FDNAMES` for the app's next launch.
    public var names: String { entries.map(\.name).joined(separator: ":") }

    /// Applies a message and the descriptors that came with it. The caller must close descriptors that were not stored.
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

    /// The result of adding a descriptor to the store.
    public enum Outcome {
        /// The descriptor was stored.
        case added(Entry)
        /// The same open file is stored already.
        case duplicate
        /// The descriptor was not stored; the text says why.
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

    /// Drops all descriptors with that name, and returns their entries.
    public mutating func remove(named name: String) -> [Entry] {
        let removed = entries.filter { $0.name == name }
        entries.removeAll { $0.name == name }
        return removed
    }

    /// The prefix of the names of purgeable descriptors: when memory is short, torpord may drop them and their content.
    public static let purgeablePrefix = "purgeable"

    /// Whether a purgeable descriptor is stored.
    public var hasPurgeable: Bool { entries.contains { $0.name.hasPrefix(Self.purgeablePrefix) } }

    /// Drops all purgeable descriptors, and returns their entries.
    public mutating func removePurgeable() -> [Entry] {
        let removed = entries.filter { $0.name.hasPrefix(Self.purgeablePrefix) }
        entries.removeAll { $0.name.hasPrefix(Self.purgeablePrefix) }
        return removed
    }

    /// Drops one descriptor, whose peer has closed.
    public mutating func remove(_ entry: Entry) {
        entries.removeAll { $0.descriptor === entry.descriptor }
    }

    /// Drops all descriptors, and returns their entries.
    public mutating func removeAll() -> [Entry] {
        defer { entries.removeAll() }
        return entries
    }
}
