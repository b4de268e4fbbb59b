// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
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
        """,
        "busy.py": """
        import socket, tp
        call = b'{"method":"io.torpor.Manager.List","parameters":{}}\\0'
        while True:
            try:
                with socket.socket(socket.AF_UNIX) as s:
                    s.connect(tp.HERE + "/r/io.torpor")
                    s.sendall(call * 20)
                    s.recv(100)
            except OSError:
                tp.time.sleep(0.001)
        """,
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
        let environment = ["TORPOR_LOOP_WATCHDOG_MS": "1500"]
        try withDaemon(Self.toml, files: Self.files, environment: environment) { daemon throws in
            try daemon.waitFor("web", "active")
            let old = try daemon.torpord()
            // Only a loop that is at work is watched: so it gets work without end, and is stopped in the midst of it.
            let busy = try Spawn.start(
                ["/usr/bin/python3", "-S", daemon.directory + "/busy.py"],
                environment: [:],
                output: "/dev/null"
            )
            defer {
                kill(busy, SIGKILL)
                waitpid(busy, nil, 0)
            }
            for _ in 0..<20 {
                _ = try daemon.list()
                try daemon.eventually("it is at work") { Truth.states(old).first == "R" }
                kill(old, SIGSTOP)
                let end = Clock.monotonic() + .seconds(3)
                while Clock.monotonic() < end, !daemon.log.contains("has not responded") { usleep(10_000) }
                if daemon.log.contains("has not responded") { break }
                kill(old, SIGCONT)
            }
            try waitForAnother(daemon, than: old)
            try daemon.waitFor("web", "active")
            #expect(!daemon.records("web").contains("two at once"))
        }
    }

    @Test("When the keeper is killed, torpord becomes the keeper, and the apps run on")
    func keeperKilled() throws {
        let daemon = try Daemon(Self.toml, files: Self.files)
        try daemon.waitUntilItAnswers()
        try daemon.waitFor("web", "active")
        let web = try daemon.summary("web").pid
        let torpord = try daemon.torpord()
        kill(daemon.pid, SIGKILL)
        try daemon.waitForEnd()
        try daemon.eventually("another torpord runs below what was torpord") {
            try ProcFS.children(torpord).contains { (try? ProcFS.stat($0).comm) == "torpord" }
        }
        try daemon.eventually("it answers") { (try? daemon.list()) != nil }
        #expect(try daemon.summary("web").pid == web)
        try daemon.waitFor("web", "active")
        kill(torpord, SIGTERM)
        try daemon.eventually("everything is gone") { Truth.processes(marked: daemon.directory).isEmpty }
    }
}
