// SPDX-License-Identifier: Apache-2.0

import Glibc

/// `Errno` is what every function of this module throws; re-exported so that its members need no second import.
@_exported public import struct SystemPackage.Errno

/// The gate for system calls: repeats a call that a signal interrupted, and turns −1 into the errno of that call.
/// Not for close(2), which must not be repeated.
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

/// The same for calls where "not now" (EAGAIN) is an ordinary answer: nil then.
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
    /// Whether the process or file that was asked for is not there (any more): ESRCH or ENOENT.
    public var isGone: Bool { self == .noSuchProcess || self == .noSuchFileOrDirectory }

    /// Whether rights are missing: EACCES, EPERM or EROFS.
    public var isRefusal: Bool {
        self == .permissionDenied || self == .notPermitted || self == .readOnlyFileSystem
    }
}
