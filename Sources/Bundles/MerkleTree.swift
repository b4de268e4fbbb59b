// SPDX-License-Identifier: Apache-2.0

/// Computes the digest that fs-verity gives a file: SHA-256 over a Merkle tree of blocks of 4 KiB, without a salt
/// (Documentation/filesystems/fsverity.rst in the kernel).
public struct MerkleTree {
    /// The size of a block in bytes.
    public static let block = 4096
    private static let hashesInBlock = block / 32

    private let hash: (UnsafeRawBufferPointer) -> [UInt8]
    /// For each level of the tree, the hashes of its last block, which is not hashed yet.
    private var levels: [[UInt8]] = []
    /// For each level of the tree, how many hashes it has so far.
    private var counts: [Int] = []
    private var size: UInt64 = 0
    private var isWhole = true

    /// Creates the tree of an empty file.
    ///
    /// - Parameter hash: computes SHA-256 (32 bytes).
    public init(hash: @escaping (UnsafeRawBufferPointer) -> [UInt8]) { self.hash = hash }

    /// Adds the next bytes of the file: whole blocks, except that the last call may end with a partial block.
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
        // Hash a full block only when another hash follows it: otherwise the block may be the root, which `digest()`
        // hashes.
        if levels[level].count == Self.block {
            let upper = levels[level].withUnsafeBytes { hash($0) }
            levels[level].removeAll(keepingCapacity: true)
            add(upper, at: level + 1)
        }
        levels[level] += digest
        counts[level] += 1
    }

    /// Returns the fs-verity digest of the bytes that were added.
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
        // struct fsverity_descriptor: version, hash algorithm, log2 of the block size, size of the salt, reserved,
        // file size.
        var descriptor: [UInt8] = [1, 1, 12, 0, 0, 0, 0, 0]
        descriptor += (0..<8).map { UInt8(truncatingIfNeeded: size >> (8 * UInt64($0))) }
        descriptor += root + [UInt8](repeating: 0, count: 256 - 16 - 32)
        return descriptor.withUnsafeBytes { hash($0) }
    }
}
