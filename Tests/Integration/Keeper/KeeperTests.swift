import Foundation
import Linux
import Testing
import TorporAPI

@Suite("When torpord itself fails") struct DaemonLossTests {
    static let toml = """
        [apps.web]
        exec = ["/usr/bin/python3", "-S", "@D/app.py"]
        ready = "notify"
        """
    /// Takes a lock that only one incarnation can have, and says when it did not get it.
    static let files = [
        "app.py": """
        import fcntl, tp
        lock = open(tp.HERE + "/lock", "w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            tp.record("two at once")
        tp.record("up " + str(tp.os.getpid()))
        tp.notify("READY=1")
        tp.wait()
        """
    ]

    private func waitForAnother(_ daemon: Daemon, than old: Int32) throws {
        try daemon.eventually("another torpord runs below the same keeper") {
            guard let now = try? daemon.torpord() else { return false }
            return now != old
        }
        try daemon.waitUntilItAnswers()
    }

    @Test("Killed, it is started again, and never are there two incarnations of an app")
    func killed() throws {
        try withDaemon(Self.toml, files: Self.files) { daemon throws in
            try daemon.waitFor("web", "active")
            let old = try daemon.torpord()
            kill(old, SIGKILL)
            try waitForAnother(daemon, than: old)
            try daemon.waitFor("web", "active")
            #expect(daemon.processes(of: "web").count == 1)
            #expect(!daemon.records("web").contains("two at once"))
            #expect(try daemon.summary("web").pid == daemon.processes(of: "web").first)
        }
    }

    @Test("Killed while an app is suspended, it still ends it whole before it starts anew")
    func killedWhileSuspended() throws {
        try withDaemon(Self.toml, files: Self.files) { daemon throws in
            try daemon.waitFor("web", "active")
            try daemon.done(.suspend, "web")
            let old = try daemon.torpord()
            kill(old, SIGKILL)
            try waitForAnother(daemon, than: old)
            try daemon.eventually("one app process runs") { daemon.processes(of: "web").count == 1 }
            #expect(!daemon.records("web").contains("two at once"))
        }
    }

    @Test("A loop that is stuck is replaced")
    func stuck() throws {
        try withDaemon(Self.toml, files: Self.files, environment: ["TORPOR_LOOP_WATCHDOG_MS": "500"]) { daemon throws in
            try daemon.waitFor("web", "active")
            let old = try daemon.torpord()
            kill(old, SIGSTOP)
            // A call wakes it up from its sleep, so that it is stuck in work.
            _ = try? daemon.connect()
            try waitForAnother(daemon, than: old)
            try daemon.waitFor("web", "active")
            #expect(!daemon.records("web").contains("two at once"))
        }
    }

    @Test("When the keeper is killed, nothing of an app is left")
    func keeperKilled() throws {
        let daemon = try Daemon(Self.toml, files: Self.files)
        try daemon.waitUntilItAnswers()
        try daemon.waitFor("web", "active")
        kill(daemon.pid, SIGKILL)
        try daemon.waitForEnd()
        try daemon.eventually("torpord ends as well") {
            !Truth.processes(marked: daemon.directory).contains { (try? ProcFS.stat($0).comm) == "torpord" }
        }
    }
}
