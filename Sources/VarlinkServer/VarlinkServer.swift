// SPDX-License-Identifier: Apache-2.0

public import EventLoop
public import Linux
public import Varlink

/// The server's answer to `org.varlink.service.GetInfo`.
public struct VarlinkServiceInfo: Hashable, Sendable {
    /// The vendor.
    public var vendor: String
    /// The product's name.
    public var product: String
    /// The service's version.
    public var version: String
    /// The URL of the service's documentation.
    public var url: String

    /// Memberwise initializer.
    public init(vendor: String, product: String, version: String, url: String) {
        self.vendor = vendor
        self.product = product
        self.version = version
        self.url = url
    }
}

/// What servers on several sockets share, so that each of a thousand sockets takes little memory.
public final class VarlinkService {
    let interface: VarlinkServiceInterface
    /// The limits of each server.
    let limits: VarlinkServer.Limits
    let ownUser = Users.effectiveUID
    /// The accounts by uid, for users that are not exempt.
    private var shares: [UInt32: UserShare] = [:]
    /// The buffer for reading. All connections share it, since only one of them reads at a time.
    var buffer: UnsafeMutableRawBufferPointer { mapping.bytes }
    private let mapping = Mapping(size: 1 << 16)
    /// Gets a connection in whose queue a client has left descriptors, and the client's uid. Must have another process
    /// close it last, since that may block. Without it, they are closed here.
    public var discard: ((_ connection: Descriptor, _ uid: UInt32) -> Void)?

    /// Creates a service with these interfaces.
    public init(
        info: VarlinkServiceInfo,
        interfaces: [VarlinkInterface],
        limits: VarlinkServer.Limits = VarlinkServer.Limits()
    ) {
        interface = VarlinkServiceInterface(info: info, interfaces: interfaces)
        self.limits = limits
    }

    /// Closes a client's connection.
    func close(_ stream: StrangerStream, of uid: UInt32) {
        stream.close(using: buffer) { discard?($0, uid) }
    }

    /// The account of a user; creates it if the user has none.
    func share(of uid: UInt32, _ loop: EventLoop) -> UserShare {
        if let share = shares[uid] { return share }
        if shares.count > 256 { shares = shares.filter { !$0.value.isIdle } }
        let share = UserShare(loop, limits)
        shares[uid] = share
        return share
    }
}

/// The server cannot listen; the description says why, and what to do.
public struct VarlinkServerError: Error, Hashable, Sendable, CustomStringConvertible {
    /// A sentence for users.
    public var description: String
}

/// A Varlink server on a Unix socket (https://varlink.org), on an event loop.
///
/// It never blocks and trusts no client: all buffers and the number of connections are bounded. Calls of one
/// connection are handled one after the other; calls of different connections in any order.
public final class VarlinkServer {
    /// The server's limits.
    public struct Limits: Hashable, Sendable {
        /// The maximum size of a client's message in bytes.
        public var messageBytes = MessageFramer.callLimit
        /// The maximum of unread bytes for a client; a client with more unread bytes is dropped.
        public var outboundBytes = 8 << 20
        /// The maximum of connections. Root and the server's own user may have 64 more, so that other users cannot take
        /// all connections from them.
        public var connections = 1024
        /// The maximum of connections of one user, except for root and the server's own user.
        public var connectionsOfUser = 128
        /// The maximum of received but unhandled bytes over all connections of one user; the connection that exceeds
        /// it is closed.
        public var inboundBytesOfUser = 8 << 20
        /// The maximum of unread bytes over all connections of one user.
        public var outboundBytesOfUser = 64 << 20
        /// How long the loop may work for one user without a pause.
        public var burst = Duration.milliseconds(20)
        /// A user whose calls have used up ``burst`` gets one part in this many of the event loop's time.
        public var inverseShare = 4
        /// Whether all clients of this socket share one account, instead of one account per user for all sockets of the
        /// service. Used for apps' own sockets, so that each app is charged only for its own calls.
        public var countsTogether = false
        /// Whether root and the server's own user have accounts like other users. Used by tests, which run as root or
        /// as the server's own user.
        public var trustsNobody = false

        /// Creates the default limits.
        public init() {}
    }

    /// Handles calls of the registered interfaces' methods. The handler must finish each ``Reply``, before it returns
    /// or later.
    public var handler: (VarlinkCall, Peer, Reply) -> Void {
        get { table.handler }
        set { table.handler = newValue }
    }

    /// Called with the connection's number (``Reply/connection``) when it has closed.
    public var onDisconnect: ((UInt64) -> Void)? {
        get { table.onDisconnect }
        set { table.onDisconnect = newValue }
    }
    /// Called when a client sends something on a connection whose call is still being answered, if the connection was
    /// named by ``refuseCalls(on:)``: with the connection's number, and the method if it was a call. The call that is
    /// being answered ends with the error, and so does the connection.
    public var strayCall: ((_ connection: UInt64, _ method: String?) -> Refusal)? {
        get { table.strayCall }
        set { table.strayCall = newValue }
    }
    /// Called once for a connection if a client has sent a whole JSON object with a newline instead of a NUL behind it.
    /// The server keeps waiting for the NUL.
    public var unterminated: ((Peer) -> Void)? {
        get { table.unterminated }
        set { table.unterminated = newValue }
    }
    /// Called once for a connection if a client has sent something that does not begin like a JSON object. The server
    /// does not answer it.
    public var foreign: ((Peer) -> Void)? {
        get { table.foreign }
        set { table.foreign = newValue }
    }
    /// Decides whether to refuse a new client; nil accepts the client. The server does not read the first message of a
    /// refused client, but replies with the error and closes the connection.
    public var refusal: ((Peer) -> Refusal?)? {
        get { table.refusal }
        set { table.refusal = newValue }
    }
    /// Decides again about a client that ``refusal`` refuses, at once or later. Nothing is read from the client before
    /// the decision.
    public var secondDecision: ((Peer, @escaping (Refusal?) -> Void) -> Void)? {
        get { table.secondDecision }
        set { table.secondDecision = newValue }
    }

    /// See ``VarlinkService/discard``.
    public var discard: ((_ connection: Descriptor, _ uid: UInt32) -> Void)? {
        get { service.discard }
        set { service.discard = newValue }
    }

    /// The error for a refused client.
    public struct Refusal {
        /// The fully qualified name of the error.
        public var error: String
        /// The error's parameters.
        public var parameters: JSON

        /// Memberwise initializer.
        public init(error: String, parameters: JSON) {
            self.error = error
            self.parameters = parameters
        }
    }

    /// The socket's path.
    public var path: String { place.text }
    /// The limits of the server's service.
    public var limits: Limits { service.limits }

    let loop: EventLoop
    private let place: SharedPath
    let service: VarlinkService
    private let mode: UInt32
    /// The owner to set if the socket is created again.
    public var owner: (uid: UInt32, gid: UInt32)?
    /// The listening socket, which the keeper can hold as well: while no server accepts connections, clients wait in
    /// this socket's backlog.
    public private(set) var listener: Descriptor
    private var source: IOSource?
    private var isAccepting = true
    /// Whether the kernel refuses descriptors that clients send.
    private var refusesDescriptors = false
    /// Nil until the server has its first client, or a handler.
    private var clients: ClientTable?
    /// Sets the handlers; nil when that is done.
    private var setUp: ((VarlinkServer) -> Void)?
    var buffer: UnsafeMutableRawBufferPointer { service.buffer }

    private var table: ClientTable {
        if let clients { return clients }
        let made = ClientTable()
        clients = made
        let setUp = setUp
        self.setUp = nil
        setUp?(self)
        return made
    }

    /// Listens on `path`. Creates the directory (0755) if necessary, and replaces a stale socket.
    ///
    /// Any user may connect (0666); the handler decides by the peer which calls it may make. `held`: the listening
    /// socket of an earlier server at the same path.
    public convenience init(
        loop: EventLoop,
        path: String,
        taking held: Descriptor? = nil,
        info: VarlinkServiceInfo,
        interfaces: [VarlinkInterface],
        limits: Limits = Limits()
    ) throws(VarlinkServerError) {
        let service = VarlinkService(info: info, interfaces: interfaces, limits: limits)
        try self.init(loop: loop, path: SharedPath(path), taking: held, service: service)
    }

    /// Creates a server on one of several sockets of a service. `owner`: the owner of the socket's file, which only
    /// root can set. `setUp` is called before the first client is served, and sets the handlers: a server that never
    /// has a client takes no memory for them.
    public init(
        loop: EventLoop,
        path: SharedPath,
        taking held: Descriptor? = nil,
        service: VarlinkService,
        mode: UInt32 = 0o666,
        owner: (uid: UInt32, gid: UInt32)? = nil,
        setUp: ((VarlinkServer) -> Void)? = nil
    ) throws(VarlinkServerError) {
        self.loop = loop
        self.place = path
        self.service = service
        self.mode = mode
        self.owner = owner
        self.setUp = setUp
        if let held { listener = held } else { listener = try Self.listen(path: path.text, mode: mode, owner: owner) }
        try watch()
    }

    deinit { close() }

    private func watch() throws(VarlinkServerError) {
        // Clients that wait may have sent descriptors that linger.
        listener.closesPromptly = true
        // The kernel supports this only since Linux 6.16.
        refusesDescriptors = (try? Sockets.refuseDescriptors(listener.raw)) != nil
        do throws(Errno) {
            // `unowned` is safe, because the watch ends when this object is destroyed.
            source = try loop.watch(listener.raw, isAccepting ? .readable : []) { [unowned self] _ in
                self.acceptConnections()
            }
        } catch {
            throw VarlinkServerError(description: "cannot watch the socket \(path): \(error)")
        }
    }

    /// Whether clients are accepted; otherwise they wait in the backlog.
    public func setAccepting(_ isAccepting: Bool) {
        self.isAccepting = isAccepting
        source?.setEvents(isAccepting ? .readable : [])
    }

    /// Creates the socket again after it was removed. Connected clients stay.
    public func listenAgain() throws(VarlinkServerError) {
        let fresh = try Self.listen(path: path, mode: mode, owner: owner)
        source?.cancel()
        listener.close()
        listener = fresh
        try watch()
    }

    /// The number of clients.
    public var connectionCount: Int { clients?.connections.count ?? 0 }

    /// Stops listening, removes the socket and drops all clients. A second call does nothing. With `leavingSocket`
    /// the path stays for the process that takes over the listening socket: clients can connect and wait.
    public func close(leavingSocket: Bool = false) {
        guard let source else { return }
        source.cancel()
        self.source = nil
        clients?.pause?.cancel()
        clients?.pause = nil
        listener.close()
        if !leavingSocket { try? File.remove(path) }
        closeConnections()
    }

    /// Closes every connection, but keeps listening.
    public func closeConnections() {
        guard let clients else { return }
        for connection in Array(clients.connections.values) { connection.close() }
    }

    /// Closes every connection in whose queue there may be descriptors, which must not be closed by the exit of this
    /// process. Keeps listening.
    public func closeConnectionsBeforeExit() {
        if !refusesDescriptors { closeConnections() }
    }

    /// Closes every connection that a process has made.
    public func closeConnections(of process: Int32) {
        guard let clients else { return }
        for connection in Array(clients.connections.values) where connection.peer.pid == process { connection.close() }
    }

    /// From now on, a call that the client sends on this connection before its current call is answered does not wait:
    /// it is reported to ``strayCall``.
    public func refuseCalls(on connection: UInt64) { clients?.connections[connection]?.refuseCalls() }

    /// Ends one connection.
    public func close(connection: UInt64) { clients?.connections[connection]?.close() }

    /// The process that has made a connection; nil if the connection is closed.
    public func process(of connection: UInt64) -> Int32? { clients?.connections[connection]?.peer.pid }

    /// Whether a process has a connection.
    public func isConnected(process: Int32) -> Bool {
        clients?.connections.values.contains { $0.peer.pid == process && !$0.isHungUp } ?? false
    }

    /// Whether the client of a connection is still connected.
    public func isConnected(_ connection: UInt64) -> Bool {
        clients?.connections[connection].map { !$0.isHungUp } ?? false
    }

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
            let socket = try Sockets.listen(path: path, mode: mode, backlog: 512, refusingDescriptors: true)
            if let owner, Users.isRoot { try File.setOwner(path, uid: owner.uid, gid: owner.gid) }
            return socket
        } catch {
            throw VarlinkServerError(description: "cannot listen on \(path): \(error)")
        }
    }

    /// Whether a process listens on the path. A socket file alone does not prove that: it may be left from a process
    /// that was killed. If this server itself listens on the path, it gets a connection that ends at once.
    public static func isBound(path: String) -> Bool {
        do throws(Errno) {
            try Sockets.connectBriefly(path: path)
            return true
        } catch {
            return error != .connectionRefused && error != .noSuchFileOrDirectory
        }
    }

    /// Whether a process listens on the path, even if its backlog is full.
    private static func isAnswered(path: String) -> Bool {
        do throws(Errno) {
            try Sockets.connectBriefly(path: path)
            return true
        } catch {
            return error == .resourceTemporarilyUnavailable
        }
    }

    private func acceptConnections() {
        // Accept a limited number at a time, so that other event sources get their turn. The loop reports the rest
        // again.
        for _ in 0..<64 {
            do throws(Errno) {
                guard let socket = try Sockets.accept(listener.raw) else { return }
                open(StrangerStream(socket, isRefusing: refusesDescriptors))
            } catch {
                return pauseAccepting()
            }
        }
    }

    /// Stops accepting for a moment. If accept fails, the socket stays readable, and the loop would spin.
    private func pauseAccepting() {
        source?.setEvents([])
        let table = table
        if table.pause == nil {
            table.pause = try? loop.timer { [weak self] in
                guard let self else { return }
                source?.setEvents(isAccepting ? .readable : [])
            }
        }
        table.pause?.arm(at: loop.now + .milliseconds(100))
    }

    private func open(_ stream: StrangerStream) {
        guard let credentials = try? Sockets.peer(stream.raw) else { return service.close(stream, of: .max) }
        let began = loop.now
        let (table, limits) = (table, service.limits)
        let isTrusted = !limits.trustsNobody && (credentials.uid == 0 || credentials.uid == service.ownUser)
        let share = isTrusted ? nil : share(of: credentials.uid)
        defer { share?.spend(loop.now - began) }
        let connection = connect(stream, credentials, isTrusted, share)
        guard let connection else { return service.close(stream, of: credentials.uid) }
        table.connections[connection.number] = connection
        table.connectionsOfUser[credentials.uid, default: 0] += 1
        if connection.isRefused {
            table.refusedConnections += 1
            decideAgain(connection)
        }
    }

    private func decideAgain(_ connection: Connection) {
        guard let decision = table.secondDecision else { return }
        connection.waitForDecision()
        decision(connection.peer) { [weak self, weak connection] refusal in
            guard let table = self?.clients, let connection, table.connections[connection.number] === connection else {
                return
            }
            if refusal == nil, connection.isRefused { table.refusedConnections -= 1 }
            connection.decide(refusal)
        }
    }

    /// Nil if the client exceeds a limit.
    private func connect(
        _ stream: StrangerStream,
        _ credentials: PeerCredentials,
        _ isTrusted: Bool,
        _ share: UserShare?
    ) -> Connection? {
        let (table, limits) = (table, service.limits)
        guard table.connections.count < limits.connections + (isTrusted ? 64 : 0) else { return nil }
        if let share {
            let count = table.connectionsOfUser[credentials.uid, default: 0]
            guard count < limits.connectionsOfUser, !share.isAtEnd else { return nil }
        }
        let peer = Peer(
            pid: credentials.pid,
            uid: credentials.uid,
            gid: credentials.gid,
            groups: credentials.groups
        )
        let refusal = table.refusal?(peer)
        guard refusal == nil || table.refusedConnections < limits.connections / 4 else { return nil }
        table.lastConnection += 1
        return Connection(
            number: table.lastConnection,
            stream: stream,
            peer: peer,
            refusal: refusal,
            share: share,
            server: self
        )
    }

    private func share(of uid: UInt32) -> UserShare {
        guard service.limits.countsTogether else { return service.share(of: uid, loop) }
        if let share = table.share { return share }
        let share = UserShare(loop, service.limits)
        table.share = share
        return share
    }

    func forget(_ connection: Connection) {
        guard let clients, clients.connections.removeValue(forKey: connection.number) != nil else { return }
        let count = clients.connectionsOfUser[connection.peer.uid, default: 1] - 1
        clients.connectionsOfUser[connection.peer.uid] = count == 0 ? nil : count
        if connection.isRefused { clients.refusedConnections -= 1 }
        clients.onDisconnect?(connection.number)
    }

    /// Answers the standard methods of every service; passes other calls to the handler.
    func dispatch(_ call: VarlinkCall, from connection: Connection, _ reply: Reply) {
        if service.interface.answer(call, reply) { return }
        table.handler(call, connection.peer, reply)
    }
}
