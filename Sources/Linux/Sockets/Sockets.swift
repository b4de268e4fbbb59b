// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// The peer of a connection, or the sender of a datagram.
public struct PeerCredentials: Hashable, Sendable {
    /// The pid of the peer's process; 0 if the kernel does not report it.
    public var pid: Int32
    /// The uid of the peer's user.
    public var uid: UInt32
    /// The gid of the peer's group.
    public var gid: UInt32
    /// The gids of the peer's supplementary groups; known only for connections.
    public var groups: [UInt32]
}

/// A received message.
public struct ReceivedMessage {
    /// The data, truncated to the requested size.
    public var bytes: [UInt8]
    /// Descriptors that came with the message.
    public var descriptors: [Descriptor]
    /// The sender; nil unless the receiving socket has SO_PASSCRED.
    public var sender: PeerCredentials?
    /// When it was sent or first looked at, in nanoseconds since 1970; nil unless that was asked for.
    public var sent: Int64?
    /// Whether data was truncated (MSG_TRUNC).
    public var dataTruncated: Bool
    /// Whether descriptors were lost (MSG_CTRUNC), because more were sent than requested or because this process is out
    /// of descriptors.
    public var controlTruncated: Bool
}

/// Unix sockets, and the TCP functions that readiness checks and socket activation need.
public enum Sockets {
    /// The longest path of a Unix socket in bytes (unix(7) allows 108 with the NUL).
    public static let longestPath = 107
    /// The maximum number of descriptors in one message (SCM_MAX_FD).
    public static let mostDescriptors = 253

    /// The socket type.
    public enum Kind: Int32, Sendable {
        /// SOCK_STREAM.
        case stream = 0
        /// SOCK_DGRAM.
        case datagram = 1
        /// SOCK_SEQPACKET.
        case sequenced = 2
    }

    /// Creates an unbound Unix socket, close-on-exec.
    public static func unix(_ kind: Kind, nonBlocking: Bool = false) throws(Errno) -> Descriptor {
        Descriptor(owning: try call { tlx_unix_socket(kind.rawValue, nonBlocking ? 1 : 0) })
    }

    /// Creates a pair of connected Unix sockets.
    public static func pair(_ kind: Kind, nonBlocking: Bool = false) throws(Errno) -> (Descriptor, Descriptor) {
        var pair: (Int32, Int32) = (-1, -1)
        try withUnsafeMutableBytes(of: &pair) { bytes throws(Errno) in
            let numbers = bytes.bindMemory(to: Int32.self)
            try call { tlx_unix_pair(kind.rawValue, numbers.baseAddress!) }
        }
        let both = (Descriptor(owning: pair.0), Descriptor(owning: pair.1))
        if nonBlocking {
            try Descriptor.setNonBlocking(pair.0)
            try Descriptor.setNonBlocking(pair.1)
        }
        return both
    }

    /// Creates a non-blocking Unix stream (or sequenced-packet) socket that listens at `path`. An old socket file at
    /// that path is removed first. `@name` stands for an abstract socket. `refusingDescriptors`: see
    /// ``refuseDescriptors(_:)``.
    public static func listen(
        path: String,
        kind: Kind = .stream,
        mode: UInt32 = 0o666,
        backlog: Int32 = 128,
        refusingDescriptors: Bool = false
    ) throws(Errno) -> Descriptor {
        let socket = try unix(kind, nonBlocking: true)
        // The kernel supports this only since Linux 6.16.
        if refusingDescriptors { try? refuseDescriptors(socket.raw) }
        try bind(socket, to: path, mode: mode)
        try call { Glibc.listen(socket.raw, backlog) }
        return socket
    }

    /// Creates a non-blocking datagram socket at `path` that receives the sender's credentials (SO_PASSCRED). An old
    /// socket file at that path is removed first. `receiveBuffer` is the size of the receive buffer in bytes; the
    /// kernel may grant less.
    public static func bindDatagram(
        path: String,
        mode: UInt32 = 0o666,
        receiveBuffer: Int32? = nil
    ) throws(Errno) -> Descriptor {
        let socket = try unix(.datagram, nonBlocking: true)
        try setOption(socket.raw, SO_PASSCRED, 1)
        if let receiveBuffer { try? setOption(socket.raw, SO_RCVBUF, receiveBuffer) }
        try bind(socket, to: path, mode: mode)
        return socket
    }

    private static func bind(_ socket: Descriptor, to path: String, mode: UInt32) throws(Errno) {
        do throws(Errno) {
            try call { tlx_unix_bind(socket.raw, path, path.utf8.count) }
        } catch {
            guard error == .addressInUse, !path.hasPrefix("@"), try File.kind(path) == .socket else { throw error }
            try File.remove(path)
            try call { tlx_unix_bind(socket.raw, path, path.utf8.count) }
        }
        if !path.hasPrefix("@") { try File.setMode(path, mode) }
    }

    /// Connects to a Unix socket. While the listener's backlog is full, a blocking socket waits for at most
    /// `sendTimeout`. This timeout also applies to later sends.
    public static func connect(
        path: String,
        kind: Kind = .stream,
        nonBlocking: Bool = false,
        sendTimeout: Duration? = nil
    ) throws(Errno) -> Descriptor {
        let socket = try unix(kind, nonBlocking: nonBlocking)
        if let sendTimeout { try setSendTimeout(socket.raw, sendTimeout) }
        try call { tlx_unix_connect(socket.raw, path, path.utf8.count) }
        return socket
    }

    /// Connects to a Unix socket, and closes the connection at once. Throws EAGAIN if the listener's backlog is full.
    public static func connectBriefly(path: String, kind: Kind = .stream) throws(Errno) {
        let socket = try unix(kind, nonBlocking: true)
        // So that the listener can send no descriptor that would have to be closed here.
        if kind == .stream { try shutdownReading(socket.raw) }
        _ = try socket.withRaw { raw throws(Errno) in try call { tlx_unix_connect(raw, path, path.utf8.count) } }
    }

    /// Whether a process serves the Unix socket at a path. The file alone does not show that, because it remains after
    /// the socket is closed. So this function connects and closes the connection at once, which the serving process
    /// sees.
    public static func isServed(path: String, kind: Kind = .stream) -> Bool {
        do throws(Errno) {
            try connectBriefly(path: path, kind: kind)
            return true
        } catch {
            // EAGAIN means that the listener's backlog is full, so a process serves the socket.
            return error == .resourceTemporarilyUnavailable
        }
    }

    /// Accepts a connection, non-blocking and close-on-exec. Nil if no connection is queued, or if the client aborted
    /// it.
    public static func accept(_ listener: Int32) throws(Errno) -> Descriptor? {
        do throws(Errno) {
            return try callUnlessBlocked { tlx_accept(listener) }.map(Descriptor.init(owning:))
        } catch {
            if error.rawValue == ECONNABORTED { return nil }
            throw error
        }
    }

    /// The peer's credentials at the time of its connect (SO_PEERCRED, SO_PEERGROUPS).
    public static func peer(_ socket: Int32) throws(Errno) -> PeerCredentials {
        var raw = tlx_credentials()
        try call { tlx_peer_credentials(socket, &raw) }
        var groups = [UInt32](repeating: 0, count: 64)
        var count = tlx_peer_groups(socket, &groups, groups.count)
        if count > groups.count {
            groups = [UInt32](repeating: 0, count: Int(count))
            count = tlx_peer_groups(socket, &groups, groups.count)
        }
        return PeerCredentials(
            pid: raw.pid,
            uid: raw.uid,
            gid: raw.gid,
            groups: Array(groups.prefix(max(0, min(groups.count, Int(count)))))
        )
    }

    /// Receives one message; nil if none is queued. On a stream socket, an empty message without descriptors means that
    /// the peer has closed the connection.
    public static func receive(
        _ socket: Int32,
        maximum: Int,
        maximumDescriptors: Int = mostDescriptors
    ) throws(Errno) -> ReceivedMessage? {
        try withUnsafeTemporaryAllocation(byteCount: maximum, alignment: 8) {
            buffer throws(Errno) -> ReceivedMessage? in
            try receiveMessage(socket, into: buffer, maximumDescriptors: maximumDescriptors)
        }
    }

    /// Receives one message through a scratch buffer that many sockets can share; the result has its own copy of the
    /// bytes. With `leaving`, the message stays in the queue (MSG_PEEK), and the received descriptors are duplicates.
    /// Call ``drop(_:)`` to remove the message. `stamped`: whether ``stampDatagrams(_:_:)`` is on for the socket.
    public static func receiveMessage(
        _ socket: Int32,
        into buffer: UnsafeMutableRawBufferPointer,
        maximumDescriptors: Int = mostDescriptors,
        leaving: Bool = false,
        stamped: Bool = false
    ) throws(Errno) -> ReceivedMessage? {
        var descriptors: [Descriptor] = []
        var credentials = tlx_credentials()
        var truncated: Int32 = 0
        var nanoseconds: Int64 = 0
        let size = try withUnsafeTemporaryAllocation(of: Int32.self, capacity: maximumDescriptors) {
            numbers throws(Errno) -> Int? in
            var count = 0
            let size = try callUnlessBlocked {
                count = numbers.count
                return withUnsafeMutablePointer(to: &nanoseconds) { time in
                    tlx_receive(
                        socket,
                        buffer.baseAddress,
                        buffer.count,
                        numbers.baseAddress!,
                        &count,
                        &credentials,
                        &truncated,
                        stamped ? time : nil,
                        leaving ? 1 : 0
                    )
                }
            }
            if size != nil { descriptors = numbers[..<count].map(Descriptor.init(owning:)) }
            return size
        }
        guard let size else { return nil }
        let isKnown = credentials.uid != .max
        return ReceivedMessage(
            bytes: Array(UnsafeRawBufferPointer(rebasing: buffer[..<size])),
            descriptors: descriptors,
            sender: isKnown
                ? PeerCredentials(pid: credentials.pid, uid: credentials.uid, gid: credentials.gid, groups: []) : nil,
            sent: stamped ? nanoseconds : nil,
            dataTruncated: truncated & 1 != 0,
            controlTruncated: truncated & 2 != 0
        )
    }

    /// Has the kernel record when each datagram to this socket is sent, or when it is first received after this call.
    /// Two datagrams that are otherwise equal have different times.
    public static func stampDatagrams(_ socket: Int32, _ isOn: Bool) throws(Errno) {
        try call { tlx_stamp(socket, isOn ? 1 : 0) }
    }

    /// Discards the next datagram, if there is one.
    public static func drop(_ socket: Int32) { _ = tlx_drop(socket) }

    /// Sends one message with at most 253 descriptors. Returns how many bytes were sent; nil if the send would block
    /// now. Never raises SIGPIPE.
    @discardableResult
    public static func send(
        _ socket: Int32,
        _ bytes: [UInt8],
        descriptors: [Int32] = [],
        wait: Bool = false
    ) throws(Errno) -> Int? {
        try callUnlessBlocked {
            tlx_send(socket, bytes, bytes.count, descriptors, descriptors.count, wait ? 1 : 0)
        }
    }

    /// Sends raw bytes. Returns how many were sent; nil if the send would block now. Never raises SIGPIPE.
    public static func send(_ socket: Int32, _ bytes: UnsafeRawBufferPointer) throws(Errno) -> Int? {
        try callUnlessBlocked { tlx_send(socket, bytes.baseAddress, bytes.count, nil, 0, 0) }
    }

    /// Receives one message without descriptors into `buffer` and returns its size; bytes that do not fit are lost.
    /// Returns 0 at the end of the connection. Returns nil if no message is queued or, with `wait`, if none came
    /// within the time of ``setReceiveTimeout(_:_:)``.
    public static func receive(
        _ socket: Int32,
        into buffer: UnsafeMutableRawBufferPointer,
        wait: Bool = false
    ) throws(Errno) -> Int? {
        let flags = wait ? 0 : Int32(MSG_DONTWAIT)
        return try callUnlessBlocked { recv(socket, buffer.baseAddress, buffer.count, flags) }
    }

    static func setOption(_ socket: Int32, _ option: Int32, _ value: Int32) throws(Errno) {
        var value = value
        try call { setsockopt(socket, SOL_SOCKET, option, &value, socklen_t(MemoryLayout<Int32>.size)) }
    }

    /// Makes close(2) reset the connection, so that neither end keeps it in TIME_WAIT (SO_LINGER with zero time).
    public static func resetOnClose(_ socket: Int32) throws(Errno) {
        var value = linger(l_onoff: 1, l_linger: 0)
        try call { setsockopt(socket, SOL_SOCKET, SO_LINGER, &value, socklen_t(MemoryLayout<linger>.size)) }
    }

    /// Limits how long a send on a blocking socket waits for free space in the send buffer (SO_SNDTIMEO); nil for no
    /// limit.
    public static func setSendTimeout(_ socket: Int32, _ timeout: Duration?) throws(Errno) {
        let microseconds = max(0, timeout?.microseconds ?? 0)
        var time = timeval(tv_sec: Int(microseconds / 1_000_000), tv_usec: Int(microseconds % 1_000_000))
        try call { setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &time, socklen_t(MemoryLayout<timeval>.size)) }
    }

    /// Limits how long a receive on a blocking socket waits for a message (SO_RCVTIMEO); nil for no limit.
    public static func setReceiveTimeout(_ socket: Int32, _ timeout: Duration?) throws(Errno) {
        // A timeval of zero would mean no limit, so use at least 1 µs.
        let microseconds = max(timeout == nil ? 0 : 1, timeout?.microseconds ?? 0)
        var time = timeval(tv_sec: Int(microseconds / 1_000_000), tv_usec: Int(microseconds % 1_000_000))
        try call { setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &time, socklen_t(MemoryLayout<timeval>.size)) }
    }

    /// Shuts down the receiving direction of a connection.
    public static func shutdownReading(_ socket: Int32) throws(Errno) { try call { shutdown(socket, Int32(SHUT_RD)) } }

    /// Shuts down the sending direction of a connection.
    public static func shutdownWriting(_ socket: Int32) throws(Errno) { try call { shutdown(socket, Int32(SHUT_WR)) } }

    /// Ends the connection in both directions, for every process that has the socket open. Data that was written before
    /// the call is still sent.
    public static func shutDown(_ socket: Int32) throws(Errno) { try call { shutdown(socket, Int32(SHUT_RDWR)) } }

    /// Starts a non-blocking TCP connection to a numeric address (`127.0.0.1`, `::1`). When the socket becomes
    /// writable, call `pendingError` to get the result.
    public static func connectTCP(address: String, port: UInt16) throws(Errno) -> Descriptor {
        Descriptor(owning: try call { tlx_tcp_connect(address, port) })
    }

    /// Creates a non-blocking TCP socket that listens at a numeric address.
    public static func listenTCP(
        address: String,
        port: UInt16,
        backlog: Int32 = 128,
        reusePort: Bool = false
    ) throws(Errno) -> Descriptor {
        Descriptor(owning: try call { tlx_tcp_listen(address, port, backlog, reusePort ? 1 : 0) })
    }

    /// The user that owns the other end of a TCP connection.
    public enum TCPPeer: Hashable, Sendable {
        /// A process of this user, on this machine, accepted the connection. This result cannot change later.
        case user(UInt32)
        /// The other end is on this machine, but the user is unknown: the connection is not accepted yet, is closed
        /// already, or the kernel does not report the user.
        case unknown
        /// The other end is on another machine.
        case elsewhere
    }

    /// Finds the user at the other end of a TCP connection (sock_diag(7)). Call this only after the other end has sent
    /// data. Before a process at the other end has accepted the connection, the result is `unknown`.
    public static func peer(ofTCP socket: Int32) -> TCPPeer {
        var user: UInt32 = 0
        switch tlx_tcp_peer_user(socket, &user) {
        case 0: return .elsewhere
        case 1: return .user(user)
        default: return .unknown
        }
    }

    /// The port that a TCP socket is bound to.
    public static func port(_ socket: Int32) throws(Errno) -> UInt16 {
        UInt16(truncatingIfNeeded: try call { tlx_tcp_port(socket) })
    }

    /// The result of a non-blocking connect: nil if it succeeded, otherwise its error.
    public static func pendingError(_ socket: Int32) -> Errno? {
        let code = tlx_socket_error(socket)
        if code < 0 { return Errno(rawValue: errno) }
        return code == 0 ? nil : Errno(rawValue: code)
    }
}
