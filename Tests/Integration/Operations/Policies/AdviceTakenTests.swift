// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import PolicyLibraries
import TestAddresses
import Testing
import TorporAPI
import Varlink

@Suite("What policies advise, and what becomes of it") struct AdviceTakenTests {
    /// Numbers of torpor_policy.h.
    private enum Number {
        static let started = 0, state = 2, timeUsed = 4, launch = 5, ended = 6, timer = 7
        static let admit = 4
        static let goal = 1, grant = 2, delay = 5, refuse = 6, restart = 7, giveUp = 8, profile = 9, askAgain = 10
        static let notRunning = 0, inactive = 1, background = 3, suspended = 4
    }

    private func rule(
        on event: Int,
        _ kind: Int,
        app: String = "",
        value: Int = 0,
        time: Int = 0,
        reason: String = "",
        times: Int? = nil
    ) -> String {
        let limit = times.map { ", times = \($0)" } ?? ""
        return """
            { on = \(event), kind = \(kind), app = "\(app)", value = \(value), time = \(time), reason = "\(reason)"\(limit) }
            """
    }

    private func advised(
        _ rules: [String],
        _ lines: String = "",
        apps: String = Governed.sleeper("a"),
        _ body: (Daemon) throws -> Void
    ) throws {
        let policy = try Governed.advisor(rules.joined(separator: ", "), lines)
        try withDaemon(Governed.toml([("adviser", policy)], apps: apps)) { daemon throws in
            // torpord answers before it has loaded them.
            try daemon.waitForPolicy("adviser", "is there") { $0.state == "ready" }
            try body(daemon)
        }
    }

    @Test(
        "advice is taken with its reason in the events, in a process of its own and in torpord's",
        arguments: [
            "process", "none",
        ]
    )
    func taken(_ isolation: String) throws {
        let rules = [rule(on: Number.state, Number.goal, app: "a", value: Number.suspended, reason: "nobody looks")]
        try advised(rules, "isolation = \"\(isolation)\"") { daemon throws in
            try daemon.waitFor("a", "suspended")
            let a = try #require(daemon.processes(of: "a").first)
            #expect(try ProcFS.stat(a).state == "T")
            #expect(try daemon.policyEvents("a").contains("is sent to suspended: nobody looks (adviser)"))
            let policy = try daemon.policy("adviser")
            #expect(policy.taken == 1 && policy.questions >= 1 && policy.medianMicroseconds != nil)
            if isolation == "process" {
                let pid = try #require(policy.pid)
                #expect(try daemon.hosts() == [pid])
                #expect(policy.confinement.contains("seccomp"))
                if geteuid() == 0 {
                    #expect(try ProcFS.statusField(pid, "Uid")?.hasPrefix("0\t") == false)
                }
            } else {
                #expect(try policy.pid == nil && daemon.hosts().isEmpty)
            }
        }
    }

    @Test("advice in a dry run is told once and not taken")
    func dryRun() throws {
        let rules = [
            rule(on: Number.state, Number.goal, app: "a", value: Number.suspended, reason: "nobody looks"),
            rule(on: Number.launch, Number.refuse, app: "b", reason: "no"),
        ]
        let apps = Governed.sleeper("a") + Governed.sleeper("b", "launch = \"on-demand\"")
        try advised(rules, "mode = \"advise\"", apps: apps) { daemon throws in
            try daemon.waitFor("a", "active")
            try daemon.done(.start, "b")
            try daemon.waitForPolicy("adviser", "has told") { $0.told >= 2 }
            #expect(try daemon.summary("a").state == "active" && daemon.summary("b").state == "active")
            let told = try daemon.policyEvents("a")
            #expect(told == ["adviser would say that a is sent to suspended: nobody looks (mode = \"advise\")"])
            #expect(try daemon.policy("adviser").taken == 0)
        }
    }

    @Test("what makes no sense is refused and counted, and the policy goes on")
    func nonsense() throws {
        let rules = [
            rule(on: Number.started, Number.goal, app: "4000000", value: Number.suspended),
            rule(on: Number.started, Number.goal, app: "a", value: 77),
            rule(on: Number.started, Number.goal, app: "a", value: Number.inactive),
            rule(on: Number.started, 99, app: "a"),
            rule(on: Number.started, Number.restart, app: "a", time: 5),
            rule(on: Number.started, Number.goal, app: "b", value: Number.notRunning, reason: "away"),
        ]
        let apps = Governed.sleeper("a") + Governed.sleeper("b", "launch = \"on-demand\"")
        try advised(rules, apps: apps) { daemon throws in
            // Before anything runs, what is not running cannot be ended and the foreground is not where it can go.
            try daemon.waitForPolicy("adviser", "was refused") { $0.refused == 5 && $0.idle == 1 }
            #expect(try daemon.policy("adviser").state == "ready" && daemon.policy("adviser").failures == 0)
            let texts = try daemon.policyEvents().joined(separator: "\n")
            for sentence in ["no app in place 4000000", "no state number 77", "only pass", "no advice number 99"] {
                #expect(texts.contains(sentence), "\(texts)")
            }
            try daemon.waitFor("a", "active")
        }
    }

    @Test("a launch that a policy refuses ends with its sentence; a person who insists has it all the same")
    func admission() throws {
        let rules = [rule(on: Number.launch, Number.refuse, reason: "the machine is full")]
        try advised(rules, apps: Governed.sleeper("a", "launch = \"on-demand\"")) { daemon throws in
            let refused = try daemon.verb(.start, "a")
            #expect(!refused.ok && refused.message?.contains("the machine is full (adviser)") == true, "\(refused)")
            #expect(daemon.processes(of: "a").isEmpty)
            let forced = try daemon.verb(.start, "a") { $0.force = true }
            #expect(forced.ok && !daemon.processes(of: "a").isEmpty)
        }
    }

    @Test("a launch that a policy puts off comes when it lets it")
    func delay() throws {
        let rules = [rule(on: Number.launch, Number.delay, time: 300_000, reason: "not yet", times: 1)]
        try advised(rules, apps: Governed.sleeper("a", "launch = \"on-demand\"")) { daemon throws in
            let before = Clock.monotonic()
            try daemon.done(.start, "a")
            #expect(Clock.monotonic() - before >= .milliseconds(300))
            #expect(try daemon.policyEvents("a").contains { $0.contains("not yet") })
        }
        let long = [rule(on: Number.launch, Number.delay, time: 3_600_000_000, reason: "in an hour")]
        try advised(long, apps: Governed.sleeper("a", "launch = \"on-demand\"")) { daemon throws in
            _ = try daemon.verb(.start, "a") { $0.wait = false }
            try daemon.waitForEvent("a", "in an hour")
            #expect(daemon.processes(of: "a").isEmpty)
            try daemon.done(.start, "a") { $0.force = true }
            #expect(try daemon.summary("a").state == "active")
        }
    }

    @Test("a launch that is put off stays so when torpord or the policy is replaced: it is asked again")
    func delayRemains() throws {
        let rules = rule(on: Number.launch, Number.delay, time: 3_600_000_000, reason: "in an hour")
        let apps = Governed.sleeper("a", "launch = \"on-demand\"")
        let toml = Governed.toml([("adviser", try Governed.advisor(rules))], apps: apps)
        try withRecovery(toml) { daemon throws in
            try daemon.waitForPolicy("adviser", "is there") { $0.state == "ready" }
            _ = try daemon.verb(.start, "a") { $0.wait = false }
            func isHeldBack(_ reason: String) throws {
                try daemon.eventually("it waits: \(reason)") {
                    try daemon.summary("a").heldBack?.contains(reason) ?? false
                }
                #expect(daemon.processes(of: "a").isEmpty)
            }
            try isHeldBack("in an hour")
            for loss in [Loss.killed, .upgraded] {
                try daemon.lose(loss)
                try isHeldBack("in an hour")
            }
            _ = try daemon.apply(toml.replacing("in an hour", with: "in another hour"))
            try isHeldBack("in another hour")
            _ = try daemon.apply(toml.replacing(rules, with: rule(on: Number.launch, Number.admit)))
            try daemon.waitFor("a", "active")
        }
    }

    @Test("a launch that is put off by no time comes at once, and a short delay lasts for a tenth of a second")
    func delayByNothing() throws {
        for time in [0, -1] {
            let rules = [rule(on: Number.launch, Number.delay, value: 5, time: time, reason: "the unit is wrong")]
            try advised(rules, apps: Governed.sleeper("a", "launch = \"on-demand\"")) { daemon throws in
                try daemon.done(.start, "a")
                let events = try daemon.policyEvents("a")
                #expect(
                    events.contains { $0.contains("its launch cannot be delayed by a time of 0 or less") },
                    "\(events)"
                )
            }
        }
        let rules = [rule(on: Number.launch, Number.delay, time: 1, reason: "soon", times: 3)]
        try advised(rules, apps: Governed.sleeper("a", "launch = \"on-demand\"")) { daemon throws in
            let before = Clock.monotonic()
            try daemon.done(.start, "a")
            #expect(Clock.monotonic() - before >= .milliseconds(300))
        }
    }

    @Test("a restart is put off or given up as a policy says")
    func restarts() throws {
        let later = [rule(on: Number.ended, Number.restart, time: 60_000_000, reason: "it needs rest")]
        try advised(later) { daemon throws in
            try daemon.waitFor("a", "active")
            kill(try #require(daemon.processes(of: "a").first), SIGKILL)
            try daemon.waitForEvent("a", "it needs rest")
            #expect(try daemon.summary("a").nextRestartMilliseconds ?? 0 > 30_000)
        }
        let never = [rule(on: Number.ended, Number.giveUp, reason: "it is hopeless")]
        try advised(never) { daemon throws in
            try daemon.waitFor("a", "active")
            kill(try #require(daemon.processes(of: "a").first), SIGKILL)
            try daemon.eventually("a is given up") { try daemon.summary("a").failed }
            try daemon.done(.start, "a")
        }
    }

    @Test("a policy that changes its mind all the time moves an app a few times, and then has to wait")
    func flapping() throws {
        let rules = [
            rule(on: Number.state, Number.goal, app: "a", value: -1, reason: "this way"),
            rule(on: Number.timer, Number.goal, app: "a", value: -1, reason: "that way"),
            rule(on: Number.started, Number.askAgain, time: 0), rule(on: Number.timer, Number.askAgain, time: 0),
            rule(on: Number.state, Number.askAgain, time: 0),
        ]
        try advised(rules) { daemon throws in
            try daemon.waitForPolicy("adviser", "is damped") { $0.damped >= 3 }
            let changes = try daemon.policyEvents("a").filter { $0.contains("is sent to") }
            #expect(changes.count <= 5, "\(changes)")
            try daemon.done(.start, "a")
        }
    }

    @Test("A policy that gives more time too often is asked again when it may give some once more")
    func grants() throws {
        let rules = [rule(on: Number.timeUsed, Number.grant, app: "a", time: 100_000, reason: "a little longer")]
        let apps = Governed.sleeper("a", "background_time = \"100ms\"\nlaunch = \"background\"")
        try advised(rules, apps: apps) { daemon throws in
            try daemon.waitForPolicy("adviser", "is damped, and then followed once more") {
                $0.damped >= 1 && $0.taken >= 9
            }
        }
    }

    @Test(
        "What a policy undoes is not done again at once by the same connection, and is done when it lets it",
        arguments: [true, false]
    )
    func undone(ends: Bool) throws {
        let port = try TestAddress.port()
        let rules =
            ends
            ? [rule(on: Number.state, Number.goal, app: "a", value: Number.notRunning, reason: "not now")]
            : [rule(on: Number.launch, Number.refuse, app: "a", reason: "not now")]
        let lines = "launch = \"on-demand\"\nsockets = [{ stream = \"127.0.0.1:\(port)\" }]"
        try advised(rules, apps: Governed.sleeper("a", lines)) { daemon throws in
            let client = try Sockets.connectTCP(address: "127.0.0.1", port: port)
            try daemon.waitForEvent("a", "events wait for 1s")
            try daemon.waitForEvent("a", "events wait for 2s")
            let launches = try daemon.events("a").count { $0.text.hasPrefix("launched as process") }
            #expect(launches == (ends ? 2 : 0))
            try daemon.apply(Governed.toml([], apps: Governed.sleeper("a", lines)))
            try daemon.waitFor("a", "background")
            client.close()
        }
    }

    @Test("whoever waits for a time is asked at once when somebody sets the clock", .enabled(if: geteuid() == 0))
    func clock() throws {
        let rules = [
            rule(on: Number.started, Number.askAgain, time: 3_600_000_000),
            rule(on: Number.timer, Number.goal, app: "a", value: Number.background, reason: "it is time"),
        ]
        try advised(rules) { daemon throws in
            try daemon.waitFor("a", "active")
            try daemon.waitForPolicy("adviser", "waits") { $0.asksAgainMilliseconds ?? 0 > 3_000_000 }
            // To what it is already.
            var now = timespec()
            clock_gettime(CLOCK_REALTIME, &now)
            guard clock_settime(CLOCK_REALTIME, &now) == 0 else {
                return print("may not set the clock here: not tried")
            }
            try daemon.waitFor("a", "background")
        }
    }

    @Test("an app gets a state's share of the machine when a policy says so, and not twice")
    func profile() throws {
        let rules =
            [rule(on: Number.timer, Number.profile, app: "a", value: Number.background, reason: "it can wait")]
            + [Number.started, Number.timer].map { rule(on: $0, Number.askAgain) }
        try advised(rules) { daemon throws in
            try daemon.waitForEvent("a", "it can wait")
            // That may have been for a state that it has left since.
            try daemon.waitFor("a", "active")
            try daemon.eventually("it has that share") {
                guard let a = daemon.processes(of: "a").first else { return false }
                let score = try File.readString("/proc/\(a)/oom_score_adj").split(separator: "\n").first
                return score.flatMap { Int($0) } ?? 0 >= 300
            }
            let said = try daemon.policyEvents("a").count { $0.contains("it can wait") }
            let idle = try daemon.policy("adviser").idle
            try daemon.waitForPolicy("adviser", "has said it again") { $0.idle >= idle + 3 }
            #expect(try daemon.policyEvents("a").count { $0.contains("it can wait") } == said)
        }
    }

    @Test("the first policy in the chain that has a say has the say")
    func chain() throws {
        let first = try Governed.advisor(rule(on: Number.state, Number.goal, app: "a", value: Number.background))
        let second = try Governed.advisor(rule(on: Number.state, Number.goal, app: "a", value: Number.notRunning))
        let app = Governed.sleeper("a", "launch = \"on-demand\"")
        let toml = Governed.toml([("first", first), ("second", second)], apps: app)
        try withDaemon(toml) { daemon throws in
            for name in ["first", "second"] { try daemon.waitForPolicy(name, "is there") { $0.state == "ready" } }
            _ = try daemon.verb(.start, "a") { $0.wait = false }
            try daemon.waitFor("a", "background")
            try daemon.waitForPolicy("second", "is overruled") { $0.overruled >= 1 }
            #expect(try daemon.policy("second").taken == 0)
        }
    }

    @Test("loading a policy again changes its process and nothing else; an apply changes what it says")
    func reload() throws {
        let rules = rule(on: Number.started, Number.goal, app: "a", value: Number.background)
        let other = rule(on: Number.started, Number.goal, app: "a", value: Number.suspended)
        let toml = { (rules: String) in
            Governed.toml(
                [("adviser", try Governed.advisor(rules)), ("other", try Governed.advisor(""))],
                apps: Governed.sleeper("a")
            )
        }
        try withDaemon(try toml(rules)) { daemon throws in
            try daemon.waitForPolicy("other", "is there") { $0.state == "ready" }
            try daemon.eventually("a runs") { !daemon.processes(of: "a").isEmpty }
            let a = daemon.processes(of: "a")
            let (pid, otherPid) = (try daemon.policy("adviser").pid, try daemon.policy("other").pid)
            _ = try daemon.call(.reloadPolicy(name: "adviser"))
            #expect(try daemon.policy("adviser").pid != pid && daemon.policy("other").pid == otherPid)
            try daemon.waitFor("a", "background")
            _ = try Daemon.writeConfiguration(try toml(other), in: daemon.directory)
            _ = try daemon.call(.apply(ApplyRequest()))
            try daemon.waitFor("a", "suspended")
            #expect(try daemon.policy("other").pid == otherPid && daemon.processes(of: "a") == a)
            let failure = #expect(throws: VarlinkClientError.self) { try daemon.call(.reloadPolicy(name: "nobody")) }
            #expect("\(String(describing: failure))".contains("there are adviser, other"))
        }
    }

    @Test(
        "a library in torpord's own process that was built anew is not taken for the old one: an upgrade begins with it"
    )
    func builtAnew() throws {
        let folder = try Libraries.makeFolder("anew")
        let path = folder + "/libadvisor.so"
        try copyProgram(Libraries.path("advisor.c"), to: path)
        let lines = "path = \"\(path)\"\nisolation = \"none\"\ndeadline = \"5s\""
        try withDaemon(Governed.toml([("adviser", lines)], apps: Governed.sleeper("a"))) { daemon throws in
            try daemon.waitForPolicy("adviser", "is there") { $0.state == "ready" }
            _ = try daemon.call(.reloadPolicy(name: "adviser"))
            #expect(try daemon.policy("adviser").state == "ready")
            try copyProgram(Libraries.path("advisor.c"), to: path + ".new")
            try File.rename(path + ".new", path)
            _ = try daemon.call(.reloadPolicy(name: "adviser"))
            let policy = try daemon.policy("adviser")
            #expect(policy.state == "refused" && policy.lastFailure?.contains("torpor upgrade") == true, "\(policy)")
            kill(daemon.pid, SIGUSR2)
            // Whoever asks the torpord that makes way loses the connection.
            try daemon.eventually("the policy is there again") { (try? daemon.policy("adviser"))?.state == "ready" }
        }
    }

    @Test("a request that a policy overtakes says which one did")
    func overtakes() throws {
        let rules = [rule(on: Number.state, Number.goal, app: "b", value: Number.notRunning, reason: "off")]
        let never = "launch = \"on-demand\"\nready = { file = \"@D/never\" }\nlaunch_deadline = \"none\""
        try advised(rules, apps: Governed.sleeper("b", never)) { daemon throws in
            let result = try daemon.verb(.start, "b")
            #expect(result.error == "overtaken", "\(result)")
            #expect(result.message == "b was overtaken by policy adviser: it goes to not-running")
        }
    }

    @Test("the next torpord goes on with new processes for its policies, and none of the old is left")
    func replaced() throws {
        let rules = rule(on: Number.state, Number.goal, app: "a", value: Number.suspended)
        try advised([rules]) { daemon throws in
            try daemon.waitFor("a", "suspended")
            let host = try #require(try daemon.policy("adviser").pid)
            kill(try daemon.torpord(), SIGKILL)
            try daemon.eventually("the next torpord answers with its own process for the policy") {
                guard let policy = try? daemon.policy("adviser"), policy.state == "ready" else { return false }
                return try policy.pid != host && daemon.hosts() == [policy.pid]
            }
            try daemon.done(.foreground, "a")
            try daemon.waitFor("a", "suspended")
        }
    }
}
