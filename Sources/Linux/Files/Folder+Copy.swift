// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

extension Folder {
    /// The result of copying a folder.
    public struct Copied: Hashable, Sendable {
        /// How many files, symlinks and folders were created.
        public var made = 0
        /// How many bytes of file content were copied.
        public var bytes: UInt64 = 0
        /// How many entries were skipped because their names already exist in the target folder.
        public var present = 0
        /// How many devices, FIFOs and sockets were found, which are not copied.
        public var special = 0
        /// The path of the first device, FIFO or socket that was not copied.
        public var firstSpecial: String?
    }

    /// The maximum number of entries that are copied, including folders.
    public static let mostEntries = 100_000

    /// Copies files, symlinks (as symlinks) and folders from `source` into this folder. An entry whose name already
    /// exists in this folder is skipped, so that nothing is overwritten. Each file is first written in `draft`, a
    /// folder on the same filesystem, then synced to the disk and renamed, so that no partial file ever appears. Copies
    /// keep the permission bits except setuid, setgid and sticky, and their owner always gets read and write access.
    ///
    /// - Throws: errors of reading or writing; EFBIG for more than ``mostEntries`` or too deep a tree.
    public func copyMissing(from source: Folder, draft: Folder, _ work: TreeWork) throws(TreeError) -> Copied {
        var result = Copied()
        try copyMissing(from: source, draft: draft, work, depth: 0, &result)
        return result
    }

    private func copyMissing(
        from source: Folder,
        draft: Folder,
        _ work: TreeWork,
        depth: Int,
        _ result: inout Copied
    ) throws(TreeError) {
        if depth >= Self.deepest { throw TreeError(source.path, .fileTooLarge) }
        let names = try Self.at(source.path) { () throws(Errno) in
            do throws(Errno) {
                return try source.allNames(atMost: Self.mostEntries)
            } catch {
                throw error == .tooManyOpenFilesInSystem ? .fileTooLarge : error
            }
        }
        let before = result.made
        for name in names {
            let place = source.place(name)
            try work.step(place, entries: 1)
            if work.entries > Self.mostEntries { throw TreeError(place, .fileTooLarge) }
            guard let status = try Self.at(place, { () throws(Errno) in try source.status(name) }) else { continue }
            switch status.kind {
            case .regular: try copyFile(name, from: source, draft: draft, work, &result)
            case .link: try copyLink(name, from: source, place, &result)
            case .directory:
                guard let (below, to) = try makeFolder(name, as: status, from: source, place, &result) else { continue }
                try to.copyMissing(from: below, draft: draft, work, depth: depth + 1, &result)
            case .fifo, .socket, .character, .block, .other:
                result.special += 1
                if result.firstSpecial == nil { result.firstSpecial = place }
            }
        }
        if result.made > before { try Self.at(path) { () throws(Errno) in try synchronise() } }
    }

    private static func at<T>(_ place: String, _ body: () throws(Errno) -> T) throws(TreeError) -> T {
        do throws(Errno) {
            return try body()
        } catch {
            throw TreeError(place, error)
        }
    }

    private func has(_ name: FileName, _ result: inout Copied) throws(Errno) -> Bool {
        do throws(Errno) {
            guard try status(name) != nil else { return false }
        } catch {
            // EXDEV: the name is a mount point in this folder. It exists already, so nothing is copied to it.
            guard error == .improperLink else { throw error }
        }
        result.present += 1
        return true
    }

    private func makeFolder(
        _ name: FileName,
        as status: FileStatus,
        from source: Folder,
        _ place: String,
        _ result: inout Copied
    ) throws(TreeError) -> (from: Folder, to: Folder)? {
        let below = try Self.at(place) { () throws(Errno) in try source.folder(name) }
        return try Self.at(place) { () throws(Errno) in
            do throws(Errno) {
                try makeFolder(name, mode: status.mode & 0o777 | 0o700)
                result.made += 1
            } catch {
                guard error == .fileExists else { throw error }
                result.present += 1
            }
            do throws(Errno) {
                return (below, try folder(name))
            } catch {
                // The existing entry is a file, a symlink or a mount point, so nothing is copied into it.
                guard error == .notDirectory || error == .tooManySymbolicLinkLevels || error == .improperLink else {
                    throw error
                }
                return nil
            }
        }
    }

    private func copyLink(
        _ name: FileName,
        from source: Folder,
        _ place: String,
        _ result: inout Copied
    ) throws(TreeError) {
        try Self.at(place) { () throws(Errno) in
            var target = [CChar](repeating: 0, count: 4097)
            _ = try source.descriptor.withRaw { raw throws(Errno) in
                try call { readlinkat(raw, name.bytes, &target, 4096) }
            }
            do throws(Errno) {
                _ = try descriptor.withRaw { raw throws(Errno) in try call { symlinkat(target, raw, name.bytes) } }
                result.made += 1
            } catch {
                guard error == .fileExists else { throw error }
                result.present += 1
            }
        }
    }

    private static let draftName = FileName("file")

    private func copyFile(
        _ name: FileName,
        from source: Folder,
        draft: Folder,
        _ work: TreeWork,
        _ result: inout Copied
    ) throws(TreeError) {
        let place = source.place(name)
        if try Self.at(place, { () throws(Errno) in try has(name, &result) }) { return }
        let file = try Self.at(place) { () throws(Errno) in try source.open(name, [.read, .nonBlocking]) }
        let status = try Self.at(place) { () throws(Errno) in
            try file.withRaw { raw throws(Errno) in try File.status(descriptor: raw) }
        }
        // Another file has replaced the entry since it was listed, and is not a regular file.
        guard status.kind == .regular else { return }
        let copy = try Self.at(place) { () throws(Errno) in
            try? draft.remove(Self.draftName)
            return Descriptor(
                owning: try draft.descriptor.withRaw { raw throws(Errno) in
                    try call {
                        openat(
                            raw,
                            Self.draftName.bytes,
                            O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                            mode_t(0o600)
                        )
                    }
                }
            )
        }
        do throws(TreeError) {
            result.bytes &+= try Self.copyBytes(from: file, to: copy, place, work)
            try Self.at(place) { () throws(Errno) in
                try copy.withRaw { raw throws(Errno) in
                    try File.setMode(descriptor: raw, status.mode & 0o777 | 0o600)
                    try File.synchronise(raw)
                }
                do throws(Errno) {
                    try call { tlx_rename_absent(draft.raw, Self.draftName.bytes, raw, name.bytes) }
                    result.made += 1
                } catch {
                    guard error == .fileExists else { throw error }
                    result.present += 1
                    try draft.remove(Self.draftName)
                }
            }
        } catch {
            try? draft.remove(Self.draftName)
            throw error
        }
    }

    private static func copyBytes(
        from source: Descriptor,
        to copy: Descriptor,
        _ place: String,
        _ work: TreeWork
    ) throws(TreeError) -> UInt64 {
        var total: UInt64 = 0
        while true {
            let bytes = try at(place) { () throws(Errno) in
                try source.withRaw { raw throws(Errno) in try Descriptor.read(raw, maximum: 256 << 10) ?? [] }
            }
            if bytes.isEmpty { return total }
            try work.step(place, bytes: UInt64(bytes.count))
            try at(place) { () throws(Errno) in
                try copy.withRaw { raw throws(Errno) in try Descriptor.writeAll(raw, bytes) }
            }
            total &+= UInt64(bytes.count)
        }
    }
}
