// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// Restrictions that this process imposes on itself and can never remove.
public enum Confinement {
    /// Restricts this process and its children with Landlock. They may read below `readable` and `writable`; write,
    /// create and remove files below `writable`; and execute programs below `executable`. Missing paths are skipped.
    /// Since Landlock 6, they also cannot connect to abstract Unix sockets of other programs, unless
    /// `reachingAbstractSockets` is true. If the kernel has no Landlock, restricts nothing and returns false. Call this
    /// before the first thread starts, because other existing threads are not restricted.
    public static func confine(
        readable: [String],
        writable: [String],
        executable: [String] = [],
        reachingAbstractSockets: Bool = false
    ) throws(Errno) -> Bool {
        let copies = (readable + writable + executable).map { strdup($0) }
        defer { for copy in copies { free(copy) } }
        let pointers = copies.map { UnsafePointer($0) }
        let executables = readable.count + writable.count
        return try call {
            tlx_confine(pointers, pointers.count, readable.count, executables, reachingAbstractSockets ? 1 : 0)
        } == 1
    }

    /// System files that a program with connections to other machines reads: certificates, and the configuration of the
    /// resolver and of OpenSSL. `/lib` contains the modules that libc loads according to nsswitch.conf.
    public static let networkFiles = [
        "/etc/ca-certificates", "/etc/crypto-policies", "/etc/gai.conf", "/etc/host.conf", "/etc/hosts",
        "/etc/ld.so.cache", "/etc/localtime", "/etc/nsswitch.conf", "/etc/pki", "/etc/protocols", "/etc/resolv.conf",
        "/etc/services", "/etc/ssl", "/etc/static", "/lib", "/lib64", "/nix/store", "/run/NetworkManager", "/run/nscd",
        "/run/resolvconf", "/run/systemd/resolve", "/usr/lib", "/usr/lib64", "/usr/local/share/ca-certificates",
        "/usr/share/ca-certificates", "/usr/share/zoneinfo",
    ]

    /// Limits how much writable memory this process can have, including the stacks of threads (RLIMIT_DATA). If the
    /// limit is already lower, it is not changed. An allocation beyond the limit fails, which ends most programs.
    public static func limitMemory(to bytes: UInt64) throws(Errno) {
        let resource = Int32(RLIMIT_DATA.rawValue)
        let most = try min(bytes, ThisProcess.limit(resource).hard)
        try call { tlx_set_limit(resource, most, most) }
    }

    /// Whether the kernel has Landlock enabled.
    public static func isAvailable() -> Bool { tlx_landlock_version() > 0 }

    /// The version of the kernel's Landlock ABI; 0 if the kernel has no Landlock.
    public static func version() -> Int { max(0, tlx_landlock_version()) }

    /// Prevents core dumps of this process. Also prevents other processes of the same user from reading this process's
    /// memory (PR_SET_DUMPABLE).
    public static func keepMemoryPrivate() throws(Errno) { try call { tlx_prctl(4, 0) } }

    /// Prevents core dumps of this process and of the programs that it runs.
    public static func dumpNoCore() throws(Errno) { try call { tlx_set_limit(Int32(RLIMIT_CORE.rawValue), 0, 0) } }
}
