// SPDX-License-Identifier: Apache-2.0

import Linux

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

    /// If the directory belongs to another user than `owner`, gives it to `owner`, with that user's files in it. Waits
    /// for the disk. Returns nil, or a sentence about files that kept their owner. Its subject is the app.
    static func give(_ path: String, to owner: DataPlace.Owner) throws(Errno) -> String? {
        guard Users.isRoot, try File.kind(path) == .directory else { return nil }
        let there = try File.status(path, followLinks: false)
        guard there.uid != owner.uid else { return nil }
        return try DataPlace.give(path, from: there.uid, to: owner, TreeWork())
    }
}
