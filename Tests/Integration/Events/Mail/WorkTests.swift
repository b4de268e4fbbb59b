// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

/// An app that does not answer a message of its mailbox: what `status` says of it, and what becomes of both.
@Suite("Messages that are not answered") struct WorkTests {
    private static let toml =
        Posting.head.replacingOccurrences(of: "restart = \"never\"\n", with: "restart = \"on-failure\"\n")
            + """
            mail_attempts = 2
            restart_backoff = { initial = "1ms", cap = "1ms", limit = 50 }

            """

    private func torpor(_ daemon: Daemon, _ words: [String]) throws -> (code: Int32, output: String) {
        try Spawn.run([Built.path("torpor")] + words + ["--socket", daemon.socket])
    }

    private func unhandled(_ daemon: Daemon) throws -> [UnhandledInfo] {
        let reply = try daemon.call(.unhandled(UnhandledRequest()))
        return try (reply["unhandled"]?.arrayValue ?? []).map { try UnhandledInfo(json: $0) }
    }

    @Test("In the background it is ended at message_deadline; the message is told again, then set aside")
    func background() throws {
        let answers = "didReceiveEvent=lambda m: None if m['parameters']['payload'] == 1 else 'done'"
        try withDaemon(Self.toml + "message_deadline = \"300ms\"\n", files: Delegates.files(answers)) { daemon in
            try daemon.done(.start, "web") { $0.background = true }
            let id = try #require(try daemon.post("orders", .int(1)).id)
            try daemon.post("orders", .int(2))
            try daemon.eventually("it is set aside, and the next one told") {
                try unhandled(daemon).map(\.id) == [id] && daemon.told().last == .int(2)
            }
            #expect(try daemon.told().prefix(2) == [.int(1), .int(1)])
            #expect(try unhandled(daemon).first?.why == "crashed")
            #expect(try daemon.summary("web").lastExit?.reason == "unresponsive")
            let texts = try daemon.events("web").map(\.text)
            let sentence =
                "did not answer didReceiveEvent (message \(id), orders) within its message_deadline of 300ms"
            #expect(texts.contains { $0.hasPrefix(sentence) && $0.hasSuffix("it is terminated") }, "\(texts)")
            let report = try #require(try daemon.status("web").reports.first)
            #expect(report.deadline == "message" && report.due == "didReceiveEvent")
            let shown = try torpor(daemon, ["mailbox", "web"])
            #expect(shown.output.contains("1 set aside, and no longer delivered: ‘torpor unhandled web’"), "\(shown)")
        }
    }

    @Test("In the foreground status says since when it works, and that it is late; an answer ends that")
    func foreground() throws {
        let toml = Self.toml + "message_deadline = \"200ms\"\n"
        try withDaemon(toml, files: Delegates.files("didReceiveEvent=hold")) { daemon in
            try daemon.done(.start, "web")
            #expect(try daemon.status("web").work == nil)
            let id = try daemon.post("orders").id
            let message = try daemon.waitForMessage("didReceiveEvent")
            #expect((1...200).contains(message.deadlineMilliseconds ?? 0))
            try daemon.eventually("it is late") { try daemon.status("web").work?.isLate ?? false }
            let work = try #require(try daemon.status("web").work)
            #expect(work.name == "didReceiveEvent" && work.message == id && work.topic == "orders" && work.attempt == 1)
            #expect(work.workingMilliseconds >= 200 && work.remainingMilliseconds == nil)
            let page = try torpor(daemon, ["status", "web"]).output
            let line = page.split(separator: "\n").first { $0.contains("working on") } ?? ""
            #expect(line.contains("didReceiveEvent \(id ?? 0) (orders) for ") && line.contains("later than"), "\(page)")
            #expect(try daemon.summary("web").state == "active")
            try daemon.ask("d.answer(\(message.id ?? 0))")
            #expect(try daemon.status("web").work == nil)
            #expect(try daemon.summary("web").unhealthy == nil)
        }
    }

    @Test("An app whose delegate is gone is said to get no messages")
    func deaf() throws {
        let program = """
            import sys, time
            sys.path.insert(0, "\(Sources.root)/Clients/python")
            import torpor
            class Web(torpor.Delegate):
                def did_receive_event(self, message):
                    message.app.close()
            with torpor.App(Web()):
                while True:
                    time.sleep(3600)
            """
        try withDaemon(Self.toml, files: ["app.py": program]) { daemon in
            try daemon.done(.start, "web")
            #expect(try daemon.summary("web").unhealthy == nil)
            try daemon.post("orders")
            try daemon.waitForEvent("web", "has no delegate any more")
            #expect(try daemon.summary("web").unhealthy?.hasPrefix("has no delegate any more") == true)
            let post = try torpor(daemon, ["post", "web", "orders"]).output
            #expect(post.hasPrefix("web does not get it yet: it has no delegate any more"), "\(post)")
            let page = try torpor(daemon, ["status", "web"]).output
            #expect(page.contains("health: it has no delegate any more, so that it gets no messages"), "\(page)")
            for verb in ["background", "suspend"] {
                let output = try torpor(daemon, [verb, "web"]).output
                #expect(output.contains("delegate has closed its connection, so that it is told nothing"), "\(output)")
            }
        }
    }

    private static let urgent =
        Delegates.head + "topics = { orders = { urgent = true } }\nevent_time = \"100ms\"\n"

    @Test("Urgent messages that come while it works longer than its event_time are told before it sleeps")
    func busy() throws {
        try withDaemon(Self.urgent, files: Delegates.files("didReceiveEvent=later(0.3)")) { daemon in
            try daemon.done(.start, "web")
            try daemon.done(.suspend, "web")
            try daemon.post("orders", .int(1))
            try daemon.waitForMessage("didReceiveEvent")
            for number in 2...4 { try daemon.post("orders", .int(Int64(number))) }
            try daemon.eventually("it was told all") { try daemon.told() == [.int(1), .int(2), .int(3), .int(4)] }
            try daemon.waitFor("web", "suspended")
            #expect(try daemon.mailbox().mail.isEmpty)
        }
    }

    @Test("An app that a user suspends while an urgent message waits behind another is woken for it")
    func suspendedWhileBusy() throws {
        try withDaemon(Self.urgent, files: Delegates.files("didReceiveEvent=hold")) { daemon in
            try daemon.done(.start, "web")
            try daemon.post("orders", .int(1))
            let first = try daemon.waitForMessage("didReceiveEvent")
            try daemon.post("orders", .int(2))
            _ = try daemon.verb(.suspend, "web") { $0.wait = false }
            try daemon.ask("d.answer(\(first.id ?? 0))")
            try daemon.eventually("it was told both") { try daemon.told() == [.int(1), .int(2)] }
        }
    }

    @Test("A delegate that works for long while torpord is replaced keeps its message and its time")
    func replaced() throws {
        let toml = Self.urgent.replacingOccurrences(of: "100ms", with: "1s")
        try withDaemon(toml, files: Delegates.files("didReceiveEvent=later(7)")) { daemon in
            try daemon.done(.start, "web")
            try daemon.done(.suspend, "web")
            try daemon.post("orders", .int(1))
            try daemon.waitForMessage("didReceiveEvent")
            let old = try daemon.torpord()
            kill(old, SIGKILL)
            try daemon.eventually("another torpord runs") { (try? daemon.torpord()).map { $0 != old } ?? false }
            try daemon.waitUntilItAnswers()
            try daemon.waitForEvent("web", "answered didReceiveEvent")
            try daemon.waitFor("web", "suspended")
            #expect(try daemon.told() == [.int(1)])
            let texts = try daemon.events("web").map(\.text)
            #expect(!texts.contains { $0.hasPrefix("has no delegate any more") }, "\(texts)")
        }
    }

    @Test("A program that is told by a signal before it has a handler ends, and its history says which message it was")
    func early() throws {
        let program = "from tp import *\nnotify('READY=1')\ntime.sleep(1000)\n"
        let toml = """
            [apps.web]
            \(Scripts.python)"@D/app.py"]
            launch = "on-demand"
            ready = "notify"
            restart = "never"
            signals = { didReceiveEvent = "SIGUSR2" }
            topics = { "*" = { urgent = true } }
            """
        try withDaemon(toml, files: ["app.py": program]) { daemon in
            try daemon.done(.start, "web")
            try daemon.post("orders")
            let text = try daemon.waitForEvent("web", "was ended by SIGUSR2 (signal)").text
            #expect(text.contains("; torpord had told it didReceiveEvent by SIGUSR2, which ends a program"), "\(text)")
        }
        // Another signal is not named.
        try withDaemon(toml, files: ["app.py": program]) { daemon in
            try daemon.done(.start, "web")
            kill(try #require(try daemon.summary("web").pid), SIGUSR2)
            #expect(try !daemon.waitForEvent("web", "was ended by SIGUSR2 (signal)").text.contains("torpord"))
        }
    }

    @Test("That an app in the foreground hangs is said wherever somebody asks whether all is well")
    func hangs() throws {
        let toml = Self.toml + "message_deadline = \"100ms\"\n"
        try withDaemon(toml, files: Delegates.files("didReceiveEvent=hold")) { daemon in
            try daemon.done(.start, "web")
            try daemon.post("orders")
            try daemon.waitForEvent("web", "waits for that answer; ‘torpor restart web’ ends it")
            let hang = "has not answered didReceiveEvent (orders) within its message_deadline"
            #expect(try daemon.summary("web").unhealthy?.hasPrefix(hang) == true)
            let health = try torpor(daemon, ["health"])
            #expect(health.code == 1 && health.output.contains("web \(hang)"), "\(health)")
            let post = try torpor(daemon, ["post", "web", "orders"]).output
            #expect(post.hasPrefix("web does not get it yet: it \(hang)"), "\(post)")
            // It would be waited for at the end.
            try daemon.done(.kill, "web")
        }
    }

    @Test(
        "An app that was woken finishes the message that it works on, and gets the rest of its mail when it wakes again"
    )
    func finishes() throws {
        let toml = Self.toml + "event_time = \"300ms\"\nmessage_deadline = \"1min\"\n"
        try withDaemon(toml, files: Delegates.files("didReceiveEvent=hold")) { daemon in
            try daemon.done(.start, "web")
            try daemon.done(.suspend, "web")
            try daemon.post("orders", .int(1)) { $0.urgent = true }
            try daemon.post("orders", .int(2))
            let first = try daemon.waitForMessage("didReceiveEvent")
            // Its event_time is over long before it answers.
            try daemon.eventually("its event_time is over") {
                try daemon.status("web").deadlines.map(\.name) == ["message"]
            }
            #expect(try daemon.summary("web").state == "background")
            // It answers, is told to save, and sleeps, though other mail waits: perhaps before it can say that it has
            // run this.
            try daemon.tellLater("d.answer(\(first.id ?? 0))")
            try daemon.waitFor("web", "suspended")
            #expect(try daemon.messages().suffix(2) == ["didReceiveEvent", "didEnterBackground"])
            #expect(try daemon.mailbox().mail.map(\.payload) == [.int(2)])
            try daemon.done(.resume, "web")
            try daemon.waitForMessage("didReceiveEvent", count: 2)
            #expect(try daemon.told() == [.int(1), .int(2)])
        }
    }

    @Test("A torpord that takes over gives the message its time again")
    func takeover() throws {
        let toml = Self.toml + "message_deadline = \"1min\"\n"
        try withRecovery(toml, files: Delegates.files("didReceiveEvent=hold")) { daemon in
            try daemon.done(.start, "web")
            let id = try daemon.post("orders").id
            let message = try daemon.waitForMessage("didReceiveEvent")
            try daemon.lose(.killed)
            try daemon.eventually("it is still at work") { try daemon.status("web").work?.message == id }
            #expect(try daemon.status("web").deadlines.map(\.name) == ["message"])
            try daemon.ask("d.answer(\(message.id ?? 0))")
            try daemon.eventually("it is done") { try daemon.status("web").work == nil }
            #expect(try daemon.told().count == 1)
        }
    }
}
