// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import TestAddresses
import Testing
import TorporAPI

@Suite("Programs that know nothing of Torpor") struct UnawareTests {
    private static let server = """
        import socket, sys, tp
        tp.record("up")
        tp.await_file("go")
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind((sys.argv[1], int(sys.argv[2])))
        s.listen(16)
        answers = 0
        while True:
            c, _ = s.accept()
            c.settimeout(2)
            try:
                if c.recv(1000):
                    answers += 1
                    c.sendall(b"HTTP/1.0 503 Later\\r\\n\\r\\n" if answers < 3 else b"HTTP/1.0 200 OK\\r\\n\\r\\n")
            except OSError:
                pass
            c.close()
        """

    private func gated(_ ready: String, _ exec: String, files: [String: String] = [:]) throws {
        let toml = """
            [apps.web]
            exec = \(exec)
            launch = "on-demand"
            ready = \(ready)
            launch_deadline = "1min"
            """
        try withDaemon(toml, files: files) { daemon throws in
            _ = try daemon.verb(.start, "web") { $0.wait = false }
            try daemon.eventually("it is launched") { daemon.processes(of: "web").count >= 1 }
            #expect(try daemon.summary("web").transition == "launching")
            try File.write(daemon.directory + "/go", "")
            try daemon.waitFor("web", "active")
        }
    }

    @Test("ready = tcp: not active before its port answers")
    func tcp() throws {
        let port = try TestAddress.port()
        try gated(
            #"{ tcp = "\#(TestAddress.host):\#(port)", interval = "10ms" }"#,
            #"["/usr/bin/python3", "-S", "@D/app.py", "\#(TestAddress.host)", "\#(port)"]"#,
            files: ["app.py": Self.server]
        )
    }

    @Test("ready = http: 503 is no readiness, 200 is")
    func http() throws {
        let port = try TestAddress.port()
        try gated(
            #"{ http = "http://\#(TestAddress.host):\#(port)/health", interval = "10ms" }"#,
            #"["/usr/bin/python3", "-S", "@D/app.py", "\#(TestAddress.host)", "\#(port)"]"#,
            files: ["app.py": Self.server]
        )
    }

    @Test("ready = command: not active before it exits with 0")
    func command() throws {
        try gated(#"{ command = ["/bin/test", "-e", "@D/go"], interval = "20ms" }"#, #"["/bin/sleep", "1000"]"#)
    }

    @Test("ready = file: not active before it is there")
    func file() throws {
        try gated(#"{ file = "@D/go", interval = "10ms" }"#, #"["/bin/sleep", "1000"]"#)
    }

    @Test("A ready command that hangs is ended with its launch, and nothing of it is left")
    func hangingCommand() throws {
        let toml = """
            [apps.web]
            exec = ["/bin/sleep", "1000"]
            launch = "on-demand"
            restart = "never"
            ready = { command = ["/bin/sleep", "999"], timeout = "1min" }
            launch_deadline = "300ms"
            """
        try withDaemon(toml) { daemon throws in
            #expect(try daemon.verb(.start, "web").error == "launch-deadline")
            try daemon.eventually("the command is gone") { daemon.processes(of: "web").isEmpty }
        }
    }

    // MARK: Messages as signals

    static let listening = """
        import tp
        for name in ["SIGUSR1", "SIGUSR2", "SIGHUP"]:
            tp.on(name)
        tp.record("up")
        tp.wait()
        """

    @Test("Messages arrive as the signals that the configuration gives them")
    func signals() throws {
        let toml = """
            [apps.web]
            exec = ["/usr/bin/python3", "-S", "@D/app.py"]
            launch = "on-demand"
            signals = { didEnterBackground = "SIGUSR1", willEnterForeground = "SIGUSR2", resumed = "SIGHUP" }
            """
        try withDaemon(toml, files: ["app.py": Self.listening]) { daemon throws in
            try daemon.done(.start, "web")
            try daemon.waitForRecord("web", "up")
            try daemon.done(.background, "web")
            try daemon.waitForRecord("web", "SIGUSR1")
            try daemon.done(.suspend, "web")
            try daemon.done(.resume, "web")
            try daemon.waitForRecord("web", "SIGHUP")
            try daemon.done(.foreground, "web")
            try daemon.waitForRecord("web", "SIGUSR2")
            #expect(daemon.records("web") == ["up", "SIGUSR1", "SIGHUP", "SIGUSR2"])
        }
    }

    @Test("A program that is suspended has handled first what a signal told it")
    func handledBeforeTheStop() throws {
        let program = """
            import tp
            def save():
                began = tp.time.process_time()
                while tp.time.process_time() - began < 0.03:
                    pass
                tp.record("saved")
            tp.on("SIGUSR1", save)
            tp.record("up")
            tp.wait()
            """
        let toml = """
            [apps.web]
            exec = ["/usr/bin/python3", "-S", "@D/app.py"]
            launch = "on-demand"
            signals = { didEnterBackground = "SIGUSR1" }
            """
        try withDaemon(toml, files: ["app.py": program]) { daemon throws in
            try daemon.done(.start, "web")
            try daemon.waitForRecord("web", "up")
            for _ in 0..<3 {
                try daemon.done(.suspend, "web")
                #expect(daemon.records("web").last == "saved")
                try daemon.done(.foreground, "web")
            }
            #expect(daemon.records("web").filter { $0 == "saved" }.count == 3)
        }
    }

    @Test("A signal that a program blocks for ever does not keep it from being suspended")
    func blockedSignal() throws {
        let program = """
            import tp
            tp.signal.pthread_sigmask(tp.signal.SIG_BLOCK, [tp.signal.SIGUSR1])
            tp.record("up")
            while True:
                pass
            """
        let toml = """
            [apps.web]
            exec = ["/usr/bin/python3", "-S", "@D/app.py"]
            launch = "on-demand"
            signals = { didEnterBackground = "SIGUSR1" }
            """
        try withDaemon(toml, files: ["app.py": program]) { daemon throws in
            try daemon.done(.start, "web")
            try daemon.waitForRecord("web", "up")
            let pid = try #require(try daemon.done(.suspend, "web").pid)
            #expect(Truth.isStopped(pid))
        }
    }

    static let answering = """
        [apps.web]
        exec = ["/usr/bin/python3", "-S", "@D/app.py"]
        launch = "on-demand"
        ready = "notify"
        answers = true
        restart = "never"
        signals = { didEnterBackground = "SIGUSR1" }

        """

    @Test("With answers = true the edge waits for X_TORPOR_DONE")
    func answers() throws {
        let program = """
            import tp
            def answer():
                tp.await_file("go")
                tp.notify("X_TORPOR_DONE=didEnterBackground")
            tp.on("SIGUSR1", answer)
            tp.notify("READY=1")
            tp.wait()
            """
        try withDaemon(Self.answering, files: ["app.py": program]) { daemon throws in
            try daemon.done(.start, "web")
            _ = try daemon.verb(.background, "web") { $0.wait = false }
            try daemon.waitForRecord("web", "SIGUSR1")
            #expect(try daemon.summary("web").transition == "entering-background")
            try File.write(daemon.directory + "/go", "")
            try daemon.waitFor("web", "background")
        }
    }

    @Test("didEnterBackground left without an answer ends the app: background-deadline")
    func backgroundDeadline() throws {
        let program = """
            import tp
            tp.on("SIGUSR1")
            tp.notify("READY=1")
            tp.wait()
            """
        let toml = Self.answering + "background_deadline = \"1s\"\ngrace = \"1s\"\n"
        try withDaemon(toml, files: ["app.py": program]) { daemon throws in
            try daemon.done(.start, "web")
            let result = try daemon.verb(.suspend, "web")
            #expect(!result.ok)
            #expect(result.error == "background-deadline", "\(result.message ?? "")")
            let report = try #require(try daemon.reports("web").first)
            #expect(report.reason == "background-deadline")
            #expect(report.deadline == "background")
            #expect(report.transition == "entering-background")
            #expect(daemon.records("web") == ["SIGUSR1"])
        }
    }

    @Test("An app that opts out of the background is ended where it would enter it, with its SIGTERM handler")
    func exitsOnSuspend() throws {
        let toml = """
            [apps.web]
            exec = ["/usr/bin/python3", "-S", "@D/app.py"]
            launch = "on-demand"
            restart = "always"
            exits_on_suspend = true
            """
        let program = """
            import tp
            tp.on("SIGTERM", lambda: tp.os._exit(0))
            tp.record("up")
            tp.wait()
            """
        try withDaemon(toml, files: ["app.py": program]) { daemon throws in
            try daemon.done(.start, "web")
            try daemon.waitForRecord("web", "up")
            _ = try daemon.verb(.background, "web")
            try daemon.waitFor("web", "not-running")
            #expect(daemon.records("web") == ["up", "SIGTERM"])
            #expect(try daemon.summary("web").lastExit?.reason == "exits-on-suspend")
        }
    }
}
