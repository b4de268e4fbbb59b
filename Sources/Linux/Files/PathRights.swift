// SPDX-License-Identifier: Apache-2.0

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
        guard tlx_act_as(who.uid, who.gid, nil, 0) == 0 else { return try body() }
        defer { tlx_act_as_before() }
        return try body()
    }

    /// Who can lead a path elsewhere: the owner of the last folder on the way, if it is not root's alone, or nobody with
    /// the group that may write to it; nil where nobody but root and this process's user can. Of a way that cannot be looked
    /// at it is nobody.
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
                // Whoever has a way of others already goes it no further: where it leads is for the kernel to judge.
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

    /// What is called so in a folder; nil where there is nothing.
    private static func open(_ name: Substring, in folder: Descriptor) throws(Errno) -> Descriptor? {
        do throws(Errno) {
            return try File.open(String(name), in: folder.raw, [.path, .noFollow])
        } catch {
            if error == .noSuchFileOrDirectory { return nil }
            throw error
        }
    }

    /// Who else can have what lies in a folder replaced.
    private static func stranger(
        in folder: FileStatus,
        _ found: FileStatus?,
        isLast: Bool
    ) -> (uid: UInt32, gid: UInt32)? {
        func isOurs(_ uid: UInt32) -> Bool { uid == 0 || uid == Users.effectiveUID }
        guard isOurs(folder.uid) else { return (folder.uid, nobody) }
        guard folder.mode & 0o022 != 0, let found, !isLast || found.kind == .link else { return nil }
        // In a sticky folder everybody has what is their own, but whoever has a file or a link of root's in a folder of
        // their own can move it here; a folder they cannot (rename(2)). Else whoever is in its group has all of it.
        if folder.mode & 0o1000 != 0 {
            if !isOurs(found.uid) { return (found.uid, nobody) }
            return found.kind == .directory ? nil : (nobody, nobody)
        }
        return (nobody, folder.mode & 0o002 != 0 ? nobody : folder.gid)
    }

    /// The number of nobody, and of its group.
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
