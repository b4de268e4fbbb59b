// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

@Suite("The end of the supervisor") struct ShutdownTests {
    /// Hears SIGTERM, and ends when it is let.
    static let program = """
        import tp
        def end():
            tp.await_file("end." + tp.APP)
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
            exec = ["/usr/bin/python3", "-S", "@D/app.py"]
            ready = "notify"
            grace = "1min"
            [apps.db]
            [apps.cache]
            requires = ["db"]
            [apps.web]
            requires = ["cache"]
            """
        let daemon = try Daemon(toml, files: ["app.py": Self.program])
        try daemon.waitUntilItAnswers()
        let apps = ["web", "cache", "db"]
        for app in apps { try daemon.waitFor(app, "active") }
        kill(daemon.pid, SIGTERM)
        try daemon.endInTurn(apps)
        try daemon.waitForEnd()
        #expect(try File.readString(daemon.directory + "/order") == "web\ncache\ndb\n")
        try daemon.stop()
    }

    @Test("A delegate is told willTerminate at a shutdown, which a reboot is too, before SIGTERM")
    func delegate() throws {
        let daemon = try Daemon(Delegates.head, files: Delegates.files())
        try daemon.waitUntilItAnswers()
        try daemon.done(.start, "web")
        kill(daemon.pid, SIGTERM)
        try daemon.waitForEnd()
        let last = try daemon.heard().last { $0.what == "message" }
        #expect(last?.name == "willTerminate" && last?.parameters["reason"]?.stringValue == "shutdown")
        try daemon.stop()
    }

    @Test("A suspended app's SIGTERM handler runs at shutdown")
    func suspended() throws {
        let toml = """
            [apps.web]
            exec = ["/usr/bin/python3", "-S", "@D/app.py"]
            ready = "notify"
            """
        let daemon = try Daemon(toml, files: ["app.py": Self.program, "end.web": ""])
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

extension Daemon {
    /// Lets apps of ``ShutdownTests/program`` end one after the other, and expects that none is told before its turn.
    func endInTurn(_ apps: [String], at location: SourceLocation = #_sourceLocation) throws {
        for (index, app) in apps.enumerated() {
            try waitForRecord(app, "SIGTERM", at: location)
            for later in apps[(index + 1)...] {
                #expect(
                    try summary(later).transition != "terminating" && records(later).isEmpty,
                    "\(later), while \(app) ends",
                    sourceLocation: location
                )
            }
            touch("end." + app)
        }
    }
}
