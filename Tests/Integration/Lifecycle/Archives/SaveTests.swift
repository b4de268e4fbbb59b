// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

/// Apps that save their state on their own socket, and get it back.
@Suite("State archives: what apps save") struct SaveTests {
    static func with(
        _ keys: String = "",
        answers: String = Delegates.restoring,
        before: String = "",
        environment: [String: String] = [:],
        _ body: (Daemon) throws -> Void
    ) throws {
        let files = Delegates.files(answers, before: before)
        try withDaemon(Delegates.head + keys, files: files, environment: environment) { daemon throws in
            try daemon.done(.start, "web")
            try body(daemon)
        }
    }

    private func crash(_ daemon: Daemon) throws {
        kill(try #require(try daemon.summary("web").pid), SIGKILL)
        try daemon.waitFor("web", "not-running")
    }

    /// What the app was told since it was launched last.
    private func launchMessages(_ daemon: Daemon) throws -> [String] {
        try daemon.messages(incarnation: try daemon.summary("web").incarnation)
    }

    @Test("Bytes that were saved are there before the reply, and are given back between the launch messages")
    func bytes() throws {
        try Self.with { daemon throws in
            #expect(try daemon.ask(#"d.save(b"first")"#)["bytes"]?.intValue == 5)
            #expect(try String(contentsOfFile: daemon.archive(), encoding: .utf8) == "first")
            #expect(try daemon.ask(#"d.save(b"second one")"#)["bytes"]?.intValue == 10)
            #expect(try daemon.status("web").archive?.bytes == 10)
            try self.crash(daemon)
            try daemon.done(.start, "web")
            #expect(
                try self.launchMessages(daemon)
                    == ["willFinishLaunching", "restoreState", "didFinishLaunching", "didBecomeActive"]
            )
            let message = try daemon.waitForMessage("restoreState")
            #expect(message.parameters["path"]?.stringValue == daemon.archive())
            #expect(message.parameters["bytes"]?.intValue == 10)
            #expect(daemon.records("web").contains("restored second one"))
            let options = try daemon.waitForMessage("willFinishLaunching", count: 2).parameters["options"]
            #expect(options?["restored_state"]?.stringValue == daemon.archive())
            #expect(options?["previous_termination"]?.stringValue == "signal")
        }
    }

    @Test("A file is copied, however large it may be within the limit; the app can remove it then")
    func file() throws {
        try Self.with { daemon throws in
            let save = """
                name = os.environ["TORPOR_STATE_DIRECTORY"] + "/big"
                open(name, "wb").write(b"7" * (3 << 20))
                record("saved %s" % d.attempt("SaveState", file="big"))
                os.remove(name)
                """
            try daemon.ask(save)
            #expect(daemon.records("web").contains("saved {'bytes': \(3 << 20)}"))
            try self.crash(daemon)
            try daemon.done(.start, "web")
            #expect(try daemon.waitForMessage("restoreState").parameters["bytes"]?.intValue == 3 << 20)
            #expect(daemon.records("web").contains("restored " + String(repeating: "7", count: 40)))
        }
    }

    @Test("Saved while entering the background, it is there after an eviction")
    func eviction() throws {
        let answers = Delegates.restoring + #", didEnterBackground=lambda m: (d.save(b"at the door"), "done")[1]"#
        try Self.with(answers: answers) { daemon throws in
            try daemon.done(.suspend, "web")
            try self.crash(daemon)
            #expect(try daemon.summary("web").lastExit?.reason == "evicted")
            try daemon.done(.start, "web") { $0.background = true }
            #expect(daemon.records("web").contains("restored at the door"))
            #expect(
                try self.launchMessages(daemon)
                    == ["willFinishLaunching", "restoreState", "didFinishLaunching", "didEnterBackground"]
            )
        }
    }

    @Test("What has too many bytes, or cannot be taken, is refused in words, and what was there stays")
    func refused() throws {
        try Self.with("state_limit = \"1KiB\"\n") { daemon throws in
            try daemon.ask(#"d.save(b"small")"#)
            #expect(try daemon.ask("d.save(bytes(1024))")["bytes"]?.intValue == 1024)
            #expect(try daemon.ask("d.save(bytes(1025))").stringValue == "TooLarge")
            let refusal = try #require(try daemon.heard().last { $0.error == "TooLarge" })
            #expect(refusal.reply["limit"]?.intValue == 1024)
            #expect(refusal.reply["message"]?.stringValue?.contains("state_limit") == true)
            for parameters in [
                "", #"data="AAAA", file="x""#, #"data="no Base64""#, #"file="../app.py""#, #"file="nothing""#,
                #"file="/etc/hostname""#,
            ] {
                #expect(
                    try daemon.ask("d.attempt('SaveState', \(parameters))").stringValue == "Failed",
                    "\(parameters)"
                )
            }
            let link = """
                os.symlink(HERE + "/app.py", os.environ["TORPOR_STATE_DIRECTORY"] + "/link")
                record("link " + d.attempt("SaveState", file="link"))
                """
            try daemon.ask(link)
            #expect(daemon.records("web").contains("link Failed"))
            let wrong = try daemon.heard().filter { $0.error == "Failed" }
            #expect(wrong.count == 7 && wrong.allSatisfy { !($0.reply["message"]?.stringValue ?? "").isEmpty })
            #expect(try daemon.status("web").archive?.bytes == 1024)
            let told = try daemon.events("web").filter { $0.text.contains("could not save its state") }
            #expect(told.count == 1 && told.first?.text.contains("the 1024 bytes that state_limit") == true, "\(told)")
            let unsaved = try daemon.verb(.background, "web")
            #expect(unsaved.ok && unsaved.message?.contains("its state could not be saved") == true, "\(unsaved)")
            // The limit counts at once.
            try daemon.apply(Delegates.head + "state_limit = \"none\"\n")
            #expect(try daemon.ask("d.save(bytes(1025))")["bytes"]?.intValue == 1025)
            let saved = try daemon.verb(.suspend, "web")
            #expect(saved.ok && saved.message?.contains("could not be saved") != true, "\(saved)")
        }
    }

    @Test("An app forgets its archive, and begins anew")
    func discard() throws {
        try Self.with { daemon throws in
            try daemon.ask(#"d.save(b"x")"#)
            for _ in 0..<2 { try daemon.ask("d.call('DiscardState')") }
            #expect(try daemon.status("web").archive == nil)
            try self.crash(daemon)
            try daemon.done(.start, "web")
            #expect(
                try self.launchMessages(daemon) == ["willFinishLaunching", "didFinishLaunching", "didBecomeActive"]
            )
        }
    }

    @Test("An app that declines its restoration is not told of it, and keeps the archive for the next launch")
    func declined() throws {
        let answers =
            Delegates.restoring + """
                , willFinishLaunching=lambda m: {"result": "done", "declines": ["restoration"]} \
                if os.path.exists(HERE + "/declines") else "done"
                """
        try Self.with(answers: answers) { daemon throws in
            try daemon.ask(#"d.save(b"kept")"#)
            try self.crash(daemon)
            try Daemon.write(["declines": ""], in: daemon.directory)
            try daemon.done(.start, "web")
            #expect(try !self.launchMessages(daemon).contains("restoreState"))
            #expect(try daemon.status("web").archive?.bytes == 4)
            try self.crash(daemon)
            try File.remove(daemon.directory + "/declines")
            try daemon.done(.start, "web")
            #expect(daemon.records("web").contains("restored kept"))
        }
    }

    @Test("An app that declined and then dies before it is ready blames nothing on the archive")
    func declinedAndDead() throws {
        let answers = """
            willFinishLaunching=lambda m: {"result": "done", "declines": ["restoration"]}, \
            didFinishLaunching=lambda m: os._exit(4) if m["parameters"]["options"]["previous_termination"] else "done"
            """
        try Self.with(answers: answers) { daemon throws in
            try daemon.ask(#"d.save(b"kept")"#)
            try self.crash(daemon)
            #expect(try !daemon.verb(.start, "web").ok)
            try daemon.waitFor("web", "not-running")
            #expect(try daemon.status("web").archive?.bytes == 4)
            #expect(try daemon.status("web").archivesAside.isEmpty)
        }
    }

    @Test("What an app cannot restore is set aside with its words; the launch goes on, and the next goes without")
    func failed() throws {
        let answers = #"restoreState=lambda m: {"result": "failed", "text": "version 3 is too new"}"#
        try Self.with(answers: answers) { daemon throws in
            try daemon.ask(#"d.save(b"new")"#)
            try self.crash(daemon)
            try daemon.done(.start, "web")
            #expect(try self.launchMessages(daemon).contains("restoreState"))
            let event = try daemon.waitForEvent("web", "continues without its saved state")
            #expect(event.text.contains("version 3 is too new"))
            try daemon.eventually("it is aside") { try daemon.status("web").archivesAside.map(\.bytes) == [3] }
            try self.crash(daemon)
            try daemon.done(.start, "web")
            #expect(try !self.launchMessages(daemon).contains("restoreState"))
        }
    }

    @Test("A delegate that dies of what it restores: set aside, and the restart comes up")
    func deadly() throws {
        let answers = "restoreState=lambda m: os._exit(5)"
        let keys = "[apps.web.restart_backoff]\ninitial = \"0s\"\n"
        let toml = Delegates.head.replacingOccurrences(of: "\"never\"", with: "\"on-failure\"") + keys
        try withDaemon(toml, files: Delegates.files(answers)) { daemon throws in
            try daemon.done(.start, "web")
            try daemon.ask(#"d.save(b"poison")"#)
            kill(try #require(try daemon.summary("web").pid), SIGKILL)
            try daemon.eventually("the third run is up") {
                let summary = try daemon.summary("web")
                return summary.incarnation == 3 && summary.state == "active"
            }
            try daemon.eventually("it is aside") { try daemon.status("web").archivesAside.map(\.bytes) == [6] }
            #expect(try daemon.messages(incarnation: 3).first == "willFinishLaunching")
            #expect(try !daemon.messages(incarnation: 3).contains("restoreState"))
        }
    }

    @Test("Another user's app reads its archive, and nobody else does", .enabled(if: geteuid() == 0))
    func user() throws {
        let files = Delegates.files(Delegates.restoring)
        try withDaemon(Delegates.head + "user = \"nobody\"\n", files: files) { daemon throws in
            // Where the app writes down what it hears.
            try File.setMode(daemon.directory, 0o777)
            try daemon.done(.start, "web")
            let save = """
                open(os.environ["TORPOR_STATE_DIRECTORY"] + "/mine", "w").write("from nobody")
                record("saved %s" % d.attempt("SaveState", file="mine"))
                """
            try daemon.ask(save)
            #expect(daemon.records("web").contains("saved {'bytes': 11}"))
            let status = try File.status(daemon.archive())
            #expect(status.uid == Users.lookup("nobody")?.uid)
            #expect(status.mode == 0o400)
            // What is root's is not the app's, though its name is in the app's directory.
            try File.write(daemon.directory + "/secret", "root's")
            #expect(link(daemon.directory + "/secret", daemon.directory + "/s/apps/web/theirs") == 0)
            #expect(try daemon.ask("d.attempt('SaveState', file='theirs')").stringValue == "Failed")
            try self.crash(daemon)
            try daemon.done(.start, "web")
            #expect(daemon.records("web").contains("restored from nobody"))
        }
    }
}
