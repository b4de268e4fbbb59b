// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

/// Apps and supervisors that were being ended.
extension UnderWayTests {
    @Test("An app that is being ended has only the rest of its grace", arguments: [Loss.killed, .keeper, .both])
    func grace(loss: Loss) throws {
        let toml = """
            [apps.deaf]
            exec = ["/usr/bin/python3", "-S", "@D/deaf.py"]
            ready = "notify"
            grace = "3s"
            """
        let deaf = """
            import tp
            tp.on("SIGTERM")
            tp.notify("READY=1")
            tp.wait()
            """
        try withRecovery(toml, files: ["deaf.py": deaf], loss: loss) { daemon throws in
            try daemon.waitFor("deaf", "active")
            let began = Clock.monotonic()
            _ = try daemon.verb(.stop, "deaf") { $0.wait = false }
            try daemon.waitForRecord("deaf", "SIGTERM")
            try daemon.expectClockGoesOn("grace", of: "deaf", over: loss)
            guard loss == .killed else {
                try daemon.done(.kill, "deaf")
                #expect(daemon.records("deaf") == ["SIGTERM"], "it is asked once")
                return
            }
            try daemon.eventually("it is gone") { daemon.processes(of: "deaf").isEmpty }
            #expect(Clock.monotonic() - began > .milliseconds(2_950), "that was too early")
            try daemon.eventually("it is known to be gone") { try daemon.summary("deaf").state == "not-running" }
            #expect(try daemon.summary("deaf").lastExit?.reason == "stopped")
            #expect(daemon.records("deaf") == ["SIGTERM"], "it is asked once")
        }
    }

    @Test("A shutdown goes on when torpord dies in the midst of it, and hurries nobody")
    func shutdown() throws {
        let toml = """
            [apps.base]
            exec = ["/usr/bin/python3", "-S", "@D/slow.py"]
            ready = "notify"
            grace = "20s"
            [apps.top]
            exec = ["/usr/bin/python3", "-S", "@D/slow.py"]
            ready = "notify"
            requires = ["base"]
            grace = "20s"
            """
        let slow = """
            import tp
            def end():
                tp.await_file("go")
                tp.record("ended by itself")
                tp.os._exit(0)
            tp.on("SIGTERM", end)
            tp.notify("READY=1")
            tp.wait()
            """
        try withRecovery(toml, files: ["slow.py": slow], environment: ["TORPOR_RESTART_DELAY_CAP_MS": "0"]) {
            daemon throws in
            try daemon.waitFor("top", "active")
            kill(try daemon.livingKeeper(), SIGTERM)
            try daemon.waitForRecord("top", "SIGTERM")
            for _ in 0..<3 { try daemon.lose(.killed) }
            #expect(daemon.records("base") == [], "what others require is ended after them")
            File.touch(daemon.directory + "/go")
            try daemon.eventually("everything ends") {
                _ = daemon.reap()
                return Truth.processes(marked: daemon.directory).isEmpty
            }
            for app in ["top", "base"] { #expect(daemon.records(app) == ["SIGTERM", "ended by itself"]) }
            // For the end of the scenario, which ends everything once more.
            try daemon.startAgain()
            try daemon.waitUntilItAnswers()
            File.touch(daemon.directory + "/go")
        }
    }

    @Test("Started again after it was killed in the midst of its end, it ends what is left and begins anew")
    func shutdownKilled() throws {
        let toml = """
            [apps.web]
            exec = ["/usr/bin/python3", "-S", "@D/slow.py"]
            ready = "notify"
            grace = "20s"
            [apps.down]
            exec = ["/bin/sleep", "1000"]
            """
        let slow = """
            import tp
            def end():
                tp.await_file("go")
                tp.os._exit(0)
            tp.on("SIGTERM", end)
            tp.notify("READY=1")
            tp.wait()
            """
        try withRecovery(toml, files: ["slow.py": slow]) { daemon throws in
            try daemon.waitFor("web", "active")
            try daemon.done(.stop, "down")
            let old = daemon.processes(of: "web")
            kill(try daemon.livingKeeper(), SIGTERM)
            try daemon.waitForRecord("web", "SIGTERM")
            try daemon.lose(.both)
            File.touch(daemon.directory + "/go")
            try daemon.waitFor("web", "active")
            #expect(Set(old).isDisjoint(with: daemon.processes(of: "web")))
            #expect(try daemon.summary("down").state == "not-running", "a person stopped it")
        }
    }

    @Test("A stop of what others require goes on: they are ended first")
    func chainOfStops() throws {
        let toml = """
            [apps.base]
            exec = ["/usr/bin/python3", "-S", "@D/slow.py"]
            ready = "notify"
            grace = "20s"
            [apps.top]
            exec = ["/usr/bin/python3", "-S", "@D/slow.py"]
            ready = "notify"
            requires = ["base"]
            grace = "20s"
            """
        let slow = """
            import tp
            def end():
                tp.await_file("go")
                open(tp.HERE + "/order", "a").write(tp.APP + " ")
                tp.os._exit(0)
            tp.on("SIGTERM", end)
            tp.notify("READY=1")
            tp.wait()
            """
        try withRecovery(toml, files: ["slow.py": slow]) { daemon throws in
            try daemon.waitFor("top", "active")
            _ = try daemon.verb(.stop, "base") { $0.wait = false }
            try daemon.waitForRecord("top", "SIGTERM")
            try daemon.lose(.killed)
            #expect(daemon.records("base") == [])
            File.touch(daemon.directory + "/go")
            for app in ["top", "base"] {
                try daemon.eventually("\(app) is gone") { try daemon.summary(app).state == "not-running" }
                #expect(try daemon.summary(app).lastExit?.reason == "stopped")
            }
            #expect(try String(contentsOfFile: daemon.directory + "/order", encoding: .utf8) == "top base ")
        }
    }

    @Test(
        "An after_stop command that was cut off with the keeper runs again, before the app counts as ended",
        arguments: [Loss.keeper, .both]
    )
    func hookAfter(loss: Loss) throws {
        let toml = """
            [apps.web]
            exec = ["@B/torpor-test-app"]
            after_stop = ["/usr/bin/python3", "-S", "@D/hook.py"]
            """
        let hook = """
            import tp
            tp.record("hook")
            tp.await_file("go")
            tp.record("done")
            """
        try withRecovery(toml, files: ["hook.py": hook], loss: loss) { daemon throws in
            try daemon.waitFor("web", "active")
            _ = try daemon.verb(.stop, "web") { $0.wait = false }
            try daemon.waitForRecord("web", "hook")
            try daemon.lose(loss)
            try daemon.eventually("it runs again") { daemon.records("web") == ["hook", "hook"] }
            let events = try daemon.events("web")
            #expect(events.contains { $0.text.contains("after_stop was cut off") }, "\(events)")
            #expect(try daemon.summary("web").transition == "terminating")
            File.touch(daemon.directory + "/go")
            try daemon.eventually("it has ended") { try daemon.summary("web").state == "not-running" }
            #expect(daemon.records("web") == ["hook", "hook", "done"])
            #expect(try daemon.summary("web").lastExit?.reason == "stopped")
        }
    }
}
