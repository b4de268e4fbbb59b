// SPDX-License-Identifier: Apache-2.0

public import Linux

/// A place in the file system that is watched, whether or not there is anything.
public struct Place: Hashable, Sendable {
    /// What of it counts.
    public enum Interest: Hashable, Sendable {
        /// Whether there is something.
        case existence
        /// Whether something is in the directory.
        case entries
        /// What is there: written and closed, another mode, replaced, made, removed; of a directory, also in it.
        case changes
        /// As `changes`, and each write.
        case writes
        /// As `changes`, but only if its content is another one.
        case content

        /// What the file or directory itself is watched for.
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

    /// Absolute; in each part of it patterns as glob(7) has them.
    public var path: String
    /// What of it counts.
    public var interest: Interest

    /// With whose rights it is looked at and watched; nil: with this process's own.
    public var rights: FileRights?

    /// A place.
    public init(_ path: String, _ interest: Interest, as rights: FileRights? = nil) {
        self.path = path
        self.interest = interest
        self.rights = rights
    }
}

/// What was found at one path.
public struct Found: Hashable, Sendable {
    /// The device and the number on it.
    var device: UInt64
    var inode: UInt64
    var size: UInt64
    /// Microseconds since 1970.
    var modified: Int64
    /// Of a directory: whether something is in it.
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

/// What became of a place.
public struct PathNews: Sendable {
    /// Which place, as its owner calls it.
    public let key: String
    /// What happened, path by path; the first few.
    public let paths: [String]
    /// Whether anything happened: `paths` may be empty where it was missed which.
    public let isNew: Bool
    /// Where there is something now (`existence`), or the directory that has something in it (`entries`).
    public let holds: String?
    /// Why it cannot be watched, in a sentence.
    public let trouble: String?
}
