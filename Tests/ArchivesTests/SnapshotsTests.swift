// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EngineHarness
import EventLoop
import Foundation
import Lifecycle
import Linux
import Processes
import Testing
import TorporAPI
import Varlink
import VarlinkServer

@testable import Archives

@Suite("Snapshots of what apps show") struct SnapshotsTests {
    private static let byCommand = "snapshot = [\"shot\", \"-x\"]\nbackground_time = \"60s\""

    /// An app in the background, whose command has been run and not ended.
    private func shooting(_ more: String = "") throws -> FakeArchives {
        let archives = try FakeArchives(["web": Self.byCommand + "\n" + more])
        try archives.shell.request(.start(background: true), "web")
        try archives.turn { archives.host.commands.count == 1 }
        return archives
    }

    @Test("One is taken when the app has entered the background, and kept") func taken() throws {
        let archives = try shooting()
        #expect(archives.host.commands[0].words == ["shot", "-x"])
        try archives.host.commands[0].end("a page")
        try archives.rest()
        let info = try #require(archives.snapshots.found(of: archives.shell.app("web")))
        #expect(info.kind == .text && info.bytes == 6 && info.incarnation == 1)
        #expect(archives.told("gave a snapshot, 6 bytes").count == 1)
    }

    @Test("Until it is there the app is not suspended, and then it is") func waits() throws {
        let archives = try shooting()
        try archives.shell.suspend("web")
        try archives.shell.pass(.seconds(4))
        #expect(archives.shell.state("web") == .background)
        try archives.host.commands[0].end("a page")
        try archives.turn { archives.shell.state("web") == .suspended }
    }

    @Test("No longer than its deadline: the app sleeps then, and what comes later is nobody's") func late() throws {
        let archives = try shooting()
        try archives.shell.suspend("web")
        try archives.shell.pass(.milliseconds(4999))
        #expect(archives.shell.state("web") == .background)
        try archives.shell.pass(.milliseconds(1))
        #expect(archives.shell.state("web") == .suspended)
        try archives.host.commands[0].end("too late")
        try archives.rest()
        #expect(archives.snapshot() == nil && archives.told("gave a snapshot").isEmpty)
    }

    /// How a command fails.
    struct Failure: Sendable, CustomTestStringConvertible {
        var text = ""
        var repeated = 1
        var status = Processes.ExitStatus.exited(0)
        let why: String
        var testDescription: String { why }
    }

    @Test(
        "One that fails costs an event and nothing else: the one before stays, and the app is suspended",
        arguments: [
            Failure(text: "half", status: .exited(3), why: "command shot failed with exit status 3"),
            Failure(text: "half", status: .signaled(15, coreDumped: false), why: "command shot was killed by SIGTERM"),
            Failure(text: "", why: "it is empty"),
            Failure(text: "a\0b", why: "it is neither PNG, JPEG, GIF or WebP nor text in UTF-8"),
        ]
    )
    func fails(_ failure: Failure) throws {
        let archives = try shooting()
        try archives.host.commands[0].end("before")
        try archives.rest()
        try archives.shell.request(.foreground, "web")
        try archives.shell.suspend("web")
        try archives.turn { archives.host.commands.count == 2 }
        try archives.host.commands[1].end(failure.text, .success(failure.status))
        try archives.rest()
        #expect(archives.told("gave no snapshot: " + failure.why).count == 1, "\(archives.told("snapshot"))")
        #expect(archives.snapshot() == "before")
        #expect(archives.shell.state("web") == .suspended)
    }

    @Test("One that writes more than 4 MiB is not waited for") func tooMuch() throws {
        let archives = try shooting()
        let part = [UInt8](repeating: 65, count: 32 << 10)
        var isOver: Bool { !archives.told("gave no snapshot: shot gives more than 4 MiB").isEmpty }
        for _ in 0..<129 where archives.host.commands[0].isRead {
            try Descriptor.writeAll(archives.host.commands[0].output.raw, part)
            try archives.shell.engine.loop.settle()
        }
        #expect(isOver)
        #expect(archives.shell.engine.machine(0).awaitsSnapshot == false)
    }

    @Test("A command that cannot be run is told of") func notRun() throws {
        let archives = try shooting()
        archives.host.commands[0].completion(.failure(LaunchError("there is no such user")))
        #expect(archives.told("gave no snapshot: command shot: there is no such user").count == 1)
    }

    @Test("What is said while one is being taken is answered by one more, a second after the other began")
    func another() throws {
        let archives = try shooting()
        for _ in 0..<3 { archives.shell.engine.deliver(.showsNew, to: 0) }
        try archives.shell.pass(.milliseconds(300))
        #expect(archives.host.commands.count == 1)
        try archives.host.commands[0].end("one")
        try archives.rest()
        try archives.shell.pass(.milliseconds(699))
        #expect(archives.host.commands.count == 1)
        try archives.shell.pass(.milliseconds(1))
        #expect(archives.host.commands.count == 2)
        // What is said now is answered by this one.
        archives.shell.engine.deliver(.showsNew, to: 0)
        try archives.host.commands[1].end("two")
        try archives.rest()
        #expect(archives.snapshot() == "two")
        try archives.shell.pass(.seconds(5))
        #expect(archives.host.commands.count == 2)
        #expect(archives.shell.engine.machine(0).awaitsSnapshot == false)
    }

    @Test("An app that declines has none taken, and the one before goes, until it enters the background again")
    func declines() throws {
        let archives = try shooting()
        try archives.host.commands[0].end("before")
        try archives.rest()
        archives.shell.engine.deliver(.showsNew, to: 0)
        try archives.shell.pass(.seconds(1))
        #expect(archives.host.commands.count == 2)
        let app = archives.shell.app("web")
        archives.snapshots.declineSnapshot(of: app)
        #expect(archives.snapshots.found(of: app) == nil)
        try archives.host.commands[1].end("secret")
        archives.shell.engine.deliver(.showsNew, to: 0)
        try archives.rest()
        try archives.shell.pass(.seconds(5))
        #expect(archives.snapshot() == nil && archives.host.commands.count == 2)
        try archives.shell.request(.foreground, "web")
        try archives.shell.request(.background, "web")
        try archives.turn { archives.host.commands.count == 3 }
    }

    @Test("Whoever leaves the background does not wait, and its next stay has one of its own at once") func leaves()
        throws
    {
        let archives = try shooting()
        try archives.shell.request(.foreground, "web")
        #expect(archives.shell.state("web") == .active)
        try archives.host.commands[0].end("left")
        try archives.rest()
        #expect(archives.snapshot() == nil)
        try archives.shell.request(.background, "web")
        try archives.turn { archives.host.commands.count == 2 }
        try archives.host.commands[1].end("back")
        try archives.rest()
        #expect(archives.snapshot() == "back")
    }

    // MARK: Files

    @Test("A file is read until the app may sleep, and what is said meanwhile is answered by one more") func file()
        throws
    {
        let base = "/tmp/torpor-shown-\(ThisProcess.pid)-\(UInt32.random(in: 0..<1_000_000))"
        defer { try? File.remove(base) }
        try File.write(base, "one")
        let archives = try FakeArchives(["web": "snapshot = { file = \"\(base)\" }\nbackground_time = \"60s\""])
        try archives.shell.request(.start(background: true), "web")
        var isSaid = false
        // Behind its beginning, and before the loop can hear that it was read.
        archives.shell.engine.loop.later { [unowned archives] in
            isSaid = true
            #expect(archives.shell.app("web").snapshotRun == nil)
            #expect(archives.shell.engine.machine(0).awaitsSnapshot)
            archives.shell.engine.deliver(.showsNew, to: 0)
        }
        try archives.turn { isSaid }
        try archives.turn { archives.snapshot() == "one" }
        try archives.rest()
        try File.write(base, "two")
        try archives.shell.pass(.seconds(1))
        try archives.rest()
        #expect(archives.snapshot() == "two")
        #expect(archives.shell.engine.machine(0).awaitsSnapshot == false)
    }

    @Test("A file of somebody else is none") func foreign() throws {
        let archives = try FakeArchives(["web": "snapshot = { file = \"/etc/passwd\" }"])
        archives.host.owner = geteuid() + 1
        try archives.shell.request(.start(background: true), "web")
        try archives.shell.suspend("web")
        try archives.turn { archives.shell.state("web") == .suspended }
        #expect(archives.told("gave no snapshot: /etc/passwd is not owned by the app's user").count == 1)
    }

    // MARK: Those that apps give

    @Test("An app gives one in the background, and not in the foreground; the later one counts") func given() throws {
        let archives = try FakeArchives(["web": ""])
        try archives.shell.start("web")
        let app = archives.shell.app("web")
        var outcomes: [Result<UInt64, ArchiveFailure>] = []
        func give(_ text: String) {
            let data = String("data:\(text)".dropFirst(5))
            archives.snapshots.saveSnapshot(of: app, data: data, file: nil, by: FakeArchives.peer) {
                outcomes.append($0)
            }
        }
        give("QUJD")
        #expect(outcomes == [.failure(.refused("only an app in the background has a snapshot: web is active"))])
        try archives.shell.request(.background, "web")
        give("QUJD")
        give("REVGRw==")
        try archives.turn { outcomes.count == 3 }
        #expect(outcomes[1...] == [.success(3), .success(4)])
        #expect(archives.snapshot() == "DEFG")
    }

    @Test("The last one is kept through the app's end, and goes with its removal from the configuration")
    func forgotten()
        throws
    {
        let archives = try shooting()
        try archives.host.commands[0].end("a page")
        try archives.rest()
        try archives.shell.request(.stop(.stopped), "web")
        try archives.rest()
        #expect(archives.snapshot() == "a page")
        let folder = archives.snapshots.snapshots(of: archives.shell.app("web")).path
        let engine = archives.shell.engine
        engine.perform(try engine.coordinator.reconfigure([], now: engine.loop.now))
        engine.settle()
        try archives.turn { !File.exists(folder) }
    }

    @Test("What is there of apps that are not configured goes, and what an app declined before this torpord began")
    func strange() throws {
        let archives = try shooting()
        try archives.host.commands[0].end("a page")
        try archives.rest()
        for name in ["gone", "web@1", "we", "web ", "\u{fffd}", "..x"] {
            try File.makeDirectories(archives.host.stateFolder + "/snapshots/" + name)
            try File.write(archives.host.stateFolder + "/snapshots/" + name + "/1.text", "x")
        }
        archives.snapshots.takeStock()
        let folder = archives.host.stateFolder + "/snapshots"
        try archives.turn { try File.list(folder) == ["web"] }
        archives.snapshots.removeDeclinedSnapshot(of: archives.shell.app("web"))
        try archives.rest()
        #expect(archives.snapshot() == "a page")
        archives.shell.engine.deliver(.declinedSnapshot, to: 0)
        archives.snapshots.removeDeclinedSnapshot(of: archives.shell.app("web"))
        try archives.rest()
        #expect(archives.snapshot() == nil)
    }

    // MARK: Reading

    @Test("Clients get it part by part, from wherever they ask, and nothing of one that is going away") func parts()
        throws
    {
        let archives = try shooting()
        let app = archives.shell.app("web")
        func part(_ offset: Int64) throws -> SnapshotPart {
            var part: SnapshotPart?
            archives.snapshots.sendSnapshot(
                of: app,
                at: offset,
                Reply(more: false) { part = try? SnapshotPart(json: $0.parameters) }
            )
            try archives.turn { part != nil }
            return try #require(part)
        }
        #expect(try part(0) == SnapshotPart(nil))
        let text = String(repeating: "0123456789abcdef", count: 3 << 10)
        try archives.host.commands[0].end(text)
        try archives.rest()
        for offset in [Int64(0), 1, 49_151, 49_152, .max, .min] {
            let found = try part(offset)
            #expect(found.snapshot?.bytes == 49_152)
            let from = Int(clamping: min(max(0, offset), 49_152))
            #expect(found.data == Array(text.utf8.dropFirst(from)), "\(offset)")
        }
        archives.snapshots.declineSnapshot(of: app)
        #expect(try part(0) == SnapshotPart(nil))
    }

    @Test("Of two that a torpord left behind the later one counts, and what is no snapshot is none") func leftBehind()
        throws
    {
        let archives = try FakeArchives()
        let folder = archives.snapshots.snapshots(of: archives.shell.app("web"))
        try File.makeDirectories(folder.path)
        for name in ["x.png", "4294967296.png", "-1.png", "1.exe", "1.png.text", ".new-7", "png", "2."] {
            try File.write(folder.path + "/" + name, "x")
        }
        try File.link(folder.path + "/9.png", to: "x.png")
        try File.makeDirectories(folder.path + "/8.text")
        #expect(folder.snapshot == nil)
        try File.write(folder.path + "/7.text", "later")
        try File.write(folder.path + "/3.png", "sooner")
        let early = [timespec(tv_sec: 1_000_000_000, tv_nsec: 0), timespec(tv_sec: 1_000_000_000, tv_nsec: 0)]
        #expect(utimensat(AT_FDCWD, folder.path + "/3.png", early, 0) == 0)
        #expect(folder.snapshot?.info.incarnation == 7)
        _ = try folder.saveSnapshot(.bytes(Array("new".utf8)), incarnation: 9)
        #expect(try Set(File.list(folder.path)) == ["8.text", "9.text"], "a folder stays, and is no snapshot")
        #expect(folder.snapshot?.info.incarnation == 9)
    }
}
