import CLinux
import Glibc

/// With whose rights a path is changed that a configuration names.
///
/// Root may change anything anywhere, and whoever may write to a folder on the way of a path can lead it elsewhere at any
/// instant. So what is made or removed there is made or removed with the rights of the one who has that folder, whom the
/// kernel then lets do no more than he could do himself (setfsuid(2)).
public enum PathRights {
    /// Runs `body` with the rights that changes at `path` are made with. Errors are those of `body`.
    ///
    /// A process that is not root has no other rights to give: there this is a call of `body`.
    @discardableResult
    public static func acting<T, Failure: Error>(
        at path: String,
        _ body: () throws(Failure) -> T
    ) throws(Failure) -> T {
        guard Users.isRoot, let who = owner(ofWayTo: path) else { return try body() }
        let before = tlx_set_filesystem_user(who.uid, who.gid)
        defer {
            _ = tlx_set_filesystem_user(UInt32(truncatingIfNeeded: before), UInt32(truncatingIfNeeded: before >> 32))
        }
        return try body()
    }

    /// Who can lead a path elsewhere: the owner of the last folder on the way, if it is not root's alone, or nobody with
    /// the group that may write to it; nil where nobody but root and this process's user can.
    public static func owner(ofWayTo path: String) -> (uid: UInt32, gid: UInt32)? {
        guard var folder = try? File.open("/", [.path, .directory]) else { return nil }
        var names = path.split(separator: "/").filter { $0 != "." }
        var who: (uid: UInt32, gid: UInt32)?
        var links = 0
        while !names.isEmpty {
            let name = names.removeFirst()
            guard let around = try? File.status(descriptor: folder.raw) else { return who }
            let next = try? File.open(String(name), in: folder.raw, [.path, .noFollow])
            let found = next.flatMap { try? File.status(descriptor: $0.raw) }
            if let stranger = stranger(in: around, found, isLast: names.isEmpty) { who = stranger }
            guard let next, let found else { return who }
            switch found.kind {
            case .directory: folder = next
            case .link:
                // Whoever has a way of others already goes it no further: where it leads is for the kernel to judge.
                links += 1
                guard who == nil, links <= 40, let target = try? File.readLink(descriptor: next.raw) else { return who }
                if target.hasPrefix("/") {
                    guard let root = try? File.open("/", [.path, .directory]) else { return who }
                    folder = root
                }
                names = target.split(separator: "/").filter { $0 != "." } + names
            default: return who
            }
        }
        return who
    }

    /// Who else can have what lies in a folder replaced.
    private static func stranger(
        in folder: FileStatus,
        _ found: FileStatus?,
        isLast: Bool
    ) -> (uid: UInt32, gid: UInt32)? {
        func isOurs(_ uid: UInt32) -> Bool { uid == 0 || uid == Users.effectiveUID }
        guard isOurs(folder.uid) else { return (folder.uid, folder.gid) }
        guard folder.mode & 0o022 != 0, let found, !isLast || found.kind == .link else { return nil }
        // In a sticky folder everybody has what is their own; else whoever is in its group has all of it.
        if folder.mode & 0o1000 != 0 { return isOurs(found.uid) ? nil : (found.uid, found.gid) }
        return (nobody, folder.gid)
    }

    private static let nobody: UInt32 = 65534

    /// Opens the socket that is at a path, as a place only: no other file, whatever somebody puts there.
    ///
    /// - Parameter user: whose it must be.
    /// - Throws: ENOENT where there is another.
    static func openSocket(_ path: String, of user: UInt32) throws(Errno) -> Descriptor {
        let node = try File.open(path, [.path, .noFollow])
        let status = try File.status(descriptor: node.raw)
        guard status.kind == .socket, status.uid == user, status.links == 1 else { throw .noSuchFileOrDirectory }
        return node
    }
}

extension File {
    /// Sets owner and permission bits of what is open, also as a place only; nil leaves one as it is.
    static func set(_ descriptor: Int32, uid: UInt32?, gid: UInt32?, mode: UInt32) throws(Errno) {
        if uid != nil || gid != nil {
            try call { tlx_set_owner(descriptor, uid ?? .max, gid ?? .max) }
        }
        try call { chmod("/proc/self/fd/\(descriptor)", mode_t(mode)) }
    }
}
