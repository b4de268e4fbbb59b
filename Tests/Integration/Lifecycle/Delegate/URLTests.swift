// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

@Suite("URLs are told once, in order, and never lost", .serialized)
struct URLTests {
    enum Where: String, CaseIterable {
        case notRunning, active, background, suspended, evicted
    }

    private func urls(_ daemon: Daemon) throws -> [String] {
        try daemon.heard().filter { $0.what == "message" && $0.name == "openURL" }
            .compactMap { $0.parameters["url"]?.stringValue }
    }

    private func put(_ daemon: Daemon, _ place: Where) throws {
        switch place {
        case .notRunning: break
        case .active: try daemon.done(.start, "web")
        case .background: try daemon.done(.start, "web") { $0.background = true }
        case .suspended, .evicted:
            try daemon.done(.start, "web")
            try daemon.done(.suspend, "web")
            guard place == .evicted else { return }
            kill(try #require(try daemon.summary("web").pid), SIGKILL)
            try daemon.waitFor("web", "not-running")
        }
    }

    @Test(
        "Twenty in a row, wherever the app is, also when torpord is killed meanwhile",
        arguments: Where.allCases.map { ($0, false) } + [(.notRunning, true), (.suspended, true)]
    )
    func twenty(place: Where, isLost: Bool) throws {
        try withRecovery(Delegates.head, files: Delegates.files(), loss: .killed) { daemon in
            try put(daemon, place)
            let count = ProcessInfo.processInfo.environment["TORPOR_URLS"].flatMap { Int($0) } ?? 20
            for number in 1...count {
                // More than 16 do not wait: who asks for one more is told that.
                try daemon.eventually("there is room for it") {
                    let result = try daemon.verb(.foreground, "web") {
                        $0.url = "notes:\(number)"
                        $0.wait = false
                    }
                    return result.ok
                }
                if isLost, number % 7 == 0 { try daemon.lose(.killed) }
            }
            try daemon.eventually("all are told") { try urls(daemon).count >= count }
            #expect(try urls(daemon) == (1...count).map { "notes:\($0)" })
            try daemon.eventually("nothing waits any more") { try daemon.mailbox().mail.isEmpty }
            #expect(try daemon.summary("web").state == "active")
        }
    }

    @Test("The verb tells what became of it, and what the app does not open is kept") func outcome() throws {
        let answers = """
            openURL=lambda m: {"1": "done", "2": {"result": "failed", "text": "no such note"}, "3": "unhandled"}\
            [m["parameters"]["url"][-1]]
            """
        try withDaemon(Delegates.head, files: Delegates.files(answers)) { daemon in
            try daemon.done(.foreground, "web") { $0.url = "notes:1" }
            let failed = try daemon.verb(.foreground, "web") { $0.url = "notes:2" }
            #expect(
                !failed.ok && failed.message?.contains("could not open the URL: no such note") ?? false,
                "\(failed)"
            )
            let unhandled = try daemon.verb(.foreground, "web") { $0.url = "notes:3" }
            #expect(!unhandled.ok && unhandled.error == "unhandled", "\(unhandled)")
            #expect(try daemon.status("web").unhandled == 1)
            for url in ["file:///etc/passwd", "no scheme", "notes:a b"] {
                let refused = try daemon.verb(.foreground, "web") { $0.url = url }
                #expect(!refused.ok && refused.message?.contains("a URL") ?? false, "\(refused)")
            }
        }
    }

    @Test("An app that can hear of none is refused one, and stays where it is") func deaf() throws {
        let toml = "[apps.web]\nexec = [\"/bin/sleep\", \"1000\"]\nlaunch = \"on-demand\"\n"
        try withDaemon(toml) { daemon in
            let refused = try daemon.verb(.foreground, "web") { $0.url = "notes:1" }
            #expect(!refused.ok && refused.message?.contains("has no delegate") ?? false, "\(refused)")
            #expect(try daemon.summary("web").state == "not-running")
        }
    }

    @Test("One that waits comes after the boot, when somebody brings the app to the foreground") func boot() throws {
        let answers = "didFinishLaunching=lambda m: time.sleep(100)"
        let daemon = try Daemon(Delegates.head, files: Delegates.files(answers), nested: true)
        try daemon.waitUntilItAnswers()
        _ = try daemon.verb(.foreground, "web") {
            $0.url = "notes:1"
            $0.wait = false
        }
        try daemon.waitForMessage("didFinishLaunching")
        for pid in Truth.processes(marked: daemon.directory) { kill(pid, SIGSTOP) }
        for pid in Truth.processes(marked: daemon.directory) { kill(pid, SIGKILL) }
        try daemon.eventually("all is gone") {
            _ = daemon.reap()
            return Truth.processes(marked: daemon.directory).isEmpty
        }
        try FileManager.default.removeItem(atPath: daemon.runtime)
        try File.write(daemon.directory + "/app.py", "from delegate import *\nobey(Delegate())\n")
        try daemon.startAgain()
        try daemon.waitUntilItAnswers()
        try daemon.eventually("it is told") {
            if try daemon.summary("web").state != "active" { _ = try? daemon.verb(.foreground, "web") }
            return try urls(daemon) == ["notes:1"]
        }
        try daemon.endEverything()
    }
}
