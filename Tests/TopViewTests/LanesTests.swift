// SPDX-License-Identifier: Apache-2.0

import Testing
import TorporAPI

@testable import TopView

@Suite("Lanes of the timeline") struct LanesTests {
    private func lane(_ events: [EventRecord], _ current: ShownState, now: Int64 = 100, knownSince: Int64 = 0) -> String
    {
        let cells = Lanes.cells(
            events.compactMap { StateChange($0) },
            current: current,
            from: 0,
            to: 100,
            now: now,
            knownSince: knownSince,
            columns: 10
        )
        let glyphs = Glyphs.ascii
        return cells.map { glyphs.lane($0.isFailure ? .failed : $0.state) }.joined()
    }

    @Test("an app of which no change is known was what it is")
    func still() { #expect(lane([], .active) == "##########") }

    @Test("each column is the state of the most of its time, the one before the first change too")
    func changes() {
        let events = [
            Models.became(1, "a", "background", at: 20, from: "active"),
            Models.became(2, "a", "suspended", at: 52, from: "background"),
            Models.became(3, "a", "background", at: 88, from: "suspended"),
            Models.became(4, "a", "active", at: 91, from: "inactive"),
        ]
        #expect(lane(events, .active) == "##===----#")
    }

    @Test("nothing is shown of what is to come, nor of what nobody knows")
    func edges() {
        #expect(lane([], .suspended, now: 55) == "------    ")
        #expect(lane([], .suspended, knownSince: 30) == "   -------")
    }

    @Test("a failure is seen, however short the column; an ending that was asked for is none")
    func failures() {
        let failed = Models.event(2, "a", "exit", at: 45, text: "exited with status 3", reason: "exit-failure")
        let stopped = Models.event(3, "a", "exit", at: 75, text: "was ended by SIGTERM", reason: "stopped")
        let events = [
            Models.became(1, "a", "not-running", at: 45, from: "active"), failed,
            Models.became(3, "a", "active", at: 50, from: "not-running"),
            Models.became(4, "a", "not-running", at: 70, from: "active"), stopped,
        ]
        #expect(lane(events, .notRunning) == "####X##...")
    }

    @Test("of older events each comes once")
    func history() {
        var model = Models.model([Models.app("a")])
        let at = Models.start
        model.take(events: [Models.became(5, "a", "active", at: at, from: "inactive")])
        let older = [
            Models.became(4, "a", "inactive", at: at - 10, from: "not-running"),
            Models.became(5, "a", "active", at: at, from: "inactive"),
        ]
        model.take(history: older, since: at - 100)
        #expect(model.changes["a"]?.map(\.sequence) == [4, 5])
    }

    @Test("the page has an axis, a lane an app, and a legend")
    func page() {
        var model = Models.model(columns: 80, rows: 24)
        model.know(since: model.now - 3_600_000_000)
        model.press(.character("t"))
        let grid = TopLayout.frame(model)
        #expect(grid.lines[3].hasPrefix(" 15 min"))
        #expect(grid.lines[3].hasSuffix("now"))
        #expect(grid.lines[3].contains("-5 min"))
        #expect(grid.line(of: "web")?.contains("██████████") == true)
        #expect(grid.line(of: "mail")?.contains("░░░░░░░░░░") == true)
        #expect(grid.text.contains("▒ background"))
    }
}
