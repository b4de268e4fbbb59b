// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import KernelFiles
import Linux
import Testing
import TorporAPI
import Varlink

@Suite("Short memory: apps that hear of it") struct MemoryWarningTests {
    private static func delegate(_ name: String, _ keys: String = "") -> String {
        Delegates.head.replacingOccurrences(of: "apps.web", with: "apps." + name) + keys + "\n"
    }

    /// A delegate app that is where it should be.
    private func bring(_ app: String, _ state: Verb? = nil, _ daemon: Daemon) throws {
        try daemon.done(.start, app)
        try daemon.waitForRecord(app, "up")
        if let state { try daemon.done(state, app) }
    }

    private func warnings(_ daemon: Daemon, _ app: String) throws -> [String] {
        try daemon.heard(app).filter { $0.what == "message" && $0.name == "didReceiveMemoryWarning" }
            .compactMap { $0.parameters["level"]?.stringValue }
    }

    @Test("Who is in the background hears of a warning, who is active when it is critical, each once") func levels()
        throws
    {
        let keys = "evict = \"never\"\n"
        let apps = Self.delegate("back", keys) + Self.delegate("front", keys) + Self.delegate("asleep", keys)
        try ShortMemory.with(apps, files: Delegates.files()) { daemon, kernel throws in
            try bring("back", .background, daemon)
            try bring("front", nil, daemon)
            try bring("asleep", .suspend, daemon)
            kernel.setAvailable(ShortMemory.warning)
            let first = try daemon.waitForMessage("didReceiveMemoryWarning", app: "back")
            #expect(first.parameters["level"]?.stringValue == "warning")
            #expect(try daemon.waitForStep("tell").text.contains("tells back that memory is short (warning)"))
            #expect(try warnings(daemon, "front").isEmpty)
            kernel.setAvailable(ShortMemory.critical)
            try daemon.waitForMessage("didReceiveMemoryWarning", app: "front")
            try daemon.waitForNews("no app may be evicted")
            #expect(try warnings(daemon, "front") == ["critical"] && warnings(daemon, "back") == ["warning"])
            #expect(try warnings(daemon, "asleep").isEmpty)
            // In a new episode they are told again; who slept through the last one too.
            kernel.setAvailable(ShortMemory.enough)
            try daemon.waitUntilEnough()
            try daemon.done(.resume, "asleep")
            kernel.setAvailable(ShortMemory.warning)
            try daemon.waitForMessage("didReceiveMemoryWarning", app: "back", count: 2)
            try daemon.waitForMessage("didReceiveMemoryWarning", app: "asleep")
            #expect(try daemon.endings().isEmpty)
        }
    }

    @Test("An unaware app that maps it to a signal gets that") func signals() throws {
        let keys = "evict = \"never\"\nsignals = { didReceiveMemoryWarning = \"SIGUSR1\" }"
        try ShortMemory.with(ShortMemory.app("web", 4, keys) + ShortMemory.app("deaf")) { daemon, kernel throws in
            try daemon.bring(["web": "background", "deaf": "background"])
            kernel.setAvailable(ShortMemory.warning)
            try daemon.waitForRecord("web", "SIGUSR1")
            #expect(try daemon.waitForStep("tell").text.contains("tells web that"))
            #expect(daemon.records("deaf") == ["up"])
        }
    }

    @Test("One that takes memory when it is warned is one more that has too much: the ladder goes on") func allocates()
        throws
    {
        let eats = #"didReceiveMemoryWarning=lambda m: (food.append(bytearray(b"x" * (48 << 20))), "done")[1]"#
        let apps = Self.delegate("web") + ShortMemory.app("asleep", 4, program: "sleeper.py") + Self.delegate("front")
        let files = Delegates.files(eats, before: "food = []")
            .merging(["sleeper.py": ShortMemory.program]) { $1 }
        try ShortMemory.with(apps, files: files) { daemon, kernel throws in
            try bring("web", .background, daemon)
            try bring("front", nil, daemon)
            try daemon.bring(["asleep": "suspended"])
            kernel.setAvailable(ShortMemory.critical)
            try daemon.waitForNews("no app may be evicted")
            #expect(try daemon.endings() == ["evict asleep", "end-background web"])
            #expect(try warnings(daemon, "web") == ["critical"] && warnings(daemon, "front") == ["critical"])
            #expect(try daemon.summary("front").state == "active")
            // SIGTERM comes when it has answered, or half of the short grace is over: on a machine with too much to do that
            // may be before it has heard. One that ends itself as it answers needs no signal.
            let asked = try daemon.waitForStep("end-background", "web")
            try daemon.waitFor("web", "not-running")
            let events = try daemon.events("web")
            let signalled = events.last { $0.text.hasPrefix("sent SIGTERM") }
            let isLate = signalled.map { $0.at - asked.at > 900_000 } ?? false
            #expect(try daemon.messages("web").last == "willTerminate" || isLate, "\(events.map(\.text))")
        }
    }

    @Test("One that never answers holds nobody up, and is ended itself when its turn comes") func silent() throws {
        let apps =
            Self.delegate("web", "grace = \"1min\"") + ShortMemory.app("asleep", 4, program: "sleeper.py")
        let files = Delegates.files("didReceiveMemoryWarning=hold").merging(["sleeper.py": ShortMemory.program]) { $1 }
        try ShortMemory.with(apps, files: files) { daemon, kernel throws in
            try bring("web", .background, daemon)
            try daemon.bring(["asleep": "suspended"])
            kernel.setAvailable(ShortMemory.critical)
            try daemon.waitForMessage("didReceiveMemoryWarning")
            try daemon.eventually("both are ended") {
                try daemon.isEvicted("asleep") && daemon.isEvicted("web")
            }
            let asked = try daemon.waitForStep("end-background", "web")
            let end = try #require(try daemon.events("web").last { $0.to == "not-running" })
            #expect(end.at - asked.at < 30_000_000, "within the short grace, not its own")
        }
    }

    @Test("One that somebody else has stopped is continued when its turn comes, and ends by itself")
    func hanging() throws {
        try ShortMemory.with(Self.delegate("web"), files: Delegates.files()) { daemon, kernel throws in
            try bring("web", .background, daemon)
            // It neither reads nor acts on SIGTERM until it is continued.
            let pid = Int32(try #require(try daemon.summary("web").pid))
            kill(pid, SIGSTOP)
            kernel.setAvailable(ShortMemory.critical)
            try daemon.eventually("it is gone") { try daemon.isEvicted("web") }
            #expect(try daemon.summary("web").lastExit?.signal != "SIGKILL")
        }
    }

    // MARK: Coming back

    @Test("Evicted, a delegate app comes back by its foreground as it was, and knows why it was gone") func comesBack()
        throws
    {
        let answers =
            Delegates.restoring + #", didEnterBackground=lambda m: (d.save(b"page 7, line 3"), "done")[1]"#
        try ShortMemory.with(Self.delegate("web"), files: Delegates.files(answers)) { daemon, kernel throws in
            try bring("web", .suspend, daemon)
            kernel.setAvailable(ShortMemory.critical)
            try daemon.eventually("it is evicted") { try daemon.isEvicted("web") }
            // It could prepare: it heard nothing.
            #expect(try daemon.summary("web").lastExit?.signal == "SIGKILL")
            #expect(try daemon.messages().last == "didEnterBackground")
            kernel.setAvailable(ShortMemory.enough)
            try daemon.done(.foreground, "web")
            try daemon.waitForRecord("web", "restored page 7, line 3")
            #expect(
                try daemon.messages(incarnation: 2)
                    == ["willFinishLaunching", "restoreState", "didFinishLaunching", "didBecomeActive"]
            )
            let options = try daemon.ask(#"json.loads(os.environ["TORPOR_LAUNCH_OPTIONS"])"#)
            #expect(options["previous_termination"]?.stringValue == "evicted")
            #expect(options["restored_state"]?.stringValue == daemon.archive())
            #expect(options["reason"]?.stringValue == "user" && options["foreground"]?.boolValue == true)
            let told = try daemon.waitForMessage("willFinishLaunching", count: 2).parameters["options"]
            #expect(told == options)
        }
    }

    // MARK: A limit of its own

    @Test("Near its own limit an app is told, beyond it it is ended, whatever the machine has") func limit() throws {
        let grow = #"food.append(bytearray(%d << 20))"#
        let limit = "memory_limit = \"100MiB\"\n"
        let apps = Self.delegate("web", limit) + Self.delegate("near", limit)
        try ShortMemory.with(apps, files: Delegates.files(before: "food = []")) { daemon, _ throws in
            for app in ["web", "near"] { try bring(app, nil, daemon) }
            try daemon.ask(grow.replacingOccurrences(of: "%d", with: "20"))
            // Whoever is near its own is told.
            try daemon.ask(grow.replacingOccurrences(of: "%d", with: "78"), app: "near")
            try daemon.waitForMessage("didReceiveMemoryWarning", app: "near")
            #expect(try warnings(daemon, "web").isEmpty, "a third of it is not near")
            try daemon.ask(grow.replacingOccurrences(of: "%d", with: "58"))
            #expect(try daemon.waitForMessage("didReceiveMemoryWarning").parameters["level"]?.stringValue == "limit")
            let event = try daemon.waitForEvent("web", "% of its memory_limit of 102400 KiB")
            #expect(event.text.contains(#/ (8|9)\d % of/#), "\(event.text)")
            #expect(try daemon.summary("web").state == "active")
            _ = try? daemon.tellLater(grow.replacingOccurrences(of: "%d", with: "64"))
            try daemon.waitFor("web", "not-running")
            #expect(try daemon.summary("web").lastExit?.reason == "memory-limit")
            #expect(try warnings(daemon, "web") == ["limit"], "once on the way up")
        }
    }

    @Test("One that heeds the warning is told again when it comes near the limit again") func heeded() throws {
        let apps = Self.delegate("web", "memory_limit = \"100MiB\"\n")
        let heeds = #"didReceiveMemoryWarning=lambda m: (food.clear(), "done")[1]"#
        try ShortMemory.with(apps, files: Delegates.files(heeds, before: "food = []")) { daemon, _ throws in
            try bring("web", nil, daemon)
            for count in 1...2 {
                try daemon.ask(#"food.append(bytearray(78 << 20))"#)
                try daemon.waitForMessage("didReceiveMemoryWarning", count: count)
                try daemon.eventually("it was seen to have less") {
                    try daemon.events("web").count { $0.text.hasSuffix("of its memory_limit of 102400 KiB again") }
                        == count
                }
            }
            #expect(try daemon.summary("web").state == "active")
        }
    }
}
