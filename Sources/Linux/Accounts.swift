import Glibc

/// The numbers behind the names of users and groups (getpwnam_r(3), getgrnam_r(3)).
public enum Accounts {
    /// The number of a user by name or number; a number needs no entry in the database.
    public static func userID(_ text: String) -> UInt32? {
        if let number = UInt32(text) { return number }
        var entry = passwd()
        return look { buffer, size in
            var found: UnsafeMutablePointer<passwd>?
            let code = getpwnam_r(text, &entry, buffer, size, &found)
            return (code, found?.pointee.pw_uid)
        }
    }

    /// The number of a group by name or number; a number needs no entry in the database.
    public static func groupID(_ text: String) -> UInt32? {
        if let number = UInt32(text) { return number }
        var entry = group()
        return look { buffer, size in
            var found: UnsafeMutablePointer<group>?
            let code = getgrnam_r(text, &entry, buffer, size, &found)
            return (code, found?.pointee.gr_gid)
        }
    }

    /// The effective user of this process.
    public static var effectiveUserID: UInt32 { geteuid() }

    /// The effective group of this process.
    public static var effectiveGroupID: UInt32 { getegid() }

    /// Calls with a growing buffer while the entry does not fit.
    private static func look(
        _ body: (UnsafeMutablePointer<CChar>, Int) -> (code: Int32, number: UInt32?)
    ) -> UInt32? {
        var size = 1 << 10
        while size <= 1 << 20 {
            let buffer = UnsafeMutablePointer<CChar>.allocate(capacity: size)
            defer { buffer.deallocate() }
            let (code, number) = body(buffer, size)
            if code != ERANGE { return code == 0 ? number : nil }
            size *= 4
        }
        return nil
    }
}
