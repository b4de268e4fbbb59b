// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

/// What was under way when torpord went: it goes on, what happened meanwhile counts, and no time is given twice.
@Suite("Recovery: what is under way goes on") struct UnderWayTests {
    static let obedient = ["app.py": NotifyApps.obedient]

    // MARK: Launching

    @Test("READY=1 while torpord is away counts", arguments: [Loss.killed, .stuck, .keeper])
    func ready(loss: Loss) throws {
        try withRecovery(NotifyApps.head, files: Self.obedient, loss: loss) { daemon throws in
            try daemon.launch()
            let pid = try daemon.summary("web").pid
            try daemon.lose(loss) { try daemon.tell("1", #"notify("READY=1\nSTATUS=late")"#) }
            try daemon.waitFor("web", "active")
            let summary = try daemon.summary("web")
            #expect(summary.pid == pid && summary.incarnation == 1 && summary.status == "late")
            #expect(daemon.records("web").filter { $0 == "up" }.count == 1)
        }
    }

    @Test("A READY=1 that may be lost with torpord and the keeper is taken for said")
    func readyIsLost() throws {
        try withRecovery(NotifyApps.head, files: Self.obedient, loss: .both) { daemon throws in
            try daemon.launch()
            let pid = try daemon.summary("web").pid
            try daemon.lose(.both)
            try daemon.waitFor("web", "active")
            #expect(try daemon.summary("web").pid == pid)
        }
    }

    @Test("So is that of an app of whose launch torpord had not heard yet")
    func readyIsLostWithTheLaunch() throws {
        try withRecovery(NotifyApps.head, files: Self.obedient, loss: .both) { daemon throws in
            let (keeper, torpord) = (try daemon.livingKeeper(), try daemon.livingTorpord())
            kill(keeper, SIGSTOP)
            _ = try daemon.verb(.start, "web") { $0.wait = false }
            #expect(try daemon.summary("web").transition == "launching")
            kill(torpord, SIGSTOP)
            try daemon.eventually("torpord is stopped") { Truth.isStopped(torpord) }
            kill(keeper, SIGCONT)
            try daemon.tell("1", #"notify("READY=1")"#)
            let processes = daemon.processes(of: "web")
            try daemon.lose(.both)
            try daemon.waitFor("web", "active")
            #expect(try daemon.summary("web").pid.map { [Int32($0)] } == processes)
            #expect(daemon.records("web").count { $0 == "up" } == 1)
        }
    }

    @Test("An answer that may be lost with torpord and the keeper is asked for again")
    func answerIsLost() throws {
        let toml = Self.answering + "background_deadline = \"30s\"\n"
        try withRecovery(toml, files: Self.answer, loss: .both) { daemon throws in
            try daemon.waitFor("web", "active")
            _ = try daemon.verb(.background, "web") { $0.wait = false }
            try daemon.waitForRecord("web", "SIGUSR1")
            try daemon.lose(.both)
            try daemon.eventually("it is asked again") { daemon.records("web").count { $0 == "SIGUSR1" } == 2 }
            File.touch(daemon.directory + "/answer")
            try daemon.waitFor("web", "background")
        }
    }

    @Test("A launch has only the rest of its deadline")
    func launchDeadline() throws {
        let loss = Loss.killed
        let toml = NotifyApps.head + "launch_deadline = \"2500ms\"\n"
        try withRecovery(toml, files: Self.obedient, loss: loss) { daemon throws in
            let began = Clock.monotonic()
            try daemon.launch()
            try daemon.expectClockGoesOn("launch", of: "web", over: loss)
            #expect(try daemon.summary("web").transition == "launching")
            try daemon.eventually("it is ended") {
                try daemon.summary("web").lastExit?.reason == "launch-deadline"
            }
            #expect(Clock.monotonic() - began > .milliseconds(2_450), "that was too early")
        }
    }

    @Test(
        "A launch whose before_start command runs waits for it, and begins it again only if the keeper was lost too",
        arguments: [Loss.killed, .keeper, .both]
    )
    func hook(loss: Loss) throws {
        let toml = """
            [apps.web]
            exec = ["@B/torpor-test-app"]
            launch = "on-demand"
            before_start = ["/usr/bin/python3", "-S", "@D/hook.py"]
            """
        let hook = """
            import tp
            tp.record("hook")
            tp.await_file("go")
            """
        try withRecovery(toml, files: ["hook.py": hook], loss: loss) { daemon throws in
            _ = try daemon.verb(.start, "web") { $0.wait = false }
            try daemon.waitForRecord("web", "hook")
            try daemon.lose(loss)
            if loss != .killed {
                try daemon.eventually("it is begun again") { daemon.records("web") == ["hook", "hook"] }
            }
            File.touch(daemon.directory + "/go")
            try daemon.waitFor("web", "active")
            #expect(daemon.records("web").prefix { $0 == "hook" }.count == (loss == .killed ? 1 : 2))
            func runs() throws -> [String] { try File.list(daemon.directory + "/t").filter { $0.hasSuffix(".m") } }
            try daemon.eventually("it runs") { try !runs().isEmpty }
            try daemon.done(.stop, "web")
            #expect(try runs().count == 1)
        }
    }

    @Test("What requires another waits for it as before, and is launched when it is ready")
    func chainOfLaunches() throws {
        let toml = """
            [apps.base]
            exec = ["/usr/bin/python3", "-S", "@D/app.py"]
            ready = "notify"
            launch = "on-demand"
            launch_deadline = "30s"
            [apps.middle]
            exec = ["@B/torpor-test-app", "--ready", "0"]
            ready = "notify"
            requires = ["base"]
            launch = "on-demand"
            [apps.top]
            exec = ["@B/torpor-test-app"]
            requires = ["middle"]
            launch = "on-demand"
            """
        try withRecovery(toml, files: Self.obedient) { daemon throws in
            _ = try daemon.verb(.start, "top") { $0.wait = false }
            try daemon.waitForRecord("base", "up")
            try daemon.lose(.killed)
            #expect(daemon.processes(of: "middle").isEmpty && daemon.processes(of: "top").isEmpty)
            try daemon.lose(.killed) { try daemon.tell("1", #"notify("READY=1")"#, app: "base") }
            try daemon.waitFor("top", "active")
            for app in ["base", "middle"] { #expect(try daemon.summary(app).state == "background") }
            for app in ["base", "middle", "top"] { #expect(try daemon.summary(app).incarnation == 1) }
        }
    }

    // MARK: Between the states

    /// Answers didEnterBackground, which it hears as SIGUSR1, when it is told to.
    static let answering = """
        [apps.web]
        exec = ["/usr/bin/python3", "-S", "@D/answer.py"]
        ready = "notify"
        answers = true
        signals = { didEnterBackground = "SIGUSR1" }

        """
    static let answer = [
        "answer.py": """
        import tp
        tp.on("SIGUSR1")
        tp.notify("READY=1")
        tp.await_file("answer")
        # Once it has answered it may be stopped at any moment.
        tp.record("answered")
        tp.notify("X_TORPOR_DONE=didEnterBackground")
        tp.wait()
        """
    ]

    @Test(
        "An answer that is given while torpord is away counts, and the walk goes on",
        arguments: [Loss.killed, .keeper, .upgraded]
    )
    func answered(loss: Loss) throws {
        let toml = Self.answering + "background_deadline = \"30s\"\n"
        try withRecovery(toml, files: Self.answer, loss: loss) { daemon throws in
            try daemon.waitFor("web", "active")
            _ = try daemon.verb(.suspend, "web") { $0.wait = false }
            try daemon.waitForRecord("web", "SIGUSR1")
            try daemon.lose(loss) {
                File.touch(daemon.directory + "/answer")
                try daemon.waitForRecord("web", "answered")
            }
            try daemon.waitFor("web", "suspended")
            #expect(Truth.isStopped(try #require(daemon.processes(of: "web").first)))
            #expect(daemon.records("web").filter { $0 == "SIGUSR1" }.count == 1, "it is told once")
        }
    }

    @Test("A deadline of an edge goes on where it was")
    func edgeDeadline() throws {
        let toml = Self.answering + "background_deadline = \"2500ms\"\n"
        try withRecovery(toml, files: Self.answer) { daemon throws in
            try daemon.waitFor("web", "active")
            let began = Clock.monotonic()
            _ = try daemon.verb(.suspend, "web") { $0.wait = false }
            try daemon.waitForRecord("web", "SIGUSR1")
            try daemon.expectClockGoesOn("background", of: "web", over: .killed)
            try daemon.eventually("it is ended") {
                try daemon.summary("web").lastExit?.reason == "background-deadline"
            }
            #expect(Clock.monotonic() - began > .milliseconds(2_450), "that was too early")
        }
    }

    // MARK: What ends meanwhile

    @Test(
        "An app that ends meanwhile has its exit status, and what follows is the policy's",
        arguments: [Loss.killed, .keeper, .both]
    )
    func ended(loss: Loss) throws {
        let toml = """
            [apps.once]
            exec = ["@B/torpor-test-app"]
            restart = "never"
            [apps.again]
            exec = ["@B/torpor-test-app"]
            restart_backoff = { initial = "10ms" }
            [apps.seven]
            exec = ["/bin/sh", "-c", "while [ ! -e @D/go ]; do sleep 0.01; done; exit 7"]
            restart = "never"
            """
        try withRecovery(toml, loss: loss) { daemon throws in
            for app in ["once", "again", "seven"] { try daemon.waitFor(app, "active") }
            let pids = try ["once", "again"].map { try #require(try daemon.summary($0).pid) }
            let seven = try #require(try daemon.summary("seven").pid)
            try daemon.lose(loss) {
                for pid in pids { kill(pid, SIGKILL) }
                File.touch(daemon.directory + "/go")
                try daemon.eventually("they are dead") { !(pids + [seven]).contains(where: Truth.isAlive) }
            }
            try daemon.eventually("it runs again") {
                let again = try daemon.summary("again")
                return again.incarnation == 2 && again.state == "active"
            }
            for app in ["once", "seven"] {
                try daemon.eventually("its end is known") { try daemon.summary(app).lastExit != nil }
                #expect(try daemon.summary(app).state == "not-running")
            }
            let once = try #require(try daemon.summary("once").lastExit)
            let status = try #require(try daemon.summary("seven").lastExit)
            if loss == .both {
                // The kernel tells only those who held the process.
                #expect(once.reason == "unknown" && status.reason == "unknown")
            } else if loss != .keeper || Pidfd.tellsExits {
                #expect(once.reason == "signal" && once.signal == "SIGKILL", "\(once)")
                #expect(status.reason == "exit-failure" && status.code == 7, "\(status)")
            }
            #expect(try daemon.summary("again").restarts == 1)
            try daemon.expectWholeLogOfEnded("once", loss)
        }
    }

    @Test("A restart comes when its delay is over, not later for the loss", arguments: [Loss.killed, .both])
    func restartDelay(loss: Loss) throws {
        let toml = """
            [apps.web]
            exec = ["@B/torpor-test-app"]
            restart_backoff = { initial = "3s", jitter = 0 }
            """
        try withRecovery(toml) { daemon throws in
            try daemon.waitFor("web", "active")
            kill(try #require(try daemon.summary("web").pid), SIGKILL)
            let began = Clock.monotonic()
            try daemon.eventually("it waits") { try daemon.summary("web").nextRestartMilliseconds != nil }
            try daemon.expectClockGoesOn("restart", of: "web", over: loss)
            guard loss == .killed else { return }
            try daemon.eventually("it runs again") { !daemon.processes(of: "web").isEmpty }
            #expect(Clock.monotonic() - began > .milliseconds(2_950), "that was too early")
            try daemon.waitFor("web", "active")
            #expect(try daemon.summary("web").incarnation == 2)
        }
    }

    // MARK: The watchdog

    @Test(
        "Heartbeats that come while torpord is away count; one that does not ends the app",
        arguments: [Loss.killed, .both]
    )
    func watchdog(loss: Loss) throws {
        let toml = """
            [apps.alive]
            exec = ["@B/torpor-test-app", "--ready", "0", "--beat", "50"]
            ready = "notify"
            watchdog = "1s"
            [apps.dead]
            exec = ["/usr/bin/python3", "-S", "@D/app.py"]
            ready = "notify"
            watchdog = "1s"
            limits = { core = "0" }
            [apps.later]
            exec = ["/usr/bin/python3", "-S", "@D/app.py"]
            launch = "on-demand"
            restart = "never"
            ready = "notify"
            watchdog = "1s"
            limits = { core = "0" }
            """
        try withRecovery(toml, files: Self.obedient, loss: loss) { daemon throws in
            try daemon.waitFor("alive", "active")
            try daemon.tell("1", #"notify("READY=1\nWATCHDOG=1")"#, app: "dead")
            let began = Clock.monotonic()
            // Longer than the interval: the queue of the socket is full then, with beats that are old.
            try daemon.lose(loss) {
                try daemon.waitUntil(began + .milliseconds(1_500))
            }
            try daemon.eventually("it is ended") {
                try daemon.events("dead").contains { $0.reason == "watchdog" }
            }
            // So is one that beats once, and begins now.
            try daemon.done(.start, "later")
            try daemon.eventually("it is ended too") { try daemon.summary("later").lastExit?.reason == "watchdog" }
            #expect(try daemon.truth("alive").wrongs == [])
            #expect(try daemon.summary("alive").incarnation == 1)
        }
    }
}

extension Daemon {
    /// What is left of a deadline, in milliseconds.
    func rest(_ name: String, of app: String) throws -> Int64 {
        let deadlines = try status(app).deadlines
        guard let rest = deadlines.first(where: { $0.name == name })?.remainingMilliseconds else {
            throw Trouble("\(app) has no deadline called \(name): \(deadlines)")
        }
        return rest
    }

    /// Loses torpord; neither is any of the deadline's time given back, nor is more of it gone than passed.
    func expectClockGoesOn(
        _ deadline: String,
        of app: String,
        over loss: Loss,
        at location: SourceLocation = #_sourceLocation
    ) throws {
        let first = Clock.monotonic()
        let before = try rest(deadline, of: app)
        let second = Clock.monotonic()
        try lose(loss, at: location) { try waitUntil(second + .milliseconds(300)) }
        let third = Clock.monotonic()
        let after = try rest(deadline, of: app)
        let fourth = Clock.monotonic()
        // 20 ms for what the numbers are rounded by.
        let (least, most) = ((third - second).microseconds / 1_000 - 20, (fourth - first).microseconds / 1_000 + 20)
        #expect(before - after >= least && before - after <= most, sourceLocation: location)
    }

    /// Until that time on the monotonic clock.
    func waitUntil(_ time: Duration) throws {
        while Clock.monotonic() < time { usleep(2_000) }
    }

    /// As `expectWholeLog`; with keeper and torpord gone, what an app wrote last before its end may be.
    func expectWholeLogOfEnded(
        _ app: String,
        _ loss: Loss,
        at location: SourceLocation = #_sourceLocation
    ) throws {
        guard loss != .both else { return }
        try expectWholeLog(app, at: location)
    }
}

extension Pidfd {
    /// Whether this kernel tells how a process ended to those who hold it (Linux 6.15).
    static let tellsExits: Bool = {
        let release = (try? File.readString("/proc/sys/kernel/osrelease")) ?? ""
        let numbers = release.split(whereSeparator: { !$0.isNumber }).prefix(2).compactMap { Int($0) }
        return numbers.count == 2 && (numbers[0], numbers[1]) >= (6, 15)
    }()
}
