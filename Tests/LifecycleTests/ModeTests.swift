// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Lifecycle

@Suite("Background modes")
struct ModeTests {
    @Test("An app whose mode's condition is true stays in the background when its time is over")
    func holds() throws {
        var bench = Bench()
        try bench.launch(background: true)
        #expect(try bench.ask(.mode(.audio, isTrue: true)) == [.report(.modeBegan(.audio))])
        #expect(bench.machine.isHeld && bench.machine.holders == ["the mode audio"])
        #expect(bench.advance(.seconds(5)).isEmpty)
        #expect(
            bench.refusal(.suspend)
                == "is held by the mode audio, so it is not suspended: wait until that is over, or suspend it with --force"
        )
        // Its time is long used up.
        let ended = try bench.ask(.mode(.audio, isTrue: false))
        #expect(ended == [.report(.modeEnded(.audio)), .report(.backgroundTimeUsed)])
        #expect(!bench.machine.isHeld && bench.machine.backgroundTime == nil)
    }

    @Test("What is found while the app is about to be stopped keeps it from that, and it is suspended afterwards")
    func whileSuspending() throws {
        var bench = Bench()
        try bench.launch(background: true)
        #expect(try bench.ask(.suspend) == [.stopProcesses])
        let began = try bench.ask(.mode(.audio, isTrue: true))
        #expect(began == [.report(.modeBegan(.audio)), .continueProcesses])
        #expect(bench.machine.state == .background && bench.machine.goal == .suspended)
        #expect(try bench.ask(.mode(.audio, isTrue: false)) == [.report(.modeEnded(.audio)), .stopProcesses])
    }

    @Test("A sleeping app that was woken for a mode sleeps again when the condition is over")
    func sleepsAgain() throws {
        var bench = Bench()
        try bench.launch(background: true)
        try bench.suspend()
        _ = try bench.ask(.wake(Wake()))
        _ = try bench.ask(.mode(.location, isTrue: true))
        #expect(bench.advance(.seconds(60)).isEmpty)
        let ended = try bench.ask(.mode(.location, isTrue: false))
        #expect(
            ended == [
                .report(.modeEnded(.location)), .report(.sleepsAgain), .tell(.didEnterBackground), .stopProcesses,
            ]
        )
    }

    @Test("Several modes hold an app until the last one ends; a person's force overrides them")
    func several() throws {
        var bench = Bench()
        try bench.launch(background: true)
        _ = try bench.ask(.mode(.audio, isTrue: true))
        _ = try bench.ask(.mode(.location, isTrue: true))
        #expect(try bench.ask(.mode(.location, isTrue: true)).isEmpty)
        #expect(bench.machine.holders == ["the mode audio", "the mode location"])
        _ = try bench.ask(.mode(.audio, isTrue: false))
        #expect(bench.machine.isHeld)
        #expect(try bench.ask(.forceSuspend) == [.stopProcesses])
    }

    @Test("A mode is an incarnation's: it begins for none that is not there, and ends with it")
    func incarnation() throws {
        var bench = Bench()
        #expect(try bench.ask(.mode(.audio, isTrue: true)).isEmpty)
        try bench.launch(background: true)
        #expect(!bench.machine.isHeld)
        _ = try bench.ask(.mode(.audio, isTrue: true))
        _ = try bench.ask(.forceQuit)
        _ = bench.tell(.mainExited(.signaled(9, coreDumped: false)))
        _ = bench.tell(.allGone)
        #expect(!bench.machine.isAlive && bench.machine.modes.isEmpty)
    }

    @Test("Modes survive in a record")
    func record() throws {
        var bench = Bench()
        try bench.launch(background: true)
        for mode in BackgroundMode.allCases { _ = try bench.ask(.mode(mode, isTrue: true)) }
        var bytes = [UInt8](repeating: 0, count: AppMachine.wakeBytes)
        bytes.withUnsafeMutableBytes {
            var writer = RecordWriter($0)
            bench.machine.encodeWake(into: &writer)
            #expect(!writer.isOverfull)
        }
        var machine = AppMachine(rules: AppRules())
        bytes.withUnsafeBytes {
            var reader = RecordReader($0)
            machine.restoreWake(from: &reader)
        }
        #expect(machine.modes.modes == BackgroundMode.allCases)
    }
}
