// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// Memory that outlives or is shared between processes.
public enum Memory {
    /// A file in memory, close-on-exec, of `size` bytes.
    public static func file(named name: String, size: UInt64 = 0) throws(Errno) -> Descriptor {
        let descriptor = Descriptor(owning: try call { tlx_memfd_create(name) })
        if size > 0 { try File.truncate(descriptor.raw, to: size) }
        return descriptor
    }

    /// Fixes the size of a file in memory, and lets nobody write to it any more but through mappings that exist already
    /// (F_SEAL_FUTURE_WRITE, Linux 5.1; before that others could).
    public static func seal(_ descriptor: Int32) throws(Errno) {
        try call { tlx_memfd_seal(descriptor) }
    }

    /// Has freed memory go back to the kernel; before anything else is done.
    public static func setUp() { tlx_heap_settings() }

    /// Has the heap keep what is freed, up to 4 MiB, for what is allocated later; else all but 128 KiB at its end go back
    /// to the kernel at once.
    public static func keepFreed(_ keeps: Bool) { tlx_heap_keep(keeps ? 1 : 0) }

    /// Gives back what is free, and lets go of the pages of the program that are as on disk: the kernel brings those
    /// back that are used again. Some milliseconds for a large heap. All other threads must be waiting in
    /// ``Monitor/wait(until:for:)`` (``Monitor/whileAllWait(_:_:)``).
    public static func release() { tlx_release_pages() }

    /// Keeps what this process has in memory from being paged out, and from now on all that it touches, and has a little
    /// of the heap ready: so that it can still work when memory is short. What it has not touched takes no memory.
    /// ``release()`` gives nothing back while it is so.
    ///
    /// - Returns: false where it is not allowed to without bounds (CAP_IPC_LOCK, or an unlimited RLIMIT_MEMLOCK), since
    ///   mappings beyond a bound would be refused.
    @discardableResult
    public static func lock() -> Bool {
        guard tlx_lock_memory() == 0 else { return false }
        tlx_touch_heap(heapReserve)
        return true
    }

    /// Ends what ``lock()`` began.
    public static func unlock() { tlx_unlock_memory() }

    /// What is ready, bytes: less than what the heap gives back to the kernel as soon as it is free.
    private static let heapReserve = 64 << 10

    /// Gives back what a C library has allocated for its caller.
    public static func free(_ pointer: UnsafeMutableRawPointer?) { Glibc.free(pointer) }

    /// The size of a page, bytes.
    public static let pageSize = Int(sysconf(Int32(_SC_PAGESIZE)))
}

/// A shared mapping of a file, unmapped with its last reference.
public final class Mapping {
    /// The bytes. Reading past a file that was shortened meanwhile is a SIGBUS: map only what nobody else may shorten.
    public let bytes: UnsafeMutableRawBufferPointer

    /// Maps the first `size` bytes, shared, for reading and, if asked, for writing.
    public init(descriptor: Int32, size: Int, writable: Bool) throws(Errno) {
        let start = mmap(nil, size, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, descriptor, 0)
        guard let start, start != MAP_FAILED else { throw Errno(rawValue: errno) }
        bytes = UnsafeMutableRawBufferPointer(start: start, count: size)
    }

    /// Writes four bytes, which a later process sees only together with all that was written before them.
    public func publish(_ value: UInt32, at offset: Int) {
        tlx_store_release(bytes.baseAddress?.advanced(by: offset).assumingMemoryBound(to: UInt32.self), value)
    }

    deinit { munmap(bytes.baseAddress, bytes.count) }
}
