// SPDX-License-Identifier: Apache-2.0

import Glibc
import WireText

/// An entry of the user database.
public struct User: Hashable, Sendable {
    /// The login name.
    public let name: String
    /// The user's uid.
    public let uid: UInt32
    /// The primary group's gid.
    public let gid: UInt32
    /// The home directory.
    public let home: String
    /// The login shell.
    public let shell: String

    /// Creates a user from its parts. The user need not exist in the user database.
    public init(name: String, uid: UInt32, gid: UInt32, home: String, shell: String) {
        self.name = name
        self.uid = uid
        self.gid = gid
        self.home = home
        self.shell = shell
    }
}

/// Looks up users and groups through NSS. A lookup may block on files or a network directory: call these functions
/// when the configuration is loaded, not on the event loop.
public enum Users {
    /// A user by name, or by uid if the text is a number and no user has that name. Nil if there is no such user.
    public static func lookup(_ nameOrNumber: String) -> User? {
        if let user = entry({ getpwnam_r(nameOrNumber, $0, $1, $2, $3) }) { return user }
        return UInt32(nameOrNumber).flatMap { lookup(uid: $0) }
    }

    /// A user by uid; nil if the user database has no such entry.
    public static func lookup(uid: UInt32) -> User? { entry { getpwuid_r(uid, $0, $1, $2, $3) } }

    /// Gives this process the uid, the gid and the groups of a user, permanently. This process must run as root.
    public static func become(_ user: User) throws(Errno) {
        try call { initgroups(user.name, user.gid) }
        try call { setgid(user.gid) }
        try call { setuid(user.uid) }
    }

    /// A group's gid by name or number; nil if there is no group of that name.
    public static func group(_ nameOrNumber: String) -> UInt32? {
        groupEntry({ getgrnam_r(nameOrNumber, $0, $1, $2, $3) })?.gid ?? UInt32(nameOrNumber)
    }

    /// A group's name; nil if the group database has no such entry.
    public static func groupName(_ gid: UInt32) -> String? { groupEntry { getgrgid_r(gid, $0, $1, $2, $3) }?.name }

    /// The gids of all groups of a user, including `primary`.
    public static func groups(of name: String, primary: UInt32) -> [UInt32] {
        var count: Int32 = 64
        var groups = [gid_t](repeating: 0, count: Int(count))
        if getgrouplist(name, primary, &groups, &count) < 0 {
            groups = [gid_t](repeating: 0, count: Int(max(count, 64)))
            count = Int32(groups.count)
            if getgrouplist(name, primary, &groups, &count) < 0 { return [primary] }
        }
        return Array(groups.prefix(Int(count)))
    }

    /// The effective uid of this process.
    public static let effectiveUID: UInt32 = geteuid()
    /// The effective gid of this process.
    public static let effectiveGID: UInt32 = getegid()
    /// Whether this process runs as root.
    public static var isRoot: Bool { effectiveUID == 0 }

    private typealias Buffer = UnsafeMutablePointer<CChar>

    private static func entry(
        _ body: (UnsafeMutablePointer<passwd>, Buffer, Int, UnsafeMutablePointer<UnsafeMutablePointer<passwd>?>) ->
            Int32
    ) -> User? {
        var record = passwd()
        return grow { buffer, size in
            var result: UnsafeMutablePointer<passwd>?
            let code = body(&record, buffer, size, &result)
            guard code == 0, result != nil else { return (code, nil) }
            return (
                0,
                User(
                    name: text(record.pw_name),
                    uid: record.pw_uid,
                    gid: record.pw_gid,
                    home: text(record.pw_dir),
                    shell: text(record.pw_shell)
                )
            )
        }
    }

    private static func groupEntry(
        _ body: (
            UnsafeMutablePointer<Glibc.group>, Buffer, Int, UnsafeMutablePointer<UnsafeMutablePointer<Glibc.group>?>
        ) -> Int32
    ) -> (name: String, gid: UInt32)? {
        var record = Glibc.group()
        return grow { buffer, size in
            var result: UnsafeMutablePointer<Glibc.group>?
            let code = body(&record, buffer, size, &result)
            guard code == 0, result != nil else { return (code, nil) }
            return (0, (text(record.gr_name), record.gr_gid))
        }
    }

    /// Calls `body` again with a larger buffer (up to 1 MiB) after ERANGE.
    private static func grow<Value>(_ body: (Buffer, Int) -> (Int32, Value?)) -> Value? {
        var size = 4096
        while size <= 1 << 20 {
            let (code, value) = withUnsafeTemporaryAllocation(of: CChar.self, capacity: size) {
                body($0.baseAddress!, size)
            }
            if code != ERANGE { return value }
            size *= 4
        }
        return nil
    }

    private static func text(_ pointer: UnsafeMutablePointer<CChar>?) -> String {
        pointer.map { String(terminatedWire: $0) } ?? ""
    }
}
