// SPDX-License-Identifier: Apache-2.0

import WireText

/// The TCP sockets of another network namespace, such as a container's. They are read from `/proc/PID/net` of a process
/// in that namespace. Socket diagnostics (sock_diag(7)) would show only the caller's own namespace, and a supervisor
/// without root privileges may not enter another one.
public struct ForeignConnections: Sendable {
    /// Inode numbers of established connections.
    public private(set) var open: Set<UInt32> = []
    /// The port of each listening socket, by inode number.
    private var listening: [UInt32: UInt16] = [:]
    /// For each port, when the last connection to or from that port was closed (CLOCK_MONOTONIC). The time is computed
    /// from sockets in TIME_WAIT.
    private var closed: [UInt16: Duration] = [:]

    /// The maximum number of bytes read from one file in `/proc/PID/net`. This is enough for about 7,000 sockets of 150
    /// bytes each, which take tens of milliseconds to read.
    private static let mostBytes = 1 << 20
    /// How long a socket stays in TIME_WAIT (the kernel's TCP_TIMEWAIT_LEN).
    private static let timeWait = Duration.seconds(60)

    /// Reads the TCP sockets of a process's network namespace, which takes the kernel a few milliseconds. Throws
    /// ENOENT or ESRCH if the process has ended, EFBIG if there are more than some 7,000 sockets.
    public init(of pid: Int32) throws(Errno) {
        for name in ["tcp", "tcp6"] {
            let text: [UInt8]
            do throws(Errno) {
                text = try File.read("/proc/\(pid)/net/\(name)", limit: Self.mostBytes)
            } catch {
                if name == "tcp6", error == .noSuchFileOrDirectory { continue }
                throw error
            }
            take(text, now: Clock.monotonic())
        }
    }

    init(_ text: [UInt8], now: Duration) { take(text, now: now) }

    private mutating func take(_ text: [UInt8], now: Duration) {
        for line in text.split(separator: UInt8(ascii: "\n")).dropFirst() {
            // Example: 0: 0100007F:1F90 0100007F:A3D2 01 00000000:00000000 00:00000000 00000000  1000  0 4242 1 …
            let words = line.split(separator: UInt8(ascii: " "), maxSplits: 10)
            guard words.count >= 10, let inode = UInt32(String(wire: words[9])), let local = Self.port(words[1]),
                let remote = Self.port(words[2])
            else { continue }
            switch String(wire: words[3]) {
            case "01": open.insert(inode)
            case "0A": listening[inode] = local
            case "06":
                // The field is `03:`, then the remaining time in TIME_WAIT, as a hexadecimal number of hundredths of a
                // second.
                let left = UInt64(String(wire: words[5].dropFirst(3)), radix: 16).map {
                    Duration.milliseconds(Int64(clamping: $0) * 10)
                }
                let time = now - max(.zero, Self.timeWait - (left ?? Self.timeWait))
                for port in [local, remote] { closed[port] = max(closed[port] ?? time, time) }
            default: break
            }
        }
    }

    private static func port(_ address: ArraySlice<UInt8>) -> UInt16? {
        guard let colon = address.lastIndex(of: UInt8(ascii: ":")) else { return nil }
        return UInt16(String(wire: address[address.index(after: colon)...]), radix: 16)
    }

    /// When the last connection to one of these listening sockets was closed; nil if none was closed within the last
    /// minute.
    public func lastClosed(at sockets: some Sequence<UInt32>) -> Duration? {
        sockets.compactMap { listening[$0].flatMap { closed[$0] } }.max()
    }
}
