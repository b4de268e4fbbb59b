// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

@Suite("As process 1 of a container", .enabled(if: Namespaces.areAllowed)) struct FirstProcessTests {
    /// Waits in its handler until it is let go.
    static let files = [
        "slow.py": """
        import tp
        def end():
            tp.await_file("go")
            tp.record("bye")
            tp.os._exit(0)
        tp.on("SIGTERM", end)
        tp.notify("READY=1")
        tp.wait()
        """,
        "stray.py": """
        import tp
        tp.on("SIGTERM", lambda: tp.os._exit(0))
        tp.record("up")
        tp.wait()
        """,
    ]

    /// Each ends after what requires it, and says so.
    static let order =
        app("db", "app.py", "grace = \"1min\"") + app("cache", "app.py", "grace = \"1min\"\nrequires = [\"db\"]")

    static func app(_ name: String, _ file: String, _ keys: String = "") -> String {
        "[apps.\(name)]\n\(Scripts.python)\"@D/\(file)\"]\nready = \"notify\"\n\(keys)\n"
    }

    /// Those of Docker and its like, LXC (SIGPWR) and systemd's containers (SIGRTMIN+3 and +4).
    static let signals: [Int32] = [SIGTERM, SIGINT, SIGQUIT, SIGPWR, 34 + 3, 34 + 4]

    @Test("Every signal that containers are ended by ends it in order", arguments: signals)
    func ends(by signal: Int32) throws {
        try withContainer(Self.order, files: ["app.py": ShutdownTests.program]) { daemon throws in
            try daemon.waitUntilItAnswers()
            for app in ["db", "cache"] { try daemon.waitFor(app, "active") }
            kill(try daemon.first(), signal)
            try daemon.endInTurn(["cache", "db"])
            try daemon.expectEnd(.exited(0))
            #expect(try String(contentsOfFile: daemon.directory + "/order", encoding: .utf8) == "cache\ndb\n")
        }
    }

    @Test("Other signals end nothing, also those that come before torpord listens")
    func others() throws {
        try withContainer(Apps.sleeper("web")) { daemon throws in
            let first = try daemon.first()
            for signal in [SIGHUP, SIGUSR1, SIGWINCH] { kill(first, signal) }
            try daemon.waitUntilItAnswers()
            try daemon.waitFor("web", "active")
            for signal in [SIGHUP, SIGUSR1, SIGWINCH, SIGALRM, SIGPIPE] { kill(first, signal) }
            try daemon.eventually("it has heard of them") { daemon.log.contains("SIGUSR1") }
            try daemon.waitFor("web", "active")
            kill(first, SIGTERM)
            try daemon.expectEnd(.exited(0))
        }
    }

    @Test("It reaps whoever comes to it, also what somebody runs in the container from outside")
    func reaps() throws {
        let many = """
            import tp
            for _ in range(30):
                tp.fork(lambda: tp.time.sleep(0.05), session=True, double=True)
            tp.notify("READY=1")
            tp.wait()
            """
        try withContainer(Self.app("web", "many.py"), files: ["many.py": many]) { daemon throws in
            try daemon.waitUntilItAnswers()
            try daemon.waitFor("web", "active")
            let first = try daemon.first()
            let (code, output) = try Spawn.run(
                Namespaces.enter(first) + ["/bin/sh", "-c", "(sleep 0.1; true) & exit 5"]
            )
            #expect(code == 5, "\(output)")
            try daemon.eventually("torpord and the app are all that is left") {
                try ProcFS.children(first).count == 2
            }
            #expect(try ProcFS.children(first).allSatisfy { Truth.isAlive($0) })
            kill(first, SIGTERM)
            try daemon.expectEnd(.exited(0))
        }
    }

    @Test("Processes that no app answers for are told of the end before the kernel takes them")
    func strays() throws {
        try withContainer(Apps.sleeper("web"), files: Self.files) { daemon throws in
            try daemon.waitUntilItAnswers()
            try daemon.waitFor("web", "active")
            let first = try daemon.first()
            let command = "/usr/bin/python3 -S \(daemon.directory)/stray.py &"
            let (code, output) = try Spawn.run(
                Namespaces.enter(first) + ["/bin/sh", "-c", command],
                environment: ["TPTEST": daemon.directory]
            )
            #expect(code == 0, "\(output)")
            try daemon.waitForRecord("none", "up")
            kill(first, SIGTERM)
            try daemon.expectEnd(.exited(0))
            #expect(daemon.records("none") == ["up", "SIGTERM"])
        }
    }

    @Test("A torpord that dies is followed by another one, and no app notices; with the keeper all ends")
    func losses() throws {
        try withContainer(Apps.sleeper("web")) { daemon throws in
            try daemon.waitUntilItAnswers()
            try daemon.waitFor("web", "active")
            let pid = try daemon.process(of: "web")
            let old = try daemon.torpordInside()
            kill(old, SIGKILL)
            try daemon.eventually("another one runs") { try daemon.torpordInside() != old }
            try daemon.waitUntilItAnswers()
            try daemon.waitFor("web", "active")
            #expect(try daemon.process(of: "web") == pid)
            kill(try daemon.first(), SIGKILL)
            try daemon.waitForEnd()
            try daemon.eventually("nothing is left") { Truth.processes(marked: daemon.directory).isEmpty }
        }
    }

    @Test("An end that was begun is finished by the next torpord, and nobody is hurried by it")
    func deathWhileEnding() throws {
        try withContainer(Self.app("web", "slow.py", "grace = \"1min\""), files: Self.files) { daemon throws in
            try daemon.waitUntilItAnswers()
            try daemon.waitFor("web", "active")
            let old = try daemon.torpordInside()
            kill(try daemon.first(), SIGTERM)
            try daemon.waitForRecord("web", "SIGTERM")
            kill(old, SIGKILL)
            try daemon.eventually("another one runs") { try daemon.torpordInside() != old }
            try daemon.eventually("it goes on ending") {
                (try? daemon.summary("web").transition) == "terminating"
            }
            try Daemon.write(["go": ""], in: daemon.directory)
            try daemon.expectEnd(.exited(0))
            #expect(daemon.records("web").last == "bye")
        }
    }

    @Test("Killed in the midst of its end and started again with the same files, it begins anew")
    func startedAgain() throws {
        let toml = Self.app("web", "slow.py", "grace = \"1min\"")
        try withContainer(toml, files: Self.files) { daemon throws in
            try daemon.waitUntilItAnswers()
            try daemon.waitFor("web", "active")
            kill(try daemon.first(), SIGTERM)
            try daemon.waitForRecord("web", "SIGTERM")
            kill(try daemon.first(), SIGKILL)
            try daemon.waitForEnd()
            try daemon.eventually("nothing is left") { Truth.processes(marked: daemon.directory).isEmpty }
            try daemon.startAgain()
            try daemon.waitUntilItAnswers()
            try daemon.waitFor("web", "active")
            try Daemon.write(["go": ""], in: daemon.directory)
            kill(try daemon.first(), SIGTERM)
            try daemon.expectEnd(.exited(0))
        }
    }

    @Test("Apps are not left when it is told to stop, since nobody could take them over")
    func leave() throws {
        let toml = "on_exit = \"leave\"\n" + Self.order
        try withContainer(toml, files: ["app.py": ShutdownTests.program]) { daemon throws in
            try daemon.waitUntilItAnswers()
            for app in ["db", "cache"] { try daemon.waitFor(app, "active") }
            kill(try daemon.first(), SIGTERM)
            try daemon.endInTurn(["cache", "db"])
            try daemon.expectEnd(.exited(0))
            #expect(try String(contentsOfFile: daemon.directory + "/order", encoding: .utf8) == "cache\ndb\n")
        }
    }

    @Test(
        "With nothing to write to but a tiny tmpfs, no cgroups and no /dev/shm it does its work",
        arguments: [64, 1024]
    )
    func readOnly(kibibytes: Int) throws {
        let before = """
            set -e
            mkdir -p @D/r
            mount -t tmpfs -o size=\(kibibytes)k none @D/r
            mount -t tmpfs -o ro none /sys/fs/cgroup
            mount -t tmpfs -o ro none /dev/shm
            mount -o remount,ro,bind /
            """
        let toml = """
            main = "web"
            [defaults]
            log = "inherit"
            [apps.web]
            exec = ["/bin/sh", "-c", "echo it is web; '\(Built.path("torpor"))' health db || exit 1; exit 9"]
            restart = "never"
            requires = ["db"]
            [apps.db]
            exec = ["/bin/sleep", "1000"]

            """
        try withContainer(toml, before: before) { daemon throws in
            try daemon.waitForEnd()
            #expect(daemon.reap() == .exited(9), "\(daemon.log)")
            #expect(daemon.log.contains("\nit is web\n"))
            #expect(daemon.log.contains("all is well"))
        }
    }
}
