// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EngineHarness
import EventLoop
import KernelFiles
import Lifecycle
import Linux
import Processes
import Testing

@testable import MemoryPressure

@Suite("What is done when memory is short") struct MemoryStepsTests {
    /// Short from now on.
    private func short(_ memory: FakeMemory, _ part: Double) {
        memory.kernel.setAvailable(part)
        memory.watch.configure()
    }

    @Test("Apps that hear it are told: active ones at critical only, and nobody again within 30 s") func told() throws {
        let memory = try FakeMemory(["active": "", "back": "", "deaf": "", "sleeper": ""])
        memory.host.hearing = [0, 1, 3]
        var heard: [String] = []
        memory.shell.hands.onAction = { app, action in
            if case .tell(.didReceiveMemoryWarning) = action { heard.append("\(app.name) \(app.memoryWarning ?? "")") }
        }
        try memory.shell.start("active")
        try memory.inBackground("back", "deaf")
        try memory.asleep("sleeper")
        short(memory, 0.07)
        try memory.pass(.milliseconds(900))
        #expect(heard == ["back warning"])
        #expect(memory.told().last == "tells back that memory is short (warning)")
        memory.kernel.setAvailable(0.04)
        try memory.pass(.milliseconds(200))
        #expect(heard == ["back warning", "active critical"])
        memory.kernel.setAvailable(0.07)
        try memory.pass(.milliseconds(28_700))
        #expect(heard.count == 2)
        try memory.pass(.milliseconds(600))
        #expect(heard == ["back warning", "active critical", "back critical"], "the level has not fallen yet")
    }

    @Test("At a warning nobody goes before it has lasted a second; then the lower priority, then the larger one")
    func evicts() throws {
        let memory = try FakeMemory(["a": "priority = 1", "b": "", "c": "", "d": ""])
        try memory.asleep("a", "b", "c")
        try memory.asleep("d", bytes: 200 << 20)
        short(memory, 0.07)
        try memory.pass(.milliseconds(1000))
        #expect(memory.alive.count == 4)
        // Warning since the first look, 100 ms after.
        try memory.pass(.milliseconds(200))
        #expect(memory.alive == ["a", "b", "c"])
        let why = "is evicted: memory is short (warning); it is suspended, has 200 MiB, was last used 1 s ago"
        #expect(memory.told(of: "d") == [why])
        var order: [[String]] = []
        for _ in 0..<3 {
            try memory.pass(.milliseconds(200))
            order.append(memory.alive)
        }
        #expect(order == [["a", "c"], ["a"], []])
    }

    @Test("What comes and goes costs nobody anything") func bursts() throws {
        let memory = try FakeMemory(["a": ""])
        try memory.asleep("a")
        memory.watch.configure()
        for _ in 0..<10 {
            memory.kernel.setAvailable(0.07)
            try memory.pass(.milliseconds(700))
            memory.kernel.setAvailable(0.5)
            try memory.pass(.milliseconds(700))
        }
        #expect(memory.alive == ["a"] && memory.host.levels.first == .warning)
    }

    @Test("Nothing more is done before what was done has had its time to show") func settles() throws {
        let memory = try FakeMemory(["a": "", "b": ""])
        memory.host.memoryRules.rules.settling = .seconds(1)
        try memory.asleep("a", "b")
        short(memory, 0.03)
        try memory.pass(.milliseconds(200))
        #expect(memory.alive == ["b"])
        memory.kernel.available += 100 << 20
        try memory.pass(.milliseconds(800))
        #expect(memory.alive == ["b"] && !memory.told().contains { $0.contains("more are available") })
        try memory.pass(.milliseconds(300))
        #expect(memory.told().contains { $0.hasPrefix("100 MiB more are available without a: 346 MiB of 8192 MiB") })
        #expect(memory.alive == [])
    }

    @Test("At critical one that does not end is waited for 500 ms, and is known as being ended until it has")
    func outlasted() throws {
        let memory = try FakeMemory(["a": "", "b": ""])
        try memory.asleep("a", "b")
        memory.shell.hands.isIdle = [0]
        short(memory, 0.03)
        try memory.pass(.milliseconds(500))
        #expect(memory.alive == ["a", "b"] && memory.watch.isEnding(memory.shell.app("a")))
        #expect(!memory.watch.isEnding(memory.shell.app("b")))
        try memory.pass(.milliseconds(300))
        #expect(memory.alive == ["a"])
        #expect(memory.watch.isEnding(memory.shell.app("a")))
        memory.kernel.available += 100 << 20
        memory.shell.hands.answer(.signalStop, 0)
        memory.shell.hands.answer(.endRemains, 0)
        #expect(!memory.watch.isEnding(memory.shell.app("a")))
        try memory.pass(.milliseconds(300))
        #expect(memory.told().contains { $0.hasPrefix("100 MiB more are available without a") })
    }

    @Test("An app that a debugger has taken hold of meanwhile is left alone, and the next one goes") func traced()
        throws
    {
        let memory = try FakeMemory(["a": "", "b": ""])
        try memory.asleep("a", "b")
        memory.host.traced = [0]
        short(memory, 0.03)
        try memory.pass(.seconds(1))
        #expect(memory.alive == ["a"])
        #expect(memory.told(of: "b").first?.contains("passed over: a (it is being debugged)") == true)
    }

    @Test("That nothing is left to be done is told once, with who has most") func nothingLeft() throws {
        let memory = try FakeMemory(["kept": "evict = \"never\"", "seen": ""])
        try memory.asleep("kept", bytes: 300 << 20)
        try memory.has("seen", 50 << 20)
        try memory.shell.start("seen")
        short(memory, 0.03)
        try memory.pass(.seconds(5))
        let told = memory.told().filter { $0.contains("no app may be evicted") }
        #expect(told.count == 1)
        #expect(
            told.first?.hasSuffix(
                "left alone: kept, 300 MiB (evict = \"never\"), seen, 50 MiB (it is in use)"
            ) == true
        )
        #expect(memory.alive == ["kept", "seen"])
    }

    @Test("An active app goes last, and where it allows it") func lastResort() throws {
        let memory = try FakeMemory(["seen": "last_resort = true", "sleeper": "priority = 9"])
        try memory.shell.start("seen")
        try memory.asleep("sleeper")
        short(memory, 0.03)
        try memory.pass(.milliseconds(200))
        #expect(memory.alive == ["seen"])
        try memory.pass(.milliseconds(400))
        #expect(memory.alive == [])
        #expect(memory.told(of: "seen").first?.hasPrefix("is ended: memory is short (critical); it is active") == true)
    }

    // MARK: Policies

    @Test("It goes in the order of policies, and whom they do not name is left alone") func policy() throws {
        let memory = try FakeMemory(["a": "", "b": "", "c": ""])
        try memory.asleep("a", "b", "c")
        memory.host.evictionPolicy = "Jetsam"
        memory.host.order = [memory.shell.app("c"), memory.shell.app("b")]
        short(memory, 0.03)
        try memory.pass(.milliseconds(200))
        #expect(memory.alive == ["a", "b"])
        #expect(memory.told(of: "c").first?.hasSuffix("has 100 MiB, Jetsam: it says so") == true)
        try memory.pass(.seconds(2))
        #expect(memory.alive == ["a"])
        #expect(memory.told().last?.hasSuffix("left alone: a, 100 MiB (the policies do not name it)") == true)
    }

    @Test("Until a policy has answered nobody is ended, for a second at most where there is no time to lose")
    func silentPolicy() throws {
        let memory = try FakeMemory(["a": "", "b": ""])
        try memory.asleep("a", "b")
        memory.host.evictionPolicy = "Jetsam"
        memory.host.order = nil
        short(memory, 0.03)
        try memory.pass(.milliseconds(1000))
        #expect(memory.alive == ["a", "b"])
        try memory.pass(.milliseconds(300))
        #expect(memory.alive == ["b"])
    }

    @Test("So it is in an episode that begins when all is known of the apps from an earlier one") func knownApps()
        throws
    {
        let memory = try FakeMemory(["a": "", "b": ""])
        try memory.asleep("a", "b")
        memory.watch.configure()
        var isReported = false
        memory.watch.report { _ in isReported = true }
        try memory.rest()
        #expect(isReported)
        memory.host.evictionPolicy = "Jetsam"
        memory.host.order = []
        short(memory, 0.03)
        try memory.pass(.seconds(3))
        #expect(memory.alive == ["a", "b"], "the policy protects both")
        #expect(memory.host.questions > 0)
    }

    @Test("That nothing is left is not said before the policy has said whom it names") func patientWords() throws {
        let memory = try FakeMemory(["a": ""])
        try memory.asleep("a")
        memory.watch.configure()
        memory.watch.report { _ in }
        try memory.rest()
        memory.host.evictionPolicy = "Jetsam"
        memory.host.order = nil
        short(memory, 0.03)
        try memory.pass(.milliseconds(400))
        memory.host.order = [memory.shell.app("a")]
        memory.host.answer()
        try memory.pass(.milliseconds(100))
        #expect(memory.alive == [])
        #expect(!memory.told().contains { $0.contains("no app may be evicted") })
    }

    @Test("A policy that is asked while it is short is asked again each second") func asksAgain() throws {
        let memory = try FakeMemory(["a": ""])
        try memory.shell.start("a")
        memory.host.evictionPolicy = "Jetsam"
        short(memory, 0.07)
        try memory.pass(.seconds(6))
        #expect((5...7).contains(memory.host.questions), "\(memory.host.questions)")
        memory.kernel.setAvailable(0.5)
        try memory.pass(.seconds(3))
        let asked = memory.host.questions
        try memory.pass(.seconds(10))
        #expect(memory.host.questions == asked)
    }

    // MARK: What is known

    @Test("What is measured of a run that has ended meanwhile is not the next one's") func endedMeanwhile() throws {
        let memory = try FakeMemory(["a": ""])
        try memory.has("a", 500 << 20)
        try memory.shell.start("a")
        var isMeasured = false
        memory.watch.measure { isMeasured = true }
        try memory.shell.request(.stop(.stopped), "a")
        try memory.rest()
        #expect(isMeasured && memory.watch.footprints[0] == nil)
    }

    @Test("An app that is suspended is measured once, others each second") func measuredOnce() throws {
        let memory = try FakeMemory(["awake": "", "sleeper": ""])
        try memory.has("awake", 1 << 20)
        try memory.shell.start("awake")
        try memory.asleep("sleeper")
        func measured(_ name: String) throws -> UInt64? {
            memory.watch.measure {}
            try memory.rest()
            return memory.watch.footprints[memory.shell.app(name).id]?.footprint.resident
        }
        #expect(try measured("sleeper") == 100 << 20 && measured("awake") == 1 << 20)
        try memory.has("awake", 2 << 20)
        try memory.has("sleeper", 2 << 20)
        #expect(try measured("awake") == 1 << 20)
        try memory.pass(.milliseconds(1001))
        #expect(try measured("awake") == 2 << 20 && measured("sleeper") == 100 << 20)
        // What it took while it was awake is seen.
        try memory.shell.request(.resume, "sleeper")
        try memory.shell.suspend("sleeper")
        try memory.pass(.milliseconds(1001))
        #expect(try measured("sleeper") == 2 << 20)
    }

    @Test("An app that gets the place of one that was forgotten is told and measured anew") func anotherInItsPlace()
        throws
    {
        let memory = try FakeMemory(["old": ""])
        memory.host.hearing = [0]
        try memory.inBackground("old")
        short(memory, 0.07)
        try memory.pass(.milliseconds(500))
        #expect(memory.told().last == "tells old that memory is short (warning)")
        let engine = memory.shell.engine
        engine.perform(try engine.coordinator.reconfigure([], now: engine.loop.now))
        engine.settle()
        try memory.pass(.milliseconds(100))
        #expect(memory.shell.hands.forgotten == ["old"])
        let new = AppChange(AppDefinition(name: "new"))
        engine.perform(try engine.coordinator.reconfigure([new], now: engine.loop.now))
        let id = try #require(engine.coordinator.id(of: "new"))
        #expect(id == 0)
        try File.makeDirectories(memory.kernel.root + "/apps/new")
        let app = AppRuntime(id: id, specification: AppSpecification(name: "new"), owner: memory.shell.hands)
        engine.apps.append(app)
        engine.settle()
        try memory.inBackground("new")
        try memory.pass(.milliseconds(500))
        #expect(memory.told().last == "tells new that memory is short (warning)")
    }
}
