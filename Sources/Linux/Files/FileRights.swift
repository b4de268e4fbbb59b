// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// The rights of a user. torpord uses them to read files that a configuration names for that user.
///
/// Root may read every file, and a user that can write to a directory of a path can redirect the path to any file.
/// While a thread acts with a user's rights, the kernel lets the thread read only what that user may read, even if the
/// path was redirected.
public struct FileRights: Hashable, Sendable {
    /// The user's name, for messages.
    public let name: String
    /// The user's uid.
    public let uid: UInt32
    /// The user's gid.
    public let gid: UInt32
    /// All groups of the user.
    public let groups: [UInt32]

    /// Creates the rights of a user. Nil if this process is not root, because it then cannot change its rights, and nil
    /// if the user is root, because no change is needed.
    public init?(name: String, uid: UInt32, gid: UInt32, groups: [UInt32]) {
        guard Users.isRoot, uid != 0 else { return nil }
        (self.name, self.uid, self.gid, self.groups) = (name, uid, gid, groups)
    }

    /// Runs `body` on this thread with the user's rights (setfsuid(2)). Other threads are not affected. Calls must not
    /// be nested.
    ///
    /// Throws the errors of `body`. Throws EPERM, without running `body`, if the rights cannot be assumed.
    public func acting<T>(_ body: () throws(Errno) -> T) throws(Errno) -> T {
        try call { tlx_act_as(uid, gid, groups, groups.count) }
        defer { tlx_act_as_before() }
        return try body()
    }

    /// If the caller is inside ``acting(_:)``, runs `body` with the process's own rights. Otherwise just runs `body`.
    public static func pausing<T>(_ body: () throws(Errno) -> T) throws(Errno) -> T {
        tlx_act_as_oneself(1)
        defer { tlx_act_as_oneself(0) }
        return try body()
    }

    /// Throws EACCES or another error if a user with these rights may not read or, with `writing`, write the file at a
    /// path, or make a file there. Follows symlinks, as that user. Does not open the file.
    public static func requireAccess(_ path: String, writing: Bool, as rights: FileRights) throws(Errno) {
        // AT_EACCESS: judge by the rights with which this thread acts.
        func require(_ path: String, _ mode: Int32) throws(Errno) {
            try call { faccessat(AT_FDCWD, path, mode, AT_EACCESS) }
        }
        try rights.acting { () throws(Errno) in
            do throws(Errno) {
                try require(path, writing ? W_OK : R_OK)
            } catch {
                guard error == .noSuchFileOrDirectory, writing, let folder = File.parent(of: path) else { throw error }
                try require(folder, W_OK | X_OK)
            }
        }
    }

    /// The result of stat(2) for a path, following symlinks, with these rights; nil means the process's own rights.
    public static func status(_ path: String, as rights: FileRights?) throws(Errno) -> FileStatus {
        guard let rights else { return try File.status(path) }
        return try rights.acting { () throws(Errno) in try File.status(path) }
    }
}
