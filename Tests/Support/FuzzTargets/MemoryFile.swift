// SPDX-License-Identifier: Apache-2.0

import Linux

/// A file in memory with these bytes.
enum MemoryFile {
    static func make(_ bytes: [UInt8]) throws(Finding) -> Descriptor {
        do throws(Errno) {
            let file = try Memory.file(named: "fuzz", size: UInt64(bytes.count))
            var rest = bytes[...]
            while !rest.isEmpty {
                guard let count = try Descriptor.write(file.raw, Array(rest)) else {
                    throw .resourceTemporarilyUnavailable
                }
                rest = rest.dropFirst(count)
            }
            return file
        } catch {
            throw Finding("there is no file in memory to be had: \(error)")
        }
    }
}
