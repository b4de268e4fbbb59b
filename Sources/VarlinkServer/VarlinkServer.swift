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

        /// The usual bounds.
        public init() {}
    }

    /// Answers the calls of the registered interfaces' methods. It must finish each Reply, now or later.
    public var handler: (VarlinkCall, Peer, Reply) -> Void = { call, _, reply in
        reply.fail(VarlinkErrorName.methodNotImplemented, ["method": .string(call.method)])
    }

    /// The socket's path.
    public let path: String
    /// The bounds that it was made with.
    public let limits: Limits

    let loop: EventLoop
    private let service: VarlinkServiceInterface
    /// The listening socket, for the keeper to hold: clients that connect while nobody serves wait in its backlog.
    public private(set) var listener: Descriptor
    private let ownUser: UInt32
    private var source: IOSource?
    private var pause: TimerSource?
    private var connections: [ObjectIdentifier: Connection] = [:]
    /// Shared by all connections: they read one at a time.
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 16)

    /// Listens on `path`: the directory is made (0755) if need be, a socket that nobody answers on is replaced.
    ///
    /// Anybody may connect (0666); the handler decides by the peer what a call may do. `held`: the listening socket of an
    /// earlier server at the same path.
    public init(
        loop: EventLoop,
        path: String,
        taking held: Descriptor? = nil,
        info: VarlinkServiceInfo,
        interfaces: [VarlinkInterface],
        limits: Limits = Limits()
    ) throws(VarlinkServerError) {
        self.loop = loop
        self.path = path
        self.limits = limits
        self.service = VarlinkServiceInterface(info: info, interfaces: interfaces)
        self.ownUser = Users.effectiveUID
        if let held { listener = held } else { listener = try Self.listen(path: path) }
        do throws(Errno) {
            pause = try loop.timer { [weak self] in self?.source?.setEvents(.readable) }
            source = try loop.watch(listener.raw, .readable) { [weak self] _ in self?.acceptConnections() }
        } catch {
            throw VarlinkServerError(description: "cannot watch the socket \(path): \(error)")
        }
    }

    deinit {
        close()
        buffer.deallocate()
    }

    /// Listens on the path again with a new socket, after somebody removed the old one. Clients stay.
    public func listenAgain() throws(VarlinkServerError) {
        let fresh = try Self.listen(path: path)
        source?.cancel()
        listener.close()
        listener = fresh
        do throws(Errno) {
            source = try loop.watch(listener.raw, .readable) { [weak self] _ in self?.acceptConnections() }
        } catch {
            throw VarlinkServerError(description: "cannot watch the socket \(path): \(error)")
        }
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
        for connection in connections.values { connection.close() }
        connections = [:]
    }

    private static func listen(path: String) throws(VarlinkServerError) -> Descriptor {
        guard path.utf8.count <= Sockets.longestPath else {
            throw VarlinkServerError(
                description: "the socket's path is \(path.utf8.count) bytes long, \(Sockets.longestPath) is the "
                    + "most that Linux takes: choose a shorter runtime_directory (\(path))"
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
            return try Sockets.listen(path: path, mode: 0o666, backlog: 512)
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
                open(socket)
            } catch {
                return pauseAccepting()
            }
        }
    }

    /// What waits stays readable: without a pause an accept that fails would be a busy loop.
    private func pauseAccepting() {
        source?.setEvents([])
        pause?.arm(at: loop.now + .milliseconds(100))
    }

    private func open(_ socket: Descriptor) {
        guard let credentials = try? Sockets.peer(socket.raw) else { return }
        let isTrusted = credentials.uid == 0 || credentials.uid == ownUser
        guard connections.count < limits.connections + (isTrusted ? 64 : 0) else { return }
        let peer = Peer(
            pid: credentials.pid,
            uid: credentials.uid,
            gid: credentials.gid,
            groups: credentials.groups
        )
        guard let connection = Connection(socket: socket, peer: peer, server: self) else { return }
        connections[ObjectIdentifier(connection)] = connection
    }

    func forget(_ connection: Connection) {
        connections[ObjectIdentifier(connection)] = nil
    }

    /// Answers what the standard asks of every service; leaves the rest to the handler.
    func dispatch(_ call: VarlinkCall, from peer: Peer, _ reply: Reply) {
        if service.answer(call, reply) { return }
        handler(call, peer, reply)
    }
}
