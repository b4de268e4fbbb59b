// SPDX-License-Identifier: Apache-2.0

package import Configuration
package import Engine
package import EventLoop
package import Linux
package import TorporAPI

/// A socket that torpord has bound for an app. The app gets a copy at each launch. torpor-keeper holds a copy too.
package final class ListeningSocket {
    package private(set) var specification: SocketSpecification
    /// The socket's name in torpor-keeper.
    let heldName: String
    package private(set) var descriptor: Descriptor? {
        // The app may let its TCP socket linger, and in the queue of a Unix socket may be descriptors that do.
        didSet { descriptor?.closesPromptly = true }
    }
    /// An error text if the socket is not bound; nil if it is bound or no bind was tried.
    package var trouble: String?
    /// The last bind error that was reported, so that it is not reported again; nil if none was.
    var toldTrouble: String?
    /// Whether the socket is closed because a user stopped the app and other apps listen at the same port.
    var isYielded = false
    /// Whether the socket is bound only at the app's next launch, because the app still runs with another socket at the
    /// same port, which is closed then.
    var isPostponed = false
    /// The event loop's watch of the socket; nil if the socket is not watched.
    package var source: IOSource?
    /// Whether a connection that `source` reports wakes the app. If false, `source` serves only to notice a nearly
    /// full queue.
    package var wakes = false
    /// Whether the kernel holds back connections and data at the socket; nil if unknown. It does if this machine does
    /// not own the app. With `user = true`, it also does while the app is inactive or being launched.
    private(set) var isWithheld: Bool?
    private var isRefusedToWithhold = false
    /// The user of the launch to which the socket was last passed, by name or number; empty for torpord's own user. Nil
    /// if it was passed to none since torpord has started.
    var userAtLaunch: String?
    /// Whether it was already reported that the socket's queue is nearly full.
    var isToldFull = false
    /// The socket's file; nil if the socket has none, or if it is unknown. If another file is at its path, another
    /// program created that file, and torpord must not remove it.
    private(set) var file: SocketFile? {
        didSet { isUnreached = false }
    }
    /// Whether the socket's file was gone when torpord last looked, so that no client reaches the running app.
    var isUnreached = false

    /// If at least this fraction of the queue is in use, the queue counts as nearly full.
    private static let nearlyFull = 0.8

    package init(_ specification: SocketSpecification, app: String) {
        self.specification = specification
        heldName = DescriptorName.socket(app, specification.identity)
    }

    deinit { source?.cancel() }

    /// The socket's name and address for texts, such as `http (127.0.0.1:8000)`.
    var label: String {
        let address = "\(specification.plan.address)"
        return Int(specification.name) == nil ? "\(specification.name) (\(address))" : address
    }

    /// A connection or a datagram at this socket, as a text for the log and the history.
    var arrival: String {
        specification.plan.kind == .datagram ? "a datagram at \(label)" : "a connection at \(label)"
    }

    // MARK: Making it

    /// Binds the socket and sets its options. Returns warnings about options that could not be set.
    func bind(_ accounts: SocketAccounts) throws(BindFailure) -> [String] {
        let plan = specification.plan
        let socket = try Sockets.bound(plan, node: accounts.node(specification), backlog: specification.backlog)
        descriptor = socket
        trouble = nil
        if case .path(let path) = plan.address { file = SocketFile(boundTo: path) }
        return setOptions() + backlogWarning() + link()
    }

    /// Uses a socket that an earlier torpord bound.
    package func take(_ held: Descriptor) {
        descriptor = held
        trouble = nil
        if case .path(let path) = specification.plan.address { file = SocketFile(of: held, at: path) }
        _ = setOptions()
    }

    /// Uses a socket that an earlier torpord bound for an app which was removed since, and applies the settings of this
    /// one to it: those of the removed app are unknown. The caller has checked that owner and group are known. Returns
    /// warnings.
    func take(ofRemoved held: Descriptor, _ accounts: SocketAccounts) -> [String] {
        take(held)
        if specification.priority == nil { try? Sockets.set(held.raw, .priority, 0) }
        return applyBacklog() + applyNode(accounts, resetsUser: true, resetsGroup: true) + link()
    }

    /// Takes an equal socket away from another app, with what waits there, and applies the settings of this one to it.
    /// Returns warnings, or nil if the other one is not bound.
    func take(from other: ListeningSocket, _ accounts: SocketAccounts) -> [String]? {
        guard let given = other.descriptor else { return nil }
        other.stopWatch()
        let own = specification
        (descriptor, file, isWithheld, specification) = (given, other.file, other.isWithheld, other.specification)
        (other.descriptor, other.file, other.isWithheld) = (nil, nil, nil)
        userAtLaunch = other.userAtLaunch
        trouble = nil
        return change(to: own, accounts)
    }

    private func stopWatch() {
        source?.cancel()
        source = nil
    }

    /// Applies a changed configuration to the bound socket. Returns a warning for each setting that cannot be applied.
    package func change(to new: SocketSpecification, _ accounts: SocketAccounts) -> [String] {
        let old = specification
        specification = new
        guard let descriptor, new != old else { return [] }
        if old.priority != nil, new.priority == nil { try? Sockets.set(descriptor.raw, .priority, 0) }
        var warnings = setOptions()
        for (name, was, size) in [
            ("receive_buffer", old.receiveBuffer, new.receiveBuffer), ("send_buffer", old.sendBuffer, new.sendBuffer),
        ] where was != nil && size == nil {
            warnings.append("its socket \(label) keeps its \(name) until it is bound again")
        }
        if new.backlog != old.backlog { warnings += applyBacklog() }
        guard case .path(let path) = new.plan.address else { return warnings }
        if new.mode != old.mode || new.owner != old.owner || new.group != old.group {
            if let missing = accounts.missing(new) {
                return warnings + ["owner and mode of \(path) cannot be changed: \(missing)"]
            }
            let hadGroup = old.group != nil || old.owner != nil
            warnings += applyNode(accounts, resetsUser: old.owner != nil, resetsGroup: hadGroup)
        }
        if new.symlinks != old.symlinks {
            for link in old.symlinks where !new.symlinks.contains(link) { Self.removeLink(link, to: path) }
            warnings += link()
        }
        return warnings
    }

    /// Sets the backlog of the bound socket. Returns warnings.
    private func applyBacklog() -> [String] {
        guard let descriptor, specification.plan.kind != .datagram else { return [] }
        do throws(BindFailure) {
            try Sockets.listen(descriptor.raw, backlog: specification.backlog)
            return backlogWarning()
        } catch {
            return ["its backlog cannot be changed (\(error.errno))"]
        }
    }

    /// Sets mode, owner and group of the socket's file. Returns warnings.
    ///
    /// - Parameters:
    ///   - resetsUser: whether the file may have an owner of another configuration, so that torpord's own user takes its
    ///     place if the configuration names none.
    ///   - resetsGroup: the same for the group.
    private func applyNode(_ accounts: SocketAccounts, resetsUser: Bool, resetsGroup: Bool) -> [String] {
        guard case .path(let path) = specification.plan.address else { return [] }
        var wanted = accounts.node(specification)
        if resetsUser, wanted.uid == nil { wanted.uid = Users.effectiveUID }
        if resetsGroup, wanted.gid == nil { wanted.gid = Self.groupOfNewFiles(beside: path) }
        do throws(Errno) {
            // The app may own the folder and have replaced the socket file: change only the file with the known inode.
            guard let file else { throw .noSuchFileOrDirectory }
            try Sockets.change(path, wanted, where: file.isOwn)
            return []
        } catch {
            return ["owner and mode of \(path) cannot be changed (\(error))"]
        }
    }

    /// The group of files that torpord creates in the folder of the path: its own, or that of a folder whose mode says
    /// so (S_ISGID, inode(7)).
    private static func groupOfNewFiles(beside path: String) -> UInt32 {
        guard let folder = File.parent(of: path), let status = try? File.status(folder), status.mode & 0o2000 != 0
        else { return Users.effectiveGID }
        return status.gid
    }

    private func setOptions() -> [String] {
        guard let descriptor else { return [] }
        let wanted = specification
        let isTCP = wanted.plan.kind == .stream && !isUnix && !isVsock
        let isUDP = wanted.plan.kind == .datagram && !isUnix && !isVsock
        var options: [(SocketOption, Int32, String)] = []
        if isTCP {
            options.append((.keepAlive, wanted.keepAlive ? 1 : 0, "keep_alive"))
            options.append((.noDelay, wanted.noDelay ? 1 : 0, "no_delay"))
            let seconds = wanted.deferAccept.map { Int32(clamping: $0.components.seconds) }
            options.append((.deferAccept, seconds ?? 0, "defer_accept"))
        }
        if isUDP {
            options.append((.broadcast, wanted.broadcast ? 1 : 0, "broadcast"))
            options.append((.packetInfo, wanted.passPacketInfo ? 1 : 0, "pass_packet_info"))
        }
        if isUnix { options.append((.passCredentials, wanted.passCredentials ? 1 : 0, "pass_credentials")) }
        if let priority = wanted.priority { options.append((.priority, priority, "priority")) }
        if let size = wanted.receiveBuffer { options.append((.receiveBuffer, Int32(clamping: size), "receive_buffer")) }
        if let size = wanted.sendBuffer { options.append((.sendBuffer, Int32(clamping: size), "send_buffer")) }
        var warnings: [String] = []
        for (option, value, name) in options {
            do throws(Errno) {
                try Sockets.set(descriptor.raw, option, value)
            } catch {
                warnings.append("\(name) of its socket \(label) cannot be set (\(error))")
            }
        }
        return warnings
    }

    private func backlogWarning() -> [String] {
        guard specification.hasBacklog, specification.plan.kind != .datagram, let most = Sockets.mostBacklog,
            most < specification.backlog
        else { return [] }
        return [
            "no more than \(most) connections wait at its socket \(label), whatever backlog says: raise "
                + "net.core.somaxconn"
        ]
    }

    private var isUnix: Bool {
        switch specification.plan.address {
        case .path, .abstract: true
        case .port, .ipv4, .ipv6, .vsock: false
        }
    }

    private var isVsock: Bool {
        if case .vsock = specification.plan.address { return true }
        return false
    }

    // MARK: Its path

    /// Creates missing symlinks to the socket. If another file exists at a symlink's path, leaves that file alone.
    /// Returns warnings.
    private func link() -> [String] {
        guard case .path(let path) = specification.plan.address else { return [] }
        var warnings: [String] = []
        for link in specification.symlinks where (try? File.readLink(link)) != path {
            do throws(Errno) {
                if let folder = File.parent(of: link), !File.exists(folder) {
                    try PathRights.acting(at: link) { () throws(Errno) in
                        try File.makeDirectories(folder, mode: specification.directoryMode)
                    }
                }
                try PathRights.acting(at: link) { () throws(Errno) in try File.link(link, to: path) }
            } catch {
                let reason = error == .fileExists ? "something else is there" : "\(error)"
                warnings.append("the link \(link) to its socket \(path) cannot be made: \(reason)")
            }
        }
        return warnings
    }

    private static func removeLink(_ link: String, to target: String) {
        guard (try? File.readLink(link)) == target else { return }
        try? PathRights.acting(at: link) { () throws(Errno) in try File.remove(link) }
    }

    /// Closes the socket for good. If `remove_on_stop` says so, removes the socket file and the symlinks; with
    /// `removesFile`, removes the file in any case.
    package func close(removesFile: Bool = false) {
        stopWatch()
        descriptor?.close()
        descriptor = nil
        isWithheld = nil
        defer { file = nil }
        let removes = specification.removeOnStop
        guard removes || removesFile, case .path(let path) = specification.plan.address else { return }
        if removes { for link in specification.symlinks { Self.removeLink(link, to: path) } }
        if isOwnNode(path) { try? PathRights.acting(at: path) { () throws(Errno) in try File.remove(path) } }
    }

    private func isOwnNode(_ path: String) -> Bool {
        guard let file, let status = try? File.status(path, followLinks: false) else { return false }
        return file.isOwn(status)
    }

    /// Whether the app called shutdown(2) on its copy of the socket, which shuts down all copies for good.
    var isShutDown: Bool {
        guard let descriptor else { return false }
        return !Descriptor.readiness(descriptor.raw).isDisjoint(with: Self.shutDown)
    }

    /// Whether the address can be bound again at once although other processes still have the old socket open.
    var isBoundAnewAtOnce: Bool {
        switch specification.plan.address {
        case .port, .ipv4, .ipv6, .path: true
        case .abstract, .vsock: false
        }
    }

    /// Whether the socket is a Unix socket with a file.
    var hasFile: Bool {
        if case .path = specification.plan.address { return true }
        return false
    }

    /// The events that epoll reports for a socket that was shut down.
    package static let shutDown: IOEvents = [.hangup, .peerClosed]

    // MARK: What waits

    /// How full the socket's queue is; nil if the kernel does not report this.
    var backlog: SocketBacklog? {
        guard let descriptor else { return nil }
        if specification.plan.kind == .datagram { return try? Sockets.bufferBacklog(descriptor.raw) }
        if isUnix { return try? Sockets.unixBacklog(descriptor.raw) }
        return isVsock ? nil : try? Sockets.tcpBacklog(descriptor.raw)
    }

    /// The socket, in the form for `torpor status`.
    package var info: SocketInfo {
        let kind =
            switch specification.plan.kind {
            case .stream: "stream"
            case .datagram: "datagram"
            case .sequenced: "seqpacket"
            }
        var info = SocketInfo(name: specification.name, kind: kind, address: "\(specification.plan.address)")
        if let backlog {
            info.waiting = Int64(backlog.waiting)
            info.most = Int64(backlog.most)
            if specification.plan.kind == .datagram { info.dropped = Int64(backlog.dropped) }
        }
        info.trouble = descriptor == nil ? trouble : isUnreached ? "its file is gone" : nil
        return info
    }

    var isNearlyFull: Bool {
        guard let backlog, backlog.most > 0 else { return false }
        return Double(backlog.waiting) >= Self.nearlyFull * Double(backlog.most)
    }

    /// Makes the kernel hold back connections and data at the socket, or let them through. The kernel holds them back
    /// in three cases: `isInactive` is true and the socket has `user = true`; `standsBy` is true, because this machine
    /// does not own the app; or `isUnproven` is true, because the app's launch will probably fail. `standsBy` is nil if
    /// the app needs no owner. Returns a warning the first time that the kernel refuses this.
    func withhold(_ isInactive: Bool, standsBy: Bool?, isUnproven: Bool) -> String? {
        let isHeld = isInactive && specification.user || standsBy ?? false || isUnproven
        // An earlier torpord may have held back connections at a port of several apps.
        let mayBeHeld = isWithheld ?? specification.plan.reusePort
        guard specification.user || standsBy != nil || isUnproven || mayBeHeld, let descriptor, isWithheld != isHeld
        else { return nil }
        isWithheld = isHeld
        do throws(Errno) {
            try Sockets.holdBack(descriptor.raw, isHeld)
            return nil
        } catch {
            defer { isRefusedToWithhold = true }
            if isRefusedToWithhold { return nil }
            let when = standsBy == true ? "not owned" : isUnproven ? "launching" : "inactive"
            return "connections to \(label) cannot be held back while it is \(when) (\(error)): it gets them"
        }
    }
}

extension DescriptorName {
    /// The name of a bound socket in torpor-keeper. The name depends only on keys that cannot change while the socket
    /// is bound.
    package static func socket(_ app: String, _ identity: String) -> String {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325  // FNV-1a
        for byte in identity.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        return "socket/\(app)/\(String(hash, radix: 16))"
    }
}

extension BindFailure {
    /// The number of the error ENODEV.
    private static let noDevice: Int32 = 19

    /// A text for users: the error, and what to do about it.
    package func sentence(_ plan: SocketPlan) -> String {
        switch stage {
        case .folder(let folder): return "the folder \(folder) is missing and cannot be made (\(errno))"
        case .occupied: return "something that is not a socket is there: remove it"
        case .owner: return "its owner and mode cannot be set (\(errno))"
        case .option:
            return errno.isRefusal
                ? "torpord may not set what its socket needs (transparent, bind_to_device): run it as root, or with "
                    + "CAP_NET_ADMIN"
                : "what its socket needs cannot be set (\(errno))"
        case .socket where errno == .addressFamilyNotSupported:
            return "this kernel does not know such sockets (\(errno))"
        case .socket, .listen: return "\(errno)"
        case .bind: break
        }
        switch (errno, plan.address) {
        case (.addressInUse, .path): return "another program listens there"
        case (.addressInUse, _): return "the address is in use: ‘ss -lnp’ shows by which process"
        case (.permissionDenied, .path(let path)): return "torpord may not write into the folder of \(path)"
        case (.permissionDenied, _):
            return "ports below 1024 are for root, and for programs with CAP_NET_BIND_SERVICE "
                + "(net.ipv4.ip_unprivileged_port_start)"
        case (.addressNotAvailable, _):
            return "this machine does not have that address, at least not yet: free_bind = true listens there "
                + "anyway"
        case (Errno(rawValue: Self.noDevice), _): return "there is no such network interface"
        default: return "\(errno)"
        }
    }
}
