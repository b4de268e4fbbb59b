// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

/// What an app has to finish before it is suspended.
@Suite("Background tasks and holds") struct TaskTests {
    private func withDelegate(_ keys: String = "", answers: String = "", _ body: (Daemon) throws -> Void) throws {
        let daemon = try Daemon(Delegates.head + keys, files: Delegates.files(answers))
        try daemon.waitUntilItAnswers()
        try daemon.done(.start, "web")
        try body(daemon)
    }

    @Test("an app with a task is suspended as soon as the task is ended")
    func finishes() throws {
        let begin = "didEnterBackground=lambda m: (d.begin('upload'), 'done')[1]"
        try withDelegate(answers: begin) { daemon in
            _ = try daemon.verb(.suspend, "web") { $0.wait = false }
            try daemon.waitFor("web", "background")
            try daemon.waitForRecord("web", "BeginTask ok")
            #expect(try daemon.summary("web").holds == ["the task upload"])
            let left = try #require(try daemon.ask("d.call('BackgroundTime')['remaining_ms']").intValue)
            #expect(left > 20_000 && left <= 30_000)
            #expect(!Truth.isStopped(try #require(daemon.processes(of: "web").first)))
            // It is stopped before it can say that it has done so.
            try daemon.tellLater("d.end(1)")
            try daemon.waitFor("web", "suspended")
            #expect(try daemon.summary("web").holds.isEmpty)
        }
    }

    @Test("a task that is not ended is told that its time is nearly up, and ends the app, by name")
    func expires() throws {
        let keys = "task_time = \"900ms\"\nexpiry_warning = \"400ms\"\n"
        try withDelegate(keys) { daemon in
            try daemon.ask("d.begin('upload')")
            try daemon.done(.background, "web")
            let warning = try daemon.waitForMessage("taskExpiring")
            #expect(warning.parameters["name"]?.stringValue == "upload")
            #expect(warning.parameters["token"]?.intValue == 1)
            let left = try #require(warning.parameters["remaining_ms"]?.intValue)
            #expect(left > 0 && left <= 400)
            try daemon.eventually("it is ended") { try daemon.summary("web").lastExit?.reason == "task-expired" }
            let report = try #require(try daemon.reports("web").first)
            #expect(report.tasks == ["upload"] && report.code == 0x8bad_f00d)
        }
    }

    @Test("time in the foreground costs tasks nothing, and each stay in the background has its own")
    func foregroundIsFree() throws {
        try withDelegate("task_time = \"10s\"\nexpiry_warning = \"1s\"\n") { daemon in
            try daemon.ask("d.begin('upload')")
            #expect(try daemon.ask("d.call('BackgroundTime').get('remaining_ms')").isNull)
            try daemon.done(.background, "web")
            try daemon.eventually("some time is used") {
                try daemon.ask("d.call('BackgroundTime')['remaining_ms']").intValue.map { $0 < 9_500 } ?? false
            }
            try daemon.done(.foreground, "web")
            let began = Clock.monotonic()
            try daemon.done(.background, "web")
            let left = try #require(try daemon.ask("d.call('BackgroundTime')['remaining_ms']").intValue)
            let used = 10_000 - left
            #expect(used <= (Clock.monotonic() - began).microseconds / 1_000 + 1, "it had \(left) ms")
        }
    }

    @Test("a task ends with the connection that began it")
    func connectionEnds() throws {
        try withDelegate { daemon in
            try daemon.ask("c = Connection()\nc.call('BeginTask', name='short')")
            #expect(try daemon.summary("web").holds == ["the task short"])
            try daemon.ask("c.close()")
            try daemon.eventually("the task is ended") { try daemon.summary("web").holds.isEmpty }
        }
    }

    @Test("a task that is ended twice or was never begun is an error")
    func unknownTask() throws {
        try withDelegate { daemon in
            let token = try #require(try daemon.ask("d.begin('upload')").intValue)
            try daemon.ask("d.end(\(token))")
            #expect(try daemon.ask("d.attempt('EndTask', token=\(token))").stringValue == "UnknownTask")
            #expect(try daemon.ask("d.attempt('EndTask', token=-3)").stringValue == "UnknownTask")
            for name in ["''", "'up\\nload'", "'\\x1b[2J'"] {
                #expect(try daemon.ask("d.attempt('BeginTask', name=\(name))").stringValue == "InvalidParameter")
            }
        }
    }

    @Test("a program without a delegate has tasks by sd_notify")
    func notify() throws {
        let toml = """
            [apps.web]
            exec = ["/usr/bin/python3", "-S", "@D/app.py"]
            launch = "on-demand"
            """
        let files = [
            "app.py": "import delegate\nfrom tp import *\ndelegate.obey(None)\n", "delegate.py": Delegates.library,
        ]
        let daemon = try Daemon(toml, files: files)
        try daemon.waitUntilItAnswers()
        try daemon.done(.start, "web")
        try daemon.ask("notify('X_TORPOR_TASK_BGIN=backup')")
        try daemon.waitForEvent("web", "X_TORPOR_TASK_BGIN means nothing")
        try daemon.ask("notify('X_TORPOR_TASK_BEGIN=backup')")
        try daemon.eventually("it is held") { try daemon.summary("web").holds == ["the task backup"] }
        let refused = try daemon.verb(.suspend, "web")
        #expect(!refused.ok && refused.message?.contains("the task backup") == true)
        try daemon.done(.suspend, "web") { $0.force = true }
        try daemon.done(.resume, "web")
        try daemon.ask("notify('X_TORPOR_TASK_END=backup')")
        try daemon.eventually("it is not held") { try daemon.summary("web").holds.isEmpty }
        try daemon.done(.suspend, "web")
    }

    @Test("tasks outlive a torpord that is killed, when their app claims them", arguments: [Loss.killed, .both])
    func survive(loss: Loss) throws {
        try withRecovery(Delegates.head, files: Delegates.files(), loss: loss) { daemon throws in
            try daemon.done(.start, "web")
            try daemon.ask("d.begin('upload')")
            try daemon.done(.background, "web")
            try daemon.lose(loss)
            #expect(try daemon.summary("web").holds == ["the task upload"])
            try daemon.eventually("the delegate is back") {
                try daemon.heard().filter { $0.what == "attached" }.count == 2
            }
            #expect(try daemon.ask("len(d.call('State')['tasks'])").intValue == 1)
            try daemon.ask("d.end(1)")
            try daemon.eventually("the task is ended") { try daemon.summary("web").holds.isEmpty }
        }
    }

    @Test("replacements of torpord do not lengthen the time of a task", arguments: [Loss.killed, .upgraded])
    func sameTime(loss: Loss) throws {
        let keys = "task_time = \"50s\"\nexpiry_warning = \"49s\"\n"
        try withRecovery(Delegates.head + keys, files: Delegates.files(), loss: loss) { daemon throws in
            try daemon.done(.start, "web")
            try daemon.ask("d.begin('upload')")
            try daemon.done(.background, "web")
            for _ in 0..<2 {
                try daemon.lose(loss)
                let deadline = try #require(try daemon.status("web").deadlines.first { $0.name == "task" })
                #expect(deadline.limitMilliseconds == 50_000)
            }
        }
    }

    @Test("a task goes on while its process works and has not noticed that torpord was replaced")
    func unnoticed() throws {
        try withRecovery(Delegates.head, files: Delegates.files("reconnect=False"), loss: .killed) { daemon throws in
            try daemon.done(.start, "web")
            try daemon.ask("d.begin('upload')")
            try daemon.done(.background, "web")
            try daemon.lose(.killed)
            // The delegate is missed at the time at which the task ended before.
            try daemon.waitForEvent("web", "has no delegate any more: it has not connected to this torpord")
            #expect(try daemon.summary("web").holds == ["the task upload"])
            try daemon.ask("d.end(1)")
            try daemon.eventually("the task is ended") { try daemon.summary("web").holds.isEmpty }
        }
    }

    @Test("an operator holds an app, which is then not suspended, for a while or until he lets go")
    func hold() throws {
        try withDelegate { daemon in
            try daemon.done(.hold, "web") { $0.reason = "debugging" }
            #expect(try daemon.summary("web").holds == ["an operator (debugging)"])
            #expect(try daemon.verb(.suspend, "web").error == "refused")
            try daemon.done(.hold, "web") { $0.end = true }
            try daemon.done(.suspend, "web")
            try daemon.done(.foreground, "web")
            try daemon.done(.hold, "web") { $0.forMilliseconds = 200 }
            #expect(try daemon.summary("web").holds == ["an operator"])
            try daemon.eventually("the hold is over") { try daemon.summary("web").holds.isEmpty }
            #expect(try daemon.events("web").contains { $0.text.hasPrefix("is held no longer") })
        }
    }
}
