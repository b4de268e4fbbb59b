// SPDX-License-Identifier: Apache-2.0

import Engine
import EngineHarness
import EventLoop
import Lifecycle
import Linux
import Testing
import TorporAPI

@testable import Supervisor

@Suite("File locks of apps that are to be suspended") struct LockWatchTests {
    @Test("An app whose locks nobody waits for is suspended") func nobodyWaits() throws {
        let locks = try FakeLocks()
        let file = try LockedFile(locks.folder + "/data")
        try locks.shell.suspend("web")
        try locks.turn { locks.state == .suspended }
        #expect(locks.stopped == ["web"] && locks.told.isEmpty)
        try locks.pass(seconds: 25)
        #expect(locks.state == .suspended)
        withExtendedLifetime(file) {}
    }

    @Test("One for which somebody waits keeps it awake, is told of once, and lets it sleep when it is let go")
    func somebodyWaits() throws {
        let locks = try FakeLocks()
        let file = try LockedFile(locks.folder + "/data")
        try file.makeSomebodyWait()
        try locks.shell.suspend("web")
        try locks.rest()
        #expect(locks.state == .background && locks.stopped.isEmpty)
        try locks.pass(seconds: 5)
        #expect(locks.state == .background)
        #expect(locks.told.count == 1)
        let text = "holds a lock on \(locks.folder)/data (flock), for which process \(ThisProcess.pid) "
        #expect(locks.told[0].contains(text), "\(locks.told)")
        let info = locks.watch.reportedLocks(locks.shell.app("web")).filter { $0.file == file.path }
        #expect(info == [LockInfo(file: file.path, kind: "flock", holder: ThisProcess.pid, waiter: ThisProcess.pid)])
        file.letGo()
        try locks.pass(seconds: 2)
        try locks.turn { locks.state == .suspended }
        #expect(locks.shell.app("web").run.locksInTheWay == nil)
    }

    @Test("A lock on a shared resource keeps it awake though nobody waits") func shared() throws {
        let locks = try FakeLocks("shared_resources = [\"FOLDER/shared\"]")
        try File.makeDirectories(locks.folder + "/shared")
        let file = try LockedFile(locks.folder + "/shared/data")
        try locks.shell.suspend("web")
        try locks.rest()
        #expect(locks.state == .background)
        #expect(locks.told.first?.hasSuffix("(flock), one of its shared_resources") == true)
        file.letGo()
        try locks.pass(seconds: 2)
        try locks.turn { locks.state == .suspended }
    }

    @Test(
        "Where the configuration has no regard for locks, or a person forces it, nobody looks",
        arguments: [true, false]
    )
    func ignored(isForced: Bool) throws {
        let locks = try FakeLocks(isForced ? "" : "on_lock = \"ignore\"")
        let file = try LockedFile(locks.folder + "/data")
        try file.makeSomebodyWait()
        try locks.shell.request(isForced ? .forceSuspend : .suspend, "web")
        // At once: nothing was asked beside the loop.
        #expect(locks.state == .suspended)
        try locks.pass(seconds: 30)
        #expect(locks.state == .suspended && locks.told.isEmpty)
    }

    @Test("Where the configuration says so it is ended for it") func terminated() throws {
        let locks = try FakeLocks("on_lock = \"terminate\"\nrestart = \"never\"")
        let file = try LockedFile(locks.folder + "/data")
        try file.makeSomebodyWait()
        locks.shell.hands.isIdle = []
        locks.shell.hands.isIdle = [0]
        try locks.shell.suspend("web")
        try locks.turn { locks.shell.engine.machine(0).transition == .terminating }
        locks.shell.hands.answer(.signalStop, 0)
        locks.shell.hands.answer(.endRemains, 0)
        #expect(locks.shell.engine.machine(0).lastEnding == .lockWhileSuspending)
        withExtendedLifetime(file) {}
    }

    @Test("A lock that somebody waits for only later wakes a suspended app that has it, in ten seconds") func later()
        throws
    {
        let locks = try FakeLocks()
        let file = try LockedFile(locks.folder + "/data")
        try locks.shell.suspend("web")
        try locks.turn { locks.state == .suspended }
        try locks.pass(seconds: 2)
        try file.makeSomebodyWait()
        try locks.pass(seconds: 11)
        try locks.turn { !locks.told.isEmpty }
        try locks.turn { locks.state == .background }
        file.letGo()
        try locks.pass(seconds: 3)
        try locks.turn { locks.state == .suspended }
    }

    // MARK: What comes in between

    @Test("A look that a resume overtakes stops nobody") func overtaken() throws {
        let locks = try FakeLocks("shared_resources = [\"FOLDER/other\"]")
        let file = try LockedFile(locks.folder + "/data")
        try locks.shell.suspend("web")
        let isLooking = locks.shell.app("web").run.lockLook != nil
        #expect(isLooking, "there is a lock, so that the table is asked")
        try locks.shell.request(.foreground, "web")
        locks.shell.app("web").run.lockLook = nil
        try locks.pass(seconds: 3)
        #expect(locks.stopped == [] && locks.state == .active)
        withExtendedLifetime(file) {}
    }

    @Test("A look at a run that has ended is nobody's") func ended() throws {
        let locks = try FakeLocks()
        let file = try LockedFile(locks.folder + "/data")
        try file.makeSomebodyWait()
        try locks.shell.suspend("web")
        locks.shell.engine.deliver(.mainExited(.exited(code: 0)), to: 0)
        locks.shell.engine.deliver(.allGone, to: 0)
        #expect(locks.state == .notRunning)
        try locks.pass(seconds: 3)
        #expect(locks.told.isEmpty && locks.stopped.isEmpty)
    }
}
