// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// The rights with which torpord changes a path from the configuration.
///
/// Root may change every file, and a user that can write to a directory of the path can redirect the path to any file.
/// So torpord creates and removes files at such a path with the rights of that directory's owner (setfsuid(2)), and the
/// kernel allows only what that owner may do.
public enum PathRights {
    /// Runs `body` with the rights for changes at `path`. Throws the errors of `body`.
    ///
    /// If this process is not root, it just calls `body`.
    @discardableResult
    public static func acting<T, Failure: Error>(
        at path: String,
        _ body: () throws(Failure) -> T
    ) throws(Failure) -> T {
        guard Users.isRoot, let who = owner(ofWayTo: path) else { return try body() }
        guard tlx_act_as(who.uid, who.gid, nil, 0) == 0 else { return try body() }
        defer { tlx_act_as_before() }
        return try body()
    }

    /// The user or group that can redirect a path, because it may replace an entry in one of the path's directories. If
    /// this is possible in several directories, the last of them counts. Nil if only root and this process's user can
    /// redirect the path.
    ///
    /// The result depends on the directory:
    ///
    /// - If the directory's owner is neither root nor this process's user: the owner, with group nobody.
    /// - Otherwise, if the directory is sticky and contains an entry of another user: that user, with group nobody.
    /// - Otherwise, if only a group may write to the directory: user nobody, with that group.
    /// - In all other cases, and if the path cannot be inspected: user nobody, with group nobody.
    public static func owner(ofWayTo path: String) -> (uid: UInt32, gid: UInt32)? {
        do throws(Errno) {
            return try findOwner(ofWayTo: path)
        } catch {
            return (nobody, nobody)
        }
    }

    private static func findOwner(ofWayTo path: String) throws(Errno) -> (uid: UInt32, gid: UInt32)? {
        var folder = try File.open("/", [.path, .directory])
        var names = path.split(separator: "/").filter { $0 != "." }
        var who: (uid: UInt32, gid: UInt32)?
        var links = 0
        while !names.isEmpty {
            let name = names.removeFirst()
            let around = try File.status(descriptor: folder.raw)
            let next = try open(name, in: folder)
            let found = try next.map { next throws(Errno) in try File.status(descriptor: next.raw) }
            if let stranger = stranger(in: around, found, isLast: names.isEmpty) { who = stranger }
            guard let next, let found else { return who }
            switch found.kind {
            case .directory: folder = next
            case .link:
                // Another user already controls the path, so do not follow the symlink here. The kernel checks the
                // target later, with that user's rights.
                guard who == nil else { return who }
                links += 1
                guard links <= 40 else { throw .tooManySymbolicLinkLevels }
                let target = try File.readLink(descriptor: next.raw)
                if target.hasPrefix("/") { folder = try File.open("/", [.path, .directory]) }
                names = target.split(separator: "/").filter { $0 != "." } + names
            default: return who
            }
        }
        return who
    }

    /// Opens a name in a folder; nil if it does not exist.
    private static func open(_ name: Substring, in folder: Descriptor) throws(Errno) -> Descriptor? {
        do throws(Errno) {
            return try File.open(String(name), in: folder.raw, [.path, .noFollow])
        } catch {
            if error == .noSuchFileOrDirectory { return nil }
            throw error
        }
    }

    /// The user, other than root and this process's user, that can replace an entry of this folder; nil if there is
    /// none.
    private static func stranger(
        in folder: FileStatus,
        _ found: FileStatus?,
        isLast: Bool
    ) -> (uid: UInt32, gid: UInt32)? {
        func isOurs(_ uid: UInt32) -> Bool { uid == 0 || uid == Users.effectiveUID }
        guard isOurs(folder.uid) else { return (folder.uid, nobody) }
        guard folder.mode & 0o022 != 0, let found, !isLast || found.kind == .link else { return nil }
        // In a sticky folder, a user can replace only its own entries. But a user can move a file or symlink of root
        // from a folder of its own into the sticky folder; the kernel prevents this only for directories (rename(2)).
        // So only directories are safe in a sticky folder. Without the sticky bit, every member of the folder's group
        // can replace all entries.
        if folder.mode & 0o1000 != 0 {
            if !isOurs(found.uid) { return (found.uid, nobody) }
            return found.kind == .directory ? nil : (nobody, nobody)
        }
        return (nobody, folder.mode & 0o002 != 0 ? nobody : folder.gid)
    }

    /// The uid and gid of user nobody.
    private static let nobody: UInt32 = 65534

    /// Opens the socket at a path with O_PATH. Refuses any other kind of file, which may have replaced the socket.
    ///
    /// - Parameter user: the required owner of the socket.
    /// - Throws: ENOENT if another file or another owner's socket is there.
    static func openSocket(_ path: String, of user: UInt32) throws(Errno) -> Descriptor {
        let node = try File.open(path, [.path, .noFollow])
        let status = try File.status(descriptor: node.raw)
        guard status.kind == .socket, status.uid == user, status.links == 1 else { throw .noSuchFileOrDirectory }
        return node
    }
}

extension File {
    /// Sets owner and permission bits of an open file, even of one opened with O_PATH; nil leaves a value unchanged.
    static func set(_ descriptor: Int32, uid: UInt32?, gid: UInt32?, mode: UInt32) throws(Errno) {
        if uid != nil || gid != nil {
            try call { tlx_set_owner(descriptor, uid ?? .max, gid ?? .max) }
        }
        try call { chmod("/proc/self/fd/\(descriptor)", mode_t(mode)) }
    }
}
