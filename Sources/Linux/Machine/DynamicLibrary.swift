// SPDX-License-Identifier: Apache-2.0

import Glibc
import WireText

/// A shared library that was opened in this process. It is never closed: code that was once mapped may have left
/// threads, handlers and type metadata behind (dlclose(3)).
public struct DynamicLibrary: @unchecked Sendable {
    // A handle of dlopen is an index into the loader's tables, which has locks of its own.
    private let handle: UnsafeMutableRawPointer

    /// Why a library cannot be opened, in the loader's words.
    public struct Failure: Error, Hashable, Sendable, CustomStringConvertible {
        /// A sentence without an end.
        public let description: String
    }

    /// Opens it with all that it needs bound at once (RTLD_NOW) and its symbols hidden from others (RTLD_LOCAL). Runs
    /// its constructors.
    public init(path: String) throws(Failure) {
        guard let handle = dlopen(path, RTLD_NOW | RTLD_LOCAL) else {
            throw Failure(description: dlerror().map { String(terminatedWire: $0) } ?? "\(path) cannot be opened")
        }
        self.handle = handle
    }

    /// Where a symbol is, nil if the library has none of that name.
    public func symbol(_ name: String) -> UnsafeMutableRawPointer? { dlsym(handle, name) }
}
