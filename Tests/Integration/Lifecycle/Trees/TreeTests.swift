// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

@Suite("Apps of several processes") struct TreeTests {
    static func toml(_ keys: String = "") -> String {
        """
        [apps.web]
        exec = ["/usr/bin/python3", "-S", "@D/app.py"]
        launch = "on-demand"
        restart = "never"
        \(keys)

        """
    }

    static let family = """
        import tp
        tp.fork(tp.wait)
        tp.fork(tp.wait, session=True)
        tp.fork(tp.wait, session=True, double=True)
        tp.record("up")
        tp.wait()
        """

    @Test(
        "One that somebody else has stopped handles the signal that asks it to end",
        arguments: [Request.stop, .restart]
    )
    func stoppedByOthers(request: Request) throws {
        let program = """
            import sys, tp
            tp.on("SIGTERM", lambda: sys.exit(0))
            tp.record("up")
            tp.wait()
            """
        try withDaemon(Self.toml("grace = \"10min\"\n"), files: ["app.py": program]) { daemon throws in
            try daemon.done(.start, "web")
            try daemon.waitForRecord("web", "up")
            let pid = try daemon.process(of: "web")
            Foundation.kill(pid, SIGSTOP)
            try daemon.eventually("it is stopped") { Truth.isStopped(pid) }
            #expect(try daemon.status("web").stopped)
            try daemon.done(request == .stop ? .stop : .restart, "web")
            #expect(daemon.records("web").contains("SIGTERM") && !Truth.isAlive(pid))
            #expect(try daemon.events("web").contains { $0.text.contains("exited with status 0") })
        }
    }

    enum Request: Sendable { case stop, restart }

    @Test("Of very many processes, and very long arguments, a status shows the beginning")
    func many() throws {
        let program = """
            import tp
            for _ in range(520):
                tp.fork(tp.wait)
            tp.record("up")
            tp.wait()
            """
        let long = Self.toml().replacing("app.py\"]", with: "app.py\", \"\(String(repeating: "x", count: 100_000))\"]")
        try withDaemon(long, files: ["app.py": program]) { daemon throws in
            try daemon.done(.start, "web")
            try daemon.waitForRecord("web", "up")
            let status = try daemon.status("web")
            #expect(status.processes.count == 500 && status.processesLeftOut == 21)
            #expect(status.processes.allSatisfy { (1_000...4_096).contains($0.command.utf8.count) })
            let (code, output) = try Spawn.run([Built.path("torpor"), "status", "web", "--socket", daemon.socket])
            #expect(code == 0 && output.contains("… and 21 more"))
            let pids = daemon.processes(of: "web")
            #expect(pids.count == 521)
            try daemon.done(.stop, "web")
            #expect(pids.allSatisfy { !Truth.isAlive($0) })
        }
    }

    @Test("Children in sessions of their own and double-forked ones are stopped, continued and ended with it")
    func escapees() throws {
        try withDaemon(Self.toml(), files: ["app.py": Self.family]) { daemon throws in
            try daemon.done(.start, "web")
            try daemon.waitForRecord("web", "up")
            let pids = daemon.processes(of: "web")
            #expect(pids.count == 4)
            try daemon.done(.suspend, "web")
            #expect(pids.allSatisfy(Truth.isStopped), "\(pids.map(Truth.states))")
            #expect(try daemon.status("web").processes.count == 4)
            try daemon.done(.resume, "web")
            #expect(pids.allSatisfy { !Truth.isStopped($0) }, "\(pids.map(Truth.states))")
            try daemon.done(.stop, "web")
            #expect(pids.allSatisfy { !Truth.isAlive($0) })
        }
    }

    @Test("A tree that forks as fast as it can is stopped whole and ended whole")
    func forking() throws {
        let program = """
            import tp
            tp.signal.signal(tp.signal.SIGCHLD, tp.signal.SIG_IGN)
            tp.record("up")
            while True:
                if tp.os.fork() == 0:
                    tp.time.sleep(0.05)
                    tp.os._exit(0)
                tp.time.sleep(0.002)
            """
        try withDaemon(Self.toml("suspend_deadline = \"8s\""), files: ["app.py": program]) { daemon throws in
            try daemon.done(.start, "web")
            try daemon.waitForRecord("web", "up")
            try daemon.done(.suspend, "web")
            let pids = daemon.processes(of: "web")
            #expect(!pids.isEmpty)
            #expect(pids.allSatisfy(Truth.isStopped), "\(pids.map(Truth.states))")
            try daemon.done(.kill, "web")
            #expect(daemon.processes(of: "web").isEmpty)
        }
    }

    @Test("Who ignores SIGTERM is killed after the grace, with its children")
    func ignores() throws {
        let program = """
            import tp
            tp.signal.signal(tp.signal.SIGTERM, tp.signal.SIG_IGN)
            tp.fork(tp.wait, session=True)
            tp.record("up")
            tp.wait()
            """
        try withDaemon(Self.toml(#"grace = "300ms""#), files: ["app.py": program]) { daemon throws in
            try daemon.done(.start, "web")
            try daemon.waitForRecord("web", "up")
            try daemon.done(.stop, "web")
            #expect(daemon.processes(of: "web").isEmpty)
            let exit = try daemon.summary("web").lastExit
            #expect(exit?.reason == "stopped")
            #expect(exit?.signal == "SIGKILL")
            #expect(try daemon.events("web").contains { $0.text.contains("did not end within its grace") })
        }
    }

    @Test("The SIGTERM handler of a suspended app runs when it is stopped")
    func handlerOfSuspended() throws {
        let program = """
            import tp
            def end():
                tp.record("saved")
                tp.os._exit(0)
            tp.on("SIGTERM", end)
            tp.record("up")
            tp.wait()
            """
        try withDaemon(Self.toml(), files: ["app.py": program]) { daemon throws in
            try daemon.done(.start, "web")
            try daemon.waitForRecord("web", "up")
            try daemon.done(.suspend, "web")
            try daemon.done(.stop, "web")
            #expect(daemon.records("web") == ["up", "SIGTERM", "saved"])
            #expect(try daemon.summary("web").lastExit?.code == 0)
        }
    }

    @Test("What the main process leaves behind is ended before the restart: never two incarnations at once")
    func leftBehind() throws {
        let program = """
            import fcntl, tp
            lock = open(tp.HERE + "/lock", "w")
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                tp.record("two at once")
            tp.fork(tp.wait, session=True)
            tp.record("up")
            if tp.os.environ["TORPOR_INCARNATION"] == "1":
                tp.os._exit(1)
            tp.wait()
            """
        let toml = Self.toml(#"restart_backoff = { initial = "10ms" }"#)
            .replacingOccurrences(of: #"restart = "never""#, with: #"restart = "on-failure""#)
        try withDaemon(toml, files: ["app.py": program]) { daemon throws in
            _ = try daemon.verb(.start, "web") { $0.wait = false }
            try daemon.eventually("the second incarnation is up") { daemon.records("web").count == 2 }
            #expect(daemon.records("web") == ["up", "up"])
            #expect(daemon.processes(of: "web").count == 2)
        }
    }

    @Test("An app that stops itself keeps its state and is shown as stopped")
    func stopsItself() throws {
        let program = """
            import tp
            tp.record("up")
            tp.os.kill(tp.os.getpid(), tp.signal.SIGSTOP)
            tp.record("goes on")
            tp.wait()
            """
        try withDaemon(Self.toml(), files: ["app.py": program]) { daemon throws in
            let pid = try #require(try daemon.done(.start, "web").pid)
            try daemon.eventually("it has stopped itself") { Truth.isStopped(pid) }
            let status = try daemon.status("web")
            #expect(status.stopped)
            #expect(status.summary.state == "active")
            // A suspend and a resume leave it as it was: it is not ours to continue. A stop ends it nevertheless.
            try daemon.done(.stop, "web")
            #expect(daemon.processes(of: "web").isEmpty)
        }
    }

    @Test("Somebody else's SIGCONT to a suspended app is undone, three times, then it is left running")
    func somebodyContinues() throws {
        try withDaemon(Self.toml(), files: ["app.py": Self.family]) { daemon throws in
            let pid = try #require(try daemon.done(.start, "web").pid)
            try daemon.waitForRecord("web", "up")
            try daemon.done(.suspend, "web")
            // What comes while it is still being stopped is one with that stop: then somebody continues it once more.
            func continueIfStopped() {
                if daemon.processes(of: "web").allSatisfy(Truth.isStopped) { kill(pid, SIGCONT) }
            }
            func timesStopped() throws -> Int {
                _ = try daemon.status("web")
                return try daemon.events("web").filter { $0.text.contains("stopped again") }.count
            }
            for time in 1...3 {
                try daemon.eventually("it was stopped again, time \(time)") {
                    if try timesStopped() < time { continueIfStopped() }
                    return try timesStopped() == time && Truth.isStopped(pid)
                }
                #expect(try daemon.summary("web").state == "suspended")
            }
            try daemon.eventually("it is left running") {
                continueIfStopped()
                return try daemon.status("web").summary.state == "background"
            }
            #expect(daemon.processes(of: "web").allSatisfy { !Truth.isStopped($0) })
        }
    }

    @Test("A SIGCONT counts once, also while it is looked whether a lock is in the way of the stop")
    func oneContinuation() throws {
        // Whoever has many descriptors is looked at for a while, a millisecond a turn.
        let program = """
            import tp, resource
            hard = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], 5000)
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            many = [tp.os.dup(0) for _ in range(hard - 50)]
            tp.record("up")
            while True:
                tp.signal.pause()
            """
        let toml = Self.toml("shared_resources = [\"@D/shared/*\"]\nsuspend_deadline = \"1min\"")
        try withDaemon(toml, files: ["app.py": program]) { daemon in
            let pid = try #require(try daemon.done(.start, "web").pid)
            try daemon.waitForRecord("web", "up")
            try daemon.done(.suspend, "web")
            kill(pid, SIGCONT)
            for _ in 1...10 { _ = try daemon.status("web") }
            try daemon.eventually("it is stopped again") { Truth.isStopped(pid) }
            _ = try daemon.status("web")
            let texts = try daemon.events("web").map(\.text).filter { $0.contains("stopped again") }
            #expect(texts.count == 1 && texts.allSatisfy { $0.contains("(1 of 3)") }, "\(texts)")
        }
    }

    @Test("kill_mode = main sends SIGTERM to the main process only, and still leaves nobody")
    func killModeMain() throws {
        let program = """
            import tp
            def child():
                tp.on("SIGTERM")
                tp.on("SIGWINCH")
                tp.record("child up")
                while True:
                    tp.wait()
            tp.fork(child)
            def end():
                tp.await_file("end")
                tp.record("main ends")
                tp.os._exit(0)
            tp.on("SIGTERM", end)
            tp.record("up")
            tp.wait()
            """
        try withDaemon(Self.toml("kill_mode = \"main\"\ngrace = \"5s\""), files: ["app.py": program]) {
            daemon throws in
            try daemon.done(.start, "web")
            try daemon.waitForRecord("web", "up")
            try daemon.waitForRecord("web", "child up")
            let main = try #require(try daemon.summary("web").pid)
            let child = try #require(daemon.processes(of: "web").first { $0 != main })
            _ = try daemon.verb(.stop, "web") { $0.wait = false }
            try daemon.waitForRecord("web", "SIGTERM")
            // Signals that wait are taken in the order of their numbers: SIGTERM, if it were sent, before SIGWINCH.
            kill(child, SIGWINCH)
            try daemon.waitForRecord("web", "SIGWINCH")
            daemon.touch("end")
            try daemon.waitFor("web", "not-running")
            #expect(daemon.processes(of: "web").isEmpty)
            // The child heard of it only after the main process had ended.
            let records = daemon.records("web").filter { !$0.contains("up") }
            #expect(records.prefix(3) == ["SIGTERM", "SIGWINCH", "main ends"])
        }
    }
}
