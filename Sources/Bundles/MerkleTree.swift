// SPDX-License-Identifier: Apache-2.0

/// The digest that fs-verity gives a file, by a given hash: SHA-256 over a Merkle tree of blocks of 4 KiB, no salt
/// (Documentation/filesystems/fsverity.rst in the kernel).
public struct MerkleTree {
    /// Bytes of a block.
    public static let block = 4096
    private static let hashesInBlock = block / 32

    private let hash: (UnsafeRawBufferPointer) -> [UInt8]
    /// The hashes of each level that wait for their block to be full.
    private var levels: [[UInt8]] = []
    /// Hashes of each level so far.
    private var counts: [Int] = []
    private var size: UInt64 = 0
    private var isWhole = true

    /// A tree of nothing.
    ///
    /// - Parameter hash: SHA-256, 32 bytes.
    public init(hash: @escaping (UnsafeRawBufferPointer) -> [UInt8]) { self.hash = hash }

    /// Adds the next bytes of the file: any number of whole blocks, or fewer than a block at the end.
    public mutating func append(_ bytes: UnsafeRawBufferPointer) {
        precondition(isWhole, "a part of a block is the last")
        size += UInt64(bytes.count)
        var start = 0
        while start < bytes.count {
            let count = min(Self.block, bytes.count - start)
            let part = UnsafeRawBufferPointer(rebasing: bytes[start..<start + count])
            if count == Self.block {
                add(hash(part), at: 0)
            } else {
                isWhole = false
                add(padded(Array(part)), at: 0)
            }
            start += count
        }
    }

    private func padded(_ bytes: [UInt8]) -> [UInt8] {
        (bytes + [UInt8](repeating: 0, count: Self.block - bytes.count)).withUnsafeBytes { hash($0) }
    }

    private mutating func add(_ digest: [UInt8], at level: Int) {
        if level == levels.count {
            levels.append([])
            counts.append(0)
        }
        // A full block is hashed only when another hash follows: if none does, the level may be the root.
        if levels[level].count == Self.block {
            let upper = levels[level].withUnsafeBytes { hash($0) }
            levels[level].removeAll(keepingCapacity: true)
            add(upper, at: level + 1)
        }
        levels[level] += digest
        counts[level] += 1
    }

    /// The digest of the file that was added.
    public mutating func digest() -> [UInt8] {
        var root = [UInt8](repeating: 0, count: 32)
        var level = 0
        while level < levels.count {
            if counts[level] == 1 {
                root = levels[level]
                break
            }
            let upper = padded(levels[level])
            add(upper, at: level + 1)
            level += 1
        }
        // struct fsverity_descriptor: version, hash algorithm, log2 of the block, size of the salt, reserved, size.
        var descriptor: [UInt8] = [1, 1, 12, 0, 0, 0, 0, 0]
        descriptor += (0..<8).map { UInt8(truncatingIfNeeded: size >> (8 * UInt64($0))) }
        descriptor += root + [UInt8](repeating: 0, count: 256 - 16 - 32)
        return descriptor.withUnsafeBytes { hash($0) }
    }
}
