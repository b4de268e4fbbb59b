// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// A Landlock ruleset. A process that receives the ruleset's descriptor can restrict itself with it. Rights are the
/// bits of linux/landlock.h.
public final class LandlockRuleset: Sendable {
    /// The ruleset's descriptor, close-on-exec.
    public let raw: Int32

    /// Creates a ruleset that forbids all of these rights, except where ``allow(_:_:)`` or ``allow(port:_:)`` allows
    /// them. Throws EINVAL if the kernel does not know one of the rights.
    public init(files: UInt64, network: UInt64, scoped: UInt64) throws(Errno) {
        raw = try call { tlx_landlock_ruleset(files, network, scoped) }
    }

    deinit { Descriptor(owning: raw).close() }

    /// Allows rights on an open file, or on an open folder and everything below it. A descriptor opened with O_PATH is
    /// enough.
    public func allow(_ descriptor: Int32, _ rights: UInt64) throws(Errno) {
        try call { tlx_landlock_allow(raw, descriptor, rights) }
    }

    /// Allows rights on a TCP port.
    public func allow(port: UInt16, _ rights: UInt64) throws(Errno) {
        try call { tlx_landlock_allow_port(raw, port, rights) }
    }
}
