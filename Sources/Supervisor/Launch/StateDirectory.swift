// SPDX-License-Identifier: Apache-2.0

import Engine
import Linux
import WireText

/// An app's state directory (TORPOR_STATE_DIRECTORY), which outlives the app. It belongs to the app's user; the
/// directories above it belong to the supervisor.
enum StateDirectory {
    /// Creates the directory and those above it. Other users can list neither the apps nor an app's files, nor read the
    /// files.
    static func make(_ path: String) throws(Errno) {
        if let parent = File.parent(of: path) { try File.makeDirectories(parent, mode: 0o711) }
        try File.makeDirectories(path, mode: 0o700)
    }

    /// Whether the directory belongs to another user than the supervisor's, and could be given to that one.
    static func isForeign(_ path: String) -> Bool {
        guard Users.isRoot, let there = try? File.status(path, followLinks: false) else { return false }
        return there.kind == .directory && there.uid != Users.effectiveUID
    }

    /// How many names in a directory are looked at for files of others.
    private static let mostLookedAt = 4_096

    /// A sentence about what in the directory belongs to other users than `owner`, to whom the directory belongs; nil
    /// if there is nothing. Its subject is the app. Looks only at the directory's own names, and waits for the disk.
    ///
    /// Earlier versions gave the directory to a new user without a former user's files. These files are not given to
    /// the new user now, because nothing says whose they are: a user can move another user's file here.
    static func othersFiles(in path: String, than owner: DataPlace.Owner) -> String? {
        guard Users.isRoot, let there = try? File.status(path, followLinks: false), there.kind == .directory,
            there.uid == owner.uid
        else { return nil }
        var (looked, count) = (0, 0)
        var first: String?
        try? File.eachName(in: path) { raw in
            let name = String(terminatedWire: raw)
            looked += 1
            if let found = try? File.status(path + "/" + name, followLinks: false), found.uid != owner.uid {
                count += 1
                if first == nil { first = "\(name), of user \(found.uid)" }
            }
            return looked < mostLookedAt
        }
        guard let first else { return nil }
        let files = count == 1 ? "a file" : Readable.count(count, "file")
        return "has \(files) of other users in \(path) (\(first)): if a former user of the app left them, "
            + "‘chown -hR \(owner.uid):\(owner.gid) \(path)’ gives them to \(owner.name)"
    }

    /// If the directory belongs to another user than `owner`, gives it to `owner`, with that user's files in it. Waits
    /// for the disk. Returns nil, or a sentence about files that kept their owner. Its subject is the app.
    static func give(_ path: String, to owner: DataPlace.Owner) throws(Errno) -> String? {
        guard Users.isRoot, try File.kind(path) == .directory else { return nil }
        let there = try File.status(path, followLinks: false)
        guard there.uid != owner.uid else { return nil }
        return try DataPlace.give(path, from: there.uid, to: owner, TreeWork())
    }
}

extension AppRuntime {
    /// Whether this torpord has looked for files of others in the app's state directory.
    var isStateDirectorySeen: Bool {
        get { slots[StateDirectorySlot.self, default: false] }
        set { slots[StateDirectorySlot.self] = newValue ? true : nil }
    }
}

private enum StateDirectorySlot: Slot { typealias Value = Bool }
