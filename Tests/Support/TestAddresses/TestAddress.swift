// SPDX-License-Identifier: Apache-2.0

public import Linux

/// Addresses that belong to one process of tests, whatever runs beside it.
public enum TestAddress {
    /// An address of the loopback device (127.64.0.0/10) that only this process uses, by its pid.
    public static let host: String = {
        let pid = ThisProcess.pid
        return "127.\(64 + (pid >> 16) & 63).\((pid >> 8) & 255).\(pid & 255)"
    }()

    /// A port at which nothing listens at any address, TCP or UDP, IPv4 or IPv6, and which no socket had in the last
    /// minute. It belongs to this process until its end: other tests are not given it, and the kernel picks no such
    /// port by itself. So it may be bound, closed and bound again.
    ///
    /// - Throws: `addressInUse` if all 20,000 are taken.
    public static func port() throws(Errno) -> UInt16 {
        let busy = busyPorts()
        for port in picked.shuffled() where !busy.contains(port) {
            do throws(Errno) {
                // An abstract name belongs to one process and goes with it: this descriptor is never closed.
                _ = try Sockets.bindDatagram(path: "@torpor-test-port-\(port)").take()
                return port
            } catch {
                guard error == .addressInUse else { throw error }
            }
        }
        throw .addressInUse
    }

    /// Below net.ipv4.ip_local_port_range, from which the kernel picks.
    private static let picked: Range<UInt16> = 10_000..<30_000

    /// The ports that any socket of this machine has at either end, those in TIME_WAIT included.
    private static func busyPorts() -> Set<UInt16> {
        var ports: Set<UInt16> = []
        for table in ["tcp", "tcp6", "udp", "udp6"] {
            // A kernel without IPv6 has no table of it.
            guard let text = try? File.read("/proc/net/" + table, limit: 1 << 28) else { continue }
            for line in text.split(separator: UInt8(ascii: "\n")).dropFirst() {
                // 0: 0100007F:1F90 0100007F:A3D2 06 …
                for end in line.split(separator: UInt8(ascii: " "), maxSplits: 3).dropFirst().prefix(2) {
                    guard let colon = end.lastIndex(of: UInt8(ascii: ":")) else { continue }
                    ports.insert(UInt16(String(decoding: end[(colon + 1)...], as: UTF8.self), radix: 16) ?? 0)
                }
            }
        }
        return ports
    }
}
