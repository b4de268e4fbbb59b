// SPDX-License-Identifier: Apache-2.0

import CLinux

/// A Unix socket that listens, or the accepted end of a connection.
public struct UnixSocket: Hashable, Sendable {
    /// What identifies a listening socket and all connections that were accepted from it: its name, and the file of
    /// that name. Two programs in different folders for `/` can have equal names.
    public struct Address: Hashable, Sendable {
        let place: UInt64
        let file: UInt64
    }

    /// The inode number of the socket, as `/proc/PID/fd` shows it.
    public let inode: UInt32
    /// The address at which the socket listens, or from which it was accepted.
    public let address: Address
    /// Whether the socket accepts connections.
    public let listens: Bool
    /// Of a listening socket: whether connections wait to be accepted, which are not listed themselves.
    public let hasWaiting: Bool
    /// The inode number of the socket at the other end; 0 if that end is closed.
    public let peer: UInt32
}

/// Reads the Unix sockets (stream and seqpacket) that listen or were accepted in this process's network namespace from
/// the kernel's socket diagnostics (sock_diag(7)). Reads in steps, because each socket takes the kernel about a
/// microsecond. The kernel does not report when data moved on a Unix connection.
public final class UnixSocketReading {
    /// The sockets found so far.
    public private(set) var sockets: [UnixSocket] = []

    private let netlink: Descriptor
    private var isAsked = false

    /// Opens a diagnostics socket. Throws an error such as EACCES or EPERM if diagnostics are forbidden or missing.
    public init() throws(Errno) {
        netlink = Descriptor(owning: try call { tlx_diagnostics_socket() })
    }

    /// Continues reading until `deadline` (CLOCK_MONOTONIC) at the latest. Returns true when all sockets were read.
    /// Throws the same errors as `init`, and ENOENT if the kernel has no diagnostics of Unix sockets.
    public func read(until deadline: Duration? = nil) throws(Errno) -> Bool {
        if !isAsked { try call { tlx_queue_ask(netlink.raw, Int32(tlx_queue_unix)) } }
        isAsked = true
        while try !takePiece() {
            if let deadline, Clock.monotonic() >= deadline { return false }
        }
        return true
    }

    /// Whether a stream or seqpacket socket of this network namespace listens at a path, as far as the kernel's
    /// diagnostics tell within 20 ms: they may know the file of a stacked file system by other numbers. Unlike a
    /// connection, this wakes nobody, and gives no program a client that says nothing.
    static func listens(at path: String) -> Bool {
        guard let status = try? File.status(path), let reading = try? UnixSocketReading(),
            (try? reading.read(until: Clock.monotonic() + .milliseconds(20))) != nil
        else { return false }
        // The kernel's own form of a device number: 12 bits of the major number, and 20 of the minor one.
        let device = status.device
        let major = device >> 8 & 0xfff
        let minor = device & 0xff | device >> 12 & 0xfff00
        let file = (major << 20 | minor) << 32 | status.inode & 0xffff_ffff
        return reading.sockets.contains { $0.listens && $0.address.file == file }
    }

    /// Reads one part of the kernel's answer. Returns true if it was the last part.
    private func takePiece() throws(Errno) -> Bool {
        try withUnsafeTemporaryAllocation(of: tlx_socket_queue.self, capacity: Int(tlx_queue_piece)) {
            piece throws(Errno) in
            var isLast: Int32 = 0
            let count = try call {
                tlx_queue_answer(netlink.raw, Int32(tlx_queue_unix), piece.baseAddress!, &isLast)
            }
            for one in piece[..<count] {
                let listens = Int(one.state) == tlx_tcp_listening
                // A socket without a name is the connecting end of a connection, or one of a pair.
                guard one.place != 0, one.type != 1, listens || Int(one.state) == tlx_tcp_established else { continue }
                let address = UnixSocket.Address(place: one.place, file: one.file)
                sockets.append(
                    UnixSocket(
                        inode: one.inode,
                        address: address,
                        listens: listens,
                        hasWaiting: listens && one.unread > 0,
                        peer: one.peer
                    )
                )
            }
            return isLast != 0
        }
    }
}
