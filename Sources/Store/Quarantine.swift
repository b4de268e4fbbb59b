// SPDX-License-Identifier: Apache-2.0

import Linux

/// Renames unusable database files, so that they can be inspected while torpord uses a new file.
enum Quarantine {
    /// How many unusable files of each kind are kept. The number is limited so that a disk with a defect, on which each
    /// new file is damaged again, is not filled with them.
    static let kept = 5

    /// Renames a database file and its log, without changing their content. Returns the new name.
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
        // Rename the log too: otherwise SQLite would apply it to a new database at the old path.
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
