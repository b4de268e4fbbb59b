// SPDX-License-Identifier: Apache-2.0

public import Linux

/// A watched place in the file system, whether or not it exists.
public struct Place: Hashable, Sendable {
    /// Which events count.
    public enum Interest: Hashable, Sendable {
        /// Whether something exists at the path.
        case existence
        /// Whether the directory has entries.
        case entries
        /// Changes: a file is closed after writing, gets another mode, or is replaced, created or removed. For a
        /// directory, also changes of the files in it.
        case changes
        /// Like `changes`, plus each single write.
        case writes
        /// Like `changes`, but only if the content has changed.
        case content

        /// The events to watch the file or directory itself for.
        var events: Inotify.Events {
            switch self {
            case .existence: []
            case .entries: [.created, .movedHere]
            case .changes: [.writtenAndClosed, .attributes, .created, .deleted, .movedAway, .movedHere]
            case .writes: [.writtenAndClosed, .modified, .attributes, .created, .deleted, .movedAway, .movedHere]
            case .content: [.writtenAndClosed, .created, .deleted, .movedAway, .movedHere]
            }
        }
    }

    /// Absolute; each component may be a pattern of glob(7).
    public var path: String
    /// Which events count.
    public var interest: Interest

    /// The permissions with which the place is inspected and watched; nil for this process's own.
    public var rights: FileRights?

    /// Creates a place.
    public init(_ path: String, _ interest: Interest, as rights: FileRights? = nil) {
        self.path = path
        self.interest = interest
        self.rights = rights
    }
}

/// What a walk found at one path.
public struct Found: Hashable, Sendable {
    /// Device and inode number.
    var device: UInt64
    var inode: UInt64
    var size: UInt64
    /// Last modification, microseconds since 1970.
    var modified: Int64
    /// For a directory: whether it has entries.
    var hasEntries: Bool?

    init(_ status: FileStatus, hasEntries: Bool?) {
        device = status.device
        inode = status.inode
        size = status.size
        modified = status.modifiedMicroseconds
        self.hasEntries = hasEntries
    }

    init?(text: Substring) {
        let numbers = text.split(separator: " ").compactMap { Int64($0) }
        guard numbers.count == 5 else { return nil }
        device = UInt64(bitPattern: numbers[0])
        inode = UInt64(bitPattern: numbers[1])
        size = UInt64(bitPattern: numbers[2])
        modified = numbers[3]
        hasEntries = numbers[4] < 0 ? nil : numbers[4] > 0
    }

    var text: String {
        let entries = hasEntries.map { $0 ? 1 : 0 } ?? -1
        let numbers = [device, inode, size].map { Int64(bitPattern: $0) } + [modified, Int64(entries)]
        return numbers.map(String.init).joined(separator: " ")
    }
}

/// A report about a place.
public struct PathNews: Sendable {
    /// The key of the place.
    public let key: String
    /// The paths where events happened, up to ``PathWatcher/mostPaths``.
    public let paths: [String]
    /// Whether anything happened; `paths` may be empty if the details were lost.
    public let isNew: Bool
    /// The path that exists (`existence`), or the directory that has entries (`entries`); nil if there is none.
    public let holds: String?
    /// Why the place cannot be watched, as a sentence; nil if it can.
    public let trouble: String?
}
