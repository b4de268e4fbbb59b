// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// What the kernel is told of another process's memory, process_madvise(2), and what it is asked to do with it.
///
/// Needs Linux 5.10, CAP_SYS_NICE and the right to read that process's memory (EPERM without, ENOSYS before).
public enum MemoryAdvice: Sendable {
    /// Not used for a while: the first to go when memory is needed.
    case cold
    /// Out of memory now, as far as there is swap: the call waits until it is written.
    case pageOut

    /// A piece of a process's memory.
    public struct Range: Hashable, Sendable {
        /// Where it begins, at a page.
        public var start: UInt
        /// Its bytes, whole pages.
        public var count: Int

        /// That piece.
        public init(start: UInt, count: Int) {
            self.start = start
            self.count = count
        }
    }

    /// What a call takes at most (UIO_MAXIOV).
    public static let mostRanges = 1024

    /// Gives the advice on at most ``mostRanges`` pieces of the memory of the process behind a pidfd.
    ///
    /// - Returns: how many bytes, from the first piece on, were done: less than all when one of them is not as it should
    ///   be. A first one that is not is an error: EINVAL for one that is locked or a device's, ENOMEM for one that is not
    ///   mapped any more; ESRCH when the process has ended.
    public func give(to pidfd: Int32, _ ranges: some Collection<Range>) throws(Errno) -> Int {
        let vectors = ranges.map { iovec(iov_base: UnsafeMutableRawPointer(bitPattern: $0.start), iov_len: $0.count) }
        let advice = self == .pageOut ? tlx_madv_pageout : tlx_madv_cold
        return try call { tlx_process_madvise(pidfd, vectors, vectors.count, advice) }
    }

    /// Whether a way to the memory of other processes is there.
    public enum Support: Hashable, Sendable {
        /// It is.
        case available
        /// The kernel is older than the call, or was built without it.
        case missingInKernel
        /// The call is there, but not for this process: CAP_SYS_NICE, a container's filter.
        case notPermitted
    }

    /// Whether this process can advise on others' memory. What it may read is asked for each anew.
    public static var support: Support {
        // A descriptor that is none tells that the call is there; the right is looked at only after that.
        do throws(Errno) {
            _ = try call { tlx_process_madvise(-1, nil, 0, tlx_madv_cold) }
        } catch {
            if error == .noFunction { return .missingInKernel }
            if error.isRefusal { return .notPermitted }
        }
        let effective = (try? ProcFS.statusField(ThisProcess.pid, "CapEff")).flatMap { UInt64($0, radix: 16) } ?? 0
        // CAP_SYS_NICE
        return effective >> 23 & 1 == 1 ? .available : .notPermitted
    }
}

extension Pidfd {
    /// Takes the memory of a process that was sent SIGKILL and has not come to its end yet, process_mrelease(2), and
    /// waits until that is done. ESRCH when it has none any more, EINVAL for one that is not being ended, EAGAIN when it
    /// is changing its mappings just now, ENOSYS before Linux 5.15.
    public static func releaseMemory(_ pidfd: Int32) throws(Errno) {
        try call { tlx_process_mrelease(pidfd) }
    }
}
