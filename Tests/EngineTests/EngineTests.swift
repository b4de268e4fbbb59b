// SPDX-License-Identifier: Apache-2.0

import EngineHarness
import EventLoop
import Lifecycle
import Testing
import TorporAPI

@testable import Engine

@Suite("The order of facts, decisions and actions") struct EngineTests {
    @Test("What is decided is written down before anything of it is done") func writtenAhead() throws {
        let shell = try FakeShell("web")
        try shell.engine.request(.start(background: false), of: 0)
        #expect(shell.state(0) == .active)
        let diary = shell.hands.diary
        let written = try #require(diary.firstIndex(of: "write 0 launch"))
        let done = try #require(diary.firstIndex(of: "do 0 launch"))
        #expect(written < done)
        #expect(shell.hands.owed == 0, "all that was written down was done")
    }

    @Test("A fact that arises while actions are carried out waits until they are done") func factsWait() throws {
        let shell = try FakeShell("web")
        try shell.engine.request(.start(background: false), of: 0)
        let diary = shell.hands.diary
        // The launch answers at once; the core hears of it when the launch is carried out.
        let done = try #require(diary.firstIndex(of: "done 0 launch"))
        let heard = try #require(diary.firstIndex(of: "fact 0 launched"))
        #expect(done < heard)
        #expect(Self.areWhole(diary))
    }

    @Test("What a request decides in the midst of actions is done after them, and written down at once")
    func requestsInTheMidst() throws {
        let shell = try FakeShell("web", "db")
        var asked = false
        shell.hands.onAction = { app, action in
            guard app.id == 0, case .launch = action, !asked else { return }
            asked = true
            try? shell.engine.request(.start(background: false), of: 1)
        }
        try shell.engine.request(.start(background: false), of: 0)
        let diary = shell.hands.diary
        let written = try #require(diary.firstIndex(of: "write 1 launch"))
        let first = try #require(diary.firstIndex(of: "done 0 launch"))
        let second = try #require(diary.firstIndex(of: "do 1 launch"))
        #expect(written < first && first < second)
        #expect(Self.areWhole(diary))
        #expect(shell.state(0) == .active && shell.state(1) == .active)
    }

    @Test("Work that is to be uninterrupted waits its turn, and facts that arise in it wait for its end")
    func uninterrupted() throws {
        let shell = try FakeShell("web")
        var order: [String] = []
        shell.hands.onAction = { _, action in
            guard case .launch = action else { return }
            shell.engine.uninterrupted {
                order.append("begins, \(shell.state(0).rawValue)")
                try? shell.engine.request(.stop(.stopped), of: 0)
                order.append("ends, \(shell.state(0).rawValue)")
            }
            order.append("asked")
        }
        try shell.engine.request(.start(background: true), of: 0)
        #expect(order.first == "asked")
        // What it asks for is decided then, and done when it is over.
        let states = order.dropFirst().map { $0.split(separator: " ").last }
        #expect(states.count == 2 && states.first == states.last)
        #expect(shell.state(0) == .notRunning)
    }

    @Test("A request that is refused says why, and nothing is done") func refused() throws {
        let shell = try FakeShell("web")
        #expect(throws: RequestError.self) { try shell.engine.request(.suspend, of: 0) }
        #expect(shell.hands.diary.isEmpty)
    }

    @Test("A failure is forgotten by whoever has seen it: by a reset, and by a stop of what does not run")
    func seenFailure() throws {
        let shell = try FakeShell("web")
        let requests: [(Request, String?)] = [
            (.reset, nil), (.stop(.stopped), "stopped"), (.forceQuit, "force-quit"),
        ]
        for (request, seen) in requests {
            shell.engine.apps[0].lastExit = LastExit(reason: TerminationReason.exitFailure.rawValue)
            // What is written down of the request is what the next torpord knows.
            var written: [String?] = []
            shell.hands.onWrite = { written.append(shell.engine.apps[0].lastExit?.reason) }
            try shell.engine.request(request, of: 0)
            #expect(shell.engine.apps[0].lastExit?.reason == seen)
            #expect(written == [seen], "\(request)")
        }
        shell.hands.onWrite = nil
        shell.engine.apps[0].lastExit = LastExit(reason: TerminationReason.stopped.rawValue)
        try shell.engine.request(.reset, of: 0)
        #expect(shell.engine.apps[0].lastExit != nil, "that it was stopped is no failure")
    }

    @Test("What is decided and not begun yet is known") func decidedActions() throws {
        let shell = try FakeShell("web", "db")
        var known: ActionMask = []
        shell.hands.onAction = { app, action in
            guard app.id == 0, case .launch = action else { return }
            try? shell.engine.request(.start(background: false), of: 1)
            known = shell.engine.decidedActions(of: 1)
        }
        try shell.engine.request(.start(background: false), of: 0)
        #expect(known.contains(ActionMask(.launch(shell.engine.machine(1).launchOrder))))
        #expect(shell.engine.decidedActions(of: 1) == [])
    }

    // MARK: Observers

    @Test("Observers hear of states in their order, and of what was touched when all is done") func observers() throws {
        let shell = try FakeShell("web")
        let (first, second) = (FakeObserver(), FakeObserver())
        var order: [Int] = []
        first.onTouch = { _ in order.append(1) }
        second.onTouch = { _ in
            order.append(2)
            #expect(shell.hands.owed == 0)
        }
        shell.engine.add(first)
        shell.engine.add(second)
        try shell.engine.request(.start(background: false), of: 0)
        #expect(first.diary == second.diary)
        #expect(first.diary.contains("web inactive → active"))
        #expect(first.diary.last == "touched 0")
        #expect(order == [1, 2])
        try shell.engine.request(.stop(.stopped), of: 0)
        #expect(first.endings[0] == 1 && second.endings[0] == 1)
    }

    @Test("The last state is still the one before when a state is told of, and the run is there when its end is")
    func whatIsThere() throws {
        let shell = try FakeShell("web")
        let observer = FakeObserver()
        shell.engine.add(observer)
        try shell.engine.request(.start(background: false), of: 0)
        let run = shell.engine.apps[0].run
        run.statusText = "at work"
        var seen: String?
        observer.onEnd = { seen = $0.run.statusText }
        try shell.engine.request(.stop(.stopped), of: 0)
        #expect(seen == "at work")
        #expect(shell.engine.apps[0].run !== run && shell.engine.apps[0].run.statusText == nil)
    }

    @Test("A request of an observer is carried out, and told of in its turn") func observersAsk() throws {
        let shell = try FakeShell("web")
        let observer = FakeObserver()
        shell.engine.add(observer)
        observer.onTouch = { _ in
            if shell.state(0) == .active { try? shell.engine.request(.background, of: 0) }
        }
        try shell.engine.request(.start(background: false), of: 0)
        #expect(shell.state(0) == .background)
        #expect(observer.states[0] == .background)
        #expect(Self.areWhole(shell.hands.diary))
    }

    @Test("What a room knows of an app is told to those who follow it, once") func touched() throws {
        let shell = try FakeShell("web", "db")
        let observer = FakeObserver()
        shell.engine.add(observer)
        shell.engine.touch(1)
        #expect(observer.diary == ["touched 1"])
        // In the midst of actions it waits for their end.
        shell.hands.onAction = { _, action in if case .launch = action { shell.engine.touch(1) } }
        try shell.engine.request(.start(background: false), of: 0)
        #expect(observer.diary.last == "touched 0,1")
    }

    @Test("An app that has left and come to rest is forgotten by all, and its place is another's") func forgotten()
        throws
    {
        let shell = try FakeShell("web", "db")
        let observer = FakeObserver()
        shell.engine.add(observer)
        try shell.engine.request(.start(background: false), of: 1)
        let changes = [AppChange(AppDefinition(name: "web"))]
        shell.engine.perform(try shell.engine.coordinator.reconfigure(changes, now: shell.engine.loop.now))
        shell.engine.settle()
        #expect(observer.forgotten == [1] && shell.hands.forgotten == ["db"])
        #expect(
            observer.diary.firstIndex(of: "db ended").map { $0 < observer.diary.firstIndex(of: "db forgotten") ?? 0 }
                == true
        )
        #expect(shell.engine.apps.map(\.name) == ["web"])
    }

    // MARK: The start

    @Test("What waits for the start is done once it is over, in order, and at once from then on") func started() throws
    {
        let shell = try FakeShell("web")
        var order: [Int] = []
        shell.engine.whenStarted { order.append(1) }
        shell.engine.whenStarted { order.append(2) }
        #expect(order.isEmpty && !shell.engine.isStarted)
        shell.engine.started()
        #expect(shell.engine.isStarted && order.isEmpty)
        shell.engine.goOnAfterStart()
        #expect(order == [1, 2])
        shell.engine.whenStarted { order.append(3) }
        #expect(order == [1, 2, 3])
    }

    // MARK: Deadlines

    /// An app that never comes up, and has hardly any time for it.
    private func hurried() throws -> FakeShell {
        var app = AppDefinition(name: "web")
        app.rules.readiness = .notify
        app.rules.launchDeadline = .milliseconds(1)
        app.rules.restart = .never
        let shell = try FakeShell([app])
        try shell.engine.request(.start(background: false), of: 0)
        return shell
    }

    @Test("A deadline that has passed is told to the core") func deadline() throws {
        let shell = try hurried()
        let observer = FakeObserver()
        shell.engine.add(observer)
        #expect(observer.endings.isEmpty)
        try shell.pass(.milliseconds(1))
        #expect(observer.endings == [0: 1])
        #expect(shell.hands.diary.contains("fact 0 deadline"))
        #expect(shell.engine.machine(0).lastEnding == .launchDeadline)
    }

    @Test("One that is not to be judged is not told") func unjudged() throws {
        let shell = try hurried()
        shell.hands.unjudged = [0]
        try shell.pass(.seconds(20))
        #expect(!shell.hands.diary.contains("fact 0 deadline"))
        #expect(shell.engine.machine(0).transition == .launching)
    }

    // MARK: All of it

    /// Whether each action was begun and done before the next one was begun.
    static func areWhole(_ diary: [String]) -> Bool {
        var underWay: String?
        for line in diary {
            if line.hasPrefix("do ") {
                guard underWay == nil else { return false }
                underWay = String(line.dropFirst(3))
            } else if line.hasPrefix("done ") {
                guard underWay == String(line.dropFirst(5)) else { return false }
                underWay = nil
            } else if line.hasPrefix("fact "), underWay != nil {
                return false
            }
        }
        return underWay == nil
    }
}
