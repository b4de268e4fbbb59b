// SPDX-License-Identifier: Apache-2.0

import Glibc
import WireText

/// A shared library loaded into this process. It is never unloaded: its code may have left threads, handlers and type
/// metadata behind (dlclose(3)).
public struct DynamicLibrary: @unchecked Sendable {
    // The handle is safe to share: dlsym(3) and the loader's tables have their own locks.
    private let handle: UnsafeMutableRawPointer

    /// Why a library cannot be loaded, in the words of the dynamic loader.
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

    /// The address of a symbol; nil if the library has no symbol of that name.
    public func symbol(_ name: String) -> UnsafeMutableRawPointer? { dlsym(handle, name) }
}
