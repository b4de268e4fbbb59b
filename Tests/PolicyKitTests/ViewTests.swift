// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import TorporPolicyKit

@Suite("The view")
struct ViewTests {
    @Test("apps are what the supervisor wrote, and empty places are passed by")
    func apps() {
        let fake = FakeView(places: 5)
        fake.put(1, "web", tags: ["demo", "front"]) {
            $0.state = 3
            $0.edge = 6
            $0.goal = 4
            $0.incarnation = 2
            $0.priority = -5
            $0.state_since.3 = 77
            $0.last_use = 55
            $0.grant_ends = 99
            $0.tasks = 1
            $0.memory = 4096
            $0.cpu_permille = 12
            $0.connections = 3
        }
        fake.put(3, "db")
        #expect(fake.view.apps.map(\.name) == ["web", "db"])
        #expect(fake.view[0] == nil)
        #expect(fake.view[5] == nil)
        #expect(fake.view[.max] == nil)
        let web = fake.app(1)
        #expect(web.place == 1)
        #expect(web.tags == ["demo", "front"])
        #expect(web.state == .background)
        #expect(web.edge == .suspending)
        #expect(web.goal == .suspended)
        #expect(web.incarnation == 2)
        #expect(web.priority == -5)
        #expect(web.since(.background) == Time(microseconds: 77))
        #expect(web.since(.active) == nil)
        #expect(web.lastUse == Time(microseconds: 55))
        #expect(web.grantEnds == Time(microseconds: 99))
        #expect(web.isHeld)
        #expect(web.memory == 4096)
        #expect(web.processorPermille == 12)
        #expect(web.connections == 3)
        #expect(fake.view.app(named: "db")?.place == 3)
        #expect(fake.view.app(named: "d") == nil)
    }

    @Test("each flag is the bit that the header gives it")
    func flags() {
        let readers: [(App) -> Bool] = [
            \.hasFailed, \.isOneshot, \.exitsOnSuspend, \.isNeverEvicted, \.isEvictedAtOnce, \.isRequired,
            \.isStartedByPersonOnly, \.isWatched, \.isTraced, \.isInterrupted, \.isNeverWoken,
            \.isSentAway,
        ]
        for bit in 1...readers.count {
            let fake = FakeView(places: 1)
            fake.put(0, "a") { $0.flags |= 1 << UInt32(bit) }
            #expect(readers.indices.filter { readers[$0](fake.app(0)) } == [bit - 1])
        }
    }

    @Test("with a supervisor of an earlier version, fields that are not there yet are unknown")
    func earlier() {
        // As long as an app would be that ends before `restarts_in_window`.
        let size = MemoryLayout<torpor_policy_app>.offset(of: \.restarts_in_window)!
        let fake = FakeView(places: 3, stride: size)
        for place in 0..<3 { fake.put(place, "app\(place)", size: size) { $0.state = 2 } }
        #expect(fake.view.apps.map(\.name) == ["app0", "app1", "app2"])
        let app = fake.app(1)
        #expect(app.state == .active)
        #expect(app.restartLimit == 0)
        #expect(!app.isHeld)
        #expect(app.measuredAt == nil)
        #expect(app.memory == 0)
        #expect(app.connections == nil)
        #expect(app.lastHeartbeat == nil)
        fake.system.pointee.size = 8
        #expect(fake.view.now == Time(microseconds: 0))
        #expect(fake.view.machine.battery == nil)
        #expect(fake.view.machine.memorySome == nil)
    }

    @Test("with a supervisor of a later version, what is behind the known fields is passed by")
    func later() {
        let stride = MemoryLayout<torpor_policy_app>.stride + 64
        let fake = FakeView(places: 3, stride: stride)
        for place in 0..<3 { fake.put(place, "app\(place)", size: stride) { $0.memory = UInt64(place) } }
        fake.pointer.pointee.size += 32
        fake.system.pointee.size += 32
        #expect(fake.view.apps.map(\.name) == ["app0", "app1", "app2"])
        #expect(fake.view.apps.map(\.memory) == [0, 1, 2])
    }

    @Test("states, edges and levels that are not known yet stand for none")
    func unknownValues() {
        let fake = FakeView(places: 1)
        fake.put(0, "a") {
            $0.state = 99
            $0.edge = 99
            $0.goal = 99
            $0.last_reason = 99
        }
        fake.system.pointee.power = 99
        fake.system.pointee.pressure = 99
        let app = fake.app(0)
        #expect(app.state == .notRunning)
        #expect(app.edge == .none)
        #expect(app.goal == .notRunning)
        #expect(app.lastReason == EndReason(rawValue: 99))
        #expect(fake.view.machine.power == .unknown)
        #expect(fake.view.machine.pressure == .none)
    }

    @Test("a view that is too short, has no system or points beside its texts hurts nobody")
    func damaged() {
        let fake = FakeView(places: 2)
        fake.put(0, "a", tags: ["t"]) {
            $0.name = .max
            $0.tags = .max
            $0.tag_count = .max
        }
        // A tag more than there are: it ends with the texts.
        fake.put(1, "b", tags: ["t"]) { $0.tag_count = 1000 }
        #expect(fake.app(0).name == "")
        #expect(fake.app(0).tags == [])
        #expect(!fake.app(0).hasTag("t"))
        #expect(fake.app(1).tags == ["t"])
        fake.pointer.pointee.system = nil
        #expect(fake.view.now == Time(microseconds: 0))
        fake.pointer.pointee.apps = nil
        #expect(fake.view.apps.map(\.name) == [])
        fake.pointer.pointee.strings = nil
        fake.pointer.pointee.size = 8
        #expect(View(fake.pointer) == nil)
    }

    @Test(
        "selectors mean names, globs and tags",
        arguments: [
            ("web", true), ("we", false), ("webs", false), ("w*", true), ("*", true), ("w?b", true), ("w??b", false),
            ("*b", true), ("*e*", true), ("**", true), ("w*c", false), ("tag:demo", true), ("tag:dem?", true),
            ("tag:*o", true), ("tag:web", false), ("demo", false), ("tag:grün", true), ("tag:gr?n", true),
            ("tag:gr??n", false), ("*w*e*b*", true),
        ]
    )
    func selectors(text: String, matches: Bool) throws {
        let fake = FakeView(places: 1)
        fake.put(0, "web", tags: ["x", "demo", "grün"])
        let selector = try #require(Selector(text))
        #expect(fake.app(0).matches(selector) == matches)
        #expect(fake.app(0).matches([try #require(Selector("nobody")), selector]) == matches)
        #expect(selector.description == text)
    }

    @Test(
        "the name of an app with instances selects all of them",
        arguments: [
            ("web", true), ("web@1", true), ("web@2", false), ("we", false), ("web@", false), ("web@*", true),
            ("web@10", false), ("tag:we", false), ("tag:web", false), ("w?b", false),
        ]
    )
    func instances(text: String, matches: Bool) throws {
        let fake = FakeView(places: 1)
        fake.put(0, "web@1", tags: ["we@b"])
        #expect(fake.app(0).matches(try #require(Selector(text))) == matches)
    }

    @Test("a selector that names nothing is none", arguments: ["", "tag:"])
    func noSelector(text: String) { #expect(Selector(text) == nil) }

    @Test("a glob that could take exponential time does not")
    func globTime() throws {
        let fake = FakeView(places: 1)
        fake.put(0, String(repeating: "a", count: 200))
        let selector = try #require(Selector(String(repeating: "a*", count: 60) + "b"))
        #expect(!fake.app(0).matches(selector))
    }

    @Test("whether an app is in front, and whether it can be suspended")
    func judgements() {
        let fake = FakeView(places: 1)
        func app(_ change: (inout torpor_policy_app) -> Void) -> App {
            fake.put(0, "a", tags: [], change)
            return fake.app(0)
        }
        #expect(app { ($0.state, $0.goal) = (2, 2) }.isInFront)
        #expect(app { ($0.state, $0.goal, $0.edge) = (0, 2, 1) }.isInFront)
        #expect(app { ($0.state, $0.goal, $0.edge) = (3, 2, 5) }.isInFront)
        #expect(!app { ($0.state, $0.goal) = (2, 3) }.isInFront)
        #expect(!app { ($0.state, $0.goal, $0.edge) = (2, 2, 8) }.isInFront)
        #expect(!app { ($0.state, $0.goal) = (0, 2) }.isInFront)
        #expect(app { $0.state = 3 }.canBeSuspended)
        #expect(!app { $0.state = 2 }.canBeSuspended)
        #expect(!app { ($0.state, $0.holds) = (3, 1) }.canBeSuspended)
        #expect(!app { ($0.state, $0.tasks) = (3, 1) }.canBeSuspended)
        #expect(!app { ($0.state, $0.edge) = (3, 5) }.canBeSuspended)
        #expect(!app { ($0.state, $0.flags) = (3, 1 | 1 << 6) }.canBeSuspended)
        #expect(!app { ($0.state, $0.flags) = (3, 1 | 1 << 9) }.canBeSuspended)
    }

    @Test("the machine's numbers have their units, and what is not known is nil")
    func machine() {
        let fake = FakeView(places: 0)
        fake.system.pointee.memory_some = 1234
        fake.system.pointee.memory_full = .max
        fake.system.pointee.load_1 = 150
        fake.system.pointee.battery = 42
        fake.system.pointee.power = 2
        fake.system.pointee.pressure = 1
        fake.system.pointee.memory_total = 1 << 30
        let machine = fake.view.machine
        #expect(machine.memorySome == 12.34)
        #expect(machine.memoryFull == nil)
        #expect(machine.load1 == 1.5)
        #expect(machine.battery == 42)
        #expect(machine.power == .battery)
        #expect(machine.pressure == .warning)
        #expect(machine.memoryTotal == 1 << 30)
        #expect(machine.memoryAvailable == nil)
        #expect(machine.swapFree == nil)
        #expect(machine.now == Time(microseconds: 1_000_000_000))
    }
}
