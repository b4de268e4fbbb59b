// SPDX-License-Identifier: Apache-2.0

public import Linux

/// One entry of `sockets`: a socket that the supervisor binds and holds for an app.
public struct SocketSpecification: Sendable, Hashable {
    /// The name by which the app knows it (`LISTEN_FDNAMES`).
    public var name = ""
    /// Its address, and everything that cannot change after the bind.
    public var plan: SocketPlan
    /// The address as it is written, if it contains settings; `plan` has it with their defaults or values filled in.
    public var template: AddressTemplate?
    /// The length of the accept queue.
    public var backlog: Int32 = 4096
    /// Whether the configuration sets ``backlog``.
    public var hasBacklog = false
    /// The mode of the socket file.
    public var mode: UInt32 = 0o666
    /// The user that owns the file, by name or number; `nil` for the supervisor's.
    public var owner: String?
    /// The group that owns the file, by name or number.
    public var group: String?
    /// The mode of folders that are created for it.
    public var directoryMode: UInt32 = 0o755
    /// Paths of symlinks to it.
    public var symlinks: [String] = []
    /// Whether the file and the symlinks are removed when the socket is closed for good.
    public var removeOnStop = true
    /// Whether the app gets it with O_NONBLOCK.
    public var nonBlocking = false
    /// TCP: idle connections are probed (SO_KEEPALIVE).
    public var keepAlive = false
    /// TCP: small writes are sent at once (TCP_NODELAY).
    public var noDelay = false
    /// TCP: a connection is accepted when its first data is there, or after this time (TCP_DEFER_ACCEPT); whole
    /// seconds.
    public var deferAccept: Duration?
    /// Datagrams may be sent to and received from a broadcast address.
    public var broadcast = false
    /// Unix: the app gets the sender's credentials (SO_PASSCRED).
    public var passCredentials = false
    /// Internet datagrams: the app gets the destination address (IP_PKTINFO).
    public var passPacketInfo = false
    /// 0 to 6, as SO_PRIORITY.
    public var priority: Int32?
    /// Bytes, as SO_RCVBUF.
    public var receiveBuffer: UInt64?
    /// Bytes, as SO_SNDBUF.
    public var sendBuffer: UInt64?
    /// How a connection or datagram wakes the app.
    public var wake: WakeManner = .background
    /// Whether new connections wait while the app is inactive.
    public var user = false
    /// The page for browsers that wait for the app; `nil` for none.
    public var holding: HoldingPage?
    /// How long a connection waits for the app before it gets the page.
    public var holdingAfter: Duration = .seconds(2)

    /// A socket with the defaults.
    public init(_ kind: Sockets.Kind, _ address: SocketAddress) { plan = SocketPlan(kind, address) }

    /// What cannot change after the bind: a socket is bound again if this changes.
    public var identity: String {
        var text = "\(plan.kind.word) \(plan.address)"
        if let only = plan.ipv6Only { text += only ? " v6" : " both" }
        if plan.reusePort { text += " reuse-port" }
        if plan.freeBind { text += " free-bind" }
        if plan.transparent { text += " transparent" }
        if let device = plan.device { text += " on " + device }
        return text
    }

    /// Whether both pass the same to the app, at the same place of the list.
    func isPassedLike(_ other: SocketSpecification) -> Bool {
        name == other.name && identity == other.identity && nonBlocking == other.nonBlocking
    }
}

/// `holding`: the page for browsers while an app starts.
public enum HoldingPage: String, Sendable, Hashable, CaseIterable {
    /// The app's title, and how long it has been starting.
    case plain
    /// The same with the last snapshot.
    case snapshot
}

extension Sockets.Kind {
    /// The key of an entry for this kind.
    var word: String {
        switch self {
        case .stream: "stream"
        case .datagram: "datagram"
        case .sequenced: "seqpacket"
        }
    }
}

extension SocketSpecification: Written {
    /// In short: only what differs from the defaults.
    var written: String? {
        let usual = SocketSpecification(plan.kind, plan.address)
        var parts = ["\(name): \(identity)"]
        func add(_ name: String, _ value: String?, _ before: String?) {
            if value != before { parts.append("\(name) \(value ?? "none")") }
        }
        add("backlog", "\(backlog)", "\(usual.backlog)")
        add("mode", Write.octal(mode), Write.octal(usual.mode))
        add("owner", owner, usual.owner)
        add("group", group, usual.group)
        add("directory_mode", Write.octal(directoryMode), Write.octal(usual.directoryMode))
        add("symlinks", symlinks.written, usual.symlinks.written)
        add("remove_on_stop", removeOnStop.written, usual.removeOnStop.written)
        add("non_blocking", nonBlocking.written, usual.nonBlocking.written)
        add("keep_alive", keepAlive.written, usual.keepAlive.written)
        add("no_delay", noDelay.written, usual.noDelay.written)
        add("defer_accept", deferAccept.written, usual.deferAccept.written)
        add("broadcast", broadcast.written, usual.broadcast.written)
        add("pass_credentials", passCredentials.written, usual.passCredentials.written)
        add("pass_packet_info", passPacketInfo.written, usual.passPacketInfo.written)
        add("priority", priority.written, usual.priority.written)
        add("receive_buffer", receiveBuffer.map(Write.size), nil)
        add("send_buffer", sendBuffer.map(Write.size), nil)
        add("wake", wake.rawValue, usual.wake.rawValue)
        add("user", user.written, usual.user.written)
        add("holding", holding?.rawValue, nil)
        add("holding_after", holdingAfter.written, usual.holdingAfter.written)
        return parts.joined(separator: ", ")
    }
}
