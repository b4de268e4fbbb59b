// SPDX-License-Identifier: Apache-2.0

import CFuzzTargets
import Glibc
import Linux

/// A shared library, of which a policy's process reads the headers before it opens it.
enum PolicyLibraryFiles: FuzzedParser {
    static func run(_ bytes: [UInt8]) throws(Finding) {
        let file = try MemoryFile.make(bytes)
        let runpath = [CChar](unsafeUninitializedCapacity: 4_096) { buffer, count in
            buffer.initialize(repeating: 1)
            if !cfuzz_policy_library(file.raw, buffer.baseAddress, buffer.count) { buffer[0] = 0 }
            count = buffer.count
        }
        try expect(runpath.contains(0), "a path without an end")
    }
}
