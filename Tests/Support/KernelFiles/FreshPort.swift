public import Linux

/// Ports at which nobody was for a minute.
public enum FreshPort {
    /// One that no socket has at either end, not even one in TIME_WAIT, and that the kernel gives to nobody by itself. A
    /// port of the kernel's own choice may have been another's a moment ago: its closed connections are in the tables
    /// still, and count as those of whoever listens there now.
    public static func find() throws(Errno) -> UInt16 {
        var taken: Set<UInt16> = []
        for table in ["tcp", "tcp6"] {
            // A kernel without IPv6 has no table of it.
            guard let text = try? File.read("/proc/net/" + table, limit: 1 << 28) else { continue }
            for line in text.split(separator: UInt8(ascii: "\n")).dropFirst() {
                // 0: 0100007F:1F90 0100007F:A3D2 06 …
                for end in line.split(separator: UInt8(ascii: " "), maxSplits: 3).dropFirst().prefix(2) {
                    guard let colon = end.lastIndex(of: UInt8(ascii: ":")) else { continue }
                    taken.insert(UInt16(String(decoding: end[(colon + 1)...], as: UTF8.self), radix: 16) ?? 0)
                }
            }
        }
        // Below net.ipv4.ip_local_port_range.
        guard let port = (10_000..<32_000).filter({ !taken.contains($0) }).randomElement() else {
            throw .addressInUse
        }
        return port
    }
}
