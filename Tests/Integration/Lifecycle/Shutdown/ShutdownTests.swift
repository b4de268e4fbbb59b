import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

@Suite("The end of the supervisor") struct ShutdownTests {
    static let program = """
        import sys, tp
        def end():
            if "slow" in sys.argv:
                tp.time.sleep(0.3)
            open(tp.HERE + "/order", "a").write(tp.APP + "\\n")
            tp.os._exit(0)
        tp.on("SIGTERM", end)
        tp.notify("READY=1")
        tp.wait()
        """

    @Test("Apps are ended in the reverse order of what they require, each before the next is told")
    func order() throws {
        let toml = """
            [defaults]
            ready = "notify"
            [apps.db]
            exec = ["/usr/bin/python3", "-S", "@D/app.py"]
            [apps.cache]
            exec = ["/usr/bin/python3", "-S", "@D/app.py", "slow"]
            requires = ["db"]
            [apps.web]
            exec = ["/usr/bin/python3", "-S", "@D/app.py", "slow"]
            requires = ["cache"]
            """
        let daemon = try Daemon(toml, files: ["app.py": Self.program])
        try daemon.waitUntilItAnswers()
        for app in ["db", "cache", "web"] { try daemon.waitFor(app, "active") }
        kill(daemon.pid, SIGTERM)
        try daemon.eventually("the order is written in full") {
            (try? String(contentsOfFile: daemon.directory + "/order", encoding: .utf8)) == "web\ncache\ndb\n"
        }
        try daemon.stop()
    }

    @Test("A suspended app's SIGTERM handler runs at shutdown")
    func suspended() throws {
        let toml = """
            [apps.web]
            exec = ["/usr/bin/python3", "-S", "@D/app.py"]
            ready = "notify"
            """
        let daemon = try Daemon(toml, files: ["app.py": Self.program])
        try daemon.waitUntilItAnswers()
        try daemon.waitFor("web", "active")
        try daemon.done(.suspend, "web")
        kill(daemon.pid, SIGTERM)
        try daemon.eventually("it said good-bye") { File.exists(daemon.directory + "/order") }
        try daemon.stop()
    }

    @Test("A second SIGTERM hurries: nobody waits for the grace of an app that ignores the first")
    func hurry() throws {
        let toml = """
            [apps.deaf]
            exec = ["/usr/bin/python3", "-S", "@D/deaf.py"]
            ready = "notify"
            grace = "10min"
            """
        let deaf = """
            import tp
            tp.signal.signal(tp.signal.SIGTERM, tp.signal.SIG_IGN)
            tp.notify("READY=1")
            tp.wait()
            """
        let daemon = try Daemon(toml, files: ["deaf.py": deaf])
        try daemon.waitUntilItAnswers()
        try daemon.waitFor("deaf", "active")
        kill(daemon.pid, SIGTERM)
        try daemon.eventually("the app is being terminated") {
            try daemon.summary("deaf").transition == "terminating"
        }
        #expect(daemon.reap() == nil)
        kill(daemon.pid, SIGTERM)
        try daemon.waitForEnd()
        try daemon.stop()
    }

    @Test("SIGINT is as good as SIGTERM")
    func interrupt() throws {
        let daemon = try Daemon("[apps.a]\nexec = [\"/bin/sleep\", \"1000\"]")
        try daemon.waitUntilItAnswers()
        try daemon.waitFor("a", "active")
        kill(daemon.pid, SIGINT)
        try daemon.waitForEnd()
        try daemon.stop()
    }
}
