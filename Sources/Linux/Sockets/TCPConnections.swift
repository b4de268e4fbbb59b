// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import WireText

/// An established TCP connection.
public struct TCPConnection: Hashable, Sendable {
    /// The inode number of the connection's socket, as `/proc/PID/fd` shows it; 0 until the connection is accepted.
    public var inode: UInt32
    /// When data last moved in either direction, or, if none did, when the connection was opened (CLOCK_MONOTONIC, to
    /// about 10 ms). Nil if the kernel does not report it.
    public var lastTraffic: Duration?
    /// Both ends; nil if the kernel's socket diagnostics were not read.
    public var ends: Ends?

    /// The two ends of a connection, as one of its sockets has them.
    public struct Ends: Hashable, Sendable {
        /// The end of the socket that was read.
        public let local: End
        /// The end of the socket's peer.
        public let remote: End
    }

    /// One end of a connection. The remote end of one socket equals the local end of the socket that it is connected
    /// to, if both are in this network namespace and no address is translated.
    public struct End: Hashable, Sendable {
        private let high: UInt64
        private let low: UInt64
        private let port: UInt16

        init(_ end: tlx_tcp_end) { (high, low, port) = (end.high, end.low, end.port) }
    }
}

/// The established TCP connections (IPv4 and IPv6) of this process's network namespace. Sockets in any other state
/// (listening, connecting, half-closed, TIME_WAIT) are not included. Multipath TCP connections are included only if
/// they fell back to plain TCP.
public enum TCPConnections {
    /// All established connections, from socket diagnostics or, if these are missing or forbidden, from `/proc/net`.
    public static func established() throws(Errno) -> [TCPConnection] {
        guard let reading = try? TCPConnectionReading(), (try? reading.read()) != nil else { return try listed() }
        return reading.connections
    }

    /// All established connections from `/proc/net/tcp` and `tcp6`, which lack the time of the last traffic.
    ///
    /// - Parameter root: a prefix for paths below `/proc`; empty except in tests.
    public static func listed(root: String = "") throws(Errno) -> [TCPConnection] {
        var connections: [TCPConnection] = []
        for name in ["tcp", "tcp6"] {
            let text: [UInt8]
            do throws(Errno) {
                text = try File.read(root + "/proc/net/" + name, limit: 1 << 28)
            } catch {
                // A kernel without IPv6 has no file tcp6.
                if name == "tcp6", error == .noSuchFileOrDirectory { continue }
                throw error
            }
            for line in text.split(separator: UInt8(ascii: "\n")).dropFirst() {
                // Example: 0: 0100007F:1F90 0100007F:A3D2 01 00000000:00000000 00:00000000 00000000  1000  0 4242 1 …
                let words = line.split(separator: UInt8(ascii: " "), maxSplits: 10)
                guard words.count >= 10, words[3].elementsEqual(isEstablished),
                    let inode = UInt32(String(wire: words[9]))
                else { continue }
                connections.append(TCPConnection(inode: inode, lastTraffic: nil))
            }
        }
        return connections
    }

    private static let isEstablished = Array("01".utf8)
}

/// Reads all established TCP connections and the listening sockets from the kernel's socket diagnostics (sock_diag(7)).
/// Reads in steps, because there may be very many sockets, and each takes the kernel about a microsecond.
public final class TCPConnectionReading {
    /// The connections found so far.
    public private(set) var connections: [TCPConnection] = []
    /// The listening sockets. Their `lastClosed` is complete only when all sockets were read. It is computed from
    /// connections in TIME_WAIT, which are not stored, and are read only if there is a listening socket.
    public var listeners: [TCPListener] { table.listeners }

    private let socket: Descriptor
    private var table = TCPListenerTable()
    private var questions = Question.all[...]
    private var isAsked = false

    private struct Question {
        let version: Int32
        let listens: Bool

        /// Listening sockets are read first, so that connections in TIME_WAIT can then be assigned to them. They are
        /// read for both IP versions, because an IPv6 socket may also have IPv4 connections.
        static let all = [true, false].flatMap { listens in [4, 6].map { Question(version: $0, listens: listens) } }

        func states(hasListeners: Bool) -> UInt32 {
            if listens { return 1 << tlx_tcp_listening }
            return 1 << tlx_tcp_established | (hasListeners ? 1 << tlx_tcp_time_wait : 0)
        }
    }

    /// Opens a diagnostics socket. Throws an error such as EACCES or EPERM if diagnostics are forbidden or missing; use
    /// ``TCPConnections/listed(root:)`` in that case.
    public init() throws(Errno) {
        socket = Descriptor(owning: try call { tlx_diagnostics_socket() })
    }

    /// Continues reading until `deadline` (CLOCK_MONOTONIC) at the latest. Returns true when all sockets were read.
    /// Throws the same errors as `init`.
    public func read(until deadline: Duration? = nil) throws(Errno) -> Bool {
        while let question = questions.first {
            if !isAsked {
                let states = question.states(hasListeners: !table.listeners.isEmpty)
                try call { tlx_tcp_ask(socket.raw, question.version, states) }
            }
            isAsked = true
            if try takePiece() {
                questions = questions.dropFirst()
                isAsked = false
            }
            if let deadline, Clock.monotonic() >= deadline { break }
        }
        return questions.isEmpty
    }

    /// Reads one part of the kernel's answer. Returns true if it was the last part.
    private func takePiece() throws(Errno) -> Bool {
        try withUnsafeTemporaryAllocation(of: tlx_tcp_socket.self, capacity: Int(tlx_tcp_piece)) {
            piece throws(Errno) in
            var isLast: Int32 = 0
            let count = try call { tlx_tcp_answer(socket.raw, piece.baseAddress!, &isLast) }
            let now = Clock.monotonic()
            for one in piece[..<count] {
                switch Int(one.state) {
                case tlx_tcp_listening: table.add(one)
                case tlx_tcp_time_wait: table.closed(one, now)
                default:
                    let isKnown = one.milliseconds != .max
                    connections.append(
                        TCPConnection(
                            inode: one.inode,
                            lastTraffic: isKnown ? now - .milliseconds(one.milliseconds) : nil,
                            ends: TCPConnection.Ends(local: .init(one.local), remote: .init(one.remote))
                        )
                    )
                }
            }
            return isLast != 0
        }
    }
}
