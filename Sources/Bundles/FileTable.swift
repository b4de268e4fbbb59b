// SPDX-License-Identifier: Apache-2.0

import WireText

/// A file or symlink of a bundle, as the manifest lists it.
public struct BundleEntry: Hashable, Sendable {
    /// What kind of file the entry is.
    public enum Kind: Hashable, Sendable {
        /// A regular file: permission bits, size in bytes, and fs-verity digest (32 bytes).
        case file(mode: UInt32, size: UInt64, digest: [UInt8])
        /// A symlink with its target.
        case link([UInt8])
    }

    /// The entry's path in the bundle.
    public let path: BundlePath
    /// What kind of file the entry is.
    public let kind: Kind

    /// Creates an entry without checking it; ``FileTable`` does that.
    public init(_ path: BundlePath, _ kind: Kind) { (self.path, self.kind) = (path, kind) }
}

/// The list of all files of a bundle: the section `[files]` of its manifest.
///
/// The section stands at the end of the manifest, with one line for each file, sorted by the bytes of the paths. Each
/// line has exactly one valid form, which is also TOML, so a program can check a bundle without a TOML parser.
public struct FileTable: Hashable, Sendable {
    /// The entries, sorted by their paths.
    public let entries: [BundleEntry]
    /// The paths of the folders that contain the entries, without the bundle's own folder.
    public let folders: Set<[UInt8]>
    /// The size of all files together in bytes.
    public let bytes: UInt64

    /// The first line of the section.
    static let head = Array("[files]".utf8)

    /// Creates a table from entries in any order. Throws if a bundle may not have these entries.
    public init(_ entries: [BundleEntry]) throws(BundleFault) {
        try self.init(sorted: entries.sorted { $0.path < $1.path })
    }

    private init(sorted entries: [BundleEntry]) throws(BundleFault) {
        guard entries.count <= BundleLimit.entries else {
            throw BundleFault("it has more than \(BundleLimit.entries) files")
        }
        var (bytes, folders, seen) = (UInt64(0), Set<[UInt8]>(), [[UInt8]: [UInt8]]())
        var folderBytes = 0
        var before: BundlePath?
        func claim(_ path: [UInt8]) throws(BundleFault) {
            guard let other = seen.updateValue(path, forKey: BundlePath.folded(path)), other != path else { return }
            throw BundleFault("\(BundlePath.shown(other)) and \(BundlePath.shown(path)) differ only in case")
        }
        for entry in entries {
            let path = entry.path
            guard path != .manifest, path != .signature else {
                throw BundleFault("\(path) stands in the manifest, and is part of every bundle")
            }
            if let before, before >= path {
                throw BundleFault(before == path ? "\(path) is there twice" : "the manifest lists \(path) out of order")
            }
            before = path
            for folder in path.folders where folders.insert(folder).inserted {
                folderBytes += folder.count
                guard folders.count <= BundleLimit.entries, folderBytes <= BundleLimit.manifest else {
                    throw BundleFault("it has more than \(BundleLimit.entries) folders, or their paths are too long")
                }
                try claim(folder)
            }
            try claim(path.bytes)
            guard case .file(let mode, let size, let digest) = entry.kind else { continue }
            guard mode & ~0o777 == 0 else { throw BundleFault("\(path) has the mode of a setuid program") }
            guard mode & 0o022 == 0 else { throw BundleFault("\(path) may be written to by other users") }
            guard digest.count == 32 else { throw BundleFault("the digest of \(path) is not one of SHA-256") }
            guard size <= BundleLimit.bytes, bytes + size <= BundleLimit.bytes else {
                throw BundleFault("its files have more than \(BundleLimit.bytes >> 30) GiB")
            }
            bytes += size
        }
        (self.entries, self.folders, self.bytes) = (entries, folders, bytes)
        for entry in entries where folders.contains(entry.path.bytes) {
            throw BundleFault("\(entry.path) is a file and a folder")
        }
        for reserved in [BundlePath.manifest, .signature] {
            try claim(reserved.bytes)
            guard !folders.contains(reserved.bytes) else { throw BundleFault("\(reserved) is a folder") }
        }
        var targets: [[UInt8]: [UInt8]] = [:]
        for entry in entries {
            if case .link(let target) = entry.kind { targets[entry.path.bytes] = try checkLink(entry.path, target) }
        }
        for entry in entries {
            var place = entry.path.bytes
            var links = 0
            while let target = targets[place] {
                place = target
                links += 1
                guard links <= Self.mostLinks else {
                    throw BundleFault("the link \(entry.path) leads from link to link, in a circle or too far")
                }
            }
        }
    }

    /// The most symlinks that the kernel follows on the way to a file (path_resolution(7)).
    private static let mostLinks = 40

    /// Checks a symlink: its target must be in the bundle, and the path to the target must not contain another symlink,
    /// because `..` after a symlink leads to a different folder than the text of the path suggests. Returns the path of
    /// the target.
    private func checkLink(_ path: BundlePath, _ target: [UInt8]) throws(BundleFault) -> [UInt8] {
        let shown = "the link \(path) to \(BundlePath.shown(target))"
        guard !target.isEmpty, target.count <= BundleLimit.path, BundlePath.isPlain(target) else {
            throw BundleFault("\(shown) has no valid target")
        }
        guard target[0] != BundlePath.slash else { throw BundleFault("\(shown) leaves the bundle") }
        var place = path.names.dropLast()
        let parts = target.split(separator: BundlePath.slash)
        guard parts.count <= BundleLimit.depth else { throw BundleFault("\(shown) has no valid target") }
        for (index, part) in parts.enumerated() {
            if part.elementsEqual(".".utf8) { continue }
            if part.elementsEqual("..".utf8) {
                guard place.popLast() != nil else { throw BundleFault("\(shown) leaves the bundle") }
                continue
            }
            place.append(Array(part))
            let reached = Array(place.joined(separator: [BundlePath.slash]))
            if folders.contains(reached) { continue }
            guard let found = self[reached] else { throw BundleFault("\(shown) leads to nothing in the bundle") }
            guard index == parts.count - 1 else {
                if case .link = found.kind { throw BundleFault("\(shown) goes over the link \(found.path)") }
                throw BundleFault("\(shown) goes through the file \(found.path)")
            }
        }
        return Array(place.joined(separator: [BundlePath.slash]))
    }

    /// The entry at a path; nil if there is none.
    public subscript(path: [UInt8]) -> BundleEntry? { position(of: path).map { entries[$0] } }

    /// The index of the entry at a path; nil if there is none.
    public func position(of path: [UInt8]) -> Int? {
        var (low, high) = (0, entries.count)
        while low < high {
            let middle = (low + high) / 2
            if entries[middle].path.bytes.lexicographicallyPrecedes(path) { low = middle + 1 } else { high = middle }
        }
        return low < entries.count && entries[low].path.bytes == path ? low : nil
    }

    // MARK: Text

    /// The section as text, for the manifest.
    public var text: [UInt8] {
        var text = Self.head + [Self.newline]
        for entry in entries {
            text += Self.quoted(entry.path.bytes)
            switch entry.kind {
            case .file(let mode, let size, let digest):
                let octal = String(mode, radix: 8)
                let mode = String(repeating: "0", count: max(0, 4 - octal.count)) + octal
                text += Array(" = { mode = \"\(mode)\", size = \(size), verity = \"".utf8) + Hex.text(digest)
                text += Array("\" }\n".utf8)
            case .link(let target):
                text += Array(" = { link = ".utf8) + Self.quoted(target) + Array(" }\n".utf8)
            }
        }
        return text
    }

    private static let newline = UInt8(ascii: "\n")

    private static func quoted(_ bytes: [UInt8]) -> [UInt8] {
        var text: [UInt8] = [UInt8(ascii: "\"")]
        for byte in bytes {
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { text.append(UInt8(ascii: "\\")) }
            text.append(byte)
        }
        return text + [UInt8(ascii: "\"")]
    }

    /// Returns the part of a manifest before the line `[files]`; the whole manifest if there is no such line.
    public static func head(of manifest: [UInt8]) -> [UInt8] { Array(manifest[..<start(of: manifest)]) }

    /// The index at which the line `[files]` begins; the end of the manifest if there is no such line.
    private static func start(of manifest: [UInt8]) -> Int {
        var start = 0
        while start < manifest.count {
            let end = manifest[start...].firstIndex(of: newline) ?? manifest.count
            if manifest[start..<end].elementsEqual(head) { return start }
            start = end + 1
        }
        return manifest.count
    }

    /// Splits a manifest at the line `[files]` into the part that its author wrote and the table of files.
    public static func split(_ manifest: [UInt8]) throws(BundleFault) -> (head: [UInt8], files: FileTable) {
        guard manifest.count <= BundleLimit.manifest else {
            throw BundleFault("its manifest has more than \(BundleLimit.manifest >> 20) MiB")
        }
        let start = start(of: manifest)
        guard start < manifest.count else {
            throw BundleFault("its manifest has no section [files]: torpor bundle build writes it")
        }
        guard start <= BundleLimit.head else {
            throw BundleFault("its manifest has more than \(BundleLimit.head >> 10) KiB before [files]")
        }
        let lines = manifest[start...].dropFirst(head.count)
        return (Array(manifest[..<start]), try FileTable(lines: lines.dropFirst()))
    }

    private init(lines: ArraySlice<UInt8>) throws(BundleFault) {
        var entries: [BundleEntry] = []
        var reader = LineReader(lines)
        while !reader.isAtEnd {
            guard entries.count < BundleLimit.entries else {
                throw BundleFault("it has more than \(BundleLimit.entries) files")
            }
            guard let entry = try Self.entry(&reader) else {
                throw BundleFault(
                    "line \(entries.count + 1) of [files] in its manifest is not one that torpor bundle build writes"
                )
            }
            entries.append(entry)
        }
        try self.init(sorted: entries)
    }

    private static func entry(_ reader: inout LineReader) throws(BundleFault) -> BundleEntry? {
        guard let name = reader.string(atMost: BundleLimit.path), reader.skip(" = { ") else { return nil }
        let path = try BundlePath(name)
        if reader.skip("link = ") {
            guard let target = reader.string(atMost: BundleLimit.path), reader.skip(" }\n") else { return nil }
            return BundleEntry(path, .link(target))
        }
        guard reader.skip("mode = \""), let mode = reader.number(radix: 8, digits: 4), reader.skip("\", size = "),
            let size = reader.number(radix: 10, digits: nil), reader.skip(", verity = \""),
            let digest = reader.hex(bytes: 32), reader.skip("\" }\n")
        else { return nil }
        return BundleEntry(path, .file(mode: UInt32(mode), size: size, digest: digest))
    }
}

/// Parses a line of the section, one part after another.
private struct LineReader {
    private var rest: ArraySlice<UInt8>

    init(_ text: ArraySlice<UInt8>) { rest = text }

    var isAtEnd: Bool { rest.isEmpty }

    mutating func skip(_ text: StaticString) -> Bool {
        let count = text.utf8CodeUnitCount
        guard rest.count >= count,
            rest.prefix(count).elementsEqual(UnsafeBufferPointer(start: text.utf8Start, count: count))
        else { return false }
        rest = rest.dropFirst(count)
        return true
    }

    mutating func string(atMost most: Int) -> [UInt8]? {
        guard skip("\"") else { return nil }
        var text: [UInt8] = []
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "\"") { return text }
            guard byte == UInt8(ascii: "\\") else {
                text.append(byte)
                if text.count > most + 1 { return nil }
                continue
            }
            guard let next = rest.popFirst(), next == UInt8(ascii: "\"") || next == UInt8(ascii: "\\") else {
                return nil
            }
            text.append(next)
        }
        return nil
    }

    /// Parses a number in its only valid form: exactly `count` digits if given, otherwise without leading zeros.
    mutating func number(radix: UInt64, digits count: Int?) -> UInt64? {
        var (value, read, first) = (UInt64(0), 0, UInt8(0))
        while read < count ?? 15, let byte = rest.first, case let digit = byte &- UInt8(ascii: "0"), digit < radix {
            if read == 0 { first = digit }
            value = value * radix + UInt64(digit)
            read += 1
            rest = rest.dropFirst()
        }
        if let count { return read == count ? value : nil }
        return read == 0 || (read > 1 && first == 0) ? nil : value
    }

    mutating func hex(bytes count: Int) -> [UInt8]? {
        guard let bytes = Hex.bytes(rest.prefix(2 * count)), bytes.count == count else { return nil }
        rest = rest.dropFirst(2 * count)
        return bytes
    }
}

/// Lower-case hexadecimal digits (base 16).
public enum Hex {
    private static let digits = Array("0123456789abcdef".utf8)

    /// Encodes bytes as hexadecimal digits.
    public static func text(_ bytes: some Sequence<UInt8>) -> [UInt8] {
        bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
    }

    /// Decodes hexadecimal digits; nil if the text is anything else.
    public static func bytes(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        guard text.count.isMultiple(of: 2) else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count / 2)
        var high: UInt8?
        for byte in text {
            let value: UInt8
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): value = byte - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): value = byte - UInt8(ascii: "a") + 10
            default: return nil
            }
            if let first = high {
                bytes.append(first << 4 | value)
                high = nil
            } else {
                high = value
            }
        }
        return bytes
    }
}
