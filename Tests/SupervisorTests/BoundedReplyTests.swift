// SPDX-License-Identifier: Apache-2.0

import Supervisor
import Testing
import TorporAPI
import Varlink

@testable import ControlService

@Suite("Replies that apps determine") struct BoundedReplyTests {
    /// Text that takes six times as many bytes as JSON.
    private static func hostile(_ count: Int) -> String { String(repeating: "\u{1}", count: count) }

    private static func report(_ app: String, _ at: Int64, text: String) -> Report {
        var report = Report(app: app, incarnation: at, at: at, reason: "signal", state: "active")
        report.log = (0..<10).map { LogLine(at: Int64($0), text: text) }
        return report
    }

    @Test("a list of an app's own comes in parts, of which the last says that it is") func parts() throws {
        let all = (0..<50).map { JSON.object(["id": .int(Int64($0)), "url": .string(Self.hostile(100_000))]) }
        var (rest, replies) = (all[...], 0)
        while true {
            let reply = BoundedReply.part("transfers", Array(rest))
            let part = try #require(reply["transfers"]?.arrayValue)
            #expect(reply.serialisedSize <= BoundedReply.mostBytes + 100 && !part.isEmpty)
            #expect(part.elementsEqual(rest.prefix(part.count)))
            rest = rest.dropFirst(part.count)
            replies += 1
            #expect((reply["more"]?.boolValue == true) == !rest.isEmpty)
            if rest.isEmpty { break }
        }
        #expect(replies > 7)
    }

    @Test("a status that fits is as it is")
    func small() {
        let status = AppStatus(summary: AppSummary(name: "web", state: "active", goal: "active"))
        let results = Replies.status(status)
        #expect(BoundedReply.shortened(results) == results)
    }

    @Test("a status that does not fit is shortened, remains one, and says so")
    func large() throws {
        var status = AppStatus(summary: AppSummary(name: "web", state: "active", goal: "active"))
        status.processes = (1...500).map {
            ProcessInfo(pid: $0, parent: 1, state: "S", command: Self.hostile(4_000), threads: 1)
        }
        status.wokenBy = (0..<100_000).map { "timer \($0)" }
        let results = BoundedReply.shortened(Replies.status(status))
        #expect(results.serialised().count <= BoundedReply.mostBytes + 100)
        #expect(results["truncated"] == true)
        let short = try AppStatus(json: results["status"] ?? .null)
        #expect(short.summary.name == "web" && short.processes.count == 500)
        #expect(short.processes[0].command.hasSuffix("\u{1}…"))
    }

    @Test("what an app writes makes no report long")
    func shortReport() throws {
        var report = Self.report("web", 1, text: Self.hostile(16_000))
        (report.text, report.status) = (Self.hostile(4_000), Self.hostile(4_000))
        report.tasks = (0..<64).map { "\($0)" + String(repeating: "\"", count: 255) }
        report.locks = (0..<1_000).map { LockInfo(file: "/\($0)" + Self.hostile(4_000), kind: "flock") }
        report.shorten()
        #expect(report.json.serialised().count < 300_000)
        #expect(report.log.allSatisfy { $0.text.hasSuffix("\u{1}…") && $0.json.serialised().count < 2_200 })
        #expect(try Report(json: report.json) == report)
        let plain = Self.report("web", 1, text: String(repeating: "a", count: 2_000))
        var short = plain
        short.shorten()
        #expect(short == plain)
    }

    @Test("of too many reports the details are left out, and then the oldest of the apps with most")
    func reports() throws {
        let few = [Self.report("b", 9, text: "x"), Self.report("a", 8, text: "y")]
        let all = ControlService.reply(with: few.map(\.json))
        #expect(all["reports"] == .array(few.map(\.json)))
        #expect(all["truncated"] == false && all["left_out"] == .null)

        let many = (0..<400).map { Self.report("bad", 400 - Int64($0), text: Self.hostile(330)) } + few
        let bare = ControlService.reply(with: many.map(\.json))
        #expect(bare.serialised().count <= BoundedReply.mostBytes)
        #expect(bare["truncated"] == true && bare["left_out"] == .null)
        let read = try (bare["reports"]?.arrayValue ?? []).map { try Report(json: $0) }
        #expect(read.count == many.count && read.allSatisfy(\.log.isEmpty))

        let tooMany =
            (0..<3_000).map { number in
                var report = Self.report("bad", 3_000 - Int64(number), text: "x")
                report.text = String(repeating: "a", count: 2_000)
                return report
            } + few
        let rest = ControlService.reply(with: tooMany.map(\.json))
        #expect(rest.serialised().count <= BoundedReply.mostBytes + 5_000)
        let left = try (rest["reports"]?.arrayValue ?? []).map { try Report(json: $0) }
        #expect(left.first?.at == 3_000 && left.suffix(2).map(\.app) == ["b", "a"])
        #expect(rest["left_out"]?.intValue == Int64(tooMany.count - left.count))
    }

    private static func entries(_ app: String, _ count: Int, _ size: Int) -> [JSON] {
        (0..<count).map {
            ["id": .int(Int64($0)), "app": .string(app), "url": .string(String(repeating: "a", count: size))]
        }
    }

    @Test("a short list is as it is")
    func shortList() {
        let all = Self.entries("web", 100, 8_100)
        let reply = BoundedReply.list("transfers", all, shortening: ["url"], with: ["problem": .null])
        #expect(reply == ["transfers": .array(all), "problem": .null, "left_out": .null])
    }

    @Test("of a list that is too long, texts are shortened")
    func shortenedList() {
        let all = Self.entries("a", 1_000, 8_100) + Self.entries("b", 1_000, 8_100) + Self.entries("c", 3, 10)
        let reply = BoundedReply.list("transfers", all, shortening: ["url"])
        let list = reply["transfers"]?.arrayValue ?? []
        #expect(list.count == all.count && reply["left_out"] == .null)
        #expect(reply.serialised().count < BoundedReply.mostBytes)
        #expect(list.first?["url"]?.stringValue == String(repeating: "a", count: 1_024) + "…")
        #expect(list.suffix(3) == all.suffix(3))
    }

    @Test("and what is still too much is left out of the apps with most")
    func leftOut() throws {
        let all = Self.entries("small", 100, 8_100) + Self.entries("a", 2_000, 8_100) + Self.entries("b", 1_500, 8_100)
        let reply = BoundedReply.list("unhandled", all)
        #expect(reply.serialised().count <= BoundedReply.mostBytes + 100)
        let list = reply["unhandled"]?.arrayValue ?? []
        let counts = Dictionary(grouping: list) { $0["app"]?.stringValue ?? "" }.mapValues(\.count)
        #expect(counts["small"] == 100)
        let (a, b) = try (#require(counts["a"]), #require(counts["b"]))
        #expect(a > 190 && abs(a - b) <= 2)
        #expect(reply["left_out"]?.intValue == Int64(all.count - list.count))
        #expect(list.first { $0["app"] == "a" }?["id"] == 0)
    }

    @Test("of a sequence, the first elements fit, and one that is too large by itself")
    func fitting() {
        let half = BoundedReply.mostBytes / 2 - 1
        #expect(BoundedReply.fitting([half, half, 0, 0]) { $0 } == 2)
        #expect(BoundedReply.fitting([4 * half, 1]) { $0 } == 1)
        #expect(BoundedReply.fitting([Int]()) { $0 } == 0)
    }
}
