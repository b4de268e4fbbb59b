// SPDX-License-Identifier: Apache-2.0

import Telemetry
import Testing
import TorporAPI
import Varlink

@Suite("What apps go through as traces") struct TransitionSpansTests {
    private func event(
        _ at: Int64,
        _ kind: String,
        from: String? = nil,
        to: String? = nil,
        reason: String? = nil
    )
        -> EventRecord
    {
        EventRecord(at: at, app: "web", incarnation: 2, kind: kind, from: from, to: to, text: "text", reason: reason)
    }

    /// The spans that come of events, each as its name, when it began and how long it took.
    private func spans(_ events: [EventRecord]) throws -> [JSON] {
        var spans = TransitionSpans()
        return try events.flatMap { spans.add($0) }.map { line in
            let json = try JSON.parse(Array(line.utf8))
            let resource = try #require(json["resourceSpans"]?.arrayValue?.first)
            return try #require(resource["scopeSpans"]?.arrayValue?.first?["spans"]?.arrayValue?.first)
        }
    }

    private func described(_ span: JSON) -> String {
        let began = Int64(span["startTimeUnixNano"]?.stringValue ?? "") ?? -1
        let ended = Int64(span["endTimeUnixNano"]?.stringValue ?? "") ?? -1
        return "\(span["name"]?.stringValue ?? "") \(began / 1000) \((ended - began) / 1000)"
    }

    private var life: [EventRecord] {
        [
            event(10, "transition", to: "launching"), event(15, "launch"),
            event(20, "state", from: "not-running", to: "inactive"),
            event(21, "state", from: "inactive", to: "active"),
            event(50, "transition", to: "entering-background"),
            event(70, "state", from: "active", to: "background"),
            event(80, "transition", to: "terminating"),
            event(90, "exit", to: "not-running", reason: "background-deadline"),
            event(90, "state", from: "background", to: "not-running"),
        ]
    }

    @Test("States and changes of state are spans of their run, which ends last")
    func aLife() throws {
        let found = try spans(life)
        #expect(
            found.map(described) == [
                "launching 10 10", "inactive 20 1", "entering-background 50 20", "active 21 49", "terminating 80 10",
                "background 70 20", "run 2 10 80",
            ]
        )
        let root = try #require(found.last)
        #expect(root["parentSpanId"] == nil)
        for span in found {
            #expect(span["traceId"] == root["traceId"])
            #expect(span["traceId"]?.stringValue?.count == 32)
            #expect(span["spanId"]?.stringValue?.count == 16)
            if span != root { #expect(span["parentSpanId"] == root["spanId"]) }
        }
        #expect(Set(found.compactMap { $0["spanId"]?.stringValue }).count == found.count)
        #expect(root["status"]?["code"] == 2, "a missed deadline is an error")
    }

    @Test("An ending that was asked for is no error, and whoever looks gets the same ids")
    func repeated() throws {
        var events = life
        events[7] = event(90, "exit", to: "not-running", reason: "evicted")
        let found = try spans(events)
        #expect(found.last?["status"] == nil)
        #expect(try spans(events) == found)
    }

    @Test("Who begins to look in the middle of a run gets what ends from then on")
    func late() throws {
        #expect(try spans(Array(life.dropFirst(4))).map(described).suffix(2) == ["background 70 20", "run 2 50 40"])
        #expect(try spans([event(90, "exit", reason: "stopped"), event(91, "state", to: "not-running")]).isEmpty)
    }
}
