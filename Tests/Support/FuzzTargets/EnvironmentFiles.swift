// SPDX-License-Identifier: Apache-2.0

import Configuration

/// Files of variables.
enum EnvironmentFiles: FuzzedParser {
    static func run(_ bytes: [UInt8]) throws(Finding) {
        guard let variables = try? EnvironmentFile.parse(bytes, file: "file") else { return }
        var written: [UInt8] = []
        for (name, value) in variables {
            try expect(!name.isEmpty && !value.utf8.contains(0), "a variable that no environment can have")
            written += Array("\(name)=\"".utf8)
            for byte in value.utf8 {
                if "\"\\$`".utf8.contains(byte) { written.append(UInt8(ascii: "\\")) }
                written.append(byte)
            }
            written += Array("\"\n".utf8)
        }
        guard let again = try? EnvironmentFile.parse(written, file: "file") else {
            throw Finding("what was written cannot be read")
        }
        let isSame = again.count == variables.count && zip(again, variables).allSatisfy { $0 == $1 }
        try expect(isSame, "the variables are others when they are written and read again")
    }
}
