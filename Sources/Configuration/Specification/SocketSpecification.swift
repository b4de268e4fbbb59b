// SPDX-License-Identifier: Apache-2.0

public import Linux

/// One entry of `sockets`: a socket that the supervisor binds and holds for an app.
public struct SocketSpecification: Sendable, Hashable {
    /// The name by which the app knows the socket (`LISTEN_FDNAMES`).
    public var name = ""
    /// The address of the socket, and its other properties that cannot change after the bind.
    public var plan: SocketPlan
    /// The address as it is written, if it contains settings; in `plan` they are replaced by defaults or values.
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
    /// The mode of folders that torpord creates for the socket file.
    public var directoryMode: UInt32 = 0o755
    /// Paths of symlinks to the socket file.
    public var symlinks: [String] = []
    /// Whether torpord removes the file and the symlinks when it closes the socket for good.
    public var removeOnStop = true
    /// Whether the app gets the socket with O_NONBLOCK.
    public var nonBlocking = false
    /// TCP: whether idle connections are probed (SO_KEEPALIVE).
    public var keepAlive = false
    /// TCP: whether small writes are sent at once (TCP_NODELAY).
    public var noDelay = false
    /// TCP: a connection is accepted only when its first data has arrived, or after this time, in whole seconds
    /// (TCP_DEFER_ACCEPT).
    public var deferAccept: Duration?
    /// Whether datagrams may be sent to and received from a broadcast address (SO_BROADCAST).
    public var broadcast = false
    /// Unix sockets: whether the app gets the sender's credentials (SO_PASSCRED).
    public var passCredentials = false
    /// UDP: whether the app gets the destination address of datagrams (IP_PKTINFO).
    public var passPacketInfo = false
    /// The priority of packets, 0 to 6 (SO_PRIORITY).
    public var priority: Int32?
    /// The size of the receive buffer in bytes (SO_RCVBUF).
    public var receiveBuffer: UInt64?
    /// The size of the send buffer in bytes (SO_SNDBUF).
    public var sendBuffer: UInt64?
    /// How a connection or datagram wakes the app.
    public var wake: WakeManner = .background
    /// Whether the socket is for users: new connections then wait while the app is inactive.
    public var user = false
    /// The page that browsers get while they wait for the app; `nil` for no page.
    public var holding: HoldingPage?
    /// How long a connection waits for the app before it gets the holding page.
    public var holdingAfter: Duration = .seconds(2)

    /// Creates a socket with default properties.
    public init(_ kind: Sockets.Kind, _ address: SocketAddress) { plan = SocketPlan(kind, address) }

    /// The properties that cannot change after the bind, as text: if it changes, the socket is closed and bound
    /// again.
    public var identity: String {
        var text = "\(plan.kind.word) \(plan.address)"
        if let only = plan.ipv6Only { text += only ? " v6" : " both" }
        if plan.reusePort { text += " reuse-port" }
        if plan.freeBind { text += " free-bind" }
        if plan.transparent { text += " transparent" }
        if let device = plan.device { text += " on " + device }
        return text
    }

    /// Whether both sockets look the same to an app that gets them at the same position.
    func isPassedLike(_ other: SocketSpecification) -> Bool {
        name == other.name && identity == other.identity && nonBlocking == other.nonBlocking
    }
}

/// The values of `holding`: the page that browsers get while an app starts.
public enum HoldingPage: String, Sendable, Hashable, CaseIterable {
    /// The app's title, and how long it has been starting.
    case plain
    /// The same page, with the app's last snapshot.
    case snapshot
}

extension Sockets.Kind {
    /// The key of an entry of `sockets` under which a socket of this kind has its address.
    var word: String {
        switch self {
        case .stream: "stream"
        case .datagram: "datagram"
        case .sequenced: "seqpacket"
        }
    }
}

extension SocketSpecification: Written {
    /// The socket in short, with only the properties that differ from their defaults.
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
