// SPDX-License-Identifier: Apache-2.0

import Configuration
import Testing

@testable import GatewayConfiguration

@Suite("Subjects and topic filters with wildcards") struct PatternTests {
    @Test("match what NATS and MQTT say that they match, and find what the wildcards stand for")
    func matching() throws {
        let cases: [(String, SubjectPattern.Dialect, String, [String]?)] = [
            ("orders.created", .nats, "orders.created", []),
            ("orders.created", .nats, "orders.created.now", nil),
            ("orders.*", .nats, "orders.created", ["created"]),
            ("orders.*", .nats, "orders.a.b", nil),
            ("*.*.done", .nats, "a.b.done", ["a", "b"]),
            ("orders.>", .nats, "orders.a.b", ["a.b"]),
            ("orders.>", .nats, "orders", nil),
            (">", .nats, "a.b", ["a.b"]),
            ("home/+/state", .mqtt, "home/lamp/state", ["lamp"]),
            ("home/+/state", .mqtt, "home//state", [""]),
            ("home/#", .mqtt, "home", [""]),
            ("home/#", .mqtt, "home/a/b", ["a/b"]),
            ("#", .mqtt, "a/b", ["a/b"]),
            ("#", .mqtt, "$SYS/uptime", nil),
            ("+/x", .mqtt, "$SYS/x", nil),
            ("$SYS/+", .mqtt, "$SYS/uptime", ["uptime"]),
        ]
        for (text, dialect, subject, found) in cases {
            #expect(try SubjectPattern(text, dialect).match(subject) == found, "\(text) and \(subject)")
        }
    }

    @Test("that are none are refused with a sentence", arguments: ["", "a..b", "a.>.b", "a b"])
    func wrongSubject(text: String) {
        #expect(throws: QuantityError.self) { try SubjectPattern(text, .nats) }
    }

    @Test("of MQTT have their wildcards alone between slashes", arguments: ["", "a/#/b", "a#", "a/b+"])
    func wrongFilter(text: String) {
        #expect(throws: QuantityError.self) { try SubjectPattern(text, .mqtt) }
    }

    @Test("fill the places of a text")
    func templates() throws {
        let pattern = try SubjectPattern("apps.*.>", .nats)
        let found = try #require(pattern.match("apps.web.orders.new"))
        #expect(try SubjectTemplate("{1}", wildcards: 2).text("apps.web.orders.new", found) == "web")
        #expect(try SubjectTemplate("x-{2}-{1}", wildcards: 2).text("apps.web.orders.new", found) == "x-orders.new-web")
        #expect(try SubjectTemplate("{subject}", wildcards: 0).text("a.b", []) == "a.b")
        #expect(throws: QuantityError.self) { try SubjectTemplate("{3}", wildcards: 2) }
        #expect(throws: QuantityError.self) { try SubjectTemplate("{1", wildcards: 2) }
        #expect(throws: QuantityError.self) { try SubjectTemplate("{app}", wildcards: 2) }
    }
}
