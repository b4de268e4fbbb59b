// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import MockLogind
import Testing
import TorporAPI
import Varlink

/// A daemon beside a logind of its own.
private struct Scene {
    let mock: MockLogind
    let daemon: Daemon

    /// An app that records what it is told, and says that it is done with didEnterBackground when the file `go` is there.
    static let app = """
        from tp import *
        def leave():
            if "slow" in APP:
                await_file("go")
            notify("X_TORPOR_DONE=didEnterBackground")
        on("SIGHUP", lambda: notify("X_TORPOR_DONE=willResignActive"))
        on("SIGUSR1", leave)
        on("SIGUSR2", lambda: notify("X_TORPOR_DONE=willEnterForeground"))
        on("SIGCHLD", lambda: notify("X_TORPOR_DONE=didBecomeActive"))
        notify("READY=1")
        wait()
        """

    static func app(_ name: String, _ keys: String = "") -> String {
        """

        [apps.\(name)]
        \(Scripts.python)"@D/app.py"]
        ready = "notify"
        answers = true
        signals = { willResignActive = "SIGHUP", didEnterBackground = "SIGUSR1", willEnterForeground = "SIGUSR2", \
        didBecomeActive = "SIGCHLD" }
        background_deadline = "none"
        \(keys)

        """
    }

    init(
        _ toml: String,
        delay: Duration = .seconds(5),
        _ prepare: String = "",
        files: [String: String] = ["app.py": Scene.app]
    ) throws {
        mock = try MockLogind { body in try Spawn.lock.withLock { try body() } }
        try mock.startLogind(delay: delay)
        try mock.run("add_session('c1', 1000)\n" + prepare)
        daemon = try Daemon(
            toml,
            files: files,
            environment: ["DBUS_SYSTEM_BUS_ADDRESS": mock.address]
        )
        try daemon.waitUntilItAnswers()
    }

    /// What `doctor` says of logind.
    var logind: DoctorCheck? {
        get throws {
            let checks = try (daemon.call(.doctor)["checks"]?.arrayValue ?? []).map { try DoctorCheck(json: $0) }
            return checks.first { $0.name == "logind" }
        }
    }

    func waitUntilFollowed() throws {
        try daemon.eventually("logind is followed") { try logind?.ok ?? false }
    }

    func waitForInhibitors(_ count: Int, at location: SourceLocation = #_sourceLocation) throws {
        try daemon.eventually("there are \(count) inhibitors", at: location) { try mock.inhibitors == count }
    }
}

@Suite(
    "Interruptions by the machine and the session",
    .serialized,
    .enabled(if: MockLogind.obstacle == nil, "python3-dbusmock and dbus are needed: make deps")
)
struct InterruptionTests {
    @Test("The machine sleeps when the last app in the foreground has answered, and they come back when it wakes")
    func sleep() throws {
        let scene = try Scene(
            Scene.app("slow") + Scene.app("quick") + Scene.app("mail", "launch = \"background\"")
        )
        let daemon = scene.daemon
        for name in ["slow", "quick"] { try daemon.waitFor(name, "active") }
        try daemon.waitFor("mail", "background")
        try scene.waitForInhibitors(1)

        try scene.mock.sleep(true)
        try daemon.waitFor("quick", "background")
        try daemon.waitForRecord("slow", "SIGUSR1")
        #expect(try scene.mock.inhibitors == 1, "the machine may sleep although an app saves what it has")
        try Daemon.write(["go": ""], in: daemon.directory)
        try scene.waitForInhibitors(0)
        try daemon.waitFor("slow", "background")
        #expect(daemon.records("slow") == ["SIGCHLD", "SIGHUP", "SIGUSR1"])

        try scene.mock.sleep(false)
        for name in ["slow", "quick"] { try daemon.waitFor(name, "active") }
        try scene.waitForInhibitors(1)
        #expect(daemon.records("quick") == ["SIGCHLD", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGCHLD"])
        // Where it was, and nobody told it anything.
        #expect(try daemon.summary("mail").state == "background")
        #expect(daemon.records("mail") == ["SIGUSR1"])
        let texts = try daemon.events().filter { $0.app == nil }.map(\.text)
        #expect(texts.contains("the machine is about to sleep: 2 apps leave the foreground"))
        #expect(texts.contains("the machine woke: apps return to their previous states"))
        try daemon.stop()
    }

    @Test("An app that does not answer keeps no machine awake: it is named, and comes back all the same")
    func late() throws {
        let scene = try Scene(Scene.app("slow") + Scene.app("quick"), delay: .seconds(1))
        let daemon = scene.daemon
        for name in ["slow", "quick"] { try daemon.waitFor(name, "active") }
        try scene.waitForInhibitors(1)
        let before = Clock.monotonic()
        try scene.mock.sleep(true)
        try scene.waitForInhibitors(0)
        let time = Clock.monotonic() - before
        #expect(time > .milliseconds(700), "\(time)")
        try daemon.eventually("the late one is named") {
            try daemon.events().contains {
                $0.text.hasPrefix("the machine sleeps, but slow has not reached the background in the")
            }
        }
        try scene.mock.sleep(false)
        try Daemon.write(["go": ""], in: daemon.directory)
        for name in ["slow", "quick"] { try daemon.waitFor(name, "active") }
        try daemon.stop()
    }

    @Test("While the session is locked apps are in the background, also those that are started or restarted then")
    func lock() throws {
        let scene = try Scene(
            "session = \"c1\"\n" + Scene.app("web") + Scene.app("later", "launch = \"on-demand\"")
                + Scene.app("opaque", "exits_on_suspend = true")
        )
        let daemon = scene.daemon
        for name in ["web", "opaque"] { try daemon.waitFor(name, "active") }
        try scene.waitUntilFollowed()
        try scene.mock.hint("c1", true)
        try daemon.waitFor("web", "background")
        // It would end in the background: nobody ends it because somebody looks away.
        try daemon.waitFor("opaque", "inactive")
        #expect(daemon.records("opaque") == ["SIGCHLD", "SIGHUP"])

        try daemon.done(.start, "later")
        try daemon.waitFor("later", "background")
        #expect(daemon.records("later").last == "SIGUSR1")
        let brought = try daemon.done(.foreground, "web")
        #expect(brought.message?.contains("comes back when the session is unlocked") ?? false)
        #expect(try daemon.summary("web").state == "background")
        try daemon.done(.restart, "web")
        try daemon.waitFor("web", "background")

        try scene.mock.hint("c1", false)
        for name in ["web", "later", "opaque"] { try daemon.waitFor(name, "active") }
        let texts = try daemon.events().filter { $0.app == nil }.map(\.text)
        #expect(texts.contains("session c1 is locked: 2 apps leave the foreground"))
        #expect(texts.contains("session c1 is unlocked: apps return to their previous states"))
        try daemon.stop()
    }

    @Test("The machine wakes into a locked session: apps stay in the background until it is unlocked")
    func both() throws {
        let scene = try Scene("session = \"seat0\"\n" + Scene.app("web"))
        let daemon = scene.daemon
        try daemon.waitFor("web", "active")
        try scene.waitUntilFollowed()
        try scene.waitForInhibitors(1)
        // The order of a lid that is closed.
        try scene.mock.run("tell('c1', 'Lock'); sleep(True)")
        try scene.waitForInhibitors(0)
        try daemon.waitFor("web", "background")
        try scene.mock.sleep(false)
        try scene.waitForInhibitors(1)
        #expect(try daemon.summary("web").state == "background")
        #expect(daemon.records("web") == ["SIGCHLD", "SIGHUP", "SIGUSR1"])
        try scene.mock.run("tell('c1', 'Unlock')")
        try daemon.waitFor("web", "active")
        try daemon.stop()
    }

    @Test("A delegate is told in the order of the specification, and the machine waits for its answer")
    func delegate() throws {
        let answers = "didEnterBackground=lambda m: (await_file('go'), 'done')[1]"
        let scene = try Scene(Delegates.head, files: Delegates.files(answers))
        let daemon = scene.daemon
        try daemon.done(.start, "web")
        try daemon.waitFor("web", "active")
        try scene.waitForInhibitors(1)
        try scene.mock.sleep(true)
        try daemon.eventually("it hears of the background") {
            daemon.records("web").contains { $0.hasPrefix("message ") && $0.hasSuffix(" didEnterBackground") }
        }
        #expect(try scene.mock.inhibitors == 1, "the machine may sleep although an app saves what it has")
        try Daemon.write(["go": ""], in: daemon.directory)
        try scene.waitForInhibitors(0)
        try scene.mock.sleep(false)
        try daemon.waitFor("web", "active")
        let heard = try daemon.messages()
        #expect(
            heard.suffix(5) == [
                "didBecomeActive", "willResignActive", "didEnterBackground", "willEnterForeground", "didBecomeActive",
            ],
            "\(heard)"
        )
        try daemon.stop()
    }

    @Test("Who a person sent to the background stays there, and who a person suspended stays suspended")
    func goals() throws {
        let scene = try Scene("session = \"c1\"\n" + Scene.app("web") + Scene.app("shop"))
        let daemon = scene.daemon
        for name in ["web", "shop"] { try daemon.waitFor(name, "active") }
        try scene.waitUntilFollowed()
        try scene.mock.hint("c1", true)
        for name in ["web", "shop"] { try daemon.waitFor(name, "background") }
        try daemon.done(.background, "web")
        try daemon.done(.suspend, "shop")
        try scene.mock.hint("c1", false)
        try daemon.eventually("it is said") {
            try daemon.events().contains { $0.text.hasPrefix("session c1 is unlocked") }
        }
        #expect(try daemon.summary("web").state == "background" && daemon.summary("shop").state == "suspended")
        try daemon.stop()
    }

    // MARK: torpord dies, logind and the bus go

    @Test("A torpord that dies while the session is locked is followed by one that finds it so, or not any more")
    func recovery() throws {
        let scene = try Scene("session = \"c1\"\n" + Scene.app("web"))
        let daemon = scene.daemon
        try daemon.waitFor("web", "active")
        try scene.waitUntilFollowed()
        try scene.mock.hint("c1", true)
        try daemon.waitFor("web", "background")
        for isLocked in [true, false] {
            let torpord = try daemon.torpord()
            kill(torpord, SIGSTOP)
            try scene.mock.hint("c1", isLocked)
            kill(torpord, SIGKILL)
            try daemon.eventually("the next one follows logind") { (try? scene.logind?.ok) ?? false }
            try daemon.waitFor("web", isLocked ? "background" : "active")
        }
        #expect(daemon.records("web") == ["SIGCHLD", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGCHLD"])
        #expect(try daemon.summary("web").incarnation == 1)
        try daemon.stop()
    }

    @Test("Without a bus nothing is the case: apps come back five seconds later, and leave again when it is back")
    func absence() throws {
        let scene = try Scene("session = \"c1\"\n" + Scene.app("web"))
        let daemon = scene.daemon
        try daemon.waitFor("web", "active")
        try scene.waitUntilFollowed()
        try scene.mock.hint("c1", true)
        try daemon.waitFor("web", "background")
        try scene.mock.run("stop_bus()")
        try daemon.waitFor("web", "active")
        let check = try #require(try scene.logind)
        #expect(!check.ok && check.message?.contains("apps are not told before the machine sleeps") ?? false)
        try scene.mock.run("start_bus(); start_logind(); add_session('c1', 1000); hint('c1', True)")
        try daemon.waitFor("web", "background")
        try daemon.stop()
    }

    @Test("An apply follows another session, or none, at once, and a new app is where the others are")
    func apply() throws {
        let scene = try Scene("session = \"c1\"\n" + Scene.app("web"), "add_session('c2', 1001); hint('c2', True)")
        let daemon = scene.daemon
        try daemon.waitFor("web", "active")
        try scene.waitUntilFollowed()
        #expect(try scene.logind?.value?.contains("session c1, not locked") ?? false)
        func apply(_ toml: String) throws {
            _ = try Daemon.writeConfiguration(toml, in: daemon.directory)
            try daemon.call(.apply(ApplyRequest()))
        }
        try apply("session = \"c2\"\n" + Scene.app("web"))
        try daemon.waitFor("web", "background")
        try apply("session = \"c2\"\n" + Scene.app("web") + Scene.app("new"))
        try daemon.waitFor("new", "background")
        try scene.waitForInhibitors(1)
        try apply("session = \"none\"\nsleep = false\n" + Scene.app("web") + Scene.app("new"))
        for name in ["web", "new"] { try daemon.waitFor(name, "active") }
        try scene.waitForInhibitors(0)
        #expect(try scene.logind?.value?.hasPrefix("not followed") ?? false)
        try daemon.stop()
    }

    @Test("At its end the supervisor lets the machine sleep, whatever waits")
    func end() throws {
        let scene = try Scene(Scene.app("slow", "grace = \"1s\""))
        try scene.daemon.waitFor("slow", "active")
        try scene.waitForInhibitors(1)
        try scene.mock.sleep(true)
        try scene.daemon.waitForRecord("slow", "SIGUSR1")
        try scene.daemon.stop()
        try scene.waitForInhibitors(0)
    }
}
