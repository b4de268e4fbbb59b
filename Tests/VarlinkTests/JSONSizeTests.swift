// SPDX-License-Identifier: Apache-2.0

import Testing
import Varlink

@Suite("Sizes as JSON") struct JSONSizeTests {
    @Test("are those of the JSON text, whatever the value")
    func sizes() {
        let texts = [
            "", "a", "12345678", "123456789",
            "\u{0}", "\u{1f}x", "\n\t\r\u{8}\u{c}", "\"\\/", "\u{7f}", "é", "\u{80}", "\u{9f}",
            "\u{a0}", "\u{61c}", "\u{600}", "\u{200e}", "\u{2027}", "\u{2028}", "\u{202e}", "\u{2069}", "…", "😀",
            "seven b\u{1}eight by\"nine byt", "aaaaaaaé", "aaaaaaaa😀aaaaaaaa\u{202e}",
        ]
        for text in texts + [texts.joined()] {
            #expect(text.serialisedSize == JSON.string(text).serialised().count, "\(text.debugDescription)")
        }
        let values: [JSON] = [
            .null, true, false, 0, -1, .int(.min), .int(.max), 0.5, 1e-7, 1e300, .double(.nan),
            [], [1], [1, "a", [nil]],
            [:], ["a": 1], ["a\u{1}": ["b": [], "c": "\u{2}"], "d": 0.25],
        ]
        for value in values + [.array(values)] {
            #expect(value.serialisedSize == value.serialised().count, "\(value)")
        }
    }

    @Test("a text is shortened to a size, and never within a character")
    func shortened() {
        for character in ["a", "\u{1}", "\"", "é", "😀", "\u{202e}"] {
            for count in [1, 5, 9, 40, 1_000] {
                let text = String(repeating: character, count: count)
                for most in [12, 13, 14, 15, 16, 60, 100] {
                    let short = text.shortened(toSerialised: most)
                    if text.serialisedSize <= most {
                        #expect(short == text)
                        continue
                    }
                    let size = short.serialisedSize
                    #expect(size <= most && size > most - 6, "\(character.debugDescription) \(count) \(most)")
                    #expect(short.hasSuffix("…") && short.dropLast().allSatisfy { String($0) == character })
                }
            }
        }
    }

    @Test("a value is shortened in its strings and arrays only")
    func values() {
        let rest: JSON = ["p": [true, false]]
        let value: JSON = ["a name": ["abcdefghijklmnopqrstuvwxyz", "b", 3, nil], "n": 1.5, "o": rest]
        let short: JSON = ["a name": ["abcdefghijk…", "b"], "n": 1.5, "o": rest]
        #expect(value.shortened(stringsTo: 16, arraysTo: 2) == short)
        #expect(value.shortened(stringsTo: 100, arraysTo: 4) == value)
    }
}
