// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

extension Folder {
    /// The result of emptying a folder.
    public struct Emptied: Hashable, Sendable {
        /// How many files and folders were removed.
        public var removed = 0
        /// How many files and folders could not be removed.
        public var left = 0
        /// The first error; nil if there was none.
        public var first: TreeError?
    }

    /// The maximum number of nested folders that are open at the same time. Each uses a descriptor.
    static let deepest = 100
    private static let batch = 1024

    /// Removes everything in the folder, with this thread's permissions. If the mode of a folder denies access to its
    /// owner, changes the mode first.
    ///
    /// - Throws: only ECANCELED.
    public func empty(_ work: TreeWork) throws(TreeError) -> Emptied {
        var result = Emptied()
        try empty(work, self, depth: 0, &result)
        return result
    }

    /// Empties a subfolder. If the mode of a folder denies access to its owner, changes the mode first.
    ///
    /// - Throws: ECANCELED, or the error of opening the subfolder.
    public func emptyFolder(_ name: FileName, _ work: TreeWork) throws(TreeError) -> Emptied {
        do throws(Errno) {
            return try openAnyhow(name).empty(reporting: work)
        } catch {
            throw TreeError(place(name), error)
        }
    }

    private func empty(reporting work: TreeWork) throws(Errno) -> Emptied {
        do throws(TreeError) {
            return try empty(work)
        } catch {
            throw error.errno
        }
    }

    /// Removes a file, or a folder with its content.
    ///
    /// - Throws: only ECANCELED.
    public func removeTree(_ name: FileName, _ work: TreeWork) throws(TreeError) -> Emptied {
        var result = Emptied()
        _ = try remove(name, work, self, depth: 0, &result)
        return result
    }

    private func empty(_ work: TreeWork, _ root: Folder, depth: Int, _ result: inout Emptied) throws(TreeError) {
        var stuck: Set<FileName> = []
        makeWritable()
        while stuck.count < Self.batch {
            let names: [FileName]
            do throws(Errno) {
                names = try self.names(atMost: Self.batch, except: stuck)
            } catch {
                return Self.note(TreeError(path, error), &result)
            }
            if names.isEmpty { return }
            for name in names where !(try remove(name, work, root, depth: depth, &result)) { stuck.insert(name) }
        }
    }

    /// Removes a file, or a folder with its content. Returns whether it was removed.
    private func remove(
        _ name: FileName,
        _ work: TreeWork,
        _ root: Folder,
        depth: Int,
        _ result: inout Emptied
    ) throws(TreeError) -> Bool {
        try work.step(place(name), entries: 1)
        do throws(Errno) {
            do throws(Errno) {
                try remove(name)
            } catch {
                // unlink(2) of a directory fails with EISDIR on Linux, and with EPERM in POSIX.
                guard error == .isDirectory || error == .notPermitted else { throw error }
                return try removeFolder(name, work, root, depth, &result)
            }
            result.removed += 1
            return true
        } catch {
            if error == .canceled { throw TreeError(place(name), error) }
            if error == .noSuchFileOrDirectory { return true }
            Self.note(TreeError(place(name), error), &result)
            return false
        }
    }

    private func removeFolder(
        _ name: FileName,
        _ work: TreeWork,
        _ root: Folder,
        _ depth: Int,
        _ result: inout Emptied
    ) throws(Errno) -> Bool {
        do throws(Errno) {
            try removeFolder(name)
            result.removed += 1
            return true
        } catch {
            guard error == .directoryNotEmpty || error == .fileExists else { throw error }
        }
        if depth >= Self.deepest {
            // The tree is too deep. Move the subfolder to the top folder and empty it there, to limit the numbers of
            // open descriptors and stack frames.
            let hoisted = ".torpor-deep-\(work.entries)"
            try call { renameat(raw, name.bytes, root.raw, hoisted) }
            return true
        }
        let folder = try openAnyhow(name)
        let before = result.left
        do throws(TreeError) {
            try folder.empty(work, root, depth: depth + 1, &result)
        } catch {
            throw error.errno
        }
        // The folder is not empty, because an entry in it could not be removed. That entry is already counted in
        // `left`.
        if result.left > before { return false }
        try removeFolder(name)
        result.removed += 1
        return true
    }

    /// Opens a folder. If the folder's mode denies access to its owner, changes the mode first.
    private func openAnyhow(_ name: FileName) throws(Errno) -> Folder {
        do throws(Errno) {
            return try folder(name)
        } catch {
            guard error == .permissionDenied else { throw error }
        }
        _ = try open(name, [.path, .directory]).withRaw { raw throws(Errno) in
            try call { chmod("/proc/self/fd/\(raw)", 0o700) }
        }
        return try folder(name)
    }

    private func makeWritable() {
        guard let status = try? status(), status.mode & 0o700 != 0o700 else { return }
        try? descriptor.withRaw { raw throws(Errno) in
            try File.setMode(descriptor: raw, status.mode | 0o700)
        }
    }

    private static func note(_ error: TreeError, _ result: inout Emptied) {
        result.left += 1
        if result.first == nil { result.first = error }
    }
}
