// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// Advice to the kernel about another process's memory (process_madvise(2)).
///
/// Needs Linux 5.10 (otherwise ENOSYS). Needs CAP_SYS_NICE and permission to read that process's memory (otherwise
/// EPERM).
public enum MemoryAdvice: Sendable {
    /// The memory was not used recently, so the kernel should reclaim it first when memory is short.
    case cold
    /// Page the memory out now if there is swap. The call blocks until the memory is written.
    case pageOut

    /// A range of a process's memory.
    public struct Range: Hashable, Sendable {
        /// The start address, aligned to a page.
        public var start: UInt
        /// The length in bytes, a multiple of the page size.
        public var count: Int

        /// Creates a range from address and length.
        public init(start: UInt, count: Int) {
            self.start = start
            self.count = count
        }
    }

    /// The maximum number of ranges in one call (UIO_MAXIOV).
    public static let mostRanges = 1024

    /// Gives this advice for at most ``mostRanges`` ranges of the process that the pidfd refers to.
    ///
    /// - Returns: how many bytes the kernel has processed, in the order of the ranges; less than the sum if a range is
    ///   invalid.
    /// - Throws: if the first range is invalid, EINVAL for locked or device memory, ENOMEM for an unmapped range; ESRCH
    ///   if the process has ended.
    public func give(to pidfd: Int32, _ ranges: some Collection<Range>) throws(Errno) -> Int {
        let vectors = ranges.map { iovec(iov_base: UnsafeMutableRawPointer(bitPattern: $0.start), iov_len: $0.count) }
        let advice = self == .pageOut ? tlx_madv_pageout : tlx_madv_cold
        return try call { tlx_process_madvise(pidfd, vectors, vectors.count, advice) }
    }

    /// Whether this process can give advice about the memory of other processes.
    public enum Support: Hashable, Sendable {
        /// This process can give advice.
        case available
        /// The kernel lacks process_madvise(2): too old, or built without it.
        case missingInKernel
        /// The kernel has process_madvise(2), but this process may not use it: no CAP_SYS_NICE, or a container's
        /// seccomp filter.
        case notPermitted
    }

    /// Whether this process can give advice about the memory of other processes. When advice is given, the kernel also
    /// checks whether this process may read the memory of that process.
    public static var support: Support {
        // Make the call with an invalid descriptor; the error shows whether the kernel has process_madvise(2). In this
        // call the kernel does not check the capability, so check it separately.
        do throws(Errno) {
            _ = try call { tlx_process_madvise(-1, nil, 0, tlx_madv_cold) }
        } catch {
            if error == .noFunction { return .missingInKernel }
            if error.isRefusal { return .notPermitted }
        }
        let effective = (try? ProcFS.statusField(ThisProcess.pid, "CapEff")).flatMap { UInt64($0, radix: 16) } ?? 0
        // Bit 23 is CAP_SYS_NICE.
        return effective >> 23 & 1 == 1 ? .available : .notPermitted
    }
}

extension Pidfd {
    /// Frees the memory of a process that got SIGKILL but has not ended yet (process_mrelease(2)). Blocks until the
    /// memory is freed. Throws ESRCH if the process has no memory left, EINVAL if it is not being killed, EAGAIN if it
    /// is changing its mappings, ENOSYS before Linux 5.15.
    public static func releaseMemory(_ pidfd: Int32) throws(Errno) {
        try call { tlx_process_mrelease(pidfd) }
    }
}
