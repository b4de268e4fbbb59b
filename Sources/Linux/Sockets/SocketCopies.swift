// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import WireText

/// What a socket is, and where.
public struct SocketFacts: Sendable, Hashable {
    /// How its address is written.
    public enum Family: Sendable { case internet, unix, vsock, other }
    /// What goes over it.
    public enum Kind: Sendable { case stream, datagram, sequenced, other }

    /// How its address is written.
    public let family: Family
    /// What goes over it.
    public let kind: Kind
    /// It waits for connections.
    public let listens: Bool
    /// It has another side.
    public let isConnected: Bool
    /// Where it is bound: the same for a socket that listens and for the connections that came in there; 0 for nowhere. A
    /// port, or a number made from a name.
    public let place: UInt64
    /// Its own address, for people; empty where it has none.
    public let local: String
    /// The other side's, for people; empty where it has none.
    public let remote: String

    /// Of an open socket. ENOTSOCK and such for what is none.
    public init(_ raw: Int32) throws(Errno) {
        var facts = tlx_socket_facts()
        try call { tlx_socket_facts_of(raw, &facts) }
        family = Family(number: facts.family)
        kind = Kind(number: facts.type)
        listens = facts.listens != 0
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

/// A descriptor for a socket that another process has open, by pidfd_getfd(2). As long as it is open, so is the socket: its
/// port is taken, and the other side does not hear that the process is gone.
public struct SocketCopy {
    /// The copy.
    public let descriptor: Descriptor
    /// The number of the socket, as `/proc/PID/fd` shows it.
    public let inode: UInt32
    /// What it is.
    public let facts: SocketFacts

    init(descriptor: Descriptor, inode: UInt32, facts: SocketFacts) {
        self.descriptor = descriptor
        self.inode = inode
        self.facts = facts
    }

    /// One that was copied before; nil for what is no socket.
    public init?(_ descriptor: Descriptor) {
        guard let facts = try? SocketFacts(descriptor.raw),
            let inode = try? File.status(descriptor: descriptor.raw).inode
        else { return nil }
        self.init(descriptor: descriptor, inode: UInt32(truncatingIfNeeded: inode), facts: facts)
    }

    /// How much waits on it, and when something last moved.
    public var traffic: SocketTraffic { SocketTraffic(descriptor.raw) }
}

/// What moves on a connection.
public struct SocketTraffic: Sendable, Hashable {
    /// Bytes that came and were not read.
    public let unread: Int
    /// Bytes that were written and have not arrived.
    public let unsent: Int
    /// How long nothing has moved; nil where the kernel does not say (it does for TCP, to about 10 ms).
    public let quiet: Duration?
    /// How long ago data last came, where nothing was written since then; nil where something was, or the kernel does not
    /// say (it does for TCP).
    public let unanswered: Duration?
    /// How long ago data last came, where something was written within the same tick of the kernel's clock (1 to 10 ms),
    /// and so before it or after it; nil where it was not, or the kernel does not say (it does for TCP).
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
        unanswered = traffic.unanswered == .max ? nil : .milliseconds(traffic.unanswered)
        tied = traffic.tied == .max ? nil : .milliseconds(traffic.tied)
    }
}

/// A reading of a process's sockets that copies them, piece by piece: each takes the kernel some microseconds.
public final class SocketCopyReading {
    /// Those that were found so far, of the kinds that can have news: they listen, are connected, or take datagrams.
    public private(set) var copies: [SocketCopy] = []
    /// The numbers of all sockets that were seen.
    public private(set) var seen: Set<UInt32>
    private let pidfd: Descriptor
    private let directory: OpaquePointer
    private let most: Int
    private var count = 0

    /// Begins with the first descriptor of a process. EACCES for a process that may not be looked into, ENOENT for one that
    /// is gone.
    ///
    /// - Parameters:
    ///   - seen: numbers of sockets that are not wanted again.
    ///   - most: with one more it is EMFILE.
    public init(_ pid: Int32, pidfd: Descriptor, seen: Set<UInt32> = [], most: Int = .max) throws(Errno) {
        guard let directory = opendir("/proc/\(pid)/fd") else { throw Errno(rawValue: errno) }
        self.directory = directory
        self.pidfd = pidfd
        self.seen = seen
        self.most = most
    }

    deinit { closedir(directory) }

    /// Reads on, at most until the time (CLOCK_MONOTONIC) is come; whether all were read. EPERM where a process may not be
    /// copied from (ptrace(2), "Ptrace access mode checking"), ENOSYS by an old kernel, EMFILE when this process has no
    /// room for more.
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
            // Closed, or the process has ended meanwhile.
            if error == .badFileDescriptor || error.isGone { return }
            throw error
        }
        guard let facts = try? SocketFacts(descriptor.raw), facts.family != .other, facts.kind != .other,
            facts.listens || facts.isConnected || facts.kind == .datagram,
            // Its number may be another's by now.
            (try? File.status(descriptor: descriptor.raw).inode) == UInt64(inode)
        else { return }
        guard copies.count < most else { throw .tooManyOpenFiles }
        copies.append(SocketCopy(descriptor: descriptor, inode: inode, facts: facts))
    }
}

extension Pidfd {
    /// A copy of a descriptor of the process, close-on-exec. EPERM where that is forbidden, EBADF for one that is not
    /// open, ESRCH for a process that has ended.
    public static func copy(_ pidfd: Int32, _ fd: Int32) throws(Errno) -> Descriptor {
        Descriptor(owning: try call { tlx_pidfd_getfd(pidfd, fd) })
    }

    /// Why no descriptors of that process can be copied; nil if they can.
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
