// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// With whose rights files are looked at that a configuration names for somebody else.
///
/// Root may look anywhere, and whoever may write to a folder on the way of a path can lead it elsewhere at any instant. With
/// these rights the kernel lets a thread do no more than that user could do by itself, wherever the path leads.
public struct FileRights: Hashable, Sendable {
    /// The user, as a sentence calls it.
    public let name: String
    /// The user.
    public let uid: UInt32
    /// Its group.
    public let gid: UInt32
    /// All its groups.
    public let groups: [UInt32]

    /// Those of a user; nil where they are this process's own, or not less: then there are none to take.
    public init?(name: String, uid: UInt32, gid: UInt32, groups: [UInt32]) {
        guard Users.isRoot, uid != 0 else { return nil }
        (self.name, self.uid, self.gid, self.groups) = (name, uid, gid, groups)
    }

    /// Runs `body` with these rights on this thread (setfsuid(2)), which others do not notice. Not within itself.
    ///
    /// Errors are those of `body`, or EPERM where the rights cannot be had, and nothing is run.
    public func acting<T>(_ body: () throws(Errno) -> T) throws(Errno) -> T {
        try call { tlx_act_as(uid, gid, groups, groups.count) }
        defer { tlx_act_as_before() }
        return try body()
    }

    /// Runs `body` with the process's own rights in the middle of ``acting(_:)``; elsewhere as it is.
    public static func pausing<T>(_ body: () throws(Errno) -> T) throws(Errno) -> T {
        tlx_act_as_oneself(1)
        defer { tlx_act_as_oneself(0) }
        return try body()
    }

    /// What is at a path, links followed, as it is seen with these rights; nil: with the process's own.
    public static func status(_ path: String, as rights: FileRights?) throws(Errno) -> FileStatus {
        guard let rights else { return try File.status(path) }
        return try rights.acting { () throws(Errno) in try File.status(path) }
    }
}
