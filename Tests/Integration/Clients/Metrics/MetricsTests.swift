// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

@Suite("Metrics") struct MetricsTests {
    private static let toml = """
        [apps.web]
        exec = ["/bin/sh", "-c", "echo >@D/web; sleep 1000; :"]
        [apps.crash]
        exec = ["/bin/false"]
        launch = "on-demand"
        restart = "never"
        [apps.slow]
        exec = ["/bin/sh", "-c", "trap '' TERM; echo >@D/slow; while :; do sleep 0.02; done"]
        grace = "50ms"
        """

    /// The samples of a run of `torpor metrics`: each line's name with its labels, and its value.
    private static func samples(_ daemon: Daemon, _ options: [String] = []) throws -> [String: Double] {
        let (status, text) = try Spawn.run([Built.path("torpor"), "metrics", "--socket", daemon.socket] + options)
        #expect(status == 0, "\(text)")
        var samples: [String: Double] = [:]
        for line in text.split(separator: "\n") where !line.hasPrefix("#") {
            let space = try #require(line.lastIndex(of: " "))
            guard let value = Double(line[line.index(after: space)...]) else { throw Trouble("no number: \(line)") }
            samples[String(line[..<space])] = value
        }
        return samples
    }

    @Test("They tell what apps went through and how they are now")
    func counted() throws {
        try withDaemon(Self.toml) { daemon in
            for app in ["web", "slow"] {
                try daemon.waitFor(app, "active")
                try daemon.eventually("\(app) runs") { File.exists(daemon.directory + "/" + app) }
            }
            try daemon.done(.suspend, "web")
            try daemon.done(.resume, "web")
            try daemon.done(.suspend, "web")
            _ = try daemon.verb(.start, "crash")
            try daemon.eventually("crash has ended") { try daemon.summary("crash").lastExit != nil }
            try daemon.done(.stop, "slow")
            let found = try Self.samples(daemon)
            #expect(found[#"torpor_app_state{app="web",torpor_app_state="suspended"}"#] == 1)
            #expect(found[#"torpor_app_state{app="web",torpor_app_state="active"}"#] == 0)
            #expect(found[#"torpor_apps{state="suspended"}"#] == 1)
            #expect(found[#"torpor_apps{state="not-running"}"#] == 2)
            #expect(found[#"torpor_transitions_total{from="background",to="suspended"}"#] == 2)
            #expect(found[#"torpor_transitions_total{from="suspended",to="background"}"#] == 1)
            #expect(found[#"torpor_app_launches_total{app="web"}"#] == 1)
            #expect(found[#"torpor_app_endings_total{app="crash",reason="exit-failure"}"#] == 1)
            #expect(found[#"torpor_app_endings_total{app="slow",reason="stopped"}"#] == 1)
            #expect(found[#"torpor_deadlines_missed_total{deadline="grace"}"#] == 1)
            // It takes its grace of 50 ms, and is killed then.
            let ending = #"torpor_transition_duration_seconds_bucket{transition="terminating",le="#
            #expect(found[ending + #""0.025"}"#] ?? 1 <= 1)
            #expect(found[#"torpor_transition_duration_seconds_sum{transition="terminating"}"#] ?? 0 >= 0.05)
            #expect(found[#"torpor_transition_duration_seconds_count{transition="launching"}"#] == 3)
            #expect(found[#"torpor_app_memory_bytes{app="web"}"#] ?? 0 > 100_000)
            #expect(found[#"torpor_app_memory_bytes{app="slow"}"#] == nil, "it does not run")
        }
    }

    @Test("torpord's own cost is what /proc says of its processes")
    func own() throws {
        try withDaemon(Self.toml) { daemon in
            let info = try SupervisorInfo(json: daemon.call(.describe))
            let found = try Self.samples(daemon)
            for (name, pid) in [("torpord", info.pid), ("torpor-keeper", daemon.pid)] {
                let stat = try ProcFS.stat(pid)
                let memory = try #require(found[#"torpor_supervisor_resident_memory_bytes{process="\#(name)"}"#])
                let real = Double(stat.residentPages) * Double(Memory.pageSize)
                #expect(memory > real / 2 && memory < real * 2, "\(name)")
                let time = try #require(found[#"torpor_supervisor_cpu_seconds_total{process="\#(name)"}"#])
                #expect(time <= Clock.duration(ticks: stat.userTicks + stat.systemTicks).inSeconds)
            }
            let total = try #require(MachineMemory()?.total)
            #expect(found["torpor_memory_total_bytes"] ?? 0 <= Double(total))
        }
    }

    @Test("A wake counts, with how long it took")
    func wakes() throws {
        let toml = """
            [apps.web]
            \(Scripts.python)"@D/app.py"]
            topics = { news = "all" }
            signals = { didReceiveNotification = "SIGUSR1" }
            """
        let program = "import tp\ntp.on('SIGUSR1')\ntp.record('ready')\ntp.wait()\n"
        try withDaemon(toml, files: ["app.py": program]) { daemon in
            try daemon.waitForRecord("web", "ready")
            try daemon.done(.suspend, "web")
            var post = PostRequest(app: "web", topic: "news")
            post.urgent = true
            try daemon.call(.post(post))
            try daemon.eventually("it was woken") {
                try daemon.events("web").contains { $0.text.hasPrefix("woken by") }
            }
            let found = try Self.samples(daemon)
            #expect(found[#"torpor_app_wakes_total{app="web"}"#] == 1)
            #expect(found[#"torpor_wake_latency_seconds_count{source="message"}"#] == 1)
        }
    }

    @Test("promtool and the parser of OpenMetrics find nothing wrong with them")
    func valid() throws {
        try withDaemon(Self.toml) { daemon in
            try daemon.waitFor("web", "active")
            try daemon.done(.suspend, "web")
            let torpor = "'\(Built.path("torpor"))' metrics --socket '\(daemon.socket)'"
            let promtool = Self.root + "/scripts/promtool"
            let lint = try Spawn.run(["/bin/bash", "-c", "\(torpor) --format prometheus | '\(promtool)' check metrics"])
            #expect(lint.code == 0 && lint.output.isEmpty, "\(lint.output)")
            let parse = """
                import sys
                from prometheus_client.openmetrics.parser import text_string_to_metric_families
                print(len(list(text_string_to_metric_families(sys.stdin.read()))))
                """
            let parsed = try Spawn.run(["/bin/bash", "-c", "\(torpor) | /usr/bin/python3 -c \"$0\"", parse])
            #expect(parsed.code == 0, "\(parsed.output)")
            #expect(Int(parsed.output.trimmingCharacters(in: .whitespacesAndNewlines)) ?? 0 > 20, "\(parsed.output)")
        }
    }

    @Test("The alerts are what promtool takes, and fire when they should")
    func alerts() throws {
        let folder = Self.root + "/config/prometheus"
        for words in [["check", "rules", "torpor.rules.yml"], ["test", "rules", "torpor.rules.test.yml"]] {
            let command = [
                "/bin/bash", "-c", "cd '\(folder)' && exec '\(Self.root)/scripts/promtool' \"$@\"", "promtool",
            ]
            let (status, output) = try Spawn.run(command + words)
            #expect(status == 0, "\(output)")
        }
    }

    @Test("Events are traces: a run of an app with its states")
    func traces() throws {
        try withDaemon(Self.toml) { daemon in
            try daemon.waitFor("web", "active")
            try daemon.done(.suspend, "web")
            try daemon.done(.kill, "web")
            let (status, text) = try Spawn.run(
                [Built.path("torpor"), "events", "web", "--otlp", "--socket", daemon.socket]
            )
            #expect(status == 0)
            let names = try text.split(separator: "\n").compactMap { line in
                let request = try JSON.parse(Array(line.utf8))["resourceSpans"]?.arrayValue?.first
                return request?["scopeSpans"]?.arrayValue?.first?["spans"]?.arrayValue?.first?["name"]?.stringValue
            }
            #expect(names.contains("active") && names.contains("suspended"), "\(names)")
            #expect(names.last == "run 1", "\(names)")
        }
    }

    private static let root = Sources.root + "/"
}
