// SPDX-License-Identifier: Apache-2.0

import TransferProtocol
import TransferRules

/// The head of a server's answer, a line at a time, and what is made of it.
enum ResponseHeads: FuzzedParser {
    static var nanosecondsPerByte: Int { 8_000 }

    static func run(_ bytes: [UInt8]) throws(Finding) {
        var head = ResponseHead()
        for line in bytes.split(separator: 0x0a, omittingEmptySubsequences: false) { head.take(line + [0x0a]) }
        try expect(head.status == 0 || (100...999).contains(head.status), "the status is \(head.status)")
        try expect(!head.isComplete || head.status >= 200, "\(head.status) ends nothing")
        try expect(head.length ?? 0 >= 0, "a body of \(head.length ?? 0) bytes")
        try expect(
            (0...3600).contains(head.retryAfter(now: 1_700_000_000) ?? 0),
            "it is waited for longer than an hour"
        )
        for text in [head.version, head.condition] {
            let isPlain = text?.utf8.allSatisfy { $0 != 0x0d && $0 != 0x0a && $0 != 0 } ?? true
            try expect(isPlain, "what is sent back would end its line")
        }
        for challenge in head.challenges {
            try expect(!challenge.scheme.isEmpty, "a challenge without a scheme")
        }
        let known = TransferValidator(condition: "\"a\"", total: 10)
        for offset in [0, 5, 10] as [Int64] {
            if case .append(let total) = BodyUse.of(head, offset: offset, validator: known) {
                try expect(offset > 0 && head.status == 206, "something is appended to nothing")
                try expect(total ?? offset >= offset, "the whole is shorter than its part")
            }
        }
    }
}
