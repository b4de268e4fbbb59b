// SPDX-License-Identifier: Apache-2.0

public import Linux

/// One entry of `sockets`: a socket that the supervisor binds and holds for an app.
public struct SocketSpecification: Sendable, Hashable {
    /// What the app knows it by (`LISTEN_FDNAMES`).
    public var name = ""
    /// Where it is bound, and what cannot be changed after that.
    public var plan: SocketPlan
    /// Its address as it is written, where settings stand in it: `plan` has their defaults, or their values.
    public var template: AddressTemplate?
    /// How many connections may wait.
    public var backlog: Int32 = 4096
    /// Whether the configuration says how many.
    public var hasBacklog = false
    /// The mode of the node of a path.
    public var mode: UInt32 = 0o666
    /// The user that the node belongs to, by name or number; `nil` for the supervisor's.
    public var owner: String?
    /// The group that it belongs to, by name or number.
    public var group: String?
    /// The mode of folders that are made for it.
    public var directoryMode: UInt32 = 0o755
    /// Paths of symbolic links to it.
    public var symlinks: [String] = []
    /// Whether the node and the links are removed when the socket is closed for good.
    public var removeOnStop = true
    /// Whether the app gets it with O_NONBLOCK.
    public var nonBlocking = false
    /// TCP: probes of connections where nothing moves.
    public var keepAlive = false
    /// TCP: small pieces are sent at once.
    public var noDelay = false
    /// TCP: a connection counts from its first data on, waited for so long; whole seconds.
    public var deferAccept: Duration?
    /// Datagrams may come from and go to a broadcast address.
    public var broadcast = false
    /// Unix: the app is told who sends.
    public var passCredentials = false
    /// Internet datagrams: the app is told which address they were sent to.
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
    /// What browsers are shown that wait for the app; `nil` for nothing.
    public var holding: HoldingPage?
    /// How long a connection waits for the app before that.
    public var holdingAfter: Duration = .seconds(2)

    /// A socket with nothing special.
    public init(_ kind: Sockets.Kind, _ address: SocketAddress) { plan = SocketPlan(kind, address) }

    /// The same for entries whose socket need not be bound anew: what cannot be changed after the bind.
    public var identity: String {
        var text = "\(plan.kind.word) \(plan.address)"
        if let only = plan.ipv6Only { text += only ? " v6" : " both" }
        if plan.reusePort { text += " reuse-port" }
        if plan.freeBind { text += " free-bind" }
        if plan.transparent { text += " transparent" }
        if let device = plan.device { text += " on " + device }
        return text
    }

    /// Whether the app would be given the same by both, at the same place of the list.
    func isPassedLike(_ other: SocketSpecification) -> Bool {
        name == other.name && identity == other.identity && nonBlocking == other.nonBlocking
    }
}

/// `holding`: what browsers are shown while an app is on its way.
public enum HoldingPage: String, Sendable, Hashable, CaseIterable {
    /// What the app is called, and for how long it has been on its way.
    case plain
    /// That, and what it showed last.
    case snapshot
}

extension Sockets.Kind {
    /// The key of an entry that says so.
    var word: String {
        switch self {
        case .stream: "stream"
        case .datagram: "datagram"
        case .sequenced: "seqpacket"
        }
    }
}

extension SocketSpecification: Written {
    /// In short: what is not usual.
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
