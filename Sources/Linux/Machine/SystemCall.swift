// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Re-exported, so that callers can catch this module's errors without a second import.
@_exported public import struct SystemPackage.Errno

/// Makes a system call. Retries after EINTR, and throws errno if the call returns −1. Do not use it for close(2), which
/// must not be retried.
@inline(__always)
@discardableResult
func call<Result: FixedWidthInteger & SignedInteger>(_ body: () -> Result) throws(Errno) -> Result {
    while true {
        let result = body()
        if result != -1 { return result }
        let code = errno
        if code != EINTR { throw Errno(rawValue: code) }
    }
}

/// Makes a system call for which EAGAIN is a normal result. Returns nil after EAGAIN, retries after EINTR, and throws
/// other errors.
@inline(__always)
func callUnlessBlocked<Result: FixedWidthInteger & SignedInteger>(
    _ body: () -> Result
) throws(Errno) -> Result? {
    while true {
        let result = body()
        if result != -1 { return result }
        let code = errno
        if code == EAGAIN { return nil }
        if code != EINTR { throw Errno(rawValue: code) }
    }
}

extension Errno {
    /// Whether the process or file does not exist, or no longer exists: ESRCH or ENOENT.
    public var isGone: Bool { self == .noSuchProcess || self == .noSuchFileOrDirectory }

    /// Whether the error has a temporary cause, so that a retry may succeed. Such causes are a lack of resources in
    /// this process or on the machine, a busy file, a failing device or server, and an interrupted call. The error then
    /// says nothing about the file or process itself.
    public var isPassing: Bool {
        let passing: [Errno] = [
            .ioError, .interrupted, .noBufferSpace, .noMemory, .resourceTemporarilyUnavailable, .staleNFSFileHandle,
            .timedOut, .tooManyOpenFiles, .tooManyOpenFilesInSystem,
        ]
        return passing.contains(self)
    }

    /// Whether permission is missing: EACCES, EPERM or EROFS.
    public var isRefusal: Bool {
        self == .permissionDenied || self == .notPermitted || self == .readOnlyFileSystem
    }
}
