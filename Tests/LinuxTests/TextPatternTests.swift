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
            String(repeating: "(", count: 64) + "a" + String(repeating: ")", count: 64), "(a)\\1", "(){1,1000}{1,1000}",
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

    @Test(
        "that are not extended regular expressions are refused",
        arguments: [
            "(", ")", "a)|(b", "[", "[a", "[z-a]", "[a-c-e]", "[[:foo:]]", "[[.ab.]]", "*a", "a|*", "^*", "a{", "a{}",
            "a{2,1}", "{2}", "a\\", "\\bword\\b",
        ]
    )
    func invalid(_ pattern: String) { #expect(TextPattern(pattern) == nil) }

    @Test(
        "mean what regex(7) says",
        arguments: [
            ("a|b|", "", "c"), ("(a|b)*c", "abbac", "abba"), ("a{,2}", "aa", "aaa"), ("a{2,}", "aaa", "a"),
            ("(a*)*b", "aab", "aa"), ("[^a-c]", "d", "b"), ("[]-]+", "]-", "[-"),
            ("[[:digit:][:upper:]_]+", "A_1", "a"), ("[+--]", ",", "."), ("[[.-.][=a=]]", "-", "b"),
            ("[\\]", "\\", "a"), ("\\.\\w\\S", "._x", "._ "), ("^a$", "a", "b"),
            ("", "", "a"), ("()", "", "a"), ("(^|x)a", "xa", "ya"),
            ("..", "ä", "a"), ("a{0}b", "b", "ab"),
        ]
    )
    func meaning(pattern: String, text: String, other: String) throws {
        let compiled = try #require(TextPattern(pattern))
        #expect(compiled.fits(text) && !compiled.fits(other))
    }

    @Test("take no more steps than is known beforehand, with any text")
    func steps() throws {
        let random: [String] = (0..<4096).map { number in
            let hash = UInt32(truncatingIfNeeded: number &* 2_654_435_761)
            return (hash >> 13) & 1 == 0 ? "a" : "b"
        }
        for pattern in ["[ab]*a[ab]{200}", "(a|aa|b)*b", "((a*)*(b*)*)*c", "(.*){1,30}", "(a?){100}b*"] {
            let compiled = try #require(TextPattern(pattern))
            for length in [0, 1, 100, 4096] {
                let steps = compiled.match(random.prefix(length).joined()).steps
                #expect(steps <= compiled.mostSteps(on: length), "\(pattern), \(length) bytes")
            }
        }
        let slow = try #require(TextPattern("[ab]*a[ab]{200}"))
        #expect(slow.match(random.joined()).steps > 100_000, "the text is one that takes many steps")
        #expect(slow.mostSteps(on: slow.length(within: 1_000)) <= 1_000)
        // A text that is too long for the pattern takes no step.
        let short = try #require(TextPattern("[a-z]{2,20}"))
        #expect(short.match(random.joined()).steps == 0)
    }
}
