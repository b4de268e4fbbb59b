// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

/// Messages of a transition that wait because the app works on its mail: their time begins when they are delivered.
@Suite("Messages that wait behind mail") struct QueuedTests {
    /// `web` works on its mail for longer than its deadlines. `other` gets the messages of its transition at once and
    /// does not answer: when it has been ended, the same deadlines have passed for `web`.
    private static let toml =
        Posting.head + deadlines + "message_deadline = \"10min\"\n"
            + """
            [apps.other]
            exec = ["/usr/bin/python3", "-S", "@D/other.py"]
            launch = "on-demand"
            ready = "delegate"
            restart = "never"

            """
        + deadlines
    private static let deadlines = "transition_deadline = \"100ms\"\nbackground_deadline = \"2s\"\n"
    private static let files: [String: String] = {
        var files = Delegates.files("didReceiveEvent=once(hold)")
        files["other.py"] = "from delegate import *\nobey(Delegate(willResignActive=hold, didEnterBackground=hold))\n"
        return files
    }()

    /// Sends both apps to the background while `web` works on its first mail and has a second one; returns the number
    /// of the message that `web` works on.
    private func leave(_ daemon: Daemon) throws -> Int64 {
        try daemon.done(.start, "web")
        try daemon.done(.start, "other")
        try daemon.post("orders", .int(1))
        let first = try daemon.waitForMessage("didReceiveEvent")
        try daemon.post("orders", .int(2))
        _ = try daemon.verb(.background, "web") { $0.wait = false }
        _ = try daemon.verb(.background, "other") { $0.wait = false }
        return try #require(first.id)
    }

    private func answers(_ first: Int64, _ daemon: Daemon) throws {
        try daemon.waitFor("other", "not-running")
        #expect(try daemon.summary("other").lastExit?.reason == "background-deadline")
        let summary = try daemon.summary("web")
        #expect(summary.state == "active" && summary.transition == "entering-background")
        #expect(try daemon.messages().last == "didReceiveEvent")
        try daemon.ask("d.answer(\(first))")
        try daemon.waitFor("web", "background")
        try daemon.waitForMessage("didReceiveEvent", count: 2)
        #expect(
            try daemon.messages().suffix(4) == [
                "didReceiveEvent", "willResignActive", "didEnterBackground", "didReceiveEvent",
            ]
        )
        #expect(try daemon.told() == [.int(1), .int(2)])
        #expect(try daemon.summary("web").lastExit == nil)
    }

    @Test("An app that works on mail for longer than the deadline of didEnterBackground is not ended for it")
    func delivered() throws {
        try withDaemon(Self.toml, files: Self.files) { daemon in
            let first = try leave(daemon)
            try answers(first, daemon)
        }
    }

    @Test("A torpord that takes over in between knows that the message was not delivered yet")
    func takeover() throws {
        try withRecovery(Self.toml, files: Self.files) { daemon in
            let first = try leave(daemon)
            try daemon.lose(.killed)
            try answers(first, daemon)
        }
    }

    @Test("An app that is suspended gets only the messages about that, and its other mail when it is resumed")
    func suspended() throws {
        try withDaemon(Posting.head, files: Delegates.files("didReceiveEvent=once(hold)")) { daemon in
            try daemon.done(.start, "web")
            try daemon.post("orders", .int(1))
            let first = try daemon.waitForMessage("didReceiveEvent")
            for number in 2...3 as ClosedRange<Int64> { try daemon.post("orders", .int(number)) }
            _ = try daemon.verb(.suspend, "web") { $0.wait = false }
            try daemon.tellLater("d.answer(\(first.id ?? 0))")
            try daemon.waitFor("web", "suspended")
            #expect(try daemon.messages().suffix(3) == ["didReceiveEvent", "willResignActive", "didEnterBackground"])
            #expect(try daemon.mailbox().mail.map(\.payload) == [.int(2), .int(3)])
            try daemon.done(.foreground, "web")
            try daemon.waitForMessage("didReceiveEvent", count: 3)
            #expect(try daemon.told() == [.int(1), .int(2), .int(3)])
        }
    }
}
