// SPDX-License-Identifier: Apache-2.0

import Linux

/// A database that torpord could not use and renamed (``Quarantine``), as its name says.
public struct SetAsideFile: Sendable, Hashable {
    /// Why torpord could not use the database.
    public enum Cause: String, Sendable, Hashable {
        /// The file was damaged or emptied.
        case damaged = "corrupt"
        /// Another program wrote the file.
        case foreign
        /// A later torpord wrote the file.
        case newer
    }

    /// The path of the file now.
    public let path: String
    /// Why torpord could not use it.
    public let cause: Cause
    /// When it was renamed, in microseconds since 1970.
    public let at: Int64

    /// Reads the name of a file that was renamed; nil if it is another file, or the log of a database.
    init?(_ path: String, of database: String) {
        guard path.hasPrefix(database + ".") else { return nil }
        let parts = path.dropFirst(database.count + 1).split(separator: "-")
        guard let first = parts.first, let cause = Cause(rawValue: String(first)),
            !["wal", "shm", "journal"].contains(parts.last ?? ""),
            let at = parts.lazy.compactMap({ Self.time(Array($0.utf8)) }).first
        else { return nil }
        (self.path, self.cause, self.at) = (path, cause, at)
    }

    /// Lists the databases that were renamed at or after `earliest` (microseconds since 1970) and are still there, the
    /// oldest first; nil if the folder cannot be read. Waits for the disk.
    public static func list(of database: String, since earliest: Int64) -> [SetAsideFile]? {
        guard let directory = File.parent(of: database), let names = try? File.list(directory) else { return nil }
        return names.compactMap { SetAsideFile("\(directory)/\($0)", of: database) }.filter { $0.at >= earliest }
            .sorted { ($0.at, $0.path) < ($1.at, $1.path) }
    }

    /// The time in a name, such as `20261130T201500123Z`.
    private static func time(_ stamp: [UInt8]) -> Int64? {
        guard stamp.count == 19 else { return nil }
        var text: [UInt8] = []
        for (index, byte) in stamp.enumerated() {
            switch index {
            case 4, 6: text.append(UInt8(ascii: "-"))
            case 11, 13: text.append(UInt8(ascii: ":"))
            case 15: text.append(UInt8(ascii: "."))
            default: break
            }
            text.append(byte)
        }
        return TimeStamp.parse(text)
    }
}
