// SPDX-License-Identifier: Apache-2.0

/// How many bytes of output are missing from logs that cannot be written: a table in the journal file, so that the next
/// torpord can say it.
///
/// An entry has 16 bytes, in native byte order: a hash of the log's path, and the number of bytes. An entry with the
/// number 0 is free. While the table is full, the losses of further logs are not recorded.
struct LossTable {
    /// The size of the table in bytes: for 256 logs.
    static let size = 4_096
    private static let entrySize = 16
    private static let places = stride(from: 0, to: size, by: entrySize)

    private let bytes: UnsafeMutableRawBufferPointer

    /// A table in these bytes, which must exist in the mapped file.
    init(in bytes: UnsafeMutableRawBufferPointer) { self.bytes = bytes }

    var isEmpty: Bool { Self.places.allSatisfy { count(at: $0) == 0 } }

    /// The number of bytes that are missing from the log at `path`.
    subscript(path: String) -> UInt64 {
        get {
            let key = Self.key(path)
            return place(of: key).map { count(at: $0) } ?? 0
        }
        nonmutating set {
            let key = Self.key(path)
            guard let place = place(of: key) ?? Self.places.first(where: { count(at: $0) == 0 }) else { return }
            // A new entry stays free until its number is stored.
            bytes.storeBytes(of: key, toByteOffset: place, as: UInt64.self)
            bytes.storeBytes(of: newValue, toByteOffset: place + 8, as: UInt64.self)
        }
    }

    /// Frees the entries of all logs but those at `paths`.
    func keep(_ paths: some Sequence<String>) {
        let keys = Set(paths.map(Self.key))
        for place in Self.places
        where count(at: place) > 0 && !keys.contains(bytes.load(fromByteOffset: place, as: UInt64.self)) {
            bytes.storeBytes(of: 0, toByteOffset: place + 8, as: UInt64.self)
        }
    }

    func copy(from other: LossTable) { bytes.copyMemory(from: UnsafeRawBufferPointer(other.bytes)) }

    private func count(at place: Int) -> UInt64 { bytes.load(fromByteOffset: place + 8, as: UInt64.self) }

    private func place(of key: UInt64) -> Int? {
        Self.places.first { count(at: $0) > 0 && bytes.load(fromByteOffset: $0, as: UInt64.self) == key }
    }

    /// FNV-1a with 64 bits.
    private static func key(_ path: String) -> UInt64 {
        path.utf8.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
    }
}
