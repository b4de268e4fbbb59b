// SPDX-License-Identifier: Apache-2.0

import Importing
import WireText

/// Service directories of s6 and runit. The first byte says whose they are; behind it are files with a byte 1 between
/// them, each its path below the folder, a line break, and its text.
enum ServiceDirectories: FuzzedParser {
    static let nanosecondsPerByte = 40_000

    static func run(_ bytes: [UInt8]) throws(Finding) {
        guard let first = bytes.first else { return }
        var files: [String: [UInt8]] = [:]
        for part in bytes.dropFirst().split(separator: 1) {
            let path = part.prefix { $0 != UInt8(ascii: "\n") }
            // What no folder has in it.
            let names = path.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
            guard !path.contains(0), names.allSatisfy({ !$0.isEmpty && $0 != [0x2e] && $0 != [0x2e, 0x2e] }) else {
                continue
            }
            files["\(Imports.folder)/\(String(wire: path))"] = Array(part.dropFirst(path.count + 1))
        }
        try Imports.run(files, from: Imports.folder, as: first % 2 == 0 ? .s6 : .runit)
    }
}
