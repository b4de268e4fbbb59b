// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Lifecycle

/// What an app does in the background after an event woke it is lost with an eviction, unless it is told to save again.
@Suite("Saving again before a suspension") struct SavingAgainTests {
    private func asleep(_ configure: (inout AppRules) -> Void = { _ in }) throws -> Bench {
        var bench = Bench.attentive(configure)
        try bench.launch()
        try bench.suspend()
        if bench.machine.awaitsSnapshot { _ = bench.tell(.snapshotOver) }
        _ = bench.tell(.stopConfirmed)
        #expect(bench.machine.state == .suspended && !bench.machine.isUnsaved)
        return bench
    }

    @Test(
        "An app that was woken answers didEnterBackground again before it is stopped, and is prepared for its eviction"
    )
    func woken() throws {
        var bench = try asleep()
        _ = try bench.ask(.wake(Wake()))
        _ = bench.tell(.answered(.resumed))
        #expect(bench.advance(.seconds(30)) == [.report(.sleepsAgain), .tell(.didEnterBackground)])
        #expect(bench.machine.transition == .enteringBackground && bench.machine.isSavingAgain)
        #expect(bench.armed == [.transition: .seconds(5)] && !bench.machine.isPrepared)
        #expect(bench.tell(.answered(.didEnterBackground)) == [.stopProcesses])
        #expect(bench.machine.isPrepared && !bench.machine.isSavingAgain)
        #expect(bench.tell(.stopConfirmed) == [.entered(.suspended)])
    }

    @Test("It is not told twice where nothing has happened since")
    func once() throws {
        var bench = Bench.attentive()
        try bench.launch()
        _ = try bench.ask(.background)
        bench.answerEverything()
        #expect(try bench.ask(.suspend) == [.stopProcesses])
        // A launch into the background is told at its end, and has done nothing if it is suspended at once.
        var launched = Bench.attentive()
        try launched.launch(background: true)
        #expect(try launched.ask(.suspend) == [.stopProcesses])
    }

    @Test("An app that was launched into the background has worked when its background time is over")
    func launchedIntoBackground() throws {
        for time in [Duration.seconds(5), nil] {
            var bench = Bench.attentive { $0.backgroundTime = time }
            try bench.launch(background: true)
            if time != nil { #expect(bench.advance(.seconds(5)) == [.report(.backgroundTimeUsed)]) }
            #expect(try bench.ask(.suspend) == [.tell(.didEnterBackground)])
        }
        // What it was launched for comes after didEnterBackground.
        var event = Bench.attentive()
        _ = try event.ask(.wake(Wake()))
        event.comeUp()
        #expect(try event.ask(.suspend) == [.tell(.didEnterBackground)])
    }

    @Test("A message in the background is reason enough")
    func message() throws {
        var bench = Bench.attentive()
        try bench.launch()
        _ = try bench.ask(.background)
        bench.answerEverything()
        _ = bench.tell(.delegate(attached: true))
        _ = bench.tell(.messageSent)
        _ = bench.tell(.messageAnswered)
        #expect(try bench.ask(.suspend) == [.tell(.didEnterBackground)])
    }

    @Test("One that does not answer is suspended all the same, and is not prepared for its eviction")
    func missed() throws {
        var bench = try asleep()
        _ = try bench.ask(.wake(Wake()))
        _ = bench.tell(.answered(.resumed))
        #expect(try bench.ask(.suspend) == [.tell(.didEnterBackground)])
        #expect(bench.advance(.seconds(5)) == [.report(.missed(.transition, .enteringBackground)), .stopProcesses])
        _ = bench.tell(.stopConfirmed)
        #expect(bench.machine.state == .suspended && !bench.machine.isEvictedWithoutNotice)
    }

    @Test("An event in between keeps it awake for its event_time, and it is told once more")
    func event() throws {
        var bench = try asleep()
        _ = try bench.ask(.wake(Wake()))
        _ = bench.tell(.answered(.resumed))
        #expect(bench.advance(.seconds(30)).contains(.tell(.didEnterBackground)))
        #expect(try bench.ask(.wake(Wake())).isEmpty)
        #expect(bench.tell(.answered(.didEnterBackground)).isEmpty)
        #expect(bench.machine.transition == nil && bench.armed == [.backgroundTime: .seconds(30)])
        #expect(bench.advance(.seconds(30)) == [.report(.sleepsAgain), .tell(.didEnterBackground)])
    }

    @Test("One that has worked since it was told is continued, and told once more before it is stopped")
    func worked() throws {
        for answers in [true, false] {
            var bench = answers ? Bench.attentive() : Bench()
            try bench.launch()
            _ = try bench.ask(.background)
            bench.answerEverything()
            #expect(bench.tell(.worked).isEmpty, "it is not about to be stopped")
            #expect(try bench.ask(.suspend) == [.stopProcesses])
            let told = bench.tell(.worked)
            #expect(told.prefix(2) == [.continueProcesses, .tell(.didEnterBackground)])
            #expect(bench.machine.isSavingAgain == answers && !bench.machine.isPrepared)
            #expect((answers ? bench.tell(.answered(.didEnterBackground)) : told).last == .stopProcesses)
            #expect(bench.machine.transition == .suspending && !bench.machine.isUnsaved)
            #expect(bench.armed == [.suspend: .seconds(2)])
            #expect(bench.tell(.stopConfirmed) == [.entered(.suspended)])
            #expect(bench.tell(.worked).isEmpty)
        }
    }

    @Test("It takes no other snapshot, and one that was declined in the background stays declined")
    func snapshot() throws {
        var bench = try asleep { $0.snapshotDeadline = .seconds(1) }
        _ = try bench.ask(.wake(Wake()))
        _ = bench.tell(.answered(.resumed))
        _ = bench.tell(.declinedSnapshot)
        _ = try bench.ask(.suspend)
        #expect(bench.tell(.answered(.didEnterBackground)) == [.stopProcesses])
        #expect(bench.machine.declinesSnapshot)
    }
}
