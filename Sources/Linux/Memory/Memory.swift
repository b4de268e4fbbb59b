// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// This process's memory, and memory that it shares with other processes.
public enum Memory {
    /// Creates a memfd of `size` bytes, close-on-exec.
    public static func file(named name: String, size: UInt64 = 0) throws(Errno) -> Descriptor {
        let descriptor = Descriptor(owning: try call { tlx_memfd_create(name) })
        if size > 0 { try File.truncate(descriptor.raw, to: size) }
        return descriptor
    }

    /// Seals a memfd: its size is fixed, and only existing mappings can still write to it (F_SEAL_FUTURE_WRITE, Linux
    /// 5.1). On older kernels the file stays writable.
    public static func seal(_ descriptor: Int32) throws(Errno) {
        try call { tlx_memfd_seal(descriptor) }
    }

    /// Fixes the size of a memfd: writes beyond its end fail.
    public static func bound(_ descriptor: Int32) throws(Errno) {
        try call { tlx_memfd_bound(descriptor) }
    }

    /// Configures the heap so that it returns freed memory to the kernel. Must be called before all other functions
    /// here.
    public static func setUp() { tlx_heap_settings() }

    /// Sets how much freed memory the heap keeps for later allocations: up to 4 MiB if `keeps` is true, 128 KiB if it
    /// is false (the default). The rest is returned to the kernel at once.
    public static func keepFreed(_ keeps: Bool) { tlx_heap_keep(keeps ? 1 : 0) }

    /// Returns free heap memory to the kernel, and drops the program's unmodified file pages. When these pages are used
    /// again, they are read from the page cache. Takes some milliseconds for a large heap. All other threads must be
    /// blocked in ``Monitor/wait(until:for:)`` (use ``Monitor/whileAllWait(_:_:)``), because otherwise a thread could
    /// modify a page just before this function drops it.
    public static func release() { tlx_release_pages() }

    /// Drops the pages of code and constants once more, and waits until `descriptor` is readable or a signal arrives.
    /// What ran since ``release()`` has brought its own pages back, together with those around them. Other threads may
    /// run meanwhile, because nothing writes to these pages.
    public static func releaseCode(waitingFor descriptor: Int32) { tlx_wait_released(descriptor) }

    /// Locks this process's pages in memory, including pages that it touches later, so that the process still works
    /// when memory is short. Pages that are never touched use no memory. Also touches a little free heap in advance, so
    /// that small allocations need no new pages while memory is short. Until ``unlock()`` is called, ``release()``
    /// frees nothing.
    ///
    /// - Returns: false if the process may not lock memory without a limit (CAP_IPC_LOCK or an unlimited
    ///   RLIMIT_MEMLOCK), because mappings beyond a limit would fail.
    @discardableResult
    public static func lock() -> Bool {
        guard tlx_lock_memory() == 0 else { return false }
        tlx_touch_heap(heapReserve)
        return true
    }

    /// Reverts ``lock()``: memory can be paged out again.
    public static func unlock() { tlx_unlock_memory() }

    /// How much free heap ``lock()`` touches in advance, in bytes. Touching more would have no effect, because free(3)
    /// returns larger blocks to the kernel at once.
    private static let heapReserve = 64 << 10

    /// Frees memory that a C library allocated for its caller.
    public static func free(_ pointer: UnsafeMutableRawPointer?) { Glibc.free(pointer) }

    /// The size of a page in bytes.
    public static let pageSize = Int(sysconf(Int32(_SC_PAGESIZE)))
}

/// A mapping: shared, of a file, or private memory. It is unmapped when the last reference is gone.
public final class Mapping {
    /// The mapped bytes. Reading beyond the end of a truncated file raises SIGBUS, so map only files that no other
    /// process can shorten.
    public let bytes: UnsafeMutableRawBufferPointer

    /// Maps the first `size` bytes of a file as shared memory, readable and optionally writable.
    public init(descriptor: Int32, size: Int, writable: Bool) throws(Errno) {
        let start = mmap(nil, size, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, descriptor, 0)
        guard let start, start != MAP_FAILED else { throw Errno(rawValue: errno) }
        bytes = UnsafeMutableRawBufferPointer(start: start, count: size)
    }

    /// Maps zeroed memory that is no file's. Unlike a block of the heap, which is often one that was used before, it takes
    /// memory only for the pages that were written: for a large buffer of which mostly the beginning is used. Ends the
    /// process if there is no memory, as an allocation does.
    public init(size: Int) {
        let start = mmap(nil, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        guard let start, start != MAP_FAILED else { fatalError("no memory for a buffer of \(size) bytes") }
        bytes = UnsafeMutableRawBufferPointer(start: start, count: size)
    }

    /// Stores four bytes with release ordering, so that a process that reads this value also sees everything that was
    /// written before it.
    public func publish(_ value: UInt32, at offset: Int) {
        tlx_store_release(bytes.baseAddress?.advanced(by: offset).assumingMemoryBound(to: UInt32.self), value)
    }

    deinit { munmap(bytes.baseAddress, bytes.count) }
}
