// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EngineHarness
import EventLoop
import KernelFiles
import Lifecycle
import Testing

@testable import MemoryPressure

@Suite("Launches that need memory") struct MemoryAdmissionTests {
    private static func needs(_ size: String, _ more: String = "") -> String { "memory_needed = \"\(size)\"\n\(more)" }

    /// With 8 GiB, of which 410 MiB are kept free.
    private func memory(
        _ apps: KeyValuePairs<String, String>,
        available: UInt64 = 4 << 30
    ) throws -> FakeMemory {
        let memory = try FakeMemory(apps)
        memory.kernel.available = available
        memory.watch.configure()
        return memory
    }

    @Test("One for which there is room is launched at once") func room() throws {
        let memory = try memory(["big": Self.needs("3GiB")])
        try memory.shell.start("big")
        try memory.pass(.zero)
        #expect(memory.shell.state("big") == .active)
        #expect(memory.told(of: "big").isEmpty)
    }

    @Test("One for which there is none waits and says why, and is launched when there is") func waits() throws {
        let memory = try memory(["big": Self.needs("3GiB")], available: 3 << 30)
        try memory.shell.start("big")
        try memory.pass(.seconds(3))
        #expect(memory.shell.engine.machine(0).isWaitingForPermission)
        let why =
            "it needs 3072 MiB (memory_needed), and 2662 MiB are free: of 3072 MiB that are available 410 MiB are kept "
            + "free (critical_available)"
        #expect(memory.told(of: "big") == ["waits to be launched: " + why])
        #expect(memory.shell.app("big").heldBack == why)
        memory.kernel.available = 4 << 30
        try memory.pass(.milliseconds(500))
        #expect(memory.shell.state("big") == .active)
        #expect(memory.shell.app("big").heldBack == nil)
        #expect(memory.host.timesEnough == 1, "whoever waited for that goes on")
    }

    @Test("What it needs now is said, and each launch that waits is told") func changedNeed() throws {
        let memory = try memory(["big": Self.needs("3GiB")], available: 1 << 30)
        try memory.shell.start("big")
        try memory.pass(.seconds(1))
        let app = memory.shell.app("big")
        app.specification.memoryNeeded = 2 << 30
        memory.kernel.available = 3 << 29
        try memory.pass(.seconds(1))
        let why = "it needs 2048 MiB (memory_needed), and 1126 MiB are free: of 1536 MiB"
        #expect(app.heldBack?.hasPrefix(why) == true, "\(app.heldBack ?? "")")
        #expect(memory.told(of: "big").count == 2)
        try memory.shell.request(.stop(.stopped), "big")
        try memory.pass(.seconds(1))
        #expect(app.heldBack == nil && memory.watch.admission.isEmpty)
        try memory.shell.start("big")
        try memory.pass(.seconds(1))
        #expect(memory.told(of: "big").count == 3)
        // Without a look between them.
        try memory.shell.request(.stop(.stopped), "big")
        try memory.shell.start("big")
        try memory.pass(.seconds(1))
        #expect(memory.told(of: "big").count == 4 && app.heldBack != nil)
    }

    @Test("What one was promised that was launched is not another's until it has taken it, or for 30 s")
    func promised() throws {
        let memory = try memory(["one": Self.needs("2GiB"), "two": Self.needs("2GiB")])
        try memory.has("one", 0)
        try memory.shell.start("one")
        try memory.shell.start("two")
        try memory.pass(.seconds(29))
        #expect(memory.alive == ["one"] && memory.shell.state("two") == .notRunning)
        #expect(memory.told(of: "two").first?.contains("and 2048 MiB were promised to other apps") == true)
        try memory.pass(.milliseconds(1600))
        #expect(memory.shell.state("two") == .active)
    }

    @Test("What it has taken is not counted twice") func taken() throws {
        let memory = try memory(["one": Self.needs("2GiB"), "two": Self.needs("1GiB")])
        try memory.has("one", 0)
        try memory.shell.start("one")
        try memory.pass(.seconds(1))
        try memory.has("one", 2 << 30)
        memory.kernel.available = 2 << 30
        try memory.shell.start("two")
        try memory.pass(.zero)
        #expect(memory.shell.state("two") == .active)
    }

    @Test("What was promised to one that has ended is free again") func endedEarly() throws {
        let memory = try memory(["one": Self.needs("3GiB"), "two": Self.needs("3GiB")])
        try memory.has("one", 0)
        try memory.shell.start("one")
        try memory.shell.start("two")
        try memory.pass(.seconds(2))
        #expect(memory.shell.state("two") == .notRunning)
        try memory.shell.request(.stop(.stopped), "one")
        try memory.pass(.zero)
        #expect(memory.shell.state("two") == .active, "it looks when an app has ended")
    }

    @Test("One that needs more than the machine has is refused, and keeps nobody waiting") func refused() throws {
        let memory = try memory(["huge": Self.needs("7800MiB"), "small": Self.needs("1GiB")])
        try memory.shell.start("huge")
        try memory.shell.start("small")
        try memory.pass(.zero)
        #expect(memory.shell.state("small") == .active)
        #expect(!memory.shell.engine.machine(0).isWaitingForPermission)
        #expect(memory.shell.hands.diary.contains("write 0 launch") == false)
        #expect(memory.watch.admission.isEmpty)
    }

    @Test("Those for the foreground come first, else it is first come, first served") func order() throws {
        let memory = try memory(
            ["a": Self.needs("1GiB"), "b": Self.needs("1GiB"), "c": Self.needs("1GiB"), "d": Self.needs("1GiB")],
            available: 1 << 30
        )
        var launched: [String] = []
        let asks = memory.shell.hands.onAction
        memory.shell.hands.onAction = { app, action in
            if case .launch = action { launched.append(app.name) }
            asks?(app, action)
        }
        try memory.shell.request(.start(background: true), "b")
        try memory.shell.request(.start(background: true), "a")
        try memory.shell.start("d")
        try memory.shell.start("c")
        try memory.pass(.seconds(1))
        #expect(launched.isEmpty)
        memory.kernel.available = 7 << 30
        try memory.pass(.seconds(1))
        #expect(launched == ["d", "c", "b", "a"])
    }

    @Test("A small one does not overtake a large one that waits") func noOvertaking() throws {
        let memory = try memory(["big": Self.needs("5GiB"), "small": Self.needs("1GiB")])
        try memory.shell.start("big")
        try memory.shell.start("small")
        try memory.pass(.seconds(5))
        #expect(memory.shell.state("small") == .notRunning)
        try memory.shell.request(.stop(.stopped), "big")
        try memory.pass(.seconds(1))
        #expect(memory.shell.state("small") == .active)
        #expect(memory.alive == ["small"])
    }

    @Test("By force one is launched without waiting, also where others wait") func forced() throws {
        let memory = try memory(["first": Self.needs("5GiB"), "second": Self.needs("5GiB")])
        try memory.shell.start("first")
        try memory.pass(.seconds(1))
        memory.shell.app("second").skipsAdmission = true
        try memory.shell.start("second")
        try memory.pass(.zero)
        #expect(memory.shell.state("second") == .active)
        #expect(memory.shell.state("first") == .notRunning)
        // Once: the next launch asks as ever.
        try memory.shell.request(.stop(.stopped), "second")
        try memory.shell.start("second")
        try memory.pass(.seconds(1))
        #expect(memory.shell.state("second") == .notRunning)
    }

    @Test("Switched off, all that wait are launched, in the order in which they came") func off() throws {
        let memory = try memory(["a": Self.needs("5GiB"), "b": Self.needs("5GiB")])
        try memory.shell.start("b")
        try memory.shell.start("a")
        try memory.pass(.seconds(1))
        #expect(memory.shell.app("b").heldBack != nil)
        // One of them cannot be launched, so that it ends while the others are still to be admitted.
        let asks = memory.shell.hands.onAction
        let engine = memory.shell.engine
        memory.shell.hands.isIdle = [1]
        memory.shell.hands.onAction = { app, action in
            if case .launch = action, app.id == 1 { engine.deliver(.launchFailed, to: 1) }
            asks?(app, action)
        }
        memory.host.memoryRules.enabled = false
        memory.watch.configure()
        #expect(memory.shell.state("a") == .active && memory.shell.state("b") == .notRunning)
        #expect(memory.watch.admission.isEmpty)
        #expect(memory.shell.app("a").heldBack == nil && memory.shell.app("b").heldBack == nil)
    }

    @Test("One that leaves the configuration while it waits keeps nobody waiting") func forgotten() throws {
        let memory = try memory(["big": Self.needs("5GiB"), "small": Self.needs("1GiB")])
        try memory.shell.start("big")
        try memory.shell.start("small")
        try memory.pass(.seconds(1))
        var small = AppDefinition(name: "small")
        small.needsMemory = true
        let engine = memory.shell.engine
        engine.perform(try engine.coordinator.reconfigure([AppChange(small)], now: engine.loop.now))
        engine.settle()
        try memory.pass(.milliseconds(500))
        #expect(memory.shell.hands.forgotten == ["big"])
        #expect(memory.shell.state("small") == .active)
    }

    // MARK: Making room

    @Test("Suspended apps make room, one after the other, and no more than it takes") func evicts() throws {
        let memory = try memory(
            ["a": "", "b": "", "c": "", "need": Self.needs("2GiB")],
            available: 1 << 30
        )
        try memory.asleep("a", "b", "c", bytes: 1 << 30)
        let kernel = memory.kernel
        let asks = memory.shell.hands.onAction
        memory.shell.hands.onAction = { app, action in
            if case .ended = action, app.name != "need" { kernel.available += 1 << 30 }
            asks?(app, action)
        }
        try memory.shell.start("need")
        try memory.pass(.seconds(3))
        #expect(memory.shell.state("need") == .active)
        #expect(memory.alive == ["c", "need"])
        #expect(
            memory.told(of: "a") == [
                "is evicted: need waits to be launched and needs 2048 MiB; it is suspended, has 1024 MiB, "
                    + "was last used 0 s ago"
            ]
        )
        #expect(memory.told().contains { $0.hasPrefix("1024 MiB more are available without a: 2048 MiB of 8192 MiB") })
    }

    @Test("Where all of it would not be enough nobody goes, whatever was promised to others") func notEnough() throws {
        let memory = try memory(
            ["big": Self.needs("4GiB"), "need": Self.needs("1GiB"), "sleeper": ""],
            available: 5 << 30
        )
        try memory.has("big", 0)
        try memory.shell.start("big")
        try memory.asleep("sleeper", bytes: 1200 << 20)
        // Somebody else has taken of it what was promised.
        memory.kernel.available = 2 << 30
        try memory.shell.start("need")
        try memory.pass(.seconds(5))
        #expect(memory.shell.state("need") == .notRunning)
        #expect(memory.alive.contains("sleeper"), "2 GiB and 1.2 GiB are less than 4 GiB promised and 1 GiB needed")
    }

    @Test(
        "Apps in the background make room for the foreground only, and where their priority is not higher",
        arguments: [(0, false, true), (5, false, true), (6, false, false), (0, true, false)]
    )
    func background(priority: Int, background: Bool, isEnded: Bool) throws {
        let memory = try memory(
            ["need": Self.needs("2GiB", "priority = 5"), "other": "priority = \(priority)"],
            available: 2 << 30
        )
        try memory.inBackground("other")
        try memory.has("other", 1 << 30)
        let kernel = memory.kernel
        let asks = memory.shell.hands.onAction
        memory.shell.hands.onAction = { app, action in
            if case .ended = action { kernel.available += 1 << 30 }
            asks?(app, action)
        }
        try memory.shell.request(.start(background: background), "need")
        try memory.pass(.seconds(3))
        #expect(memory.alive.contains("other") == !isEnded)
        #expect((memory.shell.state("need") == .active) == isEnded)
    }

    @Test("Whoever is stopped while room is made for it has nobody else go for it") func stopped() throws {
        let memory = try memory(["a": "", "b": "", "need": Self.needs("3GiB")], available: 1 << 30)
        try memory.asleep("a", "b", bytes: 2 << 30)
        memory.shell.hands.isIdle = [0, 1]
        try memory.shell.start("need")
        try memory.pass(.milliseconds(100))
        #expect(memory.watch.underWay?.step.apps == [0])
        try memory.shell.request(.stop(.stopped), "need")
        memory.shell.hands.answer(.signalStop, 0)
        memory.shell.hands.answer(.endRemains, 0)
        try memory.pass(.seconds(3))
        #expect(memory.alive == ["b"])
        #expect(memory.watch.underWay == nil && memory.watch.admission.isEmpty)
    }
}
