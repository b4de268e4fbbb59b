// SPDX-License-Identifier: Apache-2.0

import Permissions
import WireText

/// A record of the kernel's audit about Landlock, with names that any process has chosen.
enum DenialRecords: FuzzedParser {
    static func run(_ bytes: [UInt8]) throws(Finding) {
        for type in [DenialRecord.access, DenialRecord.domain] {
            guard case .denied(_, let denial) = DenialRecord(type: type, bytes) else { continue }
            try expect(
                !denial.text.isEmpty && denial.text.utf8.count < 8192,
                "a sentence of \(denial.text.utf8.count) bytes"
            )
            let isPlain = denial.text.unicodeScalars.allSatisfy { !$0.steersTerminals }
            try expect(isPlain, "the sentence steers terminals: \(denial.text)")
            if case .path(let path) = denial.object {
                let count = path.unicodeScalars.count
                try expect(count <= Denial.longestPath, "a path of \(count) characters")
            }
            _ = denial.permission
        }
    }
}
