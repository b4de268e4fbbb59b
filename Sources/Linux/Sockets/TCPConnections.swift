// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import WireText

/// A TCP connection that is open both ways.
public struct TCPConnection: Hashable, Sendable {
    /// The number of its socket, as `/proc/PID/fd` shows it; 0 while nobody has accepted it.
    public var inode: UInt32
    /// When data last moved over it, in either direction, or it was opened, to about 10 ms (CLOCK_MONOTONIC); nil where
    /// the kernel does not say.
    public var lastTraffic: Duration?
}

/// The TCP connections of this process's network namespace, IPv4 and IPv6: those that are open both ways (ESTABLISHED).
/// Whoever listens, connects, has closed one direction or waits in TIME_WAIT does not count. Of Multipath TCP those
/// are here that fell back to plain TCP.
public enum TCPConnections {
    /// All of them: from the kernel's socket diagnostics; where these are missing or forbidden, from the tables.
    public static func established() throws(Errno) -> [TCPConnection] {
        guard let reading = try? TCPConnectionReading(), (try? reading.read()) != nil else { return try listed() }
        return reading.connections
    }

    /// All of them by `/proc/net/tcp` and `tcp6`, which do not tell when data moved.
    ///
    /// - Parameter root: what stands before `/proc`.
    public static func listed(root: String = "") throws(Errno) -> [TCPConnection] {
        var connections: [TCPConnection] = []
        for name in ["tcp", "tcp6"] {
            let text: [UInt8]
            do throws(Errno) {
                text = try File.read(root + "/proc/net/" + name, limit: 1 << 28)
            } catch {
                // A kernel without IPv6 has no table of it.
                if name == "tcp6", error == .noSuchFileOrDirectory { continue }
                throw error
            }
            for line in text.split(separator: UInt8(ascii: "\n")).dropFirst() {
                //  0: 0100007F:1F90 0100007F:A3D2 01 00000000:00000000 00:00000000 00000000  1000  0 4242 1 …
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

/// A reading of all open TCP connections, and of the sockets that listen, from the kernel's socket diagnostics
/// (sock_diag(7)) that goes on piece by piece: each takes the kernel about a microsecond, and there may be very many.
public final class TCPConnectionReading {
    /// Those that were found so far.
    public private(set) var connections: [TCPConnection] = []
    /// The sockets that listen; when a connection to one was last closed is known at the end. Sockets in TIME_WAIT,
    /// which tell it, are read only where somebody listens, and none of them is kept.
    public var listeners: [TCPListener] { table.listeners }

    private let socket: Descriptor
    private var table = TCPListenerTable()
    private var questions = Question.all[...]
    private var isAsked = false

    private struct Question {
        let version: Int32
        let listens: Bool

        /// Who listens comes first, by both versions: an IPv6 socket may have IPv4 connections.
        static let all = [true, false].flatMap { listens in [4, 6].map { Question(version: $0, listens: listens) } }

        func states(hasListeners: Bool) -> UInt32 {
            if listens { return 1 << tlx_tcp_listening }
            return 1 << tlx_tcp_established | (hasListeners ? 1 << tlx_tcp_time_wait : 0)
        }
    }

    /// Begins one. EACCES, EPERM or such where this is forbidden or missing: see ``TCPConnections/listed(root:)``.
    public init() throws(Errno) {
        socket = Descriptor(owning: try call { tlx_diagnostics_socket() })
    }

    /// Reads on, at most until the time (CLOCK_MONOTONIC) is come; whether all were read. Errors as above.
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

    /// Whether it was the last.
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
                            lastTraffic: isKnown ? now - .milliseconds(one.milliseconds) : nil
                        )
                    )
                }
            }
            return isLast != 0
        }
    }
}
