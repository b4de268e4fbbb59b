// SPDX-License-Identifier: Apache-2.0

/// Writes a pax archive. Equal content gives equal bytes: there are no times, and the owner is always 0.
public struct ArchiveWriter {
    /// Receives the next bytes of the archive.
    public typealias Sink = ([UInt8]) throws(BundleFault) -> Void

    private let sink: Sink
    private var filling = 0
    private var written: UInt64 = 0

    /// Creates a writer that passes the archive's bytes to `sink`.
    public init(_ sink: @escaping Sink) { self.sink = sink }

    /// Begins a file. Exactly `size` bytes of content must follow.
    public mutating func file(_ path: BundlePath, mode: UInt32, size: UInt64) throws(BundleFault) {
        try begin(path, type: "0", mode: mode, size: size, target: [])
        filling = ArchiveReader.filling(size)
    }

    /// Writes the next bytes of the file that was begun last.
    public mutating func content(_ bytes: [UInt8]) throws(BundleFault) { try put(bytes) }

    /// Writes a symlink.
    public mutating func link(_ path: BundlePath, to target: [UInt8]) throws(BundleFault) {
        try begin(path, type: "2", mode: 0o777, size: 0, target: target)
    }

    /// Ends the archive with zeros up to a whole record of 10 KiB, as POSIX requires.
    public mutating func end() throws(BundleFault) {
        try fill()
        try put([UInt8](repeating: 0, count: 2 * ArchiveReader.block))
        let record: UInt64 = 20 * 512
        try put([UInt8](repeating: 0, count: Int((record - written % record) % record)))
    }

    private mutating func fill() throws(BundleFault) {
        try put([UInt8](repeating: 0, count: filling))
        filling = 0
    }

    private mutating func put(_ bytes: [UInt8]) throws(BundleFault) {
        written += UInt64(bytes.count)
        if !bytes.isEmpty { try sink(bytes) }
    }

    private mutating func begin(
        _ path: BundlePath,
        type: Unicode.Scalar,
        mode: UInt32,
        size: UInt64,
        target: [UInt8]
    ) throws(BundleFault) {
        try fill()
        var records: [UInt8] = []
        if path.bytes.count > 100 { records += Self.record("path", path.bytes) }
        if target.count > 100 { records += Self.record("linkpath", target) }
        // The header's field for the size has eleven octal digits, so 8 GiB or more need a record.
        if size >= 8 << 30 { records += Self.record("size", Array("\(size)".utf8)) }
        if !records.isEmpty {
            let name = Array("PaxHeaders/\(records.count)".utf8)
            try put(Self.header(name, type: "x", mode: 0o644, size: UInt64(records.count), target: []))
            try put(records)
            try put([UInt8](repeating: 0, count: ArchiveReader.filling(UInt64(records.count))))
        }
        let short = size >= 8 << 30 ? 0 : size
        try put(Self.header(path.bytes, type: type, mode: mode, size: short, target: target))
    }

    /// Makes a record. The length that it states includes the digits of the length itself.
    private static func record(_ key: String, _ value: [UInt8]) -> [UInt8] {
        let rest = [UInt8(ascii: " ")] + Array(key.utf8) + [UInt8(ascii: "=")] + value + [UInt8(ascii: "\n")]
        var length = rest.count
        while length != rest.count + "\(length)".utf8.count { length = rest.count + "\(length)".utf8.count }
        return Array("\(length)".utf8) + rest
    }

    private static func header(
        _ path: [UInt8],
        type: Unicode.Scalar,
        mode: UInt32,
        size: UInt64,
        target: [UInt8]
    ) -> [UInt8] {
        var header = [UInt8](repeating: 0, count: ArchiveReader.block)
        func put(_ bytes: some Sequence<UInt8>, at start: Int, atMost count: Int) {
            for (index, byte) in bytes.prefix(count).enumerated() { header[start + index] = byte }
        }
        func octal(_ value: UInt64, at start: Int, digits: Int) {
            let text = String(value, radix: 8)
            put(
                (String(repeating: "0", count: max(0, digits - text.utf8.count)) + text).utf8,
                at: start,
                atMost: digits
            )
        }
        put(path, at: 0, atMost: 100)
        octal(UInt64(mode), at: 100, digits: 7)
        octal(0, at: 108, digits: 7)
        octal(0, at: 116, digits: 7)
        octal(size, at: 124, digits: 11)
        octal(0, at: 136, digits: 11)
        header[156] = UInt8(ascii: type)
        put(target, at: 157, atMost: 100)
        put("ustar".utf8, at: 257, atMost: 5)
        put("00".utf8, at: 263, atMost: 2)
        octal(0, at: 329, digits: 7)
        octal(0, at: 337, digits: 7)
        octal(ArchiveReader.sum(header), at: 148, digits: 6)
        header[154] = 0
        header[155] = UInt8(ascii: " ")
        return header
    }
}
