// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

extension Folder {
    /// The size of a folder's content.
    public struct Size: Hashable, Sendable {
        /// The number of files and folders below the measured folder.
        public var entries = 0
        /// The allocated bytes. A file with several hard links counts once for each link.
        public var bytes: UInt64 = 0
        /// Whether everything was counted. False if a folder could not be read, or if there were too many entries.
        public var isWhole = true

        /// The size of an empty folder.
        public init() {}
    }

    private static let mostMeasured = 1_000_000

    /// Counts the entries below the folder and adds up their bytes.
    ///
    /// - Throws: only ECANCELED.
    public func measure(_ work: TreeWork) throws(TreeError) -> Size {
        var size = Size()
        try each(work, depth: 0) { _, _, status in
            size.entries += 1
            size.bytes &+= status.allocated
            if size.entries >= Self.mostMeasured { size.isWhole = false }
            return size.entries < Self.mostMeasured
        } failed: {
            size.isWhole = false
        }
        return size
    }

    /// Calls `visit` for everything in the folder until `visit` returns false. Returns whether everything was visited.
    @discardableResult
    private func each(
        _ work: TreeWork,
        depth: Int,
        _ visit: (Folder, FileName, FileStatus) -> Bool,
        failed: () -> Void
    ) throws(TreeError) -> Bool {
        guard depth < Self.deepest, let names = try? names(atMost: Self.mostMeasured) else {
            failed()
            return true
        }
        for name in names {
            try work.step(place(name), entries: 1)
            // The entry was removed after it was listed, or it is a mount point, or it cannot be inspected.
            guard let found = try? status(name) else {
                failed()
                continue
            }
            guard visit(self, name, found) else { return false }
            guard found.kind == .directory else { continue }
            guard let below = try? folder(name) else {
                failed()
                continue
            }
            guard try below.each(work, depth: depth + 1, visit, failed: failed) else { return false }
        }
        return true
    }

    // MARK: Removing what was used longest ago

    /// The result of removing the oldest files.
    public struct Freed: Hashable, Sendable {
        /// How many files were removed.
        public var files = 0
        /// How many bytes the removed files occupied.
        public var bytes: UInt64 = 0
    }

    private struct Candidate {
        let used: Int64
        let bytes: UInt64
        let folder: Int
        let name: FileName
    }

    private static let mostCandidates = 100_000

    /// Removes regular files until `bytes` are freed. Files that were neither read nor changed for the longest time are
    /// removed first. Keeps folders, and files with several hard links, because removing one of the links frees
    /// nothing. ``TreeWork/cancel()`` stops the removal early.
    public func removeOldest(bytes enough: UInt64, _ work: TreeWork) -> Freed {
        // A folder refers to its parent by an index in this array, because full paths would use too much memory.
        var folders: [(parent: Int, name: FileName)] = [(-1, FileName("."))]
        var candidates: [Candidate] = []
        try? gather(work, 0, 0, &folders, &candidates)
        candidates.sort { $0.used < $1.used }
        var freed = Freed()
        for candidate in candidates where freed.bytes < enough {
            guard (try? work.step("")) != nil else { break }
            guard let place = folder(candidate.folder, folders), (try? place.remove(candidate.name)) != nil else {
                continue
            }
            freed.files += 1
            freed.bytes &+= candidate.bytes
        }
        return freed
    }

    private func gather(
        _ work: TreeWork,
        _ number: Int,
        _ depth: Int,
        _ folders: inout [(parent: Int, name: FileName)],
        _ candidates: inout [Candidate]
    ) throws(TreeError) {
        guard depth < Self.deepest, let names = try? names(atMost: Self.mostCandidates) else { return }
        for name in names {
            try work.step("", entries: 1)
            guard candidates.count < Self.mostCandidates, folders.count < Self.mostCandidates else { return }
            guard let found = try? status(name) else { continue }
            switch found.kind {
            case .regular where found.links == 1 && found.allocated > 0:
                let used = max(found.accessedMicroseconds, found.modifiedMicroseconds)
                candidates.append(Candidate(used: used, bytes: found.allocated, folder: number, name: name))
            case .directory:
                guard let below = try? folder(name) else { continue }
                folders.append((number, name))
                try below.gather(work, folders.count - 1, depth + 1, &folders, &candidates)
            case .regular, .link, .fifo, .socket, .character, .block, .other: continue
            }
        }
    }

    private func folder(_ number: Int, _ folders: [(parent: Int, name: FileName)]) -> Folder? {
        var way: [FileName] = []
        var at = number
        while at > 0 {
            way.append(folders[at].name)
            at = folders[at].parent
        }
        var folder = self
        for name in way.reversed() {
            guard let next = try? folder.folder(name) else { return nil }
            folder = next
        }
        return folder
    }

    // MARK: Another owner

    /// Changes the owner of this folder and of everything below it from the user `old` to `user`. Entries of other
    /// users keep their owner. The folder itself is changed last: if the work is interrupted, the folder still has the
    /// old owner, which shows that the work must be repeated. Files with several hard links keep their owner, because
    /// another link may be outside the folder.
    ///
    /// - Throws: ECANCELED, or the error for the folder itself.
    public func give(
        from old: UInt32,
        to user: (uid: UInt32, gid: UInt32),
        _ work: TreeWork
    ) throws(TreeError) -> Emptied {
        var result = Emptied()
        try give(old, user, work, 0, &result)
        do throws(Errno) {
            _ = try descriptor.withRaw { raw throws(Errno) in try call { fchown(raw, user.uid, user.gid) } }
        } catch {
            throw TreeError(path, error)
        }
        return result
    }

    private func give(
        _ old: UInt32,
        _ user: (uid: UInt32, gid: UInt32),
        _ work: TreeWork,
        _ depth: Int,
        _ result: inout Emptied
    ) throws(TreeError) {
        func note(_ name: FileName, _ error: Errno) {
            result.left += 1
            if result.first == nil { result.first = TreeError(place(name), error) }
        }
        let names: [FileName]
        do throws(Errno) {
            names = try self.names(atMost: Self.mostMeasured)
        } catch {
            result.left += 1
            if result.first == nil { result.first = TreeError(path, error) }
            return
        }
        for name in names {
            try work.step(place(name), entries: 1)
            do throws(Errno) {
                let entry = try open(name, .path)
                let status = try entry.withRaw { raw throws(Errno) in try File.status(descriptor: raw) }
                guard status.uid == old else { continue }
                if status.kind == .directory {
                    guard depth < Self.deepest else { throw .fileTooLarge }
                    let below = try folder(name)
                    do throws(TreeError) {
                        try below.give(old, user, work, depth + 1, &result)
                    } catch {
                        throw error.errno
                    }
                } else if status.links > 1 {
                    throw .tooManyLinks
                }
                _ = try entry.withRaw { raw throws(Errno) in try call { tlx_set_owner(raw, user.uid, user.gid) } }
                result.removed += 1
            } catch {
                if error == .canceled { throw TreeError(place(name), error) }
                if error != .noSuchFileOrDirectory { note(name, error) }
            }
        }
    }
}

/// The capacity and free space of a filesystem.
public struct FilesystemSpace: Hashable, Sendable {
    /// The filesystem's capacity in bytes.
    public let total: UInt64
    /// The bytes that users without privileges can still use.
    public let free: UInt64

    /// Reads the space of an open file's filesystem. The call may block on a disk.
    public init(of descriptor: Int32) throws(Errno) {
        var raw = statvfs()
        try call { fstatvfs(descriptor, &raw) }
        total = UInt64(raw.f_blocks) &* UInt64(raw.f_frsize)
        free = UInt64(raw.f_bavail) &* UInt64(raw.f_frsize)
    }

    /// Reads the space of the filesystem at a path. The call may block on a disk.
    public init(of path: String) throws(Errno) {
        var raw = statvfs()
        try call { statvfs(path, &raw) }
        total = UInt64(raw.f_blocks) &* UInt64(raw.f_frsize)
        free = UInt64(raw.f_bavail) &* UInt64(raw.f_frsize)
    }
}
