// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// The rights of a user, with which this process reads files that a configuration names for that user.
///
/// Root may read every file, and a user that can write to a directory of a path can redirect the path to any file.
/// While a thread acts with these rights, the kernel lets it read only what that user may read, even if the path was
/// redirected.
public struct FileRights: Hashable, Sendable {
    /// The user's name, for messages.
    public let name: String
    /// The user's uid.
    public let uid: UInt32
    /// The user's gid.
    public let gid: UInt32
    /// All groups of the user.
    public let groups: [UInt32]

    /// Creates the rights of a user; nil if this process is not root, since it then cannot change its rights, or if
    /// the user is root, since it then need not.
    public init?(name: String, uid: UInt32, gid: UInt32, groups: [UInt32]) {
        guard Users.isRoot, uid != 0 else { return nil }
        (self.name, self.uid, self.gid, self.groups) = (name, uid, gid, groups)
    }

    /// Runs `body` with the user's rights on this thread (setfsuid(2)); other threads are not affected. Calls must
    /// not be nested.
    ///
    /// Throws the errors of `body`, or EPERM if the rights cannot be assumed; then `body` does not run.
    public func acting<T>(_ body: () throws(Errno) -> T) throws(Errno) -> T {
        try call { tlx_act_as(uid, gid, groups, groups.count) }
        defer { tlx_act_as_before() }
        return try body()
    }

    /// Within ``acting(_:)``, runs `body` with the process's own rights. Elsewhere, just runs `body`.
    public static func pausing<T>(_ body: () throws(Errno) -> T) throws(Errno) -> T {
        tlx_act_as_oneself(1)
        defer { tlx_act_as_oneself(0) }
        return try body()
    }

    /// stat(2) of a path, following symlinks, with these rights; nil for the process's own.
    public static func status(_ path: String, as rights: FileRights?) throws(Errno) -> FileStatus {
        guard let rights else { return try File.status(path) }
        return try rights.acting { () throws(Errno) in try File.status(path) }
    }
}
