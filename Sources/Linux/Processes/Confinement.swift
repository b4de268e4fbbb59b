// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// What a process takes from itself for good.
public enum Confinement {
    /// Lets this process, and all that it starts, read only below `readable`, and below `writable` also write, make and remove
    /// files and folders (Landlock); nothing may be executed. Paths that are not there are left out. False where the kernel
    /// has no Landlock: then nothing is confined. Before the first thread: others are not reached.
    public static func confine(readable: [String], writable: [String]) throws(Errno) -> Bool {
        let copies = (readable + writable).map { strdup($0) }
        defer { for copy in copies { free(copy) } }
        let pointers = copies.map { UnsafePointer($0) }
        return try call { tlx_confine(pointers, pointers.count, readable.count) } == 1
    }

    /// Whether the kernel has Landlock, and lets it be used.
    public static func isAvailable() -> Bool { tlx_landlock_version() > 0 }

    /// Keeps this process's memory out of core dumps, and from being read by others of its user (PR_SET_DUMPABLE).
    public static func keepMemoryPrivate() throws(Errno) { try call { tlx_prctl(4, 0) } }
}
