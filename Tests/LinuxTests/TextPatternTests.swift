// SPDX-License-Identifier: Apache-2.0

import Linux
import Testing

@Suite("Patterns of settings")
struct TextPatternTests {
    @Test(
        "that would take memory or the stack of whoever compiles them are refused",
        arguments: [
            "a++++++++++++++++++++", "(a*){1,4000}", "((a{1,40}){1,40}){1,40}", "a{99999}",
            "(((((((a?)+)+)+)+)+)+)+{90}",
            String(repeating: "(", count: 64) + "a" + String(repeating: ")", count: 64), "(a)\\1",
        ]
    )
    func refused(_ pattern: String) { #expect(TextPattern(pattern) == nil) }

    @Test(
        "as people write them fit what they say",
        arguments: [
            ("[a-z]{2,20}", "word", "w"), ("[0-9]{1,3}(\\.[0-9]{1,3}){3}", "127.0.0.1", "127.0.0"),
            ("(https?)://[^/ ]+(/.*)?", "https://a.example/x", "ftp://x"), ("[]a]+", "a]a", "b"),
            ("a{200}|b", "b", "a"),
        ]
    )
    func usual(pattern: String, text: String, other: String) throws {
        let compiled = try #require(TextPattern(pattern))
        #expect(compiled.fits(text) && !compiled.fits(other))
    }
}
