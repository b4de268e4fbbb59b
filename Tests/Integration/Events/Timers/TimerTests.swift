// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

@Suite("Timers wake apps") struct TimerTests {
    /// An app that records how it was launched, and each SIGUSR1.
    static func app(_ name: String, _ rest: String) -> String {
        """
        [apps.\(name)]
        exec = ["/usr/bin/python3", "-S", "@D/app.py"]
        launch = "on-demand"
        event_time = "200ms"
        background_time = "200ms"
        ready = "notify"
        signals = { didReceiveEvent = "SIGUSR1" }
        \(rest)

        """
    }

    static let files = [
        "app.py": """
        from tp import *
        on("SIGUSR1")
        record(os.environ["TORPOR_LAUNCH_REASON"] + " " + os.environ["TORPOR_LAUNCH_OPTIONS"])
        notify("READY=1")
        wait()
        """
    ]

    static func timers(_ daemon: Daemon, _ apps: [String] = []) throws -> [TimerStatus] {
        try (daemon.call(.timers(apps: apps))["timers"]?.arrayValue ?? []).map { try TimerStatus(json: $0) }
    }

    /// Waits until the start is over, and times come.
    private func begun(_ daemon: Daemon, _ count: Int = 1) throws -> [TimerStatus] {
        var timers: [TimerStatus] = []
        try daemon.eventually("its timers have begun") {
            timers = try Self.timers(daemon)
            return timers.count == count
        }
        return timers
    }

    /// When a timer comes next. It is reckoned from two clocks, between which a busy machine may let time pass: most of
    /// several answers are right.
    private func next(_ name: String, _ daemon: Daemon) throws -> Int64 {
        try (0..<5).map { _ in try #require(try Self.timers(daemon).first { $0.name == name }?.next) }.sorted()[2]
    }

    @Test("An app that was never started is launched in the background, and told why")
    func launches() throws {
        let toml = Self.app("web", #"timers = [{ name = "soon", after_start = "300ms" }]"#)
        try withDaemon(toml, files: Self.files) { daemon in
            try daemon.waitForEvent("web", "woken by timer soon after")
            try daemon.waitForRecord("web", "SIGUSR1")
            let first = try #require(daemon.records("web").first)
            #expect(first.hasPrefix("event "))
            let options = try JSON.parse(String(first.dropFirst(6)))
            #expect(options["event"]?["source"]?.stringValue == "timer")
            #expect(options["event"]?["name"]?.stringValue == "soon")
            #expect(try daemon.summary("web").state == "background")
            #expect(try !daemon.walk("web").contains("active"))
            let timer = try #require(Self.timers(daemon).first)
            #expect(timer.next == nil && timer.last != nil && timer.when == "300ms after start")
        }
    }

    @Test("A suspended app is continued for it, told, and sleeps again when its time is over")
    func wakes() throws {
        let toml = Self.app("web", #"timers = [{ name = "often", every = "1s", payload = { n = 7 } }]"#)
        try withDaemon(toml, files: Self.files) { daemon in
            try daemon.done(.start, "web")
            try daemon.done(.suspend, "web")
            let pid = try daemon.summary("web").pid
            try daemon.eventually("it was woken and slept again, twice") {
                let walk = try daemon.walk("web")
                return walk.suffix(5) == ["suspended", "background", "suspended", "background", "suspended"]
            }
            #expect(try daemon.summary("web").pid == pid)
            #expect(daemon.records("web").filter { $0 == "SIGUSR1" }.count >= 2)
            let woken = try daemon.events("web").filter { $0.kind == "wake" }
            #expect(woken.allSatisfy { $0.text.contains("timer often") && $0.reason == "timer" })
        }
    }

    @Test("A delegate is told the topic, the payload and how many came while it slept")
    func told() throws {
        let toml =
            Delegates.head + """
                event_time = "10s"
                timers = [{ name = "quiet", every = "1s", wake = "none", payload = { n = 7 } }]
                """
        try withDaemon(toml, files: Delegates.files()) { daemon in
            try daemon.done(.start, "web")
            try daemon.done(.suspend, "web")
            let begin = try begun(daemon).first?.last ?? Clock.realtimeMicroseconds()
            try daemon.eventually("three came") {
                try (Self.timers(daemon).first?.last ?? 0) > begin + 2_500_000
            }
            #expect(try daemon.summary("web").state == "suspended")
            try daemon.done(.resume, "web")
            var message: Heard?
            try daemon.eventually("it is told") {
                message = try daemon.heard().last { $0.name == "didReceiveEvent" }
                return message != nil
            }
            let parameters = try #require(message?.parameters)
            #expect(parameters["topic"]?.stringValue == "timer:quiet")
            #expect(parameters["payload"]?["n"]?.intValue == 7)
            #expect((parameters["count"]?.intValue ?? 0) >= 2)
        }
    }

    @Test("Timers of several apps come together, as far as their accuracy allows")
    func together() throws {
        let names = (1...20).map { "a\($0)" }
        // Due 30 ms apart, over 600 ms in all.
        let toml = names.enumerated().map { index, name in
            """
            [apps.\(name)]
            exec = ["/bin/sh", "-c", "exec sleep 1000"]
            launch = "on-demand"
            timers = [{ name = "t", after_start = "\(1_000 + 30 * index)ms", accuracy = "5s" }]

            """
        }.joined()
        try withDaemon(toml) { daemon in
            _ = try begun(daemon, 20)
            try daemon.eventually("all have come") { try Self.timers(daemon).allSatisfy { $0.last != nil } }
            let times = try Self.timers(daemon).compactMap(\.last)
            #expect(times.max()! - times.min()! < 10_000, "one look for all: \(times)")
            for name in names { try daemon.waitForEvent(name, "woken by timer t") }
        }
    }

    @Test("A job is launched each time, works, and ends")
    func jobs() throws {
        let toml = """
            [apps.job]
            exec = ["/bin/sh", "-c", "echo done"]
            type = "oneshot"
            launch = "on-demand"
            timers = [{ every = "1s" }]
            """
        try withDaemon(toml) { daemon in
            try daemon.eventually("it has worked three times") {
                try daemon.events("job").filter { $0.reason == "exit-success" }.count >= 3
            }
            #expect(try daemon.summary("job").restarts == 0)
        }
    }

    @Test("An app that a person stopped is not launched, and that is said")
    func stopped() throws {
        let toml = Self.app("web", #"timers = [{ name = "often", every = "1s" }]"#)
        try withDaemon(toml, files: Self.files) { daemon in
            try daemon.done(.start, "web")
            try daemon.done(.stop, "web")
            let runs = daemon.records("web").count
            try daemon.waitForEvent("web", "is not woken by timer often: it is not launched by events until")
            #expect(try daemon.summary("web").state == "not-running")
            #expect(daemon.records("web").count == runs)
        }
    }

    @Test("A timer that did not change goes on over an apply; one that goes comes no more")
    func apply() throws {
        func toml(_ timers: String) -> String { Self.app("web", "timers = [\(timers)]") }
        let kept = #"{ name = "kept", every = "1h" }"#
        try withDaemon(toml(kept + #", { name = "gone", every = "1h" }"#), files: Self.files) { daemon in
            let before = try begun(daemon, 2)
            #expect(before.map(\.name).sorted() == ["gone", "kept"])
            let old = try next("kept", daemon)
            _ = try Daemon.writeConfiguration(
                toml(kept + #", { name = "new", every = "2h" }"#),
                in: daemon.directory
            )
            try daemon.call(.apply(ApplyRequest()))
            let after = try Self.timers(daemon)
            #expect(after.map(\.name) == ["kept", "new"])
            let later = try next("kept", daemon) - old
            #expect(abs(later) < 1_000, "it goes on where it was")
        }
    }

    @Test("What takes over from a torpord that was killed goes on with its timers, and repeats none")
    func recovery() throws {
        let toml = Self.app(
            "web",
            #"timers = [{ name = "once", after_start = "100ms" }, { name = "long", every = "1h" }]"#
        )
        try withDaemon(toml, files: Self.files) { daemon in
            try daemon.waitForEvent("web", "woken by timer once")
            let before = try Self.timers(daemon)
            let old = try next("long", daemon)
            let torpord = try daemon.torpord()
            kill(torpord, SIGKILL)
            try daemon.eventually("the next one is in charge") {
                guard let next = try? daemon.torpord(), next != torpord else { return false }
                return (try? Self.timers(daemon).count) == 2
            }
            let after = try Self.timers(daemon)
            #expect(after.first { $0.name == "once" }?.last == before.first { $0.name == "once" }?.last)
            #expect(after.first { $0.name == "once" }?.next == nil)
            // Begun anew it would be more than 100 ms later: so old it was when the other came.
            let later = try next("long", daemon) - old
            #expect(abs(later) < 50_000, "\(later) µs later than it was")
        }
    }

    @Test("What was missed while no torpord was there is made up for once, where the timer is persistent")
    func persistent() throws {
        let toml = Self.app(
            "web",
            """
            timers = [
                { name = "kept", calendar = "*-*-* *:*:*", accuracy = "1ms", persistent = true, wake = "none" },
                { name = "lost", every = "2s", wake = "none" },
                { name = "missed", every = "2s", wake = "none", persistent = true },
            ]
            """
        )
        let daemon = try Daemon(toml, files: Self.files)
        try daemon.waitUntilItAnswers()
        _ = try begun(daemon, 3)
        var last: Int64 = 0
        try daemon.eventually("they came") {
            let all = try Self.timers(daemon)
            last = all.compactMap(\.last).max() ?? 0
            return all.allSatisfy { $0.last != nil }
        }
        try daemon.stop()
        try daemon.eventually("more than an interval is over") { Clock.realtimeMicroseconds() > last + 2_500_000 }
        try daemon.startAgain()
        try daemon.waitUntilItAnswers()
        var timers: [TimerStatus] = []
        try daemon.eventually("what was missed has come") {
            timers = try Self.timers(daemon)
            return (timers.first { $0.name == "missed" }?.last ?? 0) > last + 2_000_000
        }
        // It came at the start: the other one comes an interval later.
        #expect(try #require(timers.first { $0.name == "lost" }?.last) <= last)
        try daemon.stop()
    }

    @Test("A persistent timer is known since its first start, also where the end came before the store was there")
    func persistentFromTheFirstMoment() throws {
        let disk = try HangingDisk()
        defer { disk.remove() }
        try disk.hang()
        let toml = Self.app(
            "web",
            #"timers = [{ name = "kept", every = "1s", persistent = true, wake = "none" }]"#
        )
        let daemon = try Daemon(toml, files: Self.files, environment: disk.environment)
        try daemon.waitUntilItAnswers()
        try daemon.eventually("the disk hangs") { disk.waits }
        kill(try daemon.torpord(), SIGTERM)
        try daemon.eventually("it is to end") { daemon.log.contains("stopping: every app is terminated") }
        try disk.answer()
        try daemon.waitForEnd()
        #expect(try Sqlite.ask(daemon, "SELECT count(*) FROM schedules WHERE name = 'timer:kept'") == "1")
    }

    private static func torpor(_ words: [String], _ daemon: Daemon) throws -> (status: Int32, output: String) {
        let result = try Spawn.run([Built.path("torpor")] + words + ["--socket", daemon.socket])
        return (result.code, result.output)
    }

    @Test("torpor timers shows what comes when, and as JSON")
    func verb() throws {
        let toml =
            Self.app("web", #"timers = [{ name = "noon", calendar = "*-*-* 12:00:00 UTC" }, { every = "90min" }]"#)
            + Self.app("other", "")
        try withDaemon(toml, files: Self.files) { daemon in
            _ = try begun(daemon, 2)
            let plain = try Self.torpor(["timers"], daemon)
            #expect(plain.status == 0)
            let lines = plain.output.split(separator: "\n").map(String.init)
            #expect(lines.count == 3 && lines[0].hasPrefix("NEXT"))
            #expect(plain.output.contains("T12:00:00Z"))
            #expect(plain.output.contains("every 1h30min") || plain.output.contains("every 90min"))
            let json = try JSON.parse(try Self.torpor(["timers", "web", "--json"], daemon).output)
            #expect(json.arrayValue?.count == 2)
            #expect(try Self.torpor(["timers", "other"], daemon).output == "no timers\n")
            #expect(try Self.torpor(["timers", "wbe"], daemon).status == 4)
        }
    }
}
