// SPDX-License-Identifier: Apache-2.0

import WireText

/// A file or symlink in an archive.
public struct ArchiveMember: Hashable, Sendable {
    /// What kind of file the member is.
    public enum Kind: Hashable, Sendable {
        /// A regular file with `size` bytes.
        case file(size: UInt64)
        /// A symlink with its target.
        case link([UInt8])
    }

    /// The member's path.
    public let path: BundlePath
    /// What kind of file the member is.
    public let kind: Kind
    /// Permission bits, at most 0o777.
    public let mode: UInt32
}

/// Reads a pax archive (POSIX.1-2001, "pax Interchange Format") of files and symlinks. The archive is not trusted, so
/// the reader refuses everything that a bundle does not need.
public struct ArchiveReader {
    /// Returns the next bytes of the archive, at most the given number; an empty array at its end.
    public typealias Source = (Int) throws(BundleFault) -> [UInt8]

    static let block = 512
    /// The largest extended header of a member, in bytes.
    private static let longestRecords: UInt64 = 16 << 10

    private let source: Source
    /// Unread bytes of the current member, without the padding of its last block.
    private var left: UInt64 = 0
    private var filling = 0
    private var isOver = false
    private var members = 0

    /// Creates a reader at the start of an archive.
    public init(_ source: @escaping Source) { self.source = source }

    /// Returns the next member, and skips unread bytes of the previous member; nil at the end of the archive.
    public mutating func next() throws(BundleFault) -> ArchiveMember? {
        guard !isOver else { return nil }
        while left > 0 { _ = try content(atMost: 64 << 10) }
        _ = try exactly(filling)
        filling = 0
        var records = Records()
        while true {
            let header = try exactly(Self.block)
            guard header.contains(where: { $0 != 0 }) else {
                guard !records.isThere else { throw BundleFault("the archive ends within a file") }
                try end()
                return nil
            }
            members += 1
            // The manifest and its signature are members too, and each member may have an extended header.
            guard members <= 2 * BundleLimit.entries + 4 else {
                throw BundleFault("it has more than \(BundleLimit.entries) files")
            }
            try Self.checkSum(header)
            let type = header[156]
            guard type == UInt8(ascii: "x") else { return try member(header, type, records) }
            guard !records.isThere else { throw BundleFault("the archive has two extended headers for one file") }
            let size = try Self.number(header[124..<136])
            guard size <= Self.longestRecords else { throw BundleFault("an extended header is too long") }
            records = try Records(try exactly(Int(size)))
            _ = try exactly(Self.filling(size))
        }
    }

    /// Returns the next bytes of the member that ``next()`` returned last; an empty array at the member's end.
    public mutating func content(atMost most: Int) throws(BundleFault) -> [UInt8] {
        let bytes = try exactly(Int(min(left, UInt64(most))))
        left -= UInt64(bytes.count)
        return bytes
    }

    /// Returns the rest of the member that ``next()`` returned last. Throws if the rest has more than `most` bytes.
    public mutating func all(atMost most: Int) throws(BundleFault) -> [UInt8] {
        guard left <= UInt64(most) else { throw BundleFault("a file at the start of the archive is too large") }
        return try content(atMost: most)
    }

    private mutating func member(
        _ header: [UInt8],
        _ type: UInt8,
        _ records: Records
    ) throws(BundleFault) -> ArchiveMember {
        let path = try BundlePath(records.path ?? Self.path(header))
        let mode = try Self.number(header[100..<108])
        guard mode & 0o7000 == 0 else { throw BundleFault("\(path) is setuid, setgid or sticky") }
        guard mode & ~0o177777 == 0 else { throw BundleFault("\(path) has an invalid mode") }
        let written = try Self.number(header[124..<136])
        let size = try records.size ?? written
        switch type {
        case 0, UInt8(ascii: "0"):
            guard size <= BundleLimit.bytes else {
                throw BundleFault("\(path) has more than \(BundleLimit.bytes >> 30) GiB")
            }
            left = size
            filling = Self.filling(size)
            return ArchiveMember(path: path, kind: .file(size: size), mode: UInt32(mode & 0o777))
        case UInt8(ascii: "2"):
            guard size == 0 else { throw BundleFault("the link \(path) has content") }
            let target = records.target ?? Self.text(header[157..<257])
            return ArchiveMember(path: path, kind: .link(target), mode: 0o777)
        case UInt8(ascii: "1"): throw BundleFault("\(path) is a hard link")
        case UInt8(ascii: "3"), UInt8(ascii: "4"): throw BundleFault("\(path) is a device")
        case UInt8(ascii: "5"):
            throw BundleFault("\(path) is a folder: an archive of a bundle lists files and links only")
        case UInt8(ascii: "6"): throw BundleFault("\(path) is a FIFO")
        default: throw BundleFault("\(path) is of a kind that bundles do not have (type \(type))")
        }
    }

    /// Checks that only zeros follow the last member: two blocks, and padding up to a whole record.
    private mutating func end() throws(BundleFault) {
        isOver = true
        guard try !exactly(Self.block).contains(where: { $0 != 0 }) else {
            throw BundleFault("the archive has more after its end")
        }
        var more = 0
        while case let bytes = try source(64 << 10), !bytes.isEmpty {
            more += bytes.count
            guard more <= 1 << 20, !bytes.contains(where: { $0 != 0 }) else {
                throw BundleFault("the archive has more after its end")
            }
        }
    }

    private mutating func exactly(_ count: Int) throws(BundleFault) -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < count {
            let part = try source(count - bytes.count)
            guard !part.isEmpty else { throw BundleFault("the archive is cut short") }
            if bytes.isEmpty { bytes = part } else { bytes += part }
        }
        return bytes
    }

    // MARK: Headers

    static func filling(_ size: UInt64) -> Int { Int((UInt64(block) - size % UInt64(block)) % UInt64(block)) }

    /// A header's checksum: the sum of its bytes, with the field of the checksum itself counted as spaces.
    static func sum(_ header: [UInt8]) -> UInt64 {
        header.indices.reduce(0) { $0 + UInt64((148..<156).contains($1) ? 0x20 : header[$1]) }
    }

    private static func checkSum(_ header: [UInt8]) throws(BundleFault) {
        guard let written = try? number(header[148..<156]), written == sum(header) else {
            throw BundleFault("this is not a bundle: its archive is damaged, or of another format")
        }
        guard header[257..<262].elementsEqual("ustar".utf8) else {
            throw BundleFault("this is not a bundle: its archive is not a pax archive")
        }
    }

    /// Parses a field that holds a number in octal digits.
    private static func number(_ field: ArraySlice<UInt8>) throws(BundleFault) -> UInt64 {
        var value: UInt64 = 0
        var rest = field.drop { $0 == 0x20 }
        while let byte = rest.first, (UInt8(ascii: "0")...UInt8(ascii: "7")).contains(byte) {
            value = value << 3 | UInt64(byte - UInt8(ascii: "0"))
            rest = rest.dropFirst()
        }
        guard rest.allSatisfy({ $0 == 0 || $0 == 0x20 }) else {
            throw BundleFault("a number in the archive is not octal")
        }
        return value
    }

    private static func text(_ field: ArraySlice<UInt8>) -> [UInt8] { Array(field.prefix { $0 != 0 }) }

    private static func path(_ header: [UInt8]) -> [UInt8] {
        let (name, prefix) = (text(header[0..<100]), text(header[345..<500]))
        // In GNU tar's own format (`ustar` and a space, not a zero byte), these bytes are no prefix of the path.
        guard header[262] == 0, !prefix.isEmpty else { return name }
        return prefix + [BundlePath.slash] + name
    }
}

/// The records of a pax extended header, each `LENGTH KEY=VALUE\n`.
private struct Records {
    var path: [UInt8]?
    var target: [UInt8]?
    var isThere = false
    private var sizeText: [UInt8]?

    /// Keys that a bundle may have but that nothing reads.
    private static let ignored: Set<String> = [
        "mtime", "atime", "ctime", "uid", "gid", "uname", "gname", "comment",
    ]

    init() {}

    init(_ bytes: [UInt8]) throws(BundleFault) {
        isThere = true
        var seen: Set<String> = []
        var rest = bytes[...]
        while !rest.isEmpty {
            let digits = rest.prefix { $0 != 0x20 }
            guard digits.count <= 5, let length = Int(String(wire: Array(digits))), length > digits.count + 2,
                length <= rest.count, case let record = rest.prefix(length), record.last == UInt8(ascii: "\n"),
                let equals = record.firstIndex(of: UInt8(ascii: "="))
            else { throw BundleFault("an extended header is damaged") }
            rest = rest.dropFirst(length)
            let start = record.startIndex + digits.count + 1
            guard start <= equals else { throw BundleFault("an extended header is damaged") }
            let key = String(wire: Array(record[start..<equals]))
            let value = Array(record[(equals + 1)..<(record.endIndex - 1)])
            guard seen.insert(key).inserted else { throw BundleFault("an extended header says \(key) twice") }
            switch key {
            case "path": path = value
            case "linkpath": target = value
            case "size": sizeText = value
            default:
                guard Self.ignored.contains(key) else {
                    throw BundleFault(
                        "the archive has files with \(BundlePath.shown(key.utf8)), which bundles do not have"
                    )
                }
            }
        }
    }

    var size: UInt64? {
        get throws(BundleFault) {
            guard let sizeText else { return nil }
            guard sizeText.count <= 15, let size = UInt64(String(wire: sizeText)) else {
                throw BundleFault("a size in the archive is not a number")
            }
            return size
        }
    }
}
