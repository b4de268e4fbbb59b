// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import WireText

/// A shared library loaded into this process. It is never unloaded, because threads, handlers or type metadata may
/// still use its code (dlclose(3)).
public struct DynamicLibrary: @unchecked Sendable {
    // It is safe to share the handle between threads, because dlsym(3) and the loader's tables have their own locks.
    private let handle: UnsafeMutableRawPointer

    /// Why a library cannot be loaded, in the dynamic loader's words.
    public struct Failure: Error, Hashable, Sendable, CustomStringConvertible {
        /// The reason as a sentence without a full stop.
        public let description: String
    }

    /// Loads the library with all symbols bound at once (RTLD_NOW) and hidden from other libraries (RTLD_LOCAL). Runs
    /// the library's constructors.
    public init(path: String) throws(Failure) {
        guard let handle = dlopen(path, RTLD_NOW | RTLD_LOCAL) else {
            throw Failure(description: dlerror().map { String(terminatedWire: $0) } ?? "\(path) cannot be opened")
        }
        self.handle = handle
    }

    /// Whether a library with this path is loaded in this process.
    public static func isLoaded(_ path: String) -> Bool {
        guard let handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD) else { return false }
        // Gives back only what this call has taken.
        dlclose(handle)
        return true
    }

    /// Replaces the library's pages by copies, so that it no longer changes when a program writes to its file, as cp(1)
    /// does. Throws EACCES or EPERM if the system forbids executable copies.
    public func detachFromFile() throws(Errno) {
        try call { tlx_detach_library(handle) }
    }

    /// The address of a symbol; nil if the library has no symbol of that name.
    public func symbol(_ name: String) -> UnsafeMutableRawPointer? { dlsym(handle, name) }
}
