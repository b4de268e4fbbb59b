// SPDX-License-Identifier: Apache-2.0

import Testing
import TopView
import TorporAPI

@Suite("What torpor top knows") struct TopModelTests {
    @Test("apps are sorted by each order, and the selected one stays selected")
    func orders() {
        var model = Models.model()
        #expect(model.visible.map(\.name) == ["mail", "notes", "player", "search", "thumbs", "web"])
        #expect(model.selected == "mail")
        model.press(.down)
        #expect(model.selected == "notes")
        model.press(.character("o"))
        #expect(model.order == .state)
        #expect(model.visible.map(\.name) == ["web", "player", "search", "mail", "notes", "thumbs"])
        #expect(model.selected == "notes")
        model.press(.character("o"))
        #expect(model.visible.prefix(2).map(\.name) == ["search", "web"])
        for _ in 0..<3 { model.press(.character("o")) }
        #expect(model.order == .name)
        model.press(.character("O"))
        #expect(model.order == .lastEvent)
    }

    @Test("the use of processors is what is between two readings of one run")
    func processor() {
        var model = Models.model([Models.app("a", cpu: 1)])
        #expect(model.measurements["a"]?.processorPercent == nil)
        model.now += 2_000_000
        model.take(list: [Models.app("a", cpu: 1.5)], asked: model.now)
        #expect(model.measurements["a"]?.processorPercent == 25)
        // The same value at once is the same measurement; later it is idle.
        model.now += 300_000
        model.take(list: [Models.app("a", cpu: 1.5)], asked: model.now)
        #expect(model.measurements["a"]?.processorPercent == 25)
        model.now += 3_000_000
        model.take(list: [Models.app("a", cpu: 1.5)], asked: model.now)
        #expect(model.measurements["a"]?.processorPercent == 0)
        // Another run begins anew.
        model.now += 1_000_000
        var next = Models.app("a", cpu: 0.1)
        next.incarnation = 2
        model.take(list: [next], asked: model.now)
        #expect(model.measurements["a"]?.processorPercent == nil)
        // A clock that is set back hurts nothing.
        model.now -= 3_600_000_000
        model.take(list: [next], asked: model.now)
        _ = TopLayout.frame(model)
    }

    @Test("what was said of an app's state is gone when the state is another one")
    func staleMessage() {
        var model = Models.model([Models.app("a"), Models.app("ab")])
        model.say("a: background (pid 7)")
        model.now += 1_000
        model.take(events: [Models.became(1, "ab", "suspended", at: model.now, from: "background")])
        #expect(model.currentMessage != nil)
        model.take(events: [Models.became(2, "a", "suspended", at: model.now, from: "background")])
        #expect(model.currentMessage == nil)
        model.say("it cannot be asked for", .error)
        model.now += 1_000
        model.take(events: [Models.became(3, "a", "background", at: model.now, from: "suspended")])
        #expect(model.currentMessage != nil)
    }

    @Test("a change of state shows at once, before the next list; one that the list knows of does not undo it")
    func liveState() {
        var model = Models.model([Models.app("a")])
        model.now += 500_000
        let at = model.now
        model.take(events: [
            Models.event(1, "a", "transition", at: at, to: "suspending", text: "is suspending")
        ])
        #expect(model.apps[0].transition == "suspending")
        model.take(events: [Models.became(2, "a", "suspended", at: at, from: "background")])
        #expect(model.apps[0].state == "suspended")
        #expect(model.apps[0].transition == nil)
        model.take(list: [Models.app("a", "background")], asked: at + 10)
        model.take(events: [Models.became(3, "a", "active", at: at, from: "background")])
        #expect(model.apps[0].state == "background", "older than the list")
        // What came already does not come again.
        model.take(events: [Models.became(3, "a", "active", at: at + 20)])
        #expect(model.events.count == 3)
    }

    @Test("keys send verbs to the selected app, or to all that are marked")
    func verbs() throws {
        var model = Models.model()
        func verb(_ key: TopKey) -> VerbRequest? {
            guard case .verb(let request) = model.press(key) else { return nil }
            return request
        }
        #expect(verb(.character("s")) == VerbRequest(verb: .suspend, apps: ["mail"]))
        #expect(verb(.character("f"))?.verb == .foreground)
        #expect(verb(.character("b"))?.verb == .background)
        #expect(verb(.character("S"))?.verb == .start)
        #expect(verb(.character("x"))?.verb == .stop)
        #expect(verb(.character("R"))?.verb == .restart)
        #expect(model.press(.character(" ")) == nil)
        #expect(model.press(.character(" ")) == nil)
        #expect(model.marked == ["mail", "notes"])
        #expect(verb(.character("x"))?.apps == ["mail", "notes"])
        #expect(verb(.character("u")) == nil)
        #expect(verb(.character("x"))?.apps == ["player"])
        let hold = try #require(verb(.character("H")))
        #expect(hold.verb == .hold)
        #expect(hold.forMilliseconds == 600_000)
        var held = Models.app("player", "background")
        held.holds = ["an operator (torpor top)"]
        model.take(list: [held], asked: model.now)
        #expect(verb(.character("H"))?.end == true)
    }

    @Test("a force quit is asked about, and only y does it")
    func kill() {
        var model = Models.model()
        #expect(model.press(.character("K")) == nil)
        #expect(model.prompt == .kill(["mail"]))
        #expect(TopLayout.frame(model).text.contains("force quit mail?"))
        // What is to be pressed is seen on small screens, too.
        model.size = .init(columns: 40, rows: 10)
        #expect(TopLayout.frame(model).text.contains("force quit mail? (y/n)"))
        #expect(model.press(.enter) == nil)
        #expect(model.prompt == nil)
        model.press(.character("K"))
        #expect(model.press(.character("y")) == .verb(VerbRequest(verb: .kill, apps: ["mail"])))
    }

    @Test("the filter is typed, applied at once, and taken back by Esc")
    func filter() {
        var model = Models.model()
        model.press(.character("/"))
        for letter in "sus" { model.press(.character(letter)) }
        #expect(model.visible.map(\.name) == ["mail"])
        #expect(model.selected == "mail")
        // Keys are text here.
        #expect(model.press(.character("q")) == nil)
        #expect(model.visible.isEmpty)
        #expect(model.press(.character("s")) == nil)
        model.press(.backspace)
        model.press(.backspace)
        model.press(.enter)
        #expect(model.filter == "sus")
        model.press(.escape)
        #expect(model.visible.count == 6)
    }

    @Test("pages go back to the list, and q ends only there")
    func pages() {
        var model = Models.model()
        model.press(.enter)
        #expect(model.mode == .details)
        #expect(model.subject == "mail")
        model.press(.character("l"))
        #expect(model.mode == .log)
        #expect(model.press(.character("q")) == nil)
        #expect(model.mode == .list)
        model.press(.character("t"))
        model.press(.character("?"))
        #expect(model.mode == .help)
        model.press(.escape)
        #expect(model.mode == .timeline)
        model.press(.character("q"))
        #expect(model.press(.character("q")) == .quit)
    }

    @Test("a timeline that shows more than is known asks for it, once it is wanted")
    func history() {
        var model = Models.model()
        model.know(since: model.now - 3_600_000_000)
        #expect(model.press(.character("t")) == nil)
        var asked: TopRequest?
        for _ in 0..<8 { asked = model.press(.character("-")) ?? asked }
        #expect(asked == .history(since: model.now - 24 * 3_600_000_000))
        model.take(history: [], since: model.now - 24 * 3_600_000_000)
        #expect(model.press(.character("-")) == nil)
        for _ in 0..<20 { model.press(.character("+")) }
        #expect(model.span == 60)
    }

    @Test("an app that goes takes its mark along, and its neighbour is selected")
    func gone() {
        var model = Models.model()
        model.press(.end)
        model.press(.character(" "))
        #expect(model.marked == ["web"])
        model.take(list: Models.fleet.filter { $0.name != "web" }, asked: model.now)
        #expect(model.marked.isEmpty)
        #expect(model.selected == "thumbs")
        model.take(list: [], asked: model.now)
        #expect(model.selected == nil)
        model.press(.character("s"))
        #expect(model.currentMessage?.text == "no app is selected")
    }

    @Test("it says that the supervisor is gone, that it is back, and that it is another one")
    func lost() {
        var model = Models.model()
        model.lose("the supervisor has ended the connection")
        model.now += 3_000_000
        let text = TopLayout.frame(model).text
        #expect(text.contains("no answer for 3s"))
        #expect(text.contains("the supervisor has ended the connection: trying again"))
        model.take(supervisor: SupervisorInfo(version: "0.2.0", instance: 2, pid: 9, apps: 6))
        #expect(model.link == .up)
        #expect(TopLayout.frame(model).text.contains("torpord 0.2.0 has taken over as process 9"))
    }

    @Test("logs and events stay where they are looked at, and have bounds")
    func bounds() {
        var model = Models.model()
        model.press(.character("l"))
        model.take(log: (0..<3000).map { LogLine(at: nil, stream: nil, text: "line \($0)") }, isFirst: true)
        #expect(model.logLines.count == 2000)
        #expect(TopLayout.frame(model).text.contains("line 2999"))
        model.press(.pageUp)
        let seen = TopLayout.frame(model).lines[5]
        model.take(log: [LogLine(at: nil, stream: nil, text: "new")], isFirst: false)
        #expect(TopLayout.frame(model).lines[5] == seen)
        model.press(.end)
        #expect(TopLayout.frame(model).text.contains("new"))
        model.take(
            events: (1...9000).map { Models.event($0, "web", "notice", at: model.now, text: "n \($0)") }
        )
        #expect(model.events.count == 4000)
        #expect(model.events.last?.text == "n 9000")
    }
}
