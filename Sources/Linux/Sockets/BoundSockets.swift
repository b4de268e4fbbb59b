// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// Why a socket could not be bound.
public struct BindFailure: Error, Hashable {
    /// The step that failed.
    public enum Stage: Hashable, Sendable {
        /// The directories that contain the socket's path could not be created.
        case folder(String)
        /// socket(2), which fails if the kernel lacks the address family.
        case socket
        /// An option that must be set before the bind could not be set.
        case option
        /// bind(2).
        case bind
        /// The path exists and is not a socket.
        case occupied
        /// Owner and mode of the socket file could not be set.
        case owner
        /// listen(2).
        case listen
    }

    /// The step that failed.
    public var stage: Stage
    /// The kernel's error.
    public var errno: Errno
}

/// Owner and mode of the file of a Unix socket.
public struct SocketNode: Hashable, Sendable {
    /// The permission bits of the socket file.
    public var mode: UInt32 = 0o666
    /// The uid of the owner; `nil` for this process's user.
    public var uid: UInt32?
    /// The gid of the group; `nil` for this process's group.
    public var gid: UInt32?
    /// The mode of directories that are created for the path.
    public var folderMode: UInt32 = 0o755

    /// Creates the default: every user may connect.
    public init() {}
}

extension Sockets {
    /// Creates a non-blocking socket and binds it. Unless it is a datagram socket, the socket also listens.
    ///
    /// If the path has a stale socket file, which no process serves, the file is removed.
    public static func bound(
        _ plan: SocketPlan,
        node: SocketNode = SocketNode(),
        backlog: Int32
    ) throws(BindFailure) -> Descriptor {
        let socket: Descriptor
        switch plan.address {
        case .path(let path): socket = try boundUnix(plan.kind, path, node)
        case .abstract(let name): socket = try boundUnix(plan.kind, "@" + name, nil)
        case .port(let port):
            do throws(BindFailure) {
                socket = try boundOther(plan, tlx_bind_ipv6, "::", port: UInt32(port))
            } catch {
                // If the kernel has no IPv6, bind an IPv4 socket instead, unless the socket is for IPv6 only.
                guard error.errno == .addressFamilyNotSupported || error.errno == .addressNotAvailable,
                    plan.ipv6Only != true
                else { throw error }
                socket = try boundOther(plan, tlx_bind_ipv4, "0.0.0.0", port: UInt32(port))
            }
        case .ipv4(let address, let port):
            socket = try boundOther(plan, tlx_bind_ipv4, address, port: UInt32(port))
        case .ipv6(let address, let port, let interface):
            socket = try boundOther(plan, tlx_bind_ipv6, address, interface, port: UInt32(port))
        case .vsock(let cid, let port):
            socket = try boundOther(plan, tlx_bind_vsock, "", port: port, cid: cid)
        }
        if plan.kind != .datagram { try listen(socket.raw, backlog: backlog) }
        return socket
    }

    /// Makes a socket listen, or changes the backlog of a listening socket.
    public static func listen(_ socket: Int32, backlog: Int32) throws(BindFailure) {
        try at(.listen) { () throws(Errno) in try call { Glibc.listen(socket, backlog) } }
    }

    /// Runs one step of a bind, and adds the step's stage to its error.
    @discardableResult
    private static func at<T>(
        _ stage: BindFailure.Stage,
        _ body: () throws(Errno) -> T
    ) throws(BindFailure) -> T {
        do throws(Errno) {
            return try body()
        } catch {
            throw BindFailure(stage: stage, errno: error)
        }
    }

    private static func boundOther(
        _ plan: SocketPlan,
        _ family: Int,
        _ address: String,
        _ interface: String? = nil,
        port: UInt32,
        cid: UInt32 = 0
    ) throws(BindFailure) -> Descriptor {
        var stage: Int32 = 0
        do throws(Errno) {
            let number = try call {
                withRaw(plan, family, address, interface, port: port, cid: cid) { tlx_bound_socket($0, &stage) }
            }
            return Descriptor(owning: number)
        } catch {
            let stages: [Int: BindFailure.Stage] = [tlx_stage_make: .socket, tlx_stage_option: .option]
            throw BindFailure(stage: stages[Int(stage)] ?? .bind, errno: error)
        }
    }

    private static func withRaw<T>(
        _ plan: SocketPlan,
        _ family: Int,
        _ address: String,
        _ interface: String? = nil,
        port: UInt32 = 0,
        cid: UInt32 = 0,
        _ body: (UnsafePointer<tlx_bind_plan>) -> T
    ) -> T {
        address.withCString { address in
            withOptionalCString(interface) { interface in
                withOptionalCString(plan.device) { device in
                    var raw = tlx_bind_plan()
                    raw.family = Int32(family)
                    raw.kind = plan.kind.rawValue
                    raw.address = address
                    raw.interface = interface
                    raw.port = port
                    raw.cid = cid
                    raw.ipv6_only = plan.ipv6Only.map { $0 ? 1 : 0 } ?? -1
                    raw.reuse_port = plan.reusePort ? 1 : 0
                    raw.free_bind = plan.freeBind ? 1 : 0
                    raw.transparent = plan.transparent ? 1 : 0
                    raw.device = device
                    return withUnsafePointer(to: raw, body)
                }
            }
        }
    }

    // MARK: Of other processes

    /// Copies the socket that a process has bound to the address in `plan`. Nil if the process has no such socket, or
    /// if this process may not copy descriptors of that process (ptrace(2), "Ptrace access mode checking").
    public static func copy(_ plan: SocketPlan, of pid: Int32, _ pidfd: Int32) -> Descriptor? {
        func copy(_ fd: Int32) -> Int32 {
            func raw(
                _ family: Int,
                _ address: String,
                _ interface: String? = nil,
                _ port: UInt32 = 0,
                _ cid: UInt32 = 0
            )
                -> Int32
            {
                withRaw(plan, family, address, interface, port: port, cid: cid) { tlx_copy_bound(pidfd, fd, $0) }
            }
            switch plan.address {
            case .path(let path): return raw(tlx_bind_unix, path)
            case .abstract(let name): return raw(tlx_bind_unix, "@" + name)
            case .port(let port):
                let both = raw(tlx_bind_ipv6, "::", nil, UInt32(port))
                return both >= 0 ? both : raw(tlx_bind_ipv4, "0.0.0.0", nil, UInt32(port))
            case .ipv4(let address, let port): return raw(tlx_bind_ipv4, address, nil, UInt32(port))
            case .ipv6(let address, let port, let interface):
                return raw(tlx_bind_ipv6, address, interface, UInt32(port))
            case .vsock(let cid, let port): return raw(tlx_bind_vsock, "", nil, port, cid)
            }
        }
        let numbers = ((try? File.list("/proc/\(pid)/fd")) ?? []).compactMap { Int32($0) }.sorted()
        // An inherited socket has a low descriptor number, so inspect only the lowest numbers.
        for fd in numbers.lazy.filter({ $0 >= 3 }).prefix(mostLookedAt) {
            let found = copy(fd)
            if found >= 0 { return Descriptor(owning: found) }
        }
        return nil
    }

    private static let mostLookedAt = 512

    // MARK: Unix

    /// Creates and binds a Unix socket. `node` is nil for an abstract address, which has no file.
    private static func boundUnix(_ kind: Kind, _ path: String, _ node: SocketNode?) throws(BindFailure) -> Descriptor {
        let socket = try at(.socket) { () throws(Errno) in try unix(kind, nonBlocking: true) }
        guard let node else {
            try at(.bind) { () throws(Errno) in try call { tlx_unix_bind(socket.raw, path, path.utf8.count) } }
            return socket
        }
        if let folder = File.parent(of: path), !File.exists(folder) {
            try PathRights.acting(at: path) { () throws(BindFailure) in
                try at(.folder(folder)) { () throws(Errno) in
                    try File.makeDirectories(folder, mode: node.folderMode)
                }
            }
        }
        // Set the mode before the bind, so that the file never grants more than its final mode. The owner can be set
        // after the bind, because until then the file belongs to its creator.
        try at(.owner) { () throws(Errno) in try call { tlx_socket_inode_mode(socket.raw, node.mode) } }
        // The directory exists now, so determine again which user can redirect the path.
        let who = PathRights.owner(ofWayTo: path)?.uid ?? Users.effectiveUID
        do throws(Errno) {
            try bindUnix(socket.raw, path)
        } catch {
            guard error == .addressInUse else { throw BindFailure(stage: .bind, errno: error) }
            guard (try? File.kind(path)) == .socket else { throw BindFailure(stage: .occupied, errno: error) }
            guard !answers(path, kind) else { throw BindFailure(stage: .bind, errno: error) }
            try at(.bind) { () throws(Errno) in
                try PathRights.acting(at: path) { () throws(Errno) in try File.remove(path) }
                try bindUnix(socket.raw, path)
            }
        }
        try at(.owner) { () throws(Errno) in
            do throws(Errno) {
                try setNode(path, node, madeBy: Users.isRoot ? who : Users.effectiveUID)
            } catch {
                try? PathRights.acting(at: path) { () throws(Errno) in try File.remove(path) }
                throw error
            }
        }
        return socket
    }

    private static func bindUnix(_ socket: Int32, _ path: String) throws(Errno) {
        try PathRights.acting(at: path) { () throws(Errno) in
            try call { tlx_unix_bind(socket, path, path.utf8.count) }
        }
    }

    /// Sets owner and mode of the file of a socket that `user` has bound to the path.
    private static func setNode(_ path: String, _ node: SocketNode, madeBy user: UInt32) throws(Errno) {
        let place = try PathRights.openSocket(path, of: user)
        let isOthers = user != Users.effectiveUID
        try File.set(
            place.raw,
            uid: node.uid ?? (isOthers ? Users.effectiveUID : nil),
            gid: node.gid ?? (isOthers ? Users.effectiveGID : nil),
            mode: node.mode
        )
    }

    /// Sets owner and mode of a bound socket's file. Throws ENOENT if the file at the path is another one, as `isSame`
    /// says.
    public static func change(
        _ path: String,
        _ node: SocketNode,
        where isSame: (FileStatus) -> Bool
    ) throws(Errno) {
        let place = try File.open(path, [.path, .noFollow])
        let status = try File.status(descriptor: place.raw)
        guard isSame(status) else { throw .noSuchFileOrDirectory }
        try File.set(place.raw, uid: node.uid, gid: node.gid, mode: node.mode)
    }

    /// Whether a process serves the socket at the path. Asks the kernel first, because a connection would wake a program
    /// that sleeps, again at each attempt. Connects only if the kernel knows of none, as with one in another network
    /// namespace. This is also true if the connection fails for a reason such as a full backlog.
    private static func answers(_ path: String, _ kind: Kind) -> Bool {
        if kind != .datagram, UnixSocketReading.listens(at: path) { return true }
        do throws(Errno) {
            _ = try connect(path: path, kind: kind, nonBlocking: true)
            return true
        } catch {
            return error != .connectionRefused && error != .noSuchFileOrDirectory
        }
    }
}

/// Like `withCString`, but passes a null pointer if `text` is nil.
private func withOptionalCString<T>(_ text: String?, _ body: (UnsafePointer<CChar>?) -> T) -> T {
    guard let text else { return body(nil) }
    return text.withCString { body($0) }
}
