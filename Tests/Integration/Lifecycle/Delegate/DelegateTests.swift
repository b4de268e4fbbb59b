// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

/// An app that hears its lifecycle on its own socket, and answers.
@Suite("Delegates") struct DelegateTests {
    private func withDelegate(
        _ keys: String = "",
        answers: String = "",
        before: String = "",
        nested: Bool = false,
        _ body: (Daemon) throws -> Void
    ) throws {
        let daemon = try Daemon(
            Delegates.head + keys,
            files: Delegates.files(answers, before: before),
            nested: nested
        )
        try daemon.waitUntilItAnswers()
        try body(daemon)
    }

    @Test("a foreground launch, an interruption, the background, suspension, coming back and the end")
    func foreground() throws {
        try withDelegate { daemon in
            try daemon.done(.start, "web")
            #expect(try daemon.messages() == ["willFinishLaunching", "didFinishLaunching", "didBecomeActive"])
            try daemon.done(.interrupt, "web")
            try daemon.done(.interrupt, "web") { $0.end = true }
            try daemon.done(.suspend, "web")
            #expect(Truth.isStopped(try #require(daemon.processes(of: "web").first)))
            try daemon.done(.foreground, "web")
            try daemon.done(.stop, "web")
            let all = try daemon.heard().filter { $0.what == "message" }
            #expect(
                all.compactMap(\.name) == [
                    "willFinishLaunching", "didFinishLaunching", "didBecomeActive", "willResignActive",
                    "didBecomeActive", "willResignActive", "didEnterBackground", "resumed", "willEnterForeground",
                    "didBecomeActive", "willTerminate",
                ]
            )
            #expect(all.compactMap(\.id) == Array(1...11))
            #expect(all.last?.parameters["reason"]?.stringValue == "stopped")
            let options = try #require(all.first?.parameters["options"])
            #expect(options["reason"]?.stringValue == "user" && options["foreground"]?.boolValue == true)
            let gap = try #require(all.first { $0.name == "resumed" }?.parameters["gap_s"]?.doubleValue)
            #expect(gap > 0 && gap < 10)
            #expect(try daemon.summary("web").lastExit?.reason == "stopped")
        }
    }

    @Test("a background launch is told so, and enters the background as soon as it is ready")
    func background() throws {
        try withDelegate { daemon in
            try daemon.done(.start, "web") { $0.background = true }
            #expect(try daemon.messages() == ["willFinishLaunching", "didFinishLaunching", "didEnterBackground"])
            let first = try #require(try daemon.heard().first { $0.what == "message" })
            #expect(first.parameters["options"]?["foreground"]?.boolValue == false)
            #expect(try daemon.walk("web") == ["background"])
        }
    }

    @Test("an app whose delegate does not answer its launch messages in time is ended")
    func launchDeadline() throws {
        try withDelegate("launch_deadline = \"300ms\"\n", answers: "willFinishLaunching=hold") { daemon in
            let result = try daemon.verb(.start, "web")
            #expect(!result.ok && result.error == "launch-deadline")
        }
    }

    @Test("a delegate that does not answer didEnterBackground is ended; pending does not help it")
    func backgroundDeadline() throws {
        let pending = #"didEnterBackground={"result": "pending", "text": "saving", "expected_ms": 20000}"#
        try withDelegate("background_deadline = \"300ms\"\n", answers: pending) { daemon in
            try daemon.done(.start, "web")
            let result = try daemon.verb(.background, "web")
            #expect(!result.ok && result.error == "background-deadline")
        }
    }

    @Test("pending gives any other message the time that it names")
    func pending() throws {
        let answers = #"willResignActive={"result": "pending", "expected_ms": 5000}"#
        let keys = "transition_deadline = \"300ms\"\non_missed_transition = \"end\"\nextension_limit = \"20s\"\n"
        try withDelegate(keys, answers: answers) { daemon in
            try daemon.done(.start, "web")
            _ = try daemon.verb(.interrupt, "web") { $0.wait = false }
            let message = try daemon.waitForMessage("willResignActive")
            let deadline = try #require(message.deadlineMilliseconds)
            #expect(deadline > 0 && deadline <= 300)
            try daemon.eventually("the deadline is extended") {
                let left = try daemon.status("web").deadlines.first { $0.name == "transition" }
                return (left?.limitMilliseconds ?? 0) > 2_000
            }
            try daemon.ask("d.answer(\(try #require(message.id)))")
            try daemon.waitFor("web", "inactive")
        }
    }

    @Test("an answer out of order, twice or to nothing is an error, and changes nothing")
    func wrongAnswers() throws {
        try withDelegate(answers: "willResignActive=hold") { daemon in
            try daemon.done(.start, "web")
            _ = try daemon.verb(.interrupt, "web") { $0.wait = false }
            let id = try #require(try daemon.waitForMessage("willResignActive").id)
            #expect(try daemon.ask("d.attempt('Answer', id=\(id + 5), result='done')").stringValue == "NotInFlight")
            #expect(try daemon.ask("d.attempt('Answer', id=1, result='done')").stringValue == "AlreadyAnswered")
            #expect(try daemon.ask("d.attempt('Answer', id=\(id), result='well')").stringValue == "InvalidParameter")
            #expect(try daemon.summary("web").transition == "deactivating")
            try daemon.ask("d.answer(\(id))")
            try daemon.waitFor("web", "inactive")
            #expect(try daemon.ask("d.attempt('Answer', id=\(id), result='done')").stringValue == "AlreadyAnswered")
        }
    }

    @Test("a process of another app is refused, and a child of the app is not")
    func strangers() throws {
        let other = """
            [apps.other]
            exec = ["/usr/bin/python3", "-S", "@D/app.py"]
            launch = "on-demand"
            """
        try withDelegate(other) { daemon in
            try daemon.done(.start, "web")
            try daemon.done(.start, "other")
            let path = "\(daemon.runtime)/apps/web/app"
            let call = "Connection('\(path)').call('State')"
            let stranger = """
                try:
                    report('stranger', line='stranger ' + \(call)['app'])
                except Refused as e:
                    report('stranger', line='stranger ' + e.name)
                """
            try daemon.ask(stranger, app: "other")
            #expect(daemon.records("other").contains("stranger NotPermitted"))
            try daemon.ask("fork(lambda: report('child', line='child ' + \(call)['app']))")
            try daemon.waitForRecord("web", "child web")
        }
    }

    @Test("a second process cannot become the delegate; the same one can again")
    func secondDelegate() throws {
        try withDelegate { daemon in
            try daemon.done(.start, "web")
            try daemon.ask("fork(lambda: Delegate(attach=False).listen() or wait())")
            try daemon.waitForRecord("web", "Attach AlreadyAttached")
            try daemon.ask("d.stream.socket.shutdown(socket.SHUT_RDWR)")
            try daemon.eventually("it is attached again") {
                try daemon.heard().filter { $0.what == "attached" && $0.pid == daemon.processes(of: "web").first }.count
                    >= 2
            }
            try daemon.done(.background, "web")
            #expect(try daemon.messages().last == "didEnterBackground")
        }
    }

    @Test("a second delegate in one process is refused, and the first one hears on")
    func twoInOneProcess() throws {
        try withDelegate { daemon in
            try daemon.done(.start, "web")
            try daemon.ask("Delegate(attach=False).listen()")
            let refused = try #require(try daemon.heard().first { $0.what == "refused" })
            #expect(refused.error == "AlreadyAttached")
            #expect(refused.reply["message"]?.stringValue?.contains("over another connection") == true)
            try daemon.done(.background, "web")
            #expect(try daemon.messages().last == "didEnterBackground")
            #expect(try daemon.heard().filter { $0.what == "attached" }.count == 1)
        }
    }

    /// An app whose main process runs the delegate, and then this.
    private func withDelegate(ofShell next: String, _ body: (Daemon) throws -> Void) throws {
        let toml = Delegates.head.replacing(
            #"["/usr/bin/python3", "-S", "@D/app.py"]"#,
            with: #"["/bin/sh", "-c", "while :; do /usr/bin/python3 -S @D/app.py; \#(next); done"]"#
        )
        try withDaemon(toml, files: Delegates.files()) { daemon in
            try daemon.done(.start, "web")
            try daemon.ask("d.begin('upload')")
            #expect(try daemon.summary("web").holds.contains { $0.contains("upload") })
            // The child has copies of all descriptors.
            try daemon.tellLater("fork(wait) and os._exit(0)")
            try body(daemon)
        }
    }

    @Test("a delegate that has ended is gone with its tasks, also while a process that it has forked lives")
    func forked() throws {
        try withDelegate(ofShell: "sleep 1000") { daemon in
            try daemon.waitForEvent("web", "lost its delegate: process ")
            try daemon.waitForEvent("web", "has no delegate any more")
            try daemon.eventually("its task is over") { try daemon.summary("web").holds.isEmpty }
            #expect(try daemon.summary("web").state == "active")
        }
    }

    @Test("the next delegate is accepted at once, although a child of the former one holds its connections")
    func successor() throws {
        try withDelegate(ofShell: "true") { daemon in
            try daemon.eventually("another process is the delegate") {
                Set(try daemon.heard().filter { $0.what == "attached" }.map(\.pid)).count == 2
            }
            try daemon.eventually("the former one's task is over") { try daemon.summary("web").holds.isEmpty }
            try daemon.done(.background, "web")
            #expect(try daemon.messages().last == "didEnterBackground")
            #expect(try !daemon.heard().contains { $0.error == "AlreadyAttached" })
        }
    }

    @Test("a delegate that became another program by execve attaches again")
    func executed() throws {
        try withDelegate { daemon in
            try daemon.done(.start, "web")
            try daemon.tellLater("os.execv('/usr/bin/python3', ['python3', '-S', HERE + '/app.py'])")
            try daemon.eventually("it is attached again") {
                try daemon.heard().filter { $0.what == "attached" }.count == 2
            }
            try daemon.done(.background, "web")
            #expect(try daemon.messages().last == "didEnterBackground")
        }
    }

    @Test("a delegate that connects and never reads is ended when it should have entered the background")
    func neverReads() throws {
        let toml = """
            [apps.web]
            exec = ["/usr/bin/python3", "-S", "@D/app.py"]
            launch = "on-demand"
            restart = "never"
            background_deadline = "300ms"
            transition_deadline = "200ms"
            """
        let program = "from delegate import *\nc = Connection()\nc.send('Attach', more=True)\nobey(c)\n"
        let daemon = try Daemon(toml, files: ["delegate.py": Delegates.library, "app.py": program])
        try daemon.waitUntilItAnswers()
        try daemon.done(.start, "web")
        try daemon.eventually("it is attached") {
            try daemon.events("web").contains { $0.text.hasPrefix("has a delegate") }
        }
        let result = try daemon.verb(.background, "web")
        #expect(!result.ok && result.error == "background-deadline")
        #expect(try daemon.reports("web").first?.text?.contains("didEnterBackground") == true)
    }

    @Test("a URL is told before the app is active, at once while it is, and once")
    func urls() throws {
        try withDelegate { daemon in
            try daemon.done(.foreground, "web") { $0.url = "notes:1" }
            try daemon.waitForMessage("openURL")
            #expect(try daemon.messages().suffix(2) == ["openURL", "didBecomeActive"])
            try daemon.done(.foreground, "web") { $0.url = "notes:2" }
            let second = try daemon.waitForMessage("openURL", count: 2)
            #expect(second.parameters["url"]?.stringValue == "notes:2")
            try daemon.done(.restart, "web")
            let last = try #require(try daemon.heard().last { $0.name == "willFinishLaunching" })
            #expect(last.incarnation == 2 && last.parameters["options"]?["url"]?.isNull ?? true)
            #expect(try daemon.messages(incarnation: 2).contains("openURL") == false)
        }
    }

    @Test("when the delegate leaves, nothing is asked of it any longer")
    func leaves() throws {
        try withDelegate("background_deadline = \"1s\"\n", answers: "willResignActive=hold") { daemon in
            try daemon.done(.start, "web")
            _ = try daemon.verb(.suspend, "web") { $0.wait = false }
            try daemon.waitForMessage("willResignActive")
            // It may be stopped before it could say that it has done so.
            try daemon.tellLater("d.leave()")
            try daemon.waitFor("web", "suspended")
            #expect(try daemon.messages().last == "willResignActive")
        }
    }

    @Test(
        "a message in flight is neither lost nor repeated when torpord is replaced",
        arguments: [Loss.killed, .keeper]
    )
    func survives(loss: Loss) throws {
        let toml = Delegates.head + "transition_deadline = \"30s\"\nbackground_deadline = \"30s\"\n"
        let files = Delegates.files("willResignActive=hold")
        try withRecovery(toml, files: files, loss: loss) { daemon throws in
            try daemon.done(.start, "web")
            _ = try daemon.verb(.suspend, "web") { $0.wait = false }
            let id = try #require(try daemon.waitForMessage("willResignActive").id)
            try daemon.lose(loss)
            try daemon.eventually("the delegate is back") {
                try daemon.heard().filter { $0.what == "attached" }.count == 2
            }
            try daemon.tellLater("d.answer(\(id))")
            try daemon.waitFor("web", "suspended")
            let all = try daemon.heard().filter { $0.what == "message" }
            #expect(all.compactMap(\.id) == Array(1...Int64(all.count)))
            #expect(all.last?.name == "didEnterBackground")
        }
    }

    @Test("an eviction of an app that could prepare comes without notice")
    func prepared() throws {
        try withDelegate { daemon in
            try daemon.done(.start, "web")
            try daemon.done(.suspend, "web")
            let pid = try #require(daemon.processes(of: "web").first)
            kill(pid, SIGKILL)
            try daemon.eventually("it is evicted") { try daemon.summary("web").lastExit?.reason == "evicted" }
            try daemon.done(.start, "web")
            let again = try #require(try daemon.heard().last { $0.name == "willFinishLaunching" })
            #expect(again.parameters["options"]?["previous_termination"]?.stringValue == "evicted")
            #expect(again.id == 1 && again.incarnation == 2)
        }
    }
}
