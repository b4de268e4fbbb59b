import CLinux
import Glibc

/// A TCP connection that is open both ways.
public struct TCPConnection: Hashable, Sendable {
    /// The number of its socket, as `/proc/PID/fd` shows it; 0 while nobody has accepted it.
    public var inode: UInt32
    /// How long ago data last moved over it, in either direction, or it was opened; nil where the kernel does not say.
    public var idle: Duration?
}

/// The TCP connections of this process's network namespace, IPv4 and IPv6: those that are open both ways (ESTABLISHED).
/// Whoever listens, connects, has closed one direction or waits in TIME_WAIT does not count. Of Multipath TCP those
/// are here that fell back to plain TCP.
public enum TCPConnections {
    /// All of them: from the kernel's socket diagnostics (sock_diag(7)), which costs about a microsecond each; where
    /// these are missing or forbidden, from `/proc/net/tcp` and `tcp6`, which do not tell when data moved.
    public static func established() throws(Errno) -> [TCPConnection] { try established(from: dumped) }

    static func established(
        from dump: () throws(Errno) -> [TCPConnection],
        root: String = ""
    ) throws(Errno) -> [TCPConnection] {
        if let connections = try? dump() { return connections }
        return try listed(root: root)
    }

    /// By socket diagnostics. EACCES or EPERM when they are forbidden, ENOENT when the kernel has none.
    static func dumped() throws(Errno) -> [TCPConnection] {
        var connections: [TCPConnection] = []
        let socket = Descriptor(owning: try call { tlx_diagnostics_socket() })
        for version in [Int32(4), 6] {
            // A few may come between the two looks.
            var capacity = 512
            while true {
                var count = 0
                let raw = try [tlx_tcp_connection](reserving: capacity) { buffer throws(Errno) in
                    count = try call { tlx_tcp_connections(socket.raw, version, buffer.baseAddress, capacity) }
                    return min(count, capacity)
                }
                if count > capacity {
                    capacity = count + count / 4
                    continue
                }
                connections.reserveCapacity(connections.count + count)
                for one in raw {
                    let isKnown = one.idle_milliseconds != .max
                    connections.append(
                        TCPConnection(inode: one.inode, idle: isKnown ? .milliseconds(one.idle_milliseconds) : nil)
                    )
                }
                break
            }
        }
        return connections
    }

    /// By the tables in `/proc/net`.
    ///
    /// - Parameter root: what stands before `/proc`.
    static func listed(root: String = "") throws(Errno) -> [TCPConnection] {
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
                    let inode = UInt32(String(decoding: words[9], as: UTF8.self))
                else { continue }
                connections.append(TCPConnection(inode: inode, idle: nil))
            }
        }
        return connections
    }

    private static let isEstablished = Array("01".utf8)
}

extension Array {
    /// One of what `fill` writes to fresh memory; it returns how many.
    fileprivate init(
        reserving capacity: Int,
        _ fill: (UnsafeMutableBufferPointer<Element>) throws(Errno) -> Int
    ) throws(Errno) {
        var failure: Errno?
        self.init(unsafeUninitializedCapacity: capacity) { buffer, count in
            do throws(Errno) {
                count = try fill(buffer)
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
    }
}
