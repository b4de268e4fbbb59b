import Linux

/// Reads what was appended to a log since the last time, through its rotations.
struct LogTail {
    private let path: String
    /// The file that was read last, kept open: so its inode is nobody else's.
    private var current: Descriptor?
    private var inode: UInt64?
    private var offset: UInt64 = 0

    init(path: String) { self.path = path }

    /// What came since, in order.
    ///
    /// - Throws: `Trouble` when the file that was read last is not there any more.
    mutating func read() throws -> [UInt8] {
        // From the current file back to the one that was read last; rotation shifts every name by one.
        var files: [Descriptor] = []
        var index = 0
        while true {
            let name = index == 0 ? path : "\(path).\(index)"
            guard let file = try? File.open(name, .read) else {
                if index == 0, inode == nil { return [] }
                if inode == nil { break }
                throw Trouble("\(path): the file that was read last is gone")
            }
            files.append(file)
            if let inode, try File.status(descriptor: file.raw).inode == inode { break }
            index += 1
        }
        var bytes: [UInt8] = []
        for file in files.reversed() {
            let status = try File.status(descriptor: file.raw)
            if status.inode != inode {
                inode = status.inode
                current = file
                offset = 0
            }
            if status.size < offset { throw Trouble("\(path) is shorter than it was: \(status.size) < \(offset)") }
            while true {
                let some = try File.read(file.raw, at: offset, maximum: 1 << 18)
                if some.isEmpty { break }
                offset += UInt64(some.count)
                bytes += some
            }
        }
        return bytes
    }
}
