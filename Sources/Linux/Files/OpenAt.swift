// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import WireText

extension File {
    /// Opens a name in an open directory, close-on-exec.
    public static func open(_ name: String, in directory: Int32, _ flags: OpenFlags = .read) throws(Errno) -> Descriptor
    {
        Descriptor(owning: try call { openat(directory, name, flags.rawValue | O_CLOEXEC | O_NOCTTY) })
    }

    /// Creates a new file in an open directory, close-on-exec. Throws EEXIST if the name exists.
    public static func create(_ name: String, in directory: Int32, mode: UInt32) throws(Errno) -> Descriptor {
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY
        return Descriptor(owning: try call { openat(directory, name, flags, mode_t(mode)) })
    }

    /// The result of fstatat(2): the status of a name in an open directory. Symlinks are followed.
    static func status(_ name: String, in directory: Int32) throws(Errno) -> FileStatus {
        var raw = stat()
        try call { fstatat(directory, name, &raw, 0) }
        return FileStatus(raw)
    }

    /// Renames within an open directory, replacing the target.
    public static func rename(_ name: String, to other: String, in directory: Int32) throws(Errno) {
        try call { renameat(directory, name, directory, other) }
    }

    /// Removes a file (not a directory) from an open directory.
    public static func remove(_ name: String, in directory: Int32) throws(Errno) {
        try call { unlinkat(directory, name, 0) }
    }

    /// Sets owner and group of an open file.
    public static func setOwner(descriptor: Int32, uid: UInt32, gid: UInt32) throws(Errno) {
        try call { fchown(descriptor, uid, gid) }
    }

    /// The target of an open symlink (opened with ``OpenFlags/path`` and ``OpenFlags/noFollow``), cut after 4096
    /// bytes.
    public static func readLink(descriptor: Int32) throws(Errno) -> String {
        var buffer = [CChar](repeating: 0, count: 4096)
        let count = try call { readlinkat(descriptor, "", &buffer, buffer.count) }
        return String(wire: buffer[..<count].map { UInt8(bitPattern: $0) })
    }

    /// Returns the absolute path without symlinks, `.` and `..`, but only if the kernel has all components cached, so
    /// that the call never blocks on a disk or a server. Throws EAGAIN if a component is not cached, ENOSYS before
    /// Linux 5.6.
    public static func realPathInMemory(_ path: String) throws(Errno) -> String {
        do throws(Errno) {
            let descriptor = Descriptor(owning: try call { tlx_open_path_cached(path, 1) })
            return try descriptor.withRaw { raw throws(Errno) in try readLink("/proc/self/fd/\(raw)") }
        } catch {
            // The kernel also returns EAGAIN for a symlink that was not used for a day, because following it would
            // update its access time. So resolve the path step by step.
            if error != .wouldBlock { throw error }
        }
        var rest = path.split(separator: "/").map(String.init)[...]
        var found = ""
        var links = 0
        while let name = rest.popFirst() {
            if name == "." { continue }
            if name == ".." {
                found = parent(of: found) ?? ""
                if found == "/" { found = "" }
                continue
            }
            let place = "\(found)/\(name)"
            let descriptor = Descriptor(owning: try call { tlx_open_path_cached(place, 0) })
            guard let target = try? descriptor.withRaw({ raw throws(Errno) in try readLink(descriptor: raw) }) else {
                found = place
                continue
            }
            links += 1
            if links > 40 { throw .tooManySymbolicLinkLevels }
            if target.hasPrefix("/") { found = "" }
            rest = target.split(separator: "/").map(String.init) + rest
        }
        return found.isEmpty ? "/" : found
    }
}
