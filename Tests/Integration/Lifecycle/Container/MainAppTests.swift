// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

@Suite("An app that the supervisor ends with") struct MainAppTests {
    /// One that ends when it is let go, with the status that stands in the file.
    static let files = [
        "main.py": """
        import tp
        tp.record("up")
        tp.notify("READY=1")
        tp.await_file("end")
        tp.os._exit(int(open(tp.HERE + "/end").read()))
        """,
        "slow.py": FirstProcessTests.files["slow.py"] ?? "",
        "plain.txt": "",
    ]
    static let toml =
        "main = \"web\"\n" + FirstProcessTests.app("web", "main.py", "restart = \"never\"")
        + FirstProcessTests.app("db", "slow.py", "grace = \"1min\"")

    static func sh(_ text: String, _ keys: String = "restart = \"never\"") -> String {
        "main = \"web\"\n[apps.web]\nexec = [\"/bin/sh\", \"-c\", \"\(text)\"]\n\(keys)\n" + Apps.sleeper("other")
    }

    private static func app(_ words: String, _ keys: String = "") -> String {
        "main = \"web\"\n[apps.web]\nexec = \(words)\nrestart = \"never\"\n\(keys)\n"
    }

    static let endings: [(toml: String, status: Int32)] = [
        (sh("exit 7"), 7), (sh("exit 0"), 0), (sh("kill -9 $$"), 137), (sh("kill -TERM $$"), 143),
        (app("[\"/no/such/program\"]"), 127), (app("[\"no-such-program-at-all\"]"), 127),
        (app("[\"/etc/passwd\"]"), 126), (app("[\"/bin/true\"]", "directory = \"/no/such\""), 1),
        // What failed is no success, whatever it says itself.
        (
            app(
                #"["/bin/sh", "-c", "trap 'exit 0' TERM; sleep 100 & wait"]"#,
                "ready = \"notify\"\nlaunch_deadline = \"1s\""
            ), 1
        ),
        // It is restarted, until that is given up.
        (sh("exit 4", "restart_backoff = { initial = \"1ms\", limit = 2 }"), 4),
        (
            app(#"["/bin/sh", "-c", "exit 6"]"#, "instances = 2")
                .replacing("main = \"web\"", with: "main = \"web@1\""), 6
        ),
        // What it requires does not come up.
        (
            app("[\"/bin/true\"]", "requires = [\"db\"]")
                + "[apps.db]\nexec = [\"/bin/false\"]\nready = \"notify\"\nrestart = \"never\"\n", 1
        ),
    ]

    @Test("What it ended with is what the supervisor ends with, as shells have it", arguments: endings)
    func statuses(toml: String, status: Int32) throws {
        let daemon = try Daemon(toml)
        try daemon.waitForEnd()
        try daemon.stop(expecting: .exited(status))
    }

    @Test("A restart by a person is no end; a stop is one")
    func persons() throws {
        let daemon = try Daemon("main = \"web\"\n" + Apps.sleeper("web") + Apps.sleeper("other"))
        try daemon.waitUntilItAnswers()
        try daemon.waitFor("web", "active")
        try daemon.done(.restart, "web")
        try daemon.done(.suspend, "web")
        try daemon.done(.foreground, "web")
        #expect(daemon.reap() == nil)
        _ = try? daemon.verb(.stop, "web")
        try daemon.waitForEnd()
        try daemon.stop(expecting: .exited(143))

        // Who starts the supervisor again wants its main app.
        try daemon.startAgain()
        try daemon.waitUntilItAnswers()
        try daemon.waitFor("web", "active")
        try daemon.stop(expecting: .exited(143))
    }

    @Test("A stop while it waits for its restart is an end too")
    func stoppedBetweenRuns() throws {
        let toml = Self.sh("exit 3", "restart_backoff = { initial = \"1min\" }")
        let daemon = try Daemon(toml)
        try daemon.waitUntilItAnswers()
        try daemon.eventually("it waits") { try daemon.summary("web").nextRestartMilliseconds != nil }
        _ = try? daemon.verb(.stop, "web")
        try daemon.waitForEnd()
        try daemon.stop(expecting: .exited(3))
    }

    @Test("Evicted, it was only put away")
    func evicted() throws {
        let toml = "main = \"web\"\n" + Apps.sleeper("web")
        let daemon = try Daemon(toml)
        try daemon.waitUntilItAnswers()
        try daemon.waitFor("web", "active")
        try daemon.done(.suspend, "web")
        for pid in daemon.processes(of: "web") { kill(pid, SIGKILL) }
        try daemon.waitForEvent("web", "evicted")
        try daemon.waitFor("web", "not-running")
        #expect(daemon.reap() == nil)
        try daemon.done(.start, "web")
        try daemon.stop(expecting: .exited(143))
    }

    @Test("Its status outlives a torpord that dies before the others have ended")
    func deathWhileEnding() throws {
        let daemon = try Daemon(Self.toml, files: Self.files)
        try daemon.waitUntilItAnswers()
        for app in ["web", "db"] { try daemon.waitFor(app, "active") }
        try Daemon.write(["end": "5"], in: daemon.directory)
        try daemon.waitForRecord("db", "SIGTERM")
        for _ in 0..<3 {
            let old = try daemon.torpord()
            kill(old, SIGKILL)
            try daemon.eventually("another one runs") { ((try? daemon.torpord()) ?? old) != old }
            try daemon.eventually("it goes on ending") { (try? daemon.summary("db").transition) == "terminating" }
        }
        // Who asks for the first time hurries nobody.
        kill(daemon.pid, SIGTERM)
        try daemon.eventually("it has heard of that") { daemon.log.contains("are being terminated already") }
        #expect(daemon.processes(of: "db").count == 1)
        try Daemon.write(["go": ""], in: daemon.directory)
        try daemon.waitForEnd()
        try daemon.stop(expecting: .exited(5))
        #expect(daemon.records("db").last == "bye")
        #expect(daemon.records("web") == ["up"])
    }

    @Test("Its end while there is no torpord is taken in by the next one")
    func endWhileAway() throws {
        for delay in [0, 200, 400, 800, 1600, 3200] {
            let toml = Self.sh("read x < @D/fifo; exit 8")
            let daemon = try Daemon(
                toml,
                files: ["fifo.sh": "mkfifo @D/fifo\n"],
                wrapper: [
                    "/bin/sh", "-c", "mkfifo @D/fifo; exec \"$@\"", "sh",
                ]
            )
            try daemon.waitUntilItAnswers()
            try daemon.waitFor("web", "active")
            let torpord = try daemon.torpord()
            let fifo = try File.open(daemon.directory + "/fifo", .readWrite)
            try Descriptor.writeAll(fifo.raw, Array("x\n".utf8))
            usleep(useconds_t(delay))
            kill(torpord, SIGKILL)
            try daemon.waitForEnd()
            try daemon.stop(expecting: .exited(8))
        }
    }

    @Test("Whoever starts the supervisor, after torpord and keeper were lost too, wants a main app that had ended")
    func startedAgain() throws {
        let rest = Apps.sleeper("web") + "[apps.job]\nexec = [\"/bin/sh\", \"-c\", \"exit 2\"]\nrestart = \"never\"\n"
        let daemon = try Daemon(rest, nested: true)
        try daemon.waitUntilItAnswers()
        try daemon.waitForEvent("job", "exit-failure")
        try daemon.apply("main = \"job\"\n" + rest)
        for loss in [Loss.killed, .keeper] {
            try daemon.lose(loss)
            try daemon.waitFor("web", "active")
            #expect(try daemon.summary("job").incarnation == 1)
        }
        let keeper = try daemon.livingKeeper()
        let torpord = try daemon.livingTorpord()
        kill(keeper, SIGSTOP)
        kill(torpord, SIGKILL)
        kill(keeper, SIGKILL)
        try daemon.eventually("both are dead") { !Truth.isAlive(keeper) && !Truth.isAlive(torpord) }
        try daemon.startAgain()
        try daemon.eventually("it ends with it") {
            _ = daemon.reap()
            return Truth.processes(marked: daemon.directory).isEmpty
        }
        #expect(daemon.log.contains("job, the main app, has ended for good"))
    }

    @Test("Another app becomes the main one by an apply; that it ended before does not count")
    func apply() throws {
        let rest = Apps.sleeper("web") + "[apps.job]\nexec = [\"/bin/sh\", \"-c\", \"exit 2\"]\nrestart = \"never\"\n"
        let daemon = try Daemon(rest)
        try daemon.waitUntilItAnswers()
        try daemon.waitForEvent("job", "exit-failure")
        try daemon.apply("main = \"job\"\n" + rest)
        try daemon.killTorpord()
        try daemon.waitUntilItAnswers()
        try daemon.waitFor("web", "active")
        #expect(daemon.reap() == nil)
        _ = try? daemon.verb(.start, "job")
        try daemon.waitForEnd()
        try daemon.stop(expecting: .exited(2))
    }
}
