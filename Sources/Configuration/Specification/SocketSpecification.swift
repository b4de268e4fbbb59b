// SPDX-License-Identifier: Apache-2.0

public import Linux

/// An entry of `sockets`: a socket that torpord binds for an app and keeps open.
public struct SocketSpecification: Sendable, Hashable {
    /// The socket's name in the variable LISTEN_FDNAMES of the app.
    public var name = ""
    /// The socket's address and other properties that cannot change while the socket is bound.
    public var plan: SocketPlan
    /// The address as it is written in the configuration, if it contains settings; otherwise `nil`. In `plan`, the
    /// values of the settings are inserted.
    public var template: AddressTemplate?
    /// The maximum number of connections that wait to be accepted (listen(2)).
    public var backlog: Int32 = 4096
    /// Whether the configuration sets ``backlog``.
    public var hasBacklog = false
    /// The mode of the file of a Unix socket.
    public var mode: UInt32 = 0o666
    /// The user that owns the socket file, by name or number; `nil` for the supervisor's user.
    public var owner: String?
    /// The group that owns the socket file, by name or number.
    public var group: String?
    /// The mode of folders that torpord creates for the socket file.
    public var directoryMode: UInt32 = 0o755
    /// The paths of symlinks to the socket file.
    public var symlinks: [String] = []
    /// Whether torpord removes the socket file and the symlinks when it closes the socket permanently.
    public var removeOnStop = true
    /// Whether the app gets the socket in non-blocking mode (O_NONBLOCK).
    public var nonBlocking = false
    /// For TCP: whether the kernel probes idle connections (SO_KEEPALIVE).
    public var keepAlive = false
    /// For TCP: whether the kernel sends small writes at once (TCP_NODELAY).
    public var noDelay = false
    /// For TCP: how long, in whole seconds, a connection without data is hidden from accept(2) (TCP_DEFER_ACCEPT). With
    /// data, it is accepted at once.
    public var deferAccept: Duration?
    /// For UDP: whether datagrams may be sent to broadcast addresses (SO_BROADCAST).
    public var broadcast = false
    /// For Unix sockets: whether the app gets the sender's credentials (SO_PASSCRED).
    public var passCredentials = false
    /// For UDP: whether the app gets the destination address of each datagram (IP_PKTINFO).
    public var passPacketInfo = false
    /// The priority of packets (SO_PRIORITY). Values above 6 require CAP_NET_ADMIN (socket(7)).
    public var priority: Int32?
    /// The size of the receive buffer in bytes (SO_RCVBUF).
    public var receiveBuffer: UInt64?
    /// The size of the send buffer in bytes (SO_SNDBUF).
    public var sendBuffer: UInt64?
    /// How a connection or datagram wakes the app.
    public var wake: WakeManner = .background
    /// Whether connections come from people, not only from programs. If so, new connections wait while the app is
    /// inactive.
    public var user = false
    /// The page that a browser gets while its connection waits for the app; `nil` for no page.
    public var holding: HoldingPage?
    /// A browser gets the holding page if the app has not answered after this time.
    public var holdingAfter: Duration = .seconds(2)

    /// Creates a socket with default properties.
    public init(_ kind: Sockets.Kind, _ address: SocketAddress) { plan = SocketPlan(kind, address) }

    /// The properties that cannot change while the socket is bound, as text. If they change, torpord closes the socket
    /// and binds a new one.
    public var identity: String {
        var text = "\(plan.kind.word) \(plan.address)"
        if let only = plan.ipv6Only { text += only ? " v6" : " both" }
        if plan.reusePort { text += " reuse-port" }
        if plan.freeBind { text += " free-bind" }
        if plan.transparent { text += " transparent" }
        if let device = plan.device { text += " on " + device }
        return text
    }

    /// Whether a launch passes this socket and `other` to the app in exactly the same way. If so, a running app need
    /// not be restarted when one socket replaces the other.
    func isPassedLike(_ other: SocketSpecification) -> Bool {
        name == other.name && identity == other.identity && nonBlocking == other.nonBlocking
    }
}

/// The values of `holding`: the page that a browser gets while the app starts.
public enum HoldingPage: String, Sendable, Hashable, CaseIterable {
    /// A page with the app's title, and with the time since its launch began.
    case plain
    /// A page like `plain`, with the app's last snapshot.
    case snapshot
}

extension Sockets.Kind {
    /// The key in an entry of `sockets` that contains the address of a socket of this kind.
    var word: String {
        switch self {
        case .stream: "stream"
        case .datagram: "datagram"
        case .sequenced: "seqpacket"
        }
    }
}

extension SocketSpecification: Written {
    /// The socket as one line. It contains only properties that differ from their defaults.
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
