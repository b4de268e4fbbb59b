// SPDX-License-Identifier: Apache-2.0

public import Linux

/// The descriptors that an app has given into keeping (`FDSTORE=1`), given back at its next launch.
///
/// The order is that of their arrival, which is also the order at the launch: 3, 4, …
public struct FDStore {
    /// A kept descriptor.
    public struct Entry {
        /// Its name in `LISTEN_FDNAMES`.
        public let name: String
        /// The descriptor, close-on-exec here.
        public let descriptor: Descriptor
        /// To be watched, and dropped when its other side closes (`FDPOLL=0` switches that off).
        public let poll: Bool

        /// One from its parts.
        public init(name: String, descriptor: Descriptor, poll: Bool) {
            self.name = name
            self.descriptor = descriptor
            self.poll = poll
        }
    }

    /// What a datagram changed.
    public struct Change {
        /// Entries that are new: to be handed to the keeper, and watched if they say so.
        public var added: [Entry] = []
        /// Entries that went: no longer to be watched or held.
        public var removed: [Entry] = []
        /// What could not be done, a sentence each.
        public var warnings: [String] = []
    }

    /// The most descriptors kept for one app; systemd's service units choose theirs by FileDescriptorStoreMax=.
    public static let limit = 100

    /// How many may be kept: fewer than ``limit`` where the daemon itself may not open enough.
    public var most = FDStore.limit

    /// What is kept.
    public private(set) var entries: [Entry] = []

    /// An empty store.
    public init() {}

    /// A store as the keeper gave it back.
    public init(restoring entries: [Entry]) {
        self.entries = Array(entries.prefix(FDStore.limit))
    }

    /// The value of `LISTEN_FDNAMES`.
    public var names: String { entries.map(\.name).joined(separator: ":") }

    /// What a message with its descriptors asks of the store. Descriptors that are not kept are closed by their owner.
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

    /// What became of a descriptor.
    public enum Outcome {
        /// It is kept.
        case added(Entry)
        /// The same open file is kept already.
        case duplicate
        /// It is not kept, for this reason.
        case refused(String)
    }

    /// Keeps a descriptor under a name.
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

    /// Drops all of that name.
    public mutating func remove(named name: String) -> [Entry] {
        let removed = entries.filter { $0.name == name }
        entries.removeAll { $0.name == name }
        return removed
    }

    /// What a purgeable descriptor's name begins with: its content may be dropped when memory is short.
    public static let purgeablePrefix = "purgeable"

    /// Whether there is something purgeable.
    public var hasPurgeable: Bool { entries.contains { $0.name.hasPrefix(Self.purgeablePrefix) } }

    /// Drops what is purgeable.
    public mutating func removePurgeable() -> [Entry] {
        let removed = entries.filter { $0.name.hasPrefix(Self.purgeablePrefix) }
        entries.removeAll { $0.name.hasPrefix(Self.purgeablePrefix) }
        return removed
    }

    /// Drops one whose other side has closed.
    public mutating func remove(_ entry: Entry) {
        entries.removeAll { $0.descriptor === entry.descriptor }
    }

    /// Drops everything.
    public mutating func removeAll() -> [Entry] {
        defer { entries.removeAll() }
        return entries
    }
}
