// SPDX-License-Identifier: Apache-2.0

import Engine
import EngineHarness
import EventLoop
import Foundation
import Lifecycle
import Linux
import Testing
import TorporAPI
import VarlinkServer

@testable import Archives

@Suite("The state that an app saves, and who gets it") struct SavedStatesTests {
    /// A way to end.
    enum Way: String, CaseIterable, Sendable { case evicted, crashed, failed, stopped, forceQuit, success }

    private func end(_ archives: FakeArchives, _ way: Way) throws {
        switch way {
        case .evicted:
            try archives.shell.suspend("web")
            try archives.shell.request(.evict, "web")
        case .crashed: try archives.exit(.signaled(11, coreDumped: false))
        case .failed: try archives.exit(.exited(code: 3))
        case .stopped: try archives.shell.request(.stop(.stopped), "web")
        case .forceQuit: try archives.shell.request(.forceQuit, "web")
        case .success: try archives.exit(.exited(code: 0))
        }
        try archives.rest()
        #expect(!archives.shell.engine.machine(0).isAlive)
    }

    @Test(
        "The next launch gets it after every ending but a stop, a force quit and a success, and then it is gone",
        arguments: Way.allCases
    )
    func endings(_ way: Way) throws {
        let archives = try FakeArchives()
        try archives.shell.start("web")
        #expect(try archives.save("page 7") == .success(6))
        #expect(archives.told("saved its state, 6 bytes").count == 1)
        try end(archives, way)
        let isKept = way == .evicted || way == .crashed || way == .failed
        #expect((archives.kept() == "page 7") == isKept)
        try archives.shell.start("web")
        #expect(archives.given.count == 2 && archives.given[0] == nil)
        #expect((archives.given[1]?.bytes == 6) == isKept)
        #expect((archives.shell.app("web").restoration == .offered) == isKept)
    }

    @Test("It is given again at each later launch, until the app saves another") func again() throws {
        let archives = try FakeArchives()
        try archives.shell.start("web")
        try archives.save("one")
        for _ in 0..<3 {
            try end(archives, .crashed)
            try archives.shell.start("web")
        }
        try archives.save("second")
        try end(archives, .evicted)
        try archives.shell.start("web")
        #expect(archives.given.map { $0?.bytes } == [nil, 3, 3, 3, 6])
    }

    @Test("A stop whose archive is not removed yet leaves the next launch nothing") func stillGoing() throws {
        let archives = try FakeArchives()
        try archives.shell.start("web")
        try archives.save("one")
        try archives.shell.request(.stop(.stopped), "web")
        // The loop has not heard of the removal.
        try archives.shell.start("web")
        #expect(archives.given == [nil, nil])
        try archives.rest()
        #expect(archives.kept() == nil)
    }

    @Test("A stop that comes while an archive is being written takes that away too") func stopWhileWriting() throws {
        let archives = try FakeArchives()
        try archives.shell.start("web")
        var outcome: Result<UInt64, ArchiveFailure>?
        archives.states.saveState(of: archives.shell.app("web"), data: "AAAA", file: nil, by: FakeArchives.peer) {
            outcome = $0
        }
        try archives.shell.request(.stop(.stopped), "web")
        try archives.rest()
        #expect(outcome == .success(3), "it is answered")
        #expect(archives.kept() == nil)
    }

    // MARK: A launch that does not come up

    private static let slow = "ready = \"notify\""

    /// An app that was given an archive, and is not ready yet.
    private func restoring() throws -> FakeArchives {
        let archives = try FakeArchives(["web": Self.slow])
        try archives.shell.start("web")
        archives.shell.engine.deliver(.ready, to: 0)
        try archives.save("bad")
        try end(archives, .crashed)
        try archives.shell.start("web")
        #expect(archives.shell.app("web").restoration == .offered)
        return archives
    }

    @Test("One with which a launch ended before it was ready is set aside, and the next goes without") func setAside()
        throws
    {
        let archives = try restoring()
        try end(archives, .failed)
        #expect(archives.kept() == nil && archives.aside() == "bad")
        #expect(archives.shell.app("web").restoration == nil)
        #expect(archives.told("continues without its saved state").count == 1)
        try archives.shell.start("web")
        #expect(archives.given.last == .some(nil))
        archives.shell.engine.deliver(.ready, to: 0)
        try archives.save("good")
        try end(archives, .crashed)
        #expect(archives.kept() == "good" && archives.aside() == "bad")
    }

    @Test("The first of a trouble stays, and each event names what it leads to") func setAsideAgain() throws {
        let archives = try restoring()
        let folder = archives.states.archives(of: archives.shell.app("web")).path
        func fail(_ state: String?) throws {
            if let state {
                try archives.shell.start("web")
                archives.shell.engine.deliver(.ready, to: 0)
                try archives.save(state)
                try end(archives, .crashed)
                try archives.shell.start("web")
            }
            try end(archives, .failed)
        }
        for state in [nil, "fresh", "fresh", "bad"] as [String?] { try fail(state) }
        #expect(archives.allAside() == ["bad", "fresh"])
        let told = archives.told("continues without its saved state")
        #expect(told.count == 4)
        for (text, name) in zip(told, ["set-aside", "set-aside.2", "set-aside.2", "set-aside"]) {
            #expect(text.hasSuffix("; ‘torpor state import web --raw \(folder)/\(name)’ gives it back"), "\(text)")
        }
        for state in ["3", "4", "5"] { try fail(state) }
        #expect(archives.allAside() == ["bad", "3", "4", "5"])
        let last = try #require(archives.told("continues without its saved state").last)
        #expect(last.contains("--raw \(folder)/set-aside.5’"))
        #expect(last.hasSuffix("earlier ones were removed: \(folder)/set-aside.2"))
    }

    @Test("A torpord that ended before it set one aside: the next one does, and says so") func setAsideLater() throws {
        let archives = try restoring()
        let folder = archives.states.archives(of: archives.shell.app("web")).path
        archives.shell.app("web").restoration = nil
        try end(archives, .failed)
        archives.shell.app("web").restoration = .failed
        try archives.shell.start("web")
        #expect(archives.given.last == .some(nil))
        try archives.rest()
        #expect(archives.kept() == nil && archives.allAside() == ["bad"])
        let told = archives.told("continues without its saved state")
        #expect(told.count == 1 && told[0].contains("--raw \(folder)/set-aside’"), "\(told)")
        #expect(archives.shell.app("web").restoration == nil)
    }

    @Test("A launch that begins before it is set aside goes without it, too") func launchedMeanwhile() throws {
        let archives = try restoring()
        archives.shell.engine.deliver(.mainExited(.exited(code: 1)), to: 0)
        #expect(archives.shell.app("web").restoration == .failed)
        try archives.shell.start("web")
        #expect(archives.given.last == .some(nil))
        try archives.rest()
        #expect(archives.kept() == nil && archives.aside() == "bad")
    }

    @Test("A launch that missed its deadline sets it aside") func missed() throws {
        let archives = try restoring()
        try archives.shell.pass(.seconds(60))
        try archives.rest()
        #expect(archives.aside() == "bad")
    }

    @Test("A launch that came to no process says nothing of it, and the next gets it") func noProcess() throws {
        let archives = try restoring()
        archives.shell.engine.deliver(.mainExited(.exited(code: 1)), to: 0)
        try archives.rest()
        try archives.shell.start("web")
        archives.shell.engine.deliver(.ready, to: 0)
        try archives.save("good")
        try end(archives, .crashed)
        archives.shell.hands.isIdle = [0]
        try archives.shell.start("web")
        archives.shell.engine.deliver(.launchFailed, to: 0)
        try archives.rest()
        #expect(archives.kept() == "good" && archives.shell.app("web").restoration == nil)
        try archives.shell.start("web")
        #expect(archives.given.last??.bytes == 4)
    }

    @Test("An ending that somebody asked for says nothing of it: a stop takes it away as ever") func askedFor() throws {
        let archives = try restoring()
        try archives.shell.request(.stop(.stopped), "web")
        try archives.rest()
        #expect(archives.kept() == nil && archives.aside() == nil)
        #expect(archives.told("continues without").isEmpty)
    }

    @Test("Once the app is ready its end says nothing of the archive") func readyFirst() throws {
        let archives = try restoring()
        archives.shell.engine.deliver(.ready, to: 0)
        try end(archives, .crashed)
        #expect(archives.kept() == "bad" && archives.aside() == nil)
    }

    // MARK: What the app says

    @Test("An app that declines keeps it for the next launch, whatever becomes of this one") func declined() throws {
        let archives = try restoring()
        archives.states.restorationDeclined(archives.shell.app("web"))
        try end(archives, .failed)
        #expect(archives.kept() == "bad" && archives.aside() == nil)
        try archives.shell.start("web")
        #expect(archives.given.last??.bytes == 3)
    }

    @Test("An app that could not restore it has it set aside, and one that was given none has not") func failed() throws
    {
        let archives = try restoring()
        let app = archives.shell.app("web")
        archives.states.restorationFailed(app, "bad magic")
        archives.states.restorationFailed(app, "twice")
        try archives.rest()
        #expect(archives.kept() == nil && archives.aside() == "bad")
        #expect(archives.told("the app could not restore it (bad magic)").count == 1)
        try archives.save("good")
        archives.states.restorationFailed(app, nil)
        try archives.rest()
        #expect(archives.kept() == "good")
    }

    @Test("What is saved behind one that is being set aside is the next launch's") func savedBehind() throws {
        let archives = try restoring()
        let app = archives.shell.app("web")
        archives.states.restorationFailed(app, nil)
        try archives.save("good")
        #expect(archives.aside() == "bad" && archives.kept() == "good" && app.restoration == nil)
        archives.shell.engine.deliver(.ready, to: 0)
        try end(archives, .crashed)
        try archives.shell.start("web")
        #expect(archives.given.last??.bytes == 4)
    }

    @Test("A person who ends an app that does not run takes it away, and who is alive keeps it") func personEnds()
        throws
    {
        let archives = try FakeArchives()
        try archives.shell.start("web")
        try archives.save("one")
        let app = archives.shell.app("web")
        archives.states.personEnds(app)
        try archives.rest()
        #expect(archives.kept() == "one")
        try end(archives, .crashed)
        archives.states.personEnds(app)
        try archives.rest()
        #expect(archives.kept() == nil)
    }

    // MARK: What nobody has seen

    @Test(
        "After an ending that is known, one that is newer is of a run whose end nobody saw: it is given",
        arguments: [(-1, true), (1, false)]
    )
    func unseen(after: Int64, isGiven: Bool) throws {
        let archives = try FakeArchives()
        try archives.save("one")
        let found = try #require(archives.states.archives(of: archives.shell.app("web")).found)
        let end = LastExit(reason: TerminationReason.stopped.rawValue, at: found.savedAt + after)
        archives.shell.app("web").lastExit = end
        try archives.shell.start("web")
        #expect((archives.given[0] != nil) == isGiven)
        try archives.rest()
        #expect((archives.kept() != nil) == isGiven)
    }

    // MARK: Another user

    /// An app that has saved a state as torpord's own user, and that runs as another user from now on.
    private func withNewUser() throws -> (FakeArchives, String) {
        let archives = try FakeArchives()
        try archives.shell.start("web")
        try archives.save("old")
        try end(archives, .crashed)
        archives.host.user = User(name: "new", uid: 4_242_421, gid: 4_242_422, home: "/", shell: "/bin/sh")
        return (archives, archives.states.archives(of: archives.shell.app("web")).current)
    }

    private func give(_ archives: FakeArchives) throws {
        var isDone = false
        archives.states.giveArchives(of: archives.shell.app("web")) { isDone = true }
        try archives.turn { isDone }
        try archives.rest()
    }

    @Test(
        "An app whose user changes gets a copy that only the new user owns, saved at the same time",
        .enabled(if: geteuid() == 0, "only root can give files away")
    )
    func newUser() throws {
        let (archives, current) = try withNewUser()
        let (before, opened) = (try File.status(current), try File.open(current, .read))
        try give(archives)
        let after = try File.status(current)
        #expect(after.uid == 4_242_421 && after.gid == 4_242_422 && after.mode == 0o400)
        #expect(after.inode != before.inode && after.modifiedMicroseconds == before.modifiedMicroseconds)
        #expect(try File.status(descriptor: opened.raw).uid == geteuid())
        #expect(archives.told("got a copy of the state that it saved as user \(geteuid()), 3 bytes").count == 1)
        try archives.shell.start("web")
        #expect(archives.given.last??.bytes == 3)
        // Nothing is done for an archive that is the user's already.
        try give(archives)
        #expect(try File.status(current).inode == after.inode)
    }

    @Test(
        "One that cannot be copied is set aside, and no launch gets it",
        .enabled(if: geteuid() == 0, "only root can give files away")
    )
    func newUserWithoutCopy() throws {
        let (archives, current) = try withNewUser()
        try File.write(current, String(repeating: "x", count: 17 << 20))
        try archives.shell.start("web")
        #expect(archives.given.last == .some(nil), "the former user can still change it")
        try end(archives, .crashed)
        try give(archives)
        let folder = archives.states.archives(of: archives.shell.app("web"))
        #expect(archives.kept() == nil && folder.foundAside.map(\.bytes) == [17 << 20])
        #expect(archives.told("it cannot be copied: it is larger than the \(16 << 20) bytes").count == 1)
        try archives.shell.start("web")
        #expect(archives.given.last == .some(nil))
    }

    @Test(
        "The states of its scenes are given to the new user too",
        .enabled(if: geteuid() == 0, "only root can give files away")
    )
    func newUserOfScenes() throws {
        let (archives, _) = try withNewUser()
        let app = archives.shell.app("web")
        archives.host.user = nil
        archives.host.scenes = ["one"]
        var isSaved = false
        archives.states.saveState(of: app, scene: "one", data: "AAAA", file: nil, by: FakeArchives.peer) { _ in
            isSaved = true
        }
        try archives.turn { isSaved }
        archives.host.user = User(name: "new", uid: 4_242_421, gid: 4_242_422, home: "/", shell: "/bin/sh")
        #expect(archives.states.found(of: app, scene: "one") == nil)
        try give(archives)
        #expect(archives.states.found(of: app, scene: "one")?.uid == 4_242_421)
    }

    // MARK: The disk

    @Test("A disk that does not take it is told once a run, and each time to the app") func noDisk() throws {
        let archives = try FakeArchives()
        try File.write(archives.host.stateFolder + "/archives", "in the way")
        for run in 1...2 {
            try archives.shell.start("web")
            for _ in 0..<2 {
                guard case .failure(.failed) = try archives.save("one") else {
                    Issue.record("not refused")
                    return
                }
            }
            #expect(archives.told("could not save its state").count == run)
            try end(archives, .stopped)
        }
        try File.remove(archives.host.stateFolder + "/archives")
        try archives.shell.start("web")
        #expect(try archives.save("one") == .success(3))
    }

    @Test("What the app has no right to give is refused, and what was there stays") func refusals() throws {
        let archives = try FakeArchives(["web": "state_limit = \"10B\""])
        try archives.shell.start("web")
        try archives.save("one")
        let app = archives.shell.app("web")
        var failures: [ArchiveFailure] = []
        func give(_ data: String?, _ file: String?, by uid: UInt32 = geteuid()) {
            var peer = FakeArchives.peer
            peer.uid = uid
            archives.states.saveState(of: app, data: data, file: file, by: peer) {
                if case .failure(let failure) = $0 { failures.append(failure) }
            }
        }
        give(nil, nil)
        give("AAAA", "file")
        #expect(
            failures == [
                .refused("nothing to keep: give data or file"), .refused("give either data or file, not both"),
            ]
        )
        #expect(try archives.save("eleven byte") == .failure(.tooLarge(limit: 10)))
        #expect(archives.told("could not save its state: it is larger than the 10 bytes that state_limit").count == 1)
        // A file of neither the app's user nor the caller.
        try File.write(archives.states.stateDirectory(of: app) + "/notes", "text")
        archives.host.owner = geteuid() + 1
        give(nil, "notes", by: geteuid() + 2)
        try archives.turn { failures.count == 3 }
        guard case .refused(let why) = failures[2] else { return #expect(Bool(false), "\(failures)") }
        #expect(why.contains("not owned by the app's user"))
        #expect(archives.kept() == "one")
        // Who runs as root may have given its user up: the caller's own files are the app's.
        give(nil, "notes")
        try archives.rest()
        #expect(archives.kept() == "text")
    }

    @Test("An app that leaves the configuration takes its archives along, also one that is being written")
    func forgotten()
        throws
    {
        let archives = try FakeArchives(["db": "", "web": ""])
        try archives.shell.start("web")
        try archives.save("one")
        try archives.save("other", "db")
        let app = archives.shell.app("web")
        var isAnswered = false
        archives.states.saveState(of: app, data: "AAAA", file: nil, by: FakeArchives.peer) { _ in isAnswered = true }
        let engine = archives.shell.engine
        let rest = AppChange(AppDefinition(name: "db"))
        engine.perform(try engine.coordinator.reconfigure([rest], now: engine.loop.now))
        engine.settle()
        let folder = archives.states.archives(of: app).path
        try archives.turn { isAnswered && !File.exists(folder) }
        #expect(archives.kept("db") == "other")
    }
}
