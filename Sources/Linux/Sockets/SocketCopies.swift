// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import WireText

/// The type, state and addresses of a socket.
public struct SocketFacts: Sendable, Hashable {
    /// The address family.
    public enum Family: Sendable { case internet, unix, vsock, other }
    /// The socket type.
    public enum Kind: Sendable { case stream, datagram, sequenced, other }

    /// The address family.
    public let family: Family
    /// The socket type.
    public let kind: Kind
    /// Whether the socket accepts connections.
    public let listens: Bool
    /// Whether the socket listens in a network namespace other than this process's. False if the kernel does not tell
    /// (before Linux 5.14).
    public let isElsewhere: Bool
    /// Whether the socket has a peer.
    public let isConnected: Bool
    /// A key for the address to which the socket is bound: the port, or a number derived from the name; 0 if unbound. A
    /// listening socket and the connections accepted from it have the same key.
    public let place: UInt64
    /// The socket's own address, for display; empty if it has none.
    public let local: String
    /// The peer's address, for display; empty if it has none.
    public let remote: String

    /// Reads the properties of an open socket. Throws an error such as ENOTSOCK if the descriptor is not a socket.
    public init(_ raw: Int32) throws(Errno) {
        var facts = tlx_socket_facts()
        try call { tlx_socket_facts_of(raw, &facts) }
        family = Family(number: facts.family)
        kind = Kind(number: facts.type)
        listens = facts.listens != 0
        isElsewhere = facts.is_elsewhere != 0
        isConnected = facts.is_connected != 0
        place = facts.place
        local = withUnsafeBytes(of: &facts.local) { Self.text($0) }
        remote = withUnsafeBytes(of: &facts.remote) { Self.text($0) }
    }

    private static func text(_ bytes: UnsafeRawBufferPointer) -> String {
        String(wire: bytes.prefix { $0 != 0 })
    }
}

extension SocketFacts.Family {
    init(number: UInt8) {
        switch Int(number) {
        case tlx_family_internet: self = .internet
        case tlx_family_unix: self = .unix
        case tlx_family_vsock: self = .vsock
        default: self = .other
        }
    }
}

extension SocketFacts.Kind {
    init(number: UInt8) {
        switch number {
        case 0: self = .stream
        case 1: self = .datagram
        case 2: self = .sequenced
        default: self = .other
        }
    }
}

/// A duplicate of a socket that another process has open, made by pidfd_getfd(2). While the duplicate is open, the
/// socket stays open: its port stays in use, and the peer does not notice if the process ends.
public struct SocketCopy {
    /// The duplicate's descriptor.
    public let descriptor: Descriptor
    /// The inode number of the socket, as `/proc/PID/fd` shows it.
    public let inode: UInt32
    /// The socket's type, state and addresses.
    public let facts: SocketFacts

    init(descriptor: Descriptor, inode: UInt32, facts: SocketFacts) {
        self.descriptor = descriptor
        self.inode = inode
        self.facts = facts
    }

    /// Uses a duplicate that already exists; nil if the descriptor is not a socket.
    public init?(_ descriptor: Descriptor) {
        guard let facts = try? SocketFacts(descriptor.raw),
            let inode = try? File.status(descriptor: descriptor.raw).inode
        else { return nil }
        self.init(descriptor: descriptor, inode: UInt32(truncatingIfNeeded: inode), facts: facts)
    }

    /// The bytes pending on the socket, and the time since its last traffic.
    public var traffic: SocketTraffic { SocketTraffic(descriptor.raw) }
}

/// The traffic of a connection.
public struct SocketTraffic: Sendable, Hashable {
    /// Bytes received but not read.
    public let unread: Int
    /// Bytes written but not acknowledged by the peer.
    public let unsent: Int
    /// How long no data has moved on the connection in either direction, to about 10 ms. Known for TCP only; nil for
    /// other sockets.
    public let quiet: Duration?
    /// How long ago data was last received, to about 10 ms; nil if none was received, and for sockets other than TCP.
    public let received: Duration?
    /// How long ago data was last received, if this end has written nothing since; otherwise nil. Known for TCP only.
    public let unanswered: Duration?
    /// How long ago data was last received, if this end wrote data within the same tick of the kernel's clock (1 to 10
    /// ms). It is then unknown which of the two came first. Otherwise nil. Known for TCP only.
    public let tied: Duration?

    init(_ raw: Int32) {
        var traffic = tlx_socket_traffic()
        tlx_socket_traffic_of(raw, &traffic)
        self.init(traffic)
    }

    init(_ traffic: tlx_socket_traffic) {
        unread = Int(traffic.unread)
        unsent = Int(traffic.unsent)
        quiet = traffic.milliseconds == .max ? nil : .milliseconds(traffic.milliseconds)
        received = traffic.received == .max ? nil : .milliseconds(traffic.received)
        unanswered = traffic.unanswered == .max ? nil : .milliseconds(traffic.unanswered)
        tied = traffic.tied == .max ? nil : .milliseconds(traffic.tied)
    }
}

/// Copies a process's sockets in steps, because each socket takes the kernel some microseconds.
public final class SocketCopyReading {
    /// The copies so far. A socket is copied only if it can receive something: if it listens, is connected or takes
    /// datagrams.
    public private(set) var copies: [SocketCopy] = []
    /// The inode numbers of all sockets inspected so far, whether copied or not, and of those that the caller wants to
    /// skip.
    public private(set) var seen: Set<UInt32>
    private let pidfd: Descriptor
    private let directory: OpaquePointer
    private let most: Int
    private var count = 0

    /// Opens the process's descriptor table. Throws EACCES if this process may not inspect the other process, ENOENT if
    /// the other process has ended.
    ///
    /// - Parameters:
    ///   - seen: inode numbers of sockets to skip.
    ///   - most: the maximum number of copies; if there are more sockets to copy, ``read(until:)`` throws EMFILE.
    public init(_ pid: Int32, pidfd: Descriptor, seen: Set<UInt32> = [], most: Int = .max) throws(Errno) {
        guard let directory = opendir("/proc/\(pid)/fd") else { throw Errno(rawValue: errno) }
        self.directory = directory
        self.pidfd = pidfd
        self.seen = seen
        self.most = most
    }

    deinit { closedir(directory) }

    /// Continues reading until `deadline` (CLOCK_MONOTONIC) at the latest. Returns true when all sockets were copied.
    /// Throws EPERM if this process may not copy descriptors of the other process (ptrace(2), "Ptrace access mode
    /// checking"). Throws ENOSYS if the kernel is too old, EMFILE if this process is out of descriptors or `most` is
    /// exceeded.
    public func read(until deadline: Duration? = nil) throws(Errno) -> Bool {
        let folder = dirfd(directory)
        while let entry = readdir(directory) {
            let found = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { name -> (fd: Int32, inode: UInt32)? in
                    guard let inode = SocketReading.socket(folder, name) else { return nil }
                    return (Int32(atoi(name)), inode)
                }
            }
            count += 1
            if let found, seen.insert(found.inode).inserted { try copy(found.fd, found.inode) }
            if let deadline, count % 16 == 0, Clock.monotonic() >= deadline { return false }
        }
        return true
    }

    private func copy(_ fd: Int32, _ inode: UInt32) throws(Errno) {
        let descriptor: Descriptor
        do throws(Errno) {
            descriptor = try Pidfd.copy(pidfd.raw, fd)
        } catch {
            // The descriptor was closed after it was listed, or the process has ended.
            if error == .badFileDescriptor || error.isGone { return }
            throw error
        }
        guard let facts = try? SocketFacts(descriptor.raw), facts.family != .other, facts.kind != .other,
            facts.listens || facts.isConnected || facts.kind == .datagram,
            // Check that the descriptor's number was not reused for another socket.
            (try? File.status(descriptor: descriptor.raw).inode) == UInt64(inode)
        else { return }
        guard copies.count < most else { throw .tooManyOpenFiles }
        copies.append(SocketCopy(descriptor: descriptor, inode: inode, facts: facts))
    }
}

extension Pidfd {
    /// Duplicates a descriptor of another process, close-on-exec. Throws EPERM if this process may not copy
    /// descriptors from that process, EBADF if the descriptor is not open, ESRCH if the process has ended.
    public static func copy(_ pidfd: Int32, _ fd: Int32) throws(Errno) -> Descriptor {
        Descriptor(owning: try call { tlx_pidfd_getfd(pidfd, fd) })
    }

    /// The error that prevents copying a process's descriptors; nil if this process may copy them.
    public static func copyObstacle(_ pid: Int32) -> Errno? {
        do throws(Errno) {
            let process = try open(pid)
            _ = try process.withRaw { raw throws(Errno) in try copy(raw, 0) }
            return nil
        } catch {
            return error == .badFileDescriptor ? nil : error
        }
    }
}
