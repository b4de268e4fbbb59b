// SPDX-License-Identifier: Apache-2.0

import Engine
import Linux

/// Memory that is allocated in advance, for torpord's own allocations while memory is short. Its blocks are written
/// to, so that they are resident. When memory becomes short, the blocks are freed, and the heap uses them for new
/// allocations.
struct MemoryReserve {
    /// The size of a block in bytes. It is less than malloc's mmap threshold, so that the heap keeps freed blocks.
    private static let block = 64 << 10
    private var held: [UnsafeMutableRawPointer] = []

    /// Fills the reserve for that many apps: 256 KiB, plus 256 bytes per app.
    mutating func fill(for apps: Int) {
        let count = 4 + apps * 256 / Self.block
        held.reserveCapacity(count)
        while held.count < count {
            let pointer = UnsafeMutableRawPointer.allocate(byteCount: Self.block, alignment: 16)
            pointer.initializeMemory(as: UInt8.self, repeating: 1, count: Self.block)
            held.append(pointer)
        }
        Memory.keepFreed(false)
    }

    /// Frees the reserved blocks, so that the heap can use them.
    mutating func open() {
        Memory.keepFreed(true)
        for pointer in held { pointer.deallocate() }
        held.removeAll(keepingCapacity: true)
    }
}
