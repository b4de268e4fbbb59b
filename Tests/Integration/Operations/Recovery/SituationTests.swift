// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

/// One app in each situation; then torpord goes, another one comes, and each app is where it was.
@Suite("Recovery: every app is where it was") struct SituationTests {
    private static let toml = """
        [defaults]
        restart_backoff = { initial = "5ms", cap = "5ms", limit = 50, window = "1min" }
        [apps.active]
        exec = ["@B/torpor-test-app", "--period", "3000"]
        [apps.back]
        exec = ["@B/torpor-test-app", "--period", "3000"]
        [apps.asleep]
        exec = ["@B/torpor-test-app", "--tree", "--period", "3000"]
        [apps.interrupted]
        exec = ["@B/torpor-test-app"]
        [apps.counted]
        exec = ["@B/torpor-test-app"]
        [apps.dog]
        exec = ["@B/torpor-test-app", "--ready", "0", "--beat", "50"]
        ready = "notify"
        watchdog = "1s"
        [apps.hopeless]
        exec = ["/bin/false"]
        restart_backoff = { initial = "5ms", limit = 2 }
        [apps.resting]
        exec = ["/bin/sh", "-c", "exit 7"]
        restart_backoff = { initial = "1h", cap = "1h", jitter = 0 }
        [apps.stopped]
        exec = ["@B/torpor-test-app"]
        [apps.never]
        exec = ["@B/torpor-test-app"]
        launch = "on-demand"
        [apps.done]
        exec = ["@B/torpor-test-app", "--oneshot", "3"]
        type = "oneshot"
        [apps.web]
        exec = ["/usr/bin/python3", "-S", "@D/app.py"]
        ready = "notify"
        [apps.moved]
        exec = ["/usr/bin/python3", "-S", "@D/moved.py"]
        ready = "notify"

        """

    private static let files = [
        "app.py": NotifyApps.obedient,
        // The child is the main process from then on, and the first one goes.
        "moved.py": """
        from tp import *
        def work():
            os.setsid()
            notify("READY=1")
            wait()
        notify("MAINPID=%d" % fork(work))
        await_file("moved")
        """,
    ]

    /// What must not change.
    private struct View: Equatable, CustomStringConvertible {
        let description: String

        init(_ app: AppSummary) {
            let exit = app.lastExit.map { "\($0.reason) \($0.code ?? -1) \($0.signal ?? "") \($0.at ?? 0)" }
            description =
                "\(app.name): \(app.state) \(app.transition ?? "-") goal \(app.goal) pid \(app.pid ?? 0) incarnation "
                + "\(app.incarnation ?? 0) restarts \(app.restarts) failed \(app.failed) status "
                + "\(app.status ?? "-") exit \(exit ?? "-")"
        }
    }

    private func prepare(_ daemon: Daemon) throws {
        for app in ["active", "back", "asleep", "interrupted", "counted", "dog", "stopped"] {
            try daemon.waitFor(app, "active")
        }
        try daemon.done(.background, "back")
        try daemon.eventually("the tree is there") { daemon.processes(of: "asleep").count == 3 }
        try daemon.done(.suspend, "asleep")
        try daemon.done(.interrupt, "interrupted")
        try daemon.done(.stop, "stopped")
        for restarts in 1...2 {
            kill(try #require(try daemon.summary("counted").pid), SIGKILL)
            try daemon.eventually("it was restarted") {
                let summary = try daemon.summary("counted")
                return summary.restarts == Int64(restarts) && summary.state == "active"
            }
        }
        try daemon.eventually("it is given up") { try daemon.summary("hopeless").failed }
        try daemon.eventually("it rests before its restart") {
            try daemon.summary("resting").nextRestartMilliseconds != nil
        }
        try daemon.eventually("it is done") { try daemon.summary("done").lastExit?.reason == "exit-success" }
        try daemon.waitForRecord("web", "up")
        try daemon.tell("1", #"notify("READY=1\nSTATUS=serving ünïcode")"#)
        try daemon.tell(
            "2",
            """
            fd = os.memfd_create("kept"); os.write(fd, b"whole")
            notify("FDSTORE=1\\nFDNAME=first", [fd]); notify("FDSTORE=1\\nFDNAME=second", [os.open("/dev/null", 0)])
            """
        )
        try daemon.waitFor("web", "active")
        try daemon.tell("3", #"notify("RELOADING=1\nMONOTONIC_USEC=%d" % (time.monotonic_ns() // 1000))"#)
        try daemon.waitForEvent("web", "is reloading")
        try daemon.waitFor("moved", "active")
        let first = try daemon.summary("moved").pid
        File.touch(daemon.directory + "/moved")
        try daemon.eventually("its first process is gone") {
            let now = daemon.processes(of: "moved")
            let main = try daemon.summary("moved").pid
            return now.count == 1 && now.first == main
        }
        #expect(try daemon.summary("moved").pid != nil && first != nil)
    }

    /// Processor time, which a process that never ran has not used; the start time tells it from another one.
    private func used(_ pid: Int32) throws -> [UInt64] {
        let stat = try ProcFS.stat(pid)
        let switches = Truth.voluntarySwitches(pid) ?? -1
        return [stat.userTicks, stat.systemTicks, stat.startTime, UInt64(switches)]
    }

    @Test("state, process, counts, status, exits, stored descriptors, time", arguments: Loss.allCases)
    func everything(loss: Loss) throws {
        try withRecovery(Self.toml, files: Self.files, loss: loss) { daemon throws in
            try prepare(daemon)
            let asleep = daemon.processes(of: "asleep")
            #expect(asleep.count == 3 && asleep.allSatisfy(Truth.isStopped))
            let usedBefore = try asleep.map(used)
            let written = try "mcg".map { try daemon.truth("asleep", voice: $0).attempted }
            let views = try daemon.list().filter { $0.name != "dog" && $0.name != "tick" }.map(View.init)
            let reports = try daemon.reports("counted").count
            // The restart comes when it would have come.
            try daemon.expectClockGoesOn("restart", of: "resting", over: loss)
            let after = try daemon.list().filter { $0.name != "dog" && $0.name != "tick" }.map(View.init)
            for (before, after) in zip(views, after) { #expect(before == after) }

            // The suspended one has not run for an instant.
            #expect(asleep.allSatisfy(Truth.isStopped))
            #expect(try asleep.map(used) == usedBefore)
            #expect(try "mcg".map { try daemon.truth("asleep", voice: $0).attempted } == written)

            // The store gives them back as soon as its file is open.
            try daemon.eventually("its reports are back") { try daemon.reports("counted").count == reports }

            try live(daemon, loss)
        }
    }

    @Test(
        "A stop and a force quit of one that waited for its restart are remembered, and are no failure",
        arguments: [Loss.killed, .both]
    )
    func stoppedBeforeRestart(loss: Loss) throws {
        func failing(_ name: String) -> String {
            """
            [apps.\(name)]
            exec = ["/bin/sh", "-c", "exit 7"]
            restart_backoff = { initial = "1h", cap = "1h", jitter = 0 }

            """
        }
        try withRecovery(failing("stopped") + failing("quit"), loss: loss) { daemon throws in
            for app in ["stopped", "quit"] {
                try daemon.eventually("it waits for its restart") {
                    try daemon.summary(app).nextRestartMilliseconds != nil
                }
            }
            try daemon.done(.stop, "stopped")
            try daemon.done(.kill, "quit")
            func expectWell() throws {
                for (app, reason) in [("stopped", "stopped"), ("quit", "force-quit")] {
                    let summary = try daemon.summary(app)
                    #expect(summary.state == "not-running" && summary.goal == "not-running")
                    #expect(summary.lastExit?.reason == reason && summary.lastExit?.code == nil)
                    #expect(summary.nextRestartMilliseconds == nil && !summary.failed)
                }
                let health = try Spawn.run([Built.path("torpor"), "health", "--socket", daemon.socket])
                #expect(health.code == 0 && health.output.contains("2 stopped by a user"), "\(health.output)")
            }
            try expectWell()
            try daemon.lose(loss)
            try expectWell()
        }
    }

    /// They are not only shown as they were: they can be spoken with, and ended.
    private func live(_ daemon: Daemon, _ loss: Loss) throws {
        try daemon.tell("4", #"notify("READY=1\nSTATUS=reloaded")"#)
        try daemon.waitForEvent("web", "has reloaded")
        #expect(try daemon.summary("web").status == "reloaded")

        try daemon.done(.interrupt, "interrupted") { $0.end = true }
        try daemon.waitFor("interrupted", "active")
        try daemon.done(.resume, "asleep")
        try daemon.eventually("all of it runs") { !daemon.processes(of: "asleep").contains(where: Truth.isStopped) }

        kill(try #require(try daemon.summary("moved").pid), SIGKILL)
        try daemon.eventually("the end of the new main process is the end") {
            try daemon.summary("moved").incarnation == 2
        }
        try daemon.done(.stop, "moved")

        try daemon.done(.restart, "web") { $0.wait = false }
        try daemon.eventually("it runs again") { daemon.records("web").filter { $0 == "up" }.count == 2 }
        try daemon.tell(
            "5",
            """
            names = os.environ.get("LISTEN_FDNAMES", "")
            record("stored " + names + (" " + os.pread(3, 9, 0).decode() if names else ""))
            notify("READY=1")
            """
        )
        let stored = daemon.records("web").first { $0.hasPrefix("stored") }
        #expect(stored == (loss == .both ? "stored " : "stored first:second whole"))

        for app in ["active", "back"] {
            try daemon.done(.stop, app)
            try daemon.expectWholeLog(app)
        }
        #expect(try daemon.truth("done").attempted == 3 && daemon.processes(of: "done").isEmpty)
        #expect(try daemon.truth("dog").wrongs == [])
        #expect(try daemon.summary("dog").state == "active")
    }
}

extension File {
    /// Makes an empty file.
    static func touch(_ path: String) { try? write(path, "") }
}
