// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

@Suite("The heartbeat watchdog") struct WatchdogTests {
    /// Beats until there is a file `quiet`.
    static let beating = """
        import tp
        tp.record(tp.os.environ["WATCHDOG_USEC"] + " " + str(tp.os.environ["WATCHDOG_PID"] == str(tp.os.getpid())))
        tp.notify("READY=1")
        while True:
            if not tp.os.path.exists(tp.HERE + "/quiet"):
                tp.notify("WATCHDOG=1")
            tp.time.sleep(0.05)
        """

    static func toml(_ interval: String) -> String { NotifyApps.head + "watchdog = \"\(interval)\"\n" }

    /// Another app with that interval, which is missed: it never beats.
    private static func silent(_ interval: String) -> String {
        """
        [apps.silent]
        exec = ["/usr/bin/python3", "-S", "@D/silent.py"]
        launch = "on-demand"
        ready = "notify"
        restart = "never"
        watchdog = "\(interval)"

        """
    }

    private static let files = ["app.py": beating, "silent.py": "import tp\ntp.notify('READY=1')\ntp.wait()\n"]

    /// Starts the other app, and waits until it was missed: until as much time is over for all that beat before.
    private func waitForSilent(_ daemon: Daemon) throws {
        try daemon.done(.start, "silent")
        try daemon.eventually("the silent one is missed") {
            try daemon.summary("silent").lastExit?.reason == "watchdog"
        }
    }

    @Test("A missed heartbeat is answered with SIGABRT; the report says watchdog and SIGABRT")
    func missed() throws {
        try withDaemon(Self.toml("1s"), files: ["app.py": Self.beating]) { daemon throws in
            try daemon.done(.start, "web")
            try daemon.waitForRecord("web", "1000000 True")
            try File.write(daemon.directory + "/quiet", "")
            try daemon.waitFor("web", "not-running")
            let report = try #require(try daemon.reports("web").first)
            #expect(report.reason == "watchdog")
            #expect(report.signal == "SIGABRT")
            #expect(report.code == 0x8bad_f00d)
            #expect(report.deadline == "watchdog")
        }
    }

    @Test("Suspended for longer than the interval it is not missed, nor right after it was resumed")
    func pausedWhileSuspended() throws {
        try withDaemon(Self.toml("1500ms") + Self.silent("1500ms"), files: Self.files) { daemon throws in
            try daemon.done(.start, "web")
            try daemon.done(.suspend, "web")
            try waitForSilent(daemon)
            #expect(try daemon.summary("web").state == "suspended")
            #expect(try daemon.done(.resume, "web").state == "background")
            try daemon.done(.foreground, "web")
            #expect(try daemon.summary("web").incarnation == 1)
            #expect(try daemon.reports("web").isEmpty)
            // And it still watches.
            try File.write(daemon.directory + "/quiet", "")
            try daemon.waitFor("web", "not-running")
            #expect(try daemon.summary("web").lastExit?.reason == "watchdog")
        }
    }

    @Test("WATCHDOG=trigger fires it at once")
    func trigger() throws {
        let program = """
            import tp
            tp.notify("READY=1")
            tp.notify("WATCHDOG=trigger")
            tp.wait()
            """
        try withDaemon(Self.toml("10min"), files: ["app.py": program]) { daemon throws in
            _ = try daemon.verb(.start, "web") { $0.wait = false }
            try daemon.eventually("it ended") { try daemon.summary("web").lastExit?.reason == "watchdog" }
        }
    }

    @Test("An app that survives the watchdog's signal is killed after the grace")
    func survivor() throws {
        let program = """
            import tp
            tp.on("SIGABRT")
            tp.notify("READY=1")
            tp.notify("WATCHDOG=trigger")
            while True:
                tp.wait()
            """
        try withDaemon(Self.toml("10min") + "grace = \"2s\"\n", files: ["app.py": program]) { daemon throws in
            _ = try daemon.verb(.start, "web") { $0.wait = false }
            try daemon.eventually("it ended") { try daemon.summary("web").lastExit?.reason == "watchdog" }
            #expect(daemon.records("web") == ["SIGABRT"])
            #expect(try daemon.summary("web").lastExit?.signal == "SIGKILL")
            #expect(daemon.processes(of: "web").isEmpty)
        }
    }

    @Test("One app's flood of notifications does not cost another its heartbeat")
    func flood() throws {
        let flooding = """
            import socket, tp
            tp.notify("READY=1")
            s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            s.connect(tp.os.environ["NOTIFY_SOCKET"])
            while True:
                s.send(b"STATUS=x\\nWATCHDOG=1")
            """
        let toml =
            Self.toml("2s") + Self.silent("2s") + """
                [apps.flood]
                exec = ["/usr/bin/python3", "-S", "@D/flood.py"]
                launch = "on-demand"
                ready = "notify"
                nice = 19
                """
        try withDaemon(toml, files: Self.files.merging(["flood.py": flooding]) { $1 }) { daemon throws in
            try daemon.done(.start, "flood")
            try daemon.done(.start, "web")
            let pid = try daemon.summary("web").pid
            try waitForSilent(daemon)
            #expect(try daemon.summary("web").pid == pid)
            #expect(try daemon.summary("web").state == "active")
            try daemon.done(.stop, "flood")
        }
    }
}
