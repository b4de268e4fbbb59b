// SPDX-License-Identifier: Apache-2.0

import Engine
import EngineHarness
import EventLoop
import Foundation
import Lifecycle
import Linux
import Testing

@testable import Supervisor

/// A card whose account tests write.
private final class FakeCard: EngineTimeReader, @unchecked Sendable {
    private let lock = NSLock()
    private var text = ""
    private(set) var looks = 0

    func says(_ nanoseconds: UInt64) {
        lock.withLock {
            text =
                "drm-driver:\ti915\ndrm-client-id:\t7\ndrm-pdev:\t0000:00:02.0\n"
                + "drm-engine-render:\t\(nanoseconds) ns\n"
        }
    }

    var count: Int { lock.withLock { looks } }

    func times(of processes: [Int32]) -> EngineTimes {
        lock.withLock {
            looks += 1
            var times = EngineTimes()
            times.add(text)
            return times
        }
    }
}

@Suite("Apps that use a graphics card in the background") struct GPUWatchTests {
    private let shell: FakeShell
    private let card = FakeCard()
    private let watch: GPUWatch

    init() throws { try self.init("report") }

    private init(_ rule: String) throws {
        shell = try FakeShell(
            toml: """
                [apps.web]
                exec = ["/bin/true"]
                launch = "on-demand"
                restart = "never"
                gpu_background = "\(rule)"

                """
        )
        shell.hands.process = ThisProcess.pid
        watch = GPUWatch(shell.engine, shell.recorder, card)
        shell.engine.add(watch)
        try shell.start("web")
    }

    /// Turns the loop until so many looks were made and taken; nothing of the shell's time passes.
    private func turn(looks: Int) throws {
        let end = Clock.monotonic() + .seconds(30)
        while card.count < looks {
            try #require(Clock.monotonic() < end, "\(card.count) looks after 30 s")
            try shell.engine.loop.runOnce(timeout: .milliseconds(20))
            try shell.engine.loop.settle()
        }
        for _ in 0..<10 { try shell.engine.loop.runOnce(timeout: .milliseconds(20)) }
        try shell.engine.loop.settle()
    }

    private var told: [String] { shell.told(of: "web").filter { $0.contains("graphics card") } }

    /// A stay in the background, in which the card's account goes from one time to another.
    private func stay(_ first: UInt64, _ second: UInt64, looks: Int = 0) throws {
        card.says(first)
        try shell.request(.background, "web")
        try shell.pass(.seconds(5))
        try turn(looks: looks + 1)
        card.says(second)
        try shell.pass(.seconds(2))
        try turn(looks: looks + 2)
    }

    @Test("are told once for each stay there") func report() throws {
        try stay(1_000_000_000, 9_000_000_000_000)
        #expect(told.count == 1 && told[0].contains("of render of the graphics card 0000:00:02.0"), "\(told)")
        try shell.pass(.seconds(60))
        #expect(card.count == 2 && shell.state("web") == .background)
        try shell.request(.foreground, "web")
        try stay(1_000_000_000_000_000, 9_000_000_000_000_000, looks: 2)
        #expect(told.count == 2)
    }

    @Test("are ended where the configuration says so") func end() throws {
        let other = try GPUWatchTests("end")
        try other.stay(0, 9_000_000_000_000)
        #expect(other.told.count == 1)
        let machine = other.shell.engine.machine(0)
        #expect(machine.endingReason == .gpuInBackground || machine.lastEnding == .gpuInBackground)
    }

    @Test("are left alone where the card rests, and in the foreground") func rest() throws {
        try stay(5_000_000_000, 5_000_000_000)
        #expect(told.isEmpty)
        try shell.request(.foreground, "web")
        try shell.pass(.seconds(60))
        #expect(card.count == 2)
        // It returns before the first look.
        try shell.request(.background, "web")
        try shell.pass(.seconds(4))
        try shell.request(.foreground, "web")
        try shell.pass(.seconds(60))
        #expect(card.count == 2 && told.isEmpty)
    }

    @Test("are not looked at by default") func ignored() throws {
        let other = try GPUWatchTests("ignore")
        try other.shell.request(.background, "web")
        try other.shell.pass(.seconds(60))
        #expect(other.card.count == 0)
    }
}
