// SPDX-License-Identifier: Apache-2.0

import Linux

/// Files that cannot be used are kept beside the new one, for whoever wants to look.
enum Quarantine {
    /// How many of a kind are kept: a broken disk must not fill itself with them.
    static let kept = 5

    /// Renames a database and its log; returns the new name. Nothing in it is changed.
    static func move(_ path: String, suffix: String) throws(Errno) -> String {
        let stamp = TimeStamp.string(microseconds: Clock.realtimeMicroseconds()).filter { $0.isLetter || $0.isNumber }
        let base = "\(path).\(suffix)-\(stamp)"
        var target = base
        var number = 1
        while File.exists(target) {
            number += 1
            target = "\(base)-\(number)"
        }
        try File.rename(path, target)
        // The log belongs to it: beside a new file it would be taken for the new one's.
        for tail in ["-wal", "-shm", "-journal"] {
            do throws(Errno) {
                try File.rename(path + tail, target + tail)
            } catch {
                if error != .noSuchFileOrDirectory { throw error }
            }
        }
        removeOldest(of: path, suffix: suffix)
        return target
    }

    private static func removeOldest(of path: String, suffix: String) {
        guard let directory = File.parent(of: path) else { return }
        let prefix = String(path.dropFirst(directory.count).drop { $0 == "/" }) + "." + suffix + "-"
        let names = ((try? File.list(directory)) ?? []).filter { name in
            name.hasPrefix(prefix) && !["-wal", "-shm", "-journal"].contains { name.hasSuffix($0) }
        }
        for name in names.sorted().dropLast(kept) {
            for tail in ["", "-wal", "-shm", "-journal"] { try? File.remove("\(directory)/\(name)\(tail)") }
        }
    }
}
