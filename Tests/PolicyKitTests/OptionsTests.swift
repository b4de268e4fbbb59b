// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import TorporPolicyKit

@Suite("Options")
struct OptionsTests {
    private enum Colour: String, CaseIterable {
        case red
        case green
    }

    /// What reading them complains about; empty when it does not.
    private func complaint(
        _ values: KeyValuePairs<String, FakeOptions.Value>,
        _ read: (Options) throws(PolicyError) -> Void
    ) -> String {
        let fake = FakeOptions(values)
        do throws(PolicyError) {
            try read(fake.options)
            return ""
        } catch {
            return error.description
        }
    }

    @Test("what is not configured has its default")
    func defaults() throws {
        let options = FakeOptions([:]).options
        #expect(try options.integer("a", default: 7, in: 0...10) == 7)
        #expect(try options.number("a", default: 0.5, in: 0...1) == 0.5)
        #expect(try options.boolean("a", default: true))
        #expect(try options.string("a", default: "x") == "x")
        #expect(try options.word("a", default: Colour.green) == .green)
        #expect(try options.duration("a", default: .seconds(3)) == .seconds(3))
        #expect(try options.size("a", default: 5) == 5)
        #expect(try options.share("a", default: 0.25) == 0.25)
        #expect(try options.strings("a", default: ["x"]) == ["x"])
        #expect(try options.selectors("a").isEmpty)
        #expect(try options.tables("a").isEmpty)
        #expect(try options.table("a").keys.isEmpty)
        #expect(!options.has("a"))
    }

    @Test("what is configured is read, in lists and tables too")
    func values() throws {
        let fake = FakeOptions([
            "count": 3, "ratio": 0.5, "whole": 2, "on": true, "word": "red", "time": "1h30min", "size": "64MiB",
            "share": "2%", "list.0": "a", "list.1": "tag:b*", "one": "alone", "rules.0.apps.0": "web",
            "rules.0.after": "5s", "rules.1.apps": "db", "limits.web": 3, "limits.db": 4,
        ])
        let options = fake.options
        #expect(try options.integer("count", default: 0, in: 0...10) == 3)
        #expect(try options.number("ratio", default: 0, in: 0...1) == 0.5)
        #expect(try options.number("whole", default: 0, in: 0...9) == 2)
        #expect(try options.boolean("on", default: false))
        #expect(try options.word("word", default: Colour.green) == .red)
        #expect(try options.duration("time", default: .zero) == .seconds(5400))
        #expect(try options.size("size", default: 0) == 64 << 20)
        #expect(try options.share("share", default: 0) == 0.02)
        #expect(try options.selectors("list").map(\.description) == ["a", "tag:b*"])
        #expect(try options.strings("one") == ["alone"])
        let rules = try options.tables("rules")
        #expect(rules.count == 2)
        #expect(try rules[0].strings("apps") == ["web"])
        #expect(try rules[0].duration("after", default: .zero) == .seconds(5))
        #expect(try rules[1].strings("apps") == ["db"])
        #expect(try options.table("limits").keys == ["web", "db"])
        #expect(try options.table("limits").integer("db", default: 0, in: 0...9) == 4)
    }

    @Test("elements count in their order, whatever order they come in, beyond ten too")
    func order() throws {
        let fake = FakeOptions([
            "l.10": "k", "l.1": "b", "l.0": "a", "l.2": "c", "l.3": "d", "l.4": "e", "l.5": "f", "l.6": "g", "l.7": "h",
            "l.8": "i", "l.9": "j",
        ])
        #expect(try fake.options.strings("l").joined() == "abcdefghijk")
    }

    @Test("what is wrong is said in a sentence that begins with the option")
    func sentences() {
        #expect(
            complaint(["n": 11]) { o throws(PolicyError) in _ = try o.integer("n", default: 1, in: 1...10) }
                == "n must be at most 10: it is 11"
        )
        #expect(
            complaint(["n": 0.5]) { o throws(PolicyError) in _ = try o.integer("n", default: 1, in: 1...10) }
                == "n must be a whole number: it is a number, 0.5"
        )
        #expect(
            complaint(["n": "x"]) { o throws(PolicyError) in _ = try o.number("n", default: 1, in: 0...1) }
                == "n must be a number: it is a string, \"x\""
        )
        #expect(
            complaint(["n": 1.5]) { o throws(PolicyError) in _ = try o.number("n", default: 1, in: 0...1) }
                == "n must be at most 1.0: it is 1.5"
        )
        #expect(
            complaint(["t": "2h"]) { o throws(PolicyError) in
                _ = try o.duration("t", default: .zero, in: .zero...Duration.seconds(3600))
            } == "t must be at most 1 h: it is \"2h\""
        )
        #expect(
            complaint(["s": "1KiB"]) { o throws(PolicyError) in _ = try o.size("s", default: 0, in: 4096...8192) }
                == "s must be at least 4 KiB: it is \"1KiB\""
        )
        #expect(
            complaint(["s": ""]) { o throws(PolicyError) in _ = try o.string("s", default: "") }
                == "s must not be empty"
        )
        #expect(
            complaint(["w": "grene"]) { o throws(PolicyError) in _ = try o.word("w", default: Colour.red) }
                == "w must be one of \"red\", \"green\": it is \"grene\"; did you mean \"green\"?"
        )
        #expect(
            complaint(["l.0": "a", "l.1": 2]) { o throws(PolicyError) in _ = try o.strings("l") }
                == "l.1 must be a string: it is an integer, 2"
        )
        #expect(
            complaint(["l.a": "a"]) { o throws(PolicyError) in _ = try o.strings("l") }
                == "l must be a list of strings: it is a table"
        )
        #expect(
            complaint(["r.0.n": 0]) { o throws(PolicyError) in
                _ = try o.tables("r")[0].integer("n", default: 1, in: 1...2)
            } == "r.0.n must be at least 1: it is 0"
        )
        #expect(
            complaint(["t.0": "a"]) { o throws(PolicyError) in _ = try o.table("t") }
                == "t must be a table: it is a list"
        )
        #expect(
            complaint(["a.0": "tag:"]) { o throws(PolicyError) in _ = try o.selectors("a") }
                == "a must name apps by name, glob or tag:NAME: it has \"tag:\""
        )
    }

    private let known = [
        OptionDescription("max_active", "integer", default: "1", ""),
        OptionDescription("rules", "list of tables", default: "[]", ""),
        OptionDescription("rules.*.apps", "list of apps", default: "[]", ""),
        OptionDescription("rules.*.after", "duration", default: "5s", ""),
        OptionDescription("limits.*", "integer", default: "", ""),
    ]

    @Test(
        "options that nobody described are refused, with the nearest name where one is close",
        arguments: [
            (["max_activ": 1], "max_activ is not an option of this policy: did you mean max_active?"),
            (["zzz": 1], "zzz is not an option of this policy: there are limits, max_active, rules"),
            (["rules.0.app": 1], "rules.0.app is not an option of this policy: did you mean apps?"),
            (["rules.0.apps.0": "x", "limits.whatever": 3, "max_active": 1], ""),
            (["limits.a.b": 3], ""),
            (
                ["rules.0.apps.0": "x", "rules.1.aftr": "5s"],
                "rules.1.aftr is not an option of this policy: did you mean after?"
            ),
        ] as [(KeyValuePairs<String, FakeOptions.Value>, String)]
    )
    func unknown(values: KeyValuePairs<String, FakeOptions.Value>, sentence: String) {
        #expect(complaint(values) { o throws(PolicyError) in try o.requireKnown(known) } == sentence)
    }

    @Test("a policy without options refuses any")
    func none() {
        #expect(
            complaint(["x": 1]) { o throws(PolicyError) in try o.requireKnown([]) }
                == "x is not an option of this policy"
        )
    }

    @Test(
        "the nearest name is the one with the fewest mistakes",
        arguments: [
            ("max_actve", "max_active"), ("kepe", "keep"), ("Protect", "protect"), ("x", nil), ("nothing_like", nil),
            ("", nil),
        ] as [(String, String?)]
    )
    func nearest(text: String, name: String?) {
        #expect(Nearest.name(to: text, among: ["max_active", "keep", "keep_running", "protect"]) == name)
    }
}
