// SPDX-License-Identifier: Apache-2.0

import Testing
import Varlink

@testable import ControlService

@Suite("Lists that apps determine") struct BoundedListTests {
    private static func entries(_ app: String, _ count: Int, _ size: Int) -> [JSON] {
        (0..<count).map {
            ["id": .int(Int64($0)), "app": .string(app), "url": .string(String(repeating: "a", count: size))]
        }
    }

    @Test("a short list is as it is")
    func short() {
        let all = Self.entries("web", 100, 8_100)
        let list = BoundedList(all, shortening: ["url"])
        #expect(list.entries == all && list.leftOut == nil)
        #expect(list.reply("transfers", ["problem": .null])["transfers"] == .array(all))
    }

    @Test("of a list that is too long, texts are shortened")
    func shortened() {
        let all = Self.entries("a", 1_000, 8_100) + Self.entries("b", 1_000, 8_100) + Self.entries("c", 3, 10)
        let list = BoundedList(all, shortening: ["url"])
        #expect(list.entries.count == all.count && list.leftOut == nil)
        #expect(list.reply("transfers").serialised().count < 12 << 20)
        #expect(list.entries[0]["url"]?.stringValue == String(repeating: "a", count: 1_024) + "…")
        #expect(list.entries.suffix(3) == all.suffix(3))
    }

    @Test("and what is still too much is left out of the apps with most")
    func leftOut() throws {
        let all = Self.entries("small", 100, 8_100) + Self.entries("a", 2_000, 8_100) + Self.entries("b", 1_500, 8_100)
        let list = BoundedList(all)
        #expect(list.reply("unhandled").serialised().count < 13 << 20)
        let counts = Dictionary(grouping: list.entries) { $0["app"]?.stringValue ?? "" }.mapValues(\.count)
        #expect(counts["small"] == 100)
        let (a, b) = try (#require(counts["a"]), #require(counts["b"]))
        #expect(a > 600 && abs(a - b) <= 2)
        #expect(list.leftOut == Int64(all.count - list.entries.count))
        #expect(list.reply("unhandled")["left_out"]?.intValue == list.leftOut)
        #expect(list.entries.first { $0["app"] == "a" }?["id"] == 0)
    }
}
