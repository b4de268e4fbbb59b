// SPDX-License-Identifier: Apache-2.0

public import EventLoop
public import Linux
public import Varlink

/// What the server says about itself in `org.varlink.service.GetInfo`.
public struct VarlinkServiceInfo: Hashable, Sendable {
    /// Who makes the service.
    public var vendor: String
    /// Its name.
    public var product: String
    /// Its version.
    public var version: String
    /// Where to read about it.
    public var url: String

    /// Makes one from its parts.
    public init(vendor: String, product: String, version: String, url: String) {
        self.vendor = vendor
        self.product = product
        self.version = version
        self.url = url
    }
}

/// What servers at several sockets have in common, in memory once.
public final class VarlinkService {
    let interface: VarlinkServiceInterface
    /// By their numbers, whoever is not trusted.
    private var shares: [UInt32: UserShare] = [:]
    /// They read one at a time.
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 16)

    /// A service with these interfaces.
    public init(info: VarlinkServiceInfo, interfaces: [VarlinkInterface]) {
        interface = VarlinkServiceInterface(info: info, interfaces: interfaces)
    }

    deinit { buffer.deallocate() }

    /// What is counted of a user.
    func share(of uid: UInt32, _ loop: EventLoop, _ limits: VarlinkServer.Limits) -> UserShare {
        if let share = shares[uid] { return share }
        if shares.count > 256 { shares = shares.filter { !$0.value.isIdle } }
        let share = UserShare(loop, limits)
        shares[uid] = share
        return share
    }
}

/// The server cannot listen; the description says why and what to do.
public struct VarlinkServerError: Error, Hashable, Sendable, CustomStringConvertible {
    /// A sentence for people.
    public var description: String
}

/// A Varlink server on a Unix socket (https://varlink.org), one among other things on an event loop.
///
/// It never blocks and trusts no client: every buffer and the number of connections are bounded. Calls of one
/// connection are handled one after the other, in order; calls of different connections in any order.
public final class VarlinkServer {
    /// The bounds.
    public struct Limits: Hashable, Sendable {
        /// The longest message that a client may send, in bytes.
        public var messageBytes = 1 << 20
        /// What may wait for a client that does not read, in bytes; then it is dropped.
        public var outboundBytes = 8 << 20
        /// Connections at a time. Root and the server's own user may have 64 more, so that nobody shuts them out.
        public var connections = 1024
        /// Connections at a time of one user, unless it is one of these two.
        public var connectionsOfUser = 128
        /// Bytes of messages that were not taken yet, of all connections of one user to the service; the connection with
        /// which they are more ends.
        public var inboundBytesOfUser = 8 << 20
        /// Bytes that wait for clients of one user that do not read.
        public var outboundBytesOfUser = 64 << 20
        /// How long the loop works for one user at a stretch.
        public var burst = Duration.milliseconds(20)
        /// One user gets the loop for one part in so many, beyond the burst.
        public var inverseShare = 4
        /// What is counted is counted of all who connect to this one socket together, and not of each user with all
        /// sockets of the service: for a socket of one app, which is to pay for itself alone.
        public var countsTogether = false
        /// Whether root and the server's own user are counted like others: for tests, which are one of them.
        public var trustsNobody = false

        /// The usual bounds.
        public init() {}
    }

    /// Answers the calls of the registered interfaces' methods. It must finish each Reply, now or later.
    public var handler: (VarlinkCall, Peer, Reply) -> Void = { call, _, reply in
        reply.fail(VarlinkErrorName.methodNotImplemented, ["method": .string(call.method)])
    }

    /// Called when a connection is gone, with its number (``Reply/connection``).
    public var onDisconnect: ((UInt64) -> Void)?
    /// Says of somebody who connects whether he is refused: what he sends gets that error, unread, and the connection ends.
    public var refusal: ((Peer) -> Refusal?)?

    /// What somebody is told who is not served.
    public struct Refusal {
        /// The full name of the error.
        public var error: String
        /// What belongs to it.
        public var parameters: JSON

        /// Makes one from its parts.
        public init(error: String, parameters: JSON) {
            self.error = error
            self.parameters = parameters
        }
    }

    /// The socket's path.
    public var path: String { place.text }
    /// The bounds that it was made with.
    public let limits: Limits

    let loop: EventLoop
    private let place: SharedPath
    private let service: VarlinkService
    private let mode: UInt32
    /// Whose its socket is, where it is made again.
    public var owner: (uid: UInt32, gid: UInt32)?
    /// The listening socket, for the keeper to hold: clients that connect while nobody serves wait in its backlog.
    public private(set) var listener: Descriptor
    private let ownUser: UInt32
    private var source: IOSource?
    private var pause: TimerSource?
    private var isAccepting = true
    /// Whether the kernel refuses what descriptors clients send.
    private var refusesDescriptors = false
    private var connections: [UInt64: Connection] = [:]
    private var connectionsOfUser: [UInt32: Int] = [:]
    private var ownShare: UserShare?
    /// Of those who are refused, who shut nobody else out.
    private var refusedConnections = 0
    private var lastConnection: UInt64 = 0
    var buffer: UnsafeMutableRawBufferPointer { service.buffer }

    /// Listens on `path`: the directory is made (0755) if need be, a socket that nobody answers on is replaced.
    ///
    /// Anybody may connect (0666); the handler decides by the peer what a call may do. `held`: the listening socket of an
    /// earlier server at the same path.
    public convenience init(
        loop: EventLoop,
        path: String,
        taking held: Descriptor? = nil,
        info: VarlinkServiceInfo,
        interfaces: [VarlinkInterface],
        limits: Limits = Limits()
    ) throws(VarlinkServerError) {
        let service = VarlinkService(info: info, interfaces: interfaces)
        try self.init(loop: loop, path: SharedPath(path), taking: held, service: service, limits: limits)
    }

    /// As the other, one of several that offer the same. With `owner` the socket is that user's, which needs root.
    public init(
        loop: EventLoop,
        path: SharedPath,
        taking held: Descriptor? = nil,
        service: VarlinkService,
        limits: Limits = Limits(),
        mode: UInt32 = 0o666,
        owner: (uid: UInt32, gid: UInt32)? = nil
    ) throws(VarlinkServerError) {
        self.loop = loop
        self.place = path
        self.limits = limits
        self.service = service
        self.mode = mode
        self.owner = owner
        self.ownUser = Users.effectiveUID
        if let held { listener = held } else { listener = try Self.listen(path: path.text, mode: mode, owner: owner) }
        try watch()
    }

    deinit { close() }

    private func watch() throws(VarlinkServerError) {
        // Before Linux 6.16 nobody can refuse them.
        refusesDescriptors = (try? Sockets.refuseDescriptors(listener.raw)) != nil
        do throws(Errno) {
            source = try loop.watch(listener.raw, isAccepting ? .readable : []) { [weak self] _ in
                self?.acceptConnections()
            }
        } catch {
            throw VarlinkServerError(description: "cannot watch the socket \(path): \(error)")
        }
    }

    /// Whether clients are let in; until then they wait in the kernel.
    public func setAccepting(_ isAccepting: Bool) {
        self.isAccepting = isAccepting
        source?.setEvents(isAccepting ? .readable : [])
    }

    /// Listens on the path again with a new socket, after somebody removed the old one. Clients stay.
    public func listenAgain() throws(VarlinkServerError) {
        let fresh = try Self.listen(path: path, mode: mode, owner: owner)
        source?.cancel()
        listener.close()
        listener = fresh
        try watch()
    }

    /// The number of clients.
    public var connectionCount: Int { connections.count }

    /// Stops listening, removes the socket and drops all clients. A second call does nothing. With `leavingSocket` it
    /// stays for whoever takes the listening socket over: clients connect meanwhile, and wait.
    public func close(leavingSocket: Bool = false) {
        guard let source else { return }
        source.cancel()
        self.source = nil
        pause?.cancel()
        pause = nil
        listener.close()
        if !leavingSocket { try? File.remove(path) }
        closeConnections()
    }

    /// Ends every connection, and goes on listening.
    public func closeConnections() {
        for connection in Array(connections.values) { connection.close() }
    }

    /// Ends one connection.
    public func close(connection: UInt64) { connections[connection]?.close() }

    /// Whether the client of a connection is still at its other end.
    public func isConnected(_ connection: UInt64) -> Bool { connections[connection].map { !$0.isHungUp } ?? false }

    private static func listen(
        path: String,
        mode: UInt32,
        owner: (uid: UInt32, gid: UInt32)?
    ) throws(VarlinkServerError) -> Descriptor {
        guard path.utf8.count <= Sockets.longestPath else {
            throw VarlinkServerError(
                description: "the socket path \(path) has \(path.utf8.count) bytes and Linux allows "
                    + "\(Sockets.longestPath): choose a shorter runtime_directory"
            )
        }
        let occupant: FileStatus.Kind?
        do throws(Errno) {
            if let directory = File.parent(of: path), try File.kind(directory) == nil {
                try File.makeDirectory(directory)
                try File.setMode(directory, 0o755)
            }
            occupant = try File.kind(path)
        } catch {
            throw VarlinkServerError(description: "cannot listen on \(path): \(error)")
        }
        if let occupant, occupant != .socket {
            throw VarlinkServerError(description: "\(path) is not a socket: remove it or choose another path")
        }
        if occupant == .socket, isAnswered(path: path) {
            throw VarlinkServerError(
                description: "another supervisor answers at \(path): stop it first or choose another runtime_directory"
            )
        }
        do throws(Errno) {
            let socket = try Sockets.listen(path: path, mode: mode, backlog: 512)
            if let owner, Users.isRoot { try File.setOwner(path, uid: owner.uid, gid: owner.gid) }
            return socket
        } catch {
            throw VarlinkServerError(description: "cannot listen on \(path): \(error)")
        }
    }

    /// Whether somebody listens on the path, be it one who is too busy to accept.
    private static func isAnswered(path: String) -> Bool {
        do throws(Errno) {
            _ = try Sockets.connect(path: path, nonBlocking: true)
            return true
        } catch {
            return error == .resourceTemporarilyUnavailable
        }
    }

    private func acceptConnections() {
        // Not all at once: others have their turn as well, and what waits is reported again.
        for _ in 0..<64 {
            do throws(Errno) {
                guard let socket = try Sockets.accept(listener.raw) else { return }
                socket.closesPromptly = !refusesDescriptors
                open(socket)
            } catch {
                return pauseAccepting()
            }
        }
    }

    /// What waits stays readable: without a pause an accept that fails would be a busy loop.
    private func pauseAccepting() {
        source?.setEvents([])
        if pause == nil {
            pause = try? loop.timer { [weak self] in
                guard let self else { return }
                source?.setEvents(isAccepting ? .readable : [])
            }
        }
        pause?.arm(at: loop.now + .milliseconds(100))
    }

    private func open(_ socket: Descriptor) {
        guard let credentials = try? Sockets.peer(socket.raw) else { return }
        let began = loop.now
        let isTrusted = !limits.trustsNobody && (credentials.uid == 0 || credentials.uid == ownUser)
        guard connections.count < limits.connections + (isTrusted ? 64 : 0) else { return }
        let share = isTrusted ? nil : share(of: credentials.uid)
        defer { share?.spend(loop.now - began) }
        if let share {
            let count = connectionsOfUser[credentials.uid, default: 0]
            guard count < limits.connectionsOfUser, !share.isAtEnd else { return }
        }
        let peer = Peer(
            pid: credentials.pid,
            uid: credentials.uid,
            gid: credentials.gid,
            groups: credentials.groups
        )
        let refusal = refusal?(peer)
        guard refusal == nil || refusedConnections < limits.connections / 4 else { return }
        lastConnection += 1
        let connection = Connection(
            number: lastConnection,
            socket: socket,
            peer: peer,
            refusal: refusal,
            share: share,
            server: self
        )
        guard let connection else { return }
        connections[lastConnection] = connection
        connectionsOfUser[credentials.uid, default: 0] += 1
        if refusal != nil { refusedConnections += 1 }
    }

    private func share(of uid: UInt32) -> UserShare {
        guard limits.countsTogether else { return service.share(of: uid, loop, limits) }
        if let ownShare { return ownShare }
        let share = UserShare(loop, limits)
        ownShare = share
        return share
    }

    func forget(_ connection: Connection) {
        guard connections.removeValue(forKey: connection.number) != nil else { return }
        let count = connectionsOfUser[connection.peer.uid, default: 1] - 1
        connectionsOfUser[connection.peer.uid] = count == 0 ? nil : count
        if connection.isRefused { refusedConnections -= 1 }
        onDisconnect?(connection.number)
    }

    /// Answers what the standard asks of every service; leaves the rest to the handler.
    func dispatch(_ call: VarlinkCall, from connection: Connection, _ reply: Reply) {
        if service.interface.answer(call, reply) { return }
        handler(call, connection.peer, reply)
    }
}
