import CLinux
import Glibc
public import SystemPackage

/// Unix datagram sockets with credentials and descriptors, as `unix(7)` has them.
public enum Datagrams {
    /// The longest path of a Unix socket, in bytes (`sun_path` less its terminator).
    public static let longestPath = 107
    /// `SCM_MAX_FD`: the most descriptors one datagram carries.
    public static let mostDescriptors = 253

    /// A datagram as it was received. Whoever receives it owns the descriptors: they are closed with it.
    public struct Received {
        /// What it said.
        public var bytes: [UInt8]
        /// It was longer than the buffer; `bytes` is its beginning.
        public var truncated: Bool
        /// Descriptors were lost on the way: more than fit, or the table of open files is full.
        public var lostDescriptors: Bool
        /// Who sent it, by the kernel's word.
        public var sender: (pid: Int32, uid: UInt32, gid: UInt32)?
        /// The descriptors that came along, close-on-exec.
        public var descriptors: [Descriptor]
    }

    /// A bound socket: non-blocking, close-on-exec, SO_PASSCRED. `receiveBuffer` in bytes is a wish.
    public static func bind(path: String, receiveBuffer: Int32 = 1 << 20) throws(Errno) -> Descriptor {
        var path = path
        var raw: Int32 = -1
        let result = path.withUTF8 { utf8 in
            utf8.withMemoryRebound(to: CChar.self) {
                clinux_datagram_bind($0.baseAddress, $0.count, receiveBuffer, &raw)
            }
        }
        if result != 0 { throw Errno(rawValue: result) }
        return Descriptor(owning: raw)
    }

    /// The next datagram, at most `capacity` bytes of it, or nil if none waits.
    public static func receive(_ socket: Int32, into buffer: inout [UInt8]) throws(Errno) -> Received? {
        var head = clinux_datagram()
        let result = buffer.withUnsafeMutableBytes {
            clinux_datagram_receive(socket, $0.baseAddress, $0.count, &head)
        }
        if result == EAGAIN { return nil }
        if result != 0 { throw Errno(rawValue: result) }
        let count = Int(head.descriptor_count)
        let descriptors = withUnsafeBytes(of: &head.descriptors) { raw in
            raw.bindMemory(to: Int32.self).prefix(count).map { Descriptor(owning: $0) }
        }
        return Received(
            bytes: Array(buffer.prefix(head.length)),
            truncated: head.truncated != 0,
            lostDescriptors: head.lost_control != 0,
            sender: head.has_credentials != 0 ? (head.pid, head.uid, head.gid) : nil,
            descriptors: descriptors
        )
    }

    /// Sends one datagram to the socket bound at `path`, from a socket of its own; waits if the queue is full.
    public static func send(_ bytes: [UInt8], to path: String, descriptors: [Int32] = []) throws(Errno) {
        var path = path
        let result = path.withUTF8 { utf8 in
            utf8.withMemoryRebound(to: CChar.self) { name in
                bytes.withUnsafeBytes { content in
                    clinux_datagram_send(
                        name.baseAddress,
                        name.count,
                        content.baseAddress,
                        content.count,
                        descriptors,
                        Int32(clamping: descriptors.count)
                    )
                }
            }
        }
        if result != 0 { throw Errno(rawValue: result) }
    }

    /// Whether both are the same open file, by `kcmp(2)`; where that is forbidden, by device and inode.
    public static func sameFile(_ a: Int32, _ b: Int32) -> Bool {
        let order = clinux_same_file(a, b)
        if order >= 0 { return order == 1 }
        guard let first = try? Streams.status(a), let second = try? Streams.status(b) else { return false }
        return first.device == second.device && first.inode == second.inode && first.special == second.special
    }
}
