// SPDX-License-Identifier: Apache-2.0

import Varlink

/// JSON as it comes over Varlink and HTTP.
enum JSONTexts: FuzzedParser {
    static func run(_ bytes: [UInt8]) throws(Finding) {
        guard let value = try? JSON.parse(bytes) else { return }
        try expect(value.isNested(atMost: JSON.depthLimit), "it is nested deeper than \(JSON.depthLimit)")
        let text = value.serialised()
        for written in [text, value.serialisedPretty()] {
            guard let again = try? JSON.parse(written) else { throw Finding("what was written is no JSON") }
            try expect(again.serialised() == text, "it is another value when it is written and read again")
        }
        try look(value)
    }

    private static func look(_ value: JSON) throws(Finding) {
        switch value {
        case .null, .bool, .int: break
        case .double(let number):
            try expect(number.isFinite, "a number is not finite")
            _ = value.intValue
        case .string(let text):
            guard let bytes = Base64.decode(text) else { return }
            try expect(Base64.encode(bytes) == text, "Base64 is another text when it is decoded and encoded again")
        case .array(let elements): for element in elements { try look(element) }
        case .object(let object): for member in object.members { try look(member.value) }
        }
    }
}
