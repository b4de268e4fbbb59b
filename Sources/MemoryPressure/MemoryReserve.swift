// SPDX-License-Identifier: Apache-2.0

import Engine
import Linux

/// Memory that is there beforehand for what has to be allocated when there is none: blocks that are written to, given back
/// to the heap when memory becomes short, which hands them out again.
struct MemoryReserve {
    /// Less than what the heap would map for itself, and so give back at once.
    private static let block = 64 << 10
    private var held: [UnsafeMutableRawPointer] = []

    /// Takes it, for so many apps: 256 KiB, and 256 bytes each.
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

    /// Gives it to the heap.
    mutating func open() {
        Memory.keepFreed(true)
        for pointer in held { pointer.deallocate() }
        held.removeAll(keepingCapacity: true)
    }
}
