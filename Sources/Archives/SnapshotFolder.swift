// SPDX-License-Identifier: Apache-2.0

import Engine
import Linux
import TorporAPI

/// The snapshot of an app on disk: a file named after the incarnation and the type, such as `3.png`.
extension ArchiveFolder {
    /// The largest snapshot, in bytes.
    static let largestSnapshot: UInt64 = 4 << 20

    /// A snapshot on disk, as its name and stat(2) describe it.
    struct FoundSnapshot: Hashable, Sendable {
        let path: String
        let info: SnapshotInfo
    }

    /// The latest snapshot. Reads only the directory, so it does not block on a disk that hangs.
    var snapshot: FoundSnapshot? {
        let names = (try? File.list(path)) ?? []
        // If torpord was killed after it added a snapshot and before it removed the old one, there are two.
        return names.compactMap(snapshot(named:)).max { $0.info.at < $1.info.at }
    }

    private func snapshot(named name: String) -> FoundSnapshot? {
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        let file = path + "/" + name
        guard parts.count == 2, let incarnation = UInt32(parts[0]), let kind = SnapshotKind(rawValue: String(parts[1])),
            let status = try? File.status(file, followLinks: false), status.kind == .regular
        else { return nil }
        let info = SnapshotInfo(
            kind: kind,
            bytes: Int64(clamping: status.size),
            at: status.modifiedMicroseconds,
            incarnation: Int64(incarnation)
        )
        return FoundSnapshot(path: file, info: info)
    }

    // MARK: What waits for the disk

    /// Saves a snapshot in place of the previous one, which stays if anything fails. Returns the size in bytes.
    package func saveSnapshot(_ content: ArchiveContent, incarnation: UInt32) throws(ArchiveFailure) -> UInt64 {
        let bytes = try content.read(limit: Self.largestSnapshot)
        if bytes.isEmpty { throw .refused("it is empty") }
        guard let kind = SnapshotKind(content: bytes) else {
            throw .refused("it is neither PNG, JPEG, GIF or WebP nor text in UTF-8")
        }
        let name = "\(incarnation).\(kind.rawValue)"
        let count = try save(.bytes(bytes), as: name, limit: nil, owner: nil)
        for other in (try? File.list(path)) ?? [] where other != name { try? File.remove(path + "/" + other) }
        return count
    }

    /// A part of the snapshot, beginning at `offset` (bytes).
    func snapshotPart(at offset: UInt64) -> SnapshotPart {
        // Try again if a new snapshot has replaced the one that was found.
        for _ in 0..<4 {
            guard let found = snapshot else { break }
            // Do not read at or past the end of the file, which may fail. The part is empty there.
            guard offset < UInt64(clamping: found.info.bytes) else { return SnapshotPart(found.info) }
            guard let file = try? File.open(found.path, [.read, .noFollow, .nonBlocking]),
                let data = try? File.read(file.raw, at: offset, maximum: SnapshotPart.mostBytes)
            else { continue }
            return SnapshotPart(found.info, data: data)
        }
        return SnapshotPart(nil)
    }
}
