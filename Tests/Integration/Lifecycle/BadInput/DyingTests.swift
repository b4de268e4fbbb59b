// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

@Suite("Apps that die in the midst of an edge") struct DyingTests {
    private func dying(_ program: String, _ keys: String = "", _ body: (Daemon) throws -> Void) throws {
        let toml = """
            [apps.web]
            exec = ["/usr/bin/python3", "-S", "@D/app.py"]
            launch = "on-demand"
            restart = "never"
            ready = "notify"
            \(keys)
            """
        try withDaemon(toml, files: ["app.py": program]) { daemon throws in try body(daemon) }
    }

    static let ready = """
        import tp
        tp.notify("READY=1")
        tp.record("up")
        tp.wait()
        """

    @Test("Before it is ready, by an exit")
    func beforeReady() throws {
        try dying("import os\nos._exit(5)") { daemon throws in
            let result = try daemon.verb(.start, "web")
            #expect(!result.ok)
            #expect(result.error == "exit-failure")
            #expect(try daemon.summary("web").lastExit?.code == 5)
            #expect(try daemon.reports("web").first?.transition == "launching")
        }
    }

    @Test("Before it is ready, by a signal")
    func signalBeforeReady() throws {
        try dying("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)") { daemon throws in
            let result = try daemon.verb(.start, "web")
            #expect(!result.ok)
            #expect(["signal", "core-dump"].contains(result.error ?? ""))
            #expect(try daemon.summary("web").lastExit?.signal == "SIGSEGV")
        }
    }

    @Test("At once after READY=1")
    func afterReady() throws {
        try dying("import os, tp\ntp.notify('READY=1')\nos._exit(3)") { daemon throws in
            _ = try daemon.verb(.start, "web")
            try daemon.waitFor("web", "not-running")
            #expect(try daemon.summary("web").lastExit?.code == 3)
            #expect(try daemon.walk("web").contains("active"))
        }
    }

    @Test("Of the signal that tells it didEnterBackground")
    func onBackground() throws {
        let keys = "answers = true\nsignals = { didEnterBackground = \"SIGUSR1\" }"
        try dying(Self.ready, keys) { daemon throws in
            try daemon.done(.start, "web")
            let result = try daemon.verb(.background, "web")
            #expect(!result.ok)
            #expect(result.error == "signal")
            #expect(try daemon.reports("web").first?.transition == "entering-background")
        }
    }

    @Test("Killed while it is suspended counts as evicted, and it is not restarted")
    func whileSuspended() throws {
        try dying(Self.ready) { daemon throws in
            let pid = try #require(try daemon.done(.start, "web").pid)
            try daemon.done(.suspend, "web")
            kill(pid, SIGKILL)
            try daemon.waitFor("web", "not-running")
            #expect(try daemon.summary("web").lastExit?.reason == "evicted")
            try daemon.done(.start, "web")
        }
    }

    @Test("Killed at the moment it is being suspended or resumed: whatever it was, it is over and known")
    func whileSuspending() throws {
        try dying(Self.ready) { daemon throws in
            for _ in 0..<5 {
                let pid = try #require(try daemon.done(.start, "web").pid)
                _ = try daemon.verb(.suspend, "web") { $0.wait = false }
                kill(pid, SIGKILL)
                try daemon.waitFor("web", "not-running")
                #expect(["evicted", "signal"].contains(try daemon.summary("web").lastExit?.reason ?? ""))
                #expect(daemon.processes(of: "web").isEmpty)
            }
        }
    }

    @Test("Killed while it is being terminated: the reason is that of the request")
    func whileTerminating() throws {
        let program = """
            import tp
            tp.on("SIGTERM")
            tp.notify("READY=1")
            while True:
                tp.wait()
            """
        try dying(program, "grace = \"1min\"") { daemon throws in
            let pid = try #require(try daemon.done(.start, "web").pid)
            _ = try daemon.verb(.stop, "web") { $0.wait = false }
            try daemon.waitForRecord("web", "SIGTERM")
            kill(pid, SIGKILL)
            try daemon.waitFor("web", "not-running")
            #expect(try daemon.summary("web").lastExit?.reason == "stopped")
            #expect(try daemon.summary("web").lastExit?.signal == "SIGKILL")
        }
    }

    @Test("A force quit overtakes a stop that takes its time")
    func forceQuitOvertakes() throws {
        let program = """
            import tp
            tp.on("SIGTERM")
            tp.notify("READY=1")
            while True:
                tp.wait()
            """
        try dying(program, "grace = \"1min\"") { daemon throws in
            try daemon.done(.start, "web")
            _ = try daemon.verb(.stop, "web") { $0.wait = false }
            try daemon.waitForRecord("web", "SIGTERM")
            try daemon.done(.kill, "web")
            #expect(try daemon.summary("web").lastExit?.reason == "force-quit")
        }
    }

    @Test("A start that comes while it is being terminated launches it again once all is gone")
    func startWhileTerminating() throws {
        let program = """
            import tp
            def end():
                tp.await_file("go")
                tp.os._exit(0)
            tp.on("SIGTERM", end)
            tp.notify("READY=1")
            tp.wait()
            """
        try dying(program, "grace = \"1min\"") { daemon throws in
            let first = try daemon.done(.start, "web").pid
            _ = try daemon.verb(.stop, "web") { $0.wait = false }
            try daemon.waitForRecord("web", "SIGTERM")
            _ = try daemon.verb(.start, "web") { $0.wait = false }
            #expect(try daemon.summary("web").pid == first)
            try File.write(daemon.directory + "/go", "")
            try daemon.waitFor("web", "active")
            #expect(try daemon.summary("web").pid != first)
            #expect(try daemon.summary("web").incarnation == 2)
        }
    }
}
