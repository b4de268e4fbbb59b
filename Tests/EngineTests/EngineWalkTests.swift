// SPDX-License-Identifier: Apache-2.0

import EngineHarness
import EventLoop
import Lifecycle
import Testing

@testable import Engine

/// Apps that are asked for anything, by anybody, in the midst of anything.
@Suite("The engine, walked at random") struct EngineWalkTests {
    private struct Random: RandomNumberGenerator {
        var state: UInt64
        mutating func next() -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return state ^ state >> 29
        }
    }

    private static let requests: [Request] = [
        .start(background: false), .start(background: true), .stop(.stopped), .restart, .foreground, .background,
        .suspend,
        .resume, .forceQuit, .evict, .wake(Wake()), .reset, .cover(begin: true), .cover(begin: false),
        .interrupt(begin: true), .interrupt(begin: false),
    ]

    private static let facts: [AppEvent] = [
        .launched, .launchFailed, .ready, .mainExited(.exited(code: 1)), .allGone, .stopConfirmed, .foundRunning,
        .heartbeat, .deadline, .lockHeld,
    ]

    @Test(
        "Each decision is whole, written down first, and what observers know is what the core knows",
        arguments: 0..<64
    )
    func walk(seed: Int) throws {
        let names = ["db", "cache", "web", "jobs"]
        let shell = try FakeShell(
            names.map { AppDefinition(name: $0, requires: $0 == "web" ? ["db", "cache"] : []) }
        )
        let observer = FakeObserver()
        shell.engine.add(observer)
        var random = Random(state: UInt64(seed) &+ 1)
        // In the midst of actions people and events ask too, and processes come and go.
        shell.hands.onAction = { app, action in
            if Int.random(in: 0..<8, using: &random) == 0 { shell.hands.isIdle.formSymmetricDifference([app.id]) }
            guard Int.random(in: 0..<6, using: &random) == 0 else { return }
            let other = Int.random(in: names.indices, using: &random)
            if Bool.random(using: &random) {
                shell.engine.deliver(Self.facts.randomElement(using: &random) ?? .allGone, to: other)
            } else {
                try? shell.engine.request(Self.requests.randomElement(using: &random) ?? .reset, of: other)
            }
        }
        for step in 0..<500 {
            let app = Int.random(in: names.indices, using: &random)
            switch Int.random(in: 0..<9, using: &random) {
            case 0: try shell.pass(.milliseconds(Int.random(in: 1...20_000, using: &random)))
            case 1...4: try? shell.engine.request(Self.requests.randomElement(using: &random) ?? .reset, of: app)
            default: shell.engine.deliver(Self.facts.randomElement(using: &random) ?? .allGone, to: app)
            }
            try #require(shell.hands.owed == 0, "step \(step) leaves something that is written down and not done")
            for id in names.indices {
                let known = observer.states[id] ?? .notRunning
                try #require(known == shell.state(id), "step \(step): an observer takes \(names[id]) for \(known)")
                try #require(shell.engine.apps[id].lastState == known)
            }
        }
        #expect(EngineTests.areWhole(shell.hands.diary))
        // It is a walk, and no standstill.
        #expect(observer.diary.count > 200 && observer.endings.values.reduce(0, +) > 5)
    }
}
