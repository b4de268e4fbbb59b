// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A container with systemd, the apps, and their supervisor.
class DensitySession: Session {
    let plan: DensityPlan
    private let script: String
    private let tree: String
    private var container: SystemdContainer?
    /// The environment of all apps (density/README.md).
    var settings: [String: String] {
        [
            "DENSITY_DATA": bench.disk + "/data.jsonl", "DENSITY_PORT": "\(DensityPlan.port)",
            "DENSITY_STARTS": folder + "/starts", "DENSITY_SWEEP": "\(plan.sweep)",
        ]
    }

    init(_ bench: Bench, _ peer: DensityPeer, _ apps: Int, _ plan: DensityPlan) throws {
        self.plan = plan
        (script, tree) = (peer.script, peer.tree)
        try super.init(bench, peer, Workload(apps))
    }

    /// Boots the container and sets up its supervisor.
    func boot() throws {
        let made = try SystemdContainer(
            script: script,
            root: tree,
            folders: [bench.memory, bench.disk, URL(fileURLWithPath: bench.binaries).resolvingSymlinksInPath().path],
            scratch: runtime,
            errors: errors,
            // The container's default filter would forbid system calls that peers may use on a real machine.
            environment: ["SYSTEMD_SECCOMP": "0"]
        )
        container = made
        try FileManager.default.createDirectory(atPath: made.path(units), withIntermediateDirectories: true)
        try setUp()
    }

    let units = "/run/systemd/system"

    func running() throws -> SystemdContainer {
        guard let container else { throw Trouble("the container does not run") }
        return container
    }

    func write(_ text: String, unit: String) throws {
        let path = try running().path(units + "/" + unit)
        let folder = (path as NSString).deletingLastPathComponent
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        try text.write(toFile: path, atomically: false, encoding: .utf8)
    }

    /// The command of an app: the three kinds alternate.
    func command(_ slot: Int) -> [String] {
        switch slot % 3 {
        case 0: ["/usr/bin/python3", bench.disk + "/service.py", "\(slot)"]
        case 1: ["/usr/bin/node", "--max-semi-space-size=2", bench.disk + "/service.js", "\(slot)"]
        default: [bench.program("service"), "\(slot)"]
        }
    }

    // MARK: For each supervisor

    /// Configures and starts the supervisor in the container, but not the apps.
    func setUp() throws {}
    /// Launches these apps, which may include hot ones.
    func launch(_ slots: Range<Int>) throws {}

    // MARK: Launching

    /// Launches all apps in portions, and waits until each portion listens. Throws after `seconds` without progress.
    func launchAll(seconds: Double, check: () throws -> Void) throws {
        var first = 0
        while first < load.count {
            let slots = first..<min(first + (first < plan.hot ? plan.hot : 8), load.count)
            try launch(slots)
            var missing = slots.count
            var moved = now()
            let isUp = try waitUntil(600, step: 0.02) {
                try check()
                let ready = starts().ready
                let left = slots.count { !ready.contains($0) }
                if left < missing { (missing, moved) = (left, now()) }
                if left > 0, now() - moved > seconds {
                    throw Trouble(
                        "\(first + slots.count - left) of \(load.count) apps came up, and no other one within "
                            + "\(Int(seconds)) s"
                    )
                }
                return left == 0
            }
            guard isUp else { throw Trouble("not all apps came up within 10 minutes") }
            first = slots.upperBound
        }
    }

    /// How often each app was started, and which have ever listened.
    func starts() -> (counts: [Int: Int], ready: Set<Int>) {
        var counts: [Int: Int] = [:]
        var ready: Set<Int> = []
        for line in (Processes.read(folder + "/starts") ?? "").split(separator: "\n") {
            let words = line.split(separator: " ")
            guard words.count == 3, let slot = Int(words[1]) else { continue }
            if words[0] == "begun" { counts[slot, default: 0] += 1 } else { ready.insert(slot) }
        }
        return (counts, ready)
    }

    /// The number of apps with a process.
    func alive() -> Int {
        Processes.all().count { entry in
            let words = (Processes.read("/proc/\(entry.pid)/cmdline") ?? "").split(separator: "\0")
            return words.contains { $0.hasPrefix(bench.disk + "/service") }
        }
    }

    /// Sends requests to all apps for `seconds` seconds, and calls `look` once a second.
    func ask(seconds: Int, seed: Int, look: () throws -> Void) throws -> String {
        let results = folder + "/requests-\(seed)"
        var command = ["nsenter", "-t", "\(try running().systemd)", "-a", bench.program("load")]
        command += ["\(plan.hot)", "\(load.count - plan.hot)", "\(plan.rate)", "\(plan.pause.lowerBound)"]
        command += [
            "\(plan.pause.upperBound)", "\(seconds)", "\(DensityPlan.port)", "\(seed)", "\(plan.limit)", results,
        ]
        let child = try Child(command, errors: errors)
        defer { child.end(grace: 0) }
        let limit = now() + Double(seconds + plan.limit) + 20
        while child.isRunning {
            try Interruption.check()
            guard now() < limit else { throw Trouble("the load generator has not come to its end") }
            try look()
            _ = try waitUntil(1, step: 0.02) { !child.isRunning }
        }
        guard child.status == 0 else { throw Trouble("the load generator failed: \(lastErrors)") }
        return results
    }

    private var lastErrors: String {
        (Processes.read(errors) ?? "").split(separator: "\n").suffix(3).joined(separator: "; ")
    }

    override var isRunning: Bool { container?.isRunning ?? false }

    override func end() {
        // SIGKILL at once: processes that wait for memory cannot end cleanly.
        if let group = container?.group {
            try? "1".write(toFile: group + "/payload/cgroup.kill", atomically: false, encoding: .utf8)
        }
        container?.end()
        container = nil
        super.end()
    }
}

/// Runs all apps all the time.
final class DensitySystemd: DensitySession {
    private let helper: DensityPeer.Helper?

    init(_ bench: Bench, _ peer: DensityPeer, _ apps: Int, _ plan: DensityPlan, _ helper: DensityPeer.Helper?) throws {
        self.helper = helper
        try super.init(bench, peer, apps, plan)
    }

    override func setUp() throws {
        let environment = settings.map { "Environment=\($0)=\($1)\n" }.sorted().joined()
        for slot in 0..<load.count {
            try write(
                """
                [Unit]
                StartLimitIntervalSec=0
                [Service]
                Slice=apps.slice
                ExecStart=\(command(slot).joined(separator: " "))
                \(environment)OOMScoreAdjust=900
                StandardOutput=null
                StandardError=null
                Restart=always

                """,
                unit: "w\(slot).service"
            )
        }
        let container = try running()
        if let helper {
            let managed = helper.controller == nil ? "" : "ManagedOOMMemoryPressure=kill\nManagedOOMSwap=kill\n"
            try write("[Slice]\n" + managed, unit: "apps.slice")
            try write(helper.dropIn(plan.memory) + "\n", unit: "\(helper.unit).service.d/density.conf")
        }
        try container.run("systemctl daemon-reload")
        if let helper {
            try container.run("systemctl start \(helper.unit)")
            pause(0.5)
            try container.run("systemctl is-active \(helper.unit)")
        }
    }

    override func launch(_ slots: Range<Int>) throws {
        try running().run("systemctl start --no-block " + slots.map { "w\($0)" }.joined(separator: " "))
    }
}

/// Suspends idle apps, swaps them out, and possibly evicts them.
final class DensityTorpor: DensitySession {
    private let evicts: Bool

    init(_ bench: Bench, _ peer: DensityPeer, _ apps: Int, _ plan: DensityPlan, evicts: Bool) throws {
        self.evicts = evicts
        try super.init(bench, peer, apps, plan)
    }

    private func binary(_ name: String) -> String {
        URL(fileURLWithPath: bench.binaries).resolvingSymlinksInPath().path + "/" + name
    }

    override func setUp() throws {
        try configuration.write(toFile: folder + "/torpor.toml", atomically: false, encoding: .utf8)
        // As in torpord.service.
        try write(
            """
            [Service]
            Type=notify
            NotifyAccess=main
            ExecStart=\(binary("torpord")) --config \(folder)/torpor.toml
            KillMode=mixed
            OOMPolicy=continue
            Delegate=yes
            TasksMax=infinity
            OOMScoreAdjust=-900
            LimitNOFILE=32768:524288
            LimitMEMLOCK=infinity
            StandardError=file:\(folder)/torpord.log

            """,
            unit: "torpord.service"
        )
        try running().run("systemctl daemon-reload")
        try running().run("systemctl start torpord")
    }

    override func launch(_ slots: Range<Int>) throws {
        let (used, others) = (slots.filter { $0 < plan.hot }, slots.filter { $0 >= plan.hot })
        if !used.isEmpty {
            let names = used.map { "w\($0)" }.joined(separator: " ")
            let command = "\(binary("torpor")) start --no-wait \(names) --socket \(runtime)/io.torpor"
            try running().run(command, seconds: 30)
        }
        // The first request to each app launches it.
        guard !others.isEmpty else { return }
        let ports = others.map { "\(DensityPlan.port + $0)" }.joined(separator: " ")
        let ask = "exec 3<>/dev/tcp/127.0.0.1/$0 && printf \"GET /?q=1 HTTP/1.0\\r\\n\\r\\n\" >&3 && cat <&3"
        try running().run("for port in \(ports); do bash -c '\(ask)' $port >/dev/null 2>&1 & done", seconds: 30)
    }

    private var configuration: String {
        let environment = settings.map { "\($0) = \"\($1)\"" }.sorted().joined(separator: ", ")
        let hasJetsam = access(binary("libJetsamPolicy.so"), R_OK) == 0
        // torpord's thresholds are percentages of the memory that the kernel reports, but only a part of that is
        // left.
        let total = Double((Processes.read("/proc/meminfo") ?? "").split(separator: " ").dropFirst().first ?? "") ?? 0
        let part = Double(plan.memory) * 1024 / max(1, total)
        func percent(_ value: Double) -> String { String(format: "\"%.2f%%\"", value * part) }
        var text = """
            [supervisor]
            runtime_directory = "\(runtime)"
            state_directory = "\(folder)/state"
            log_directory = "\(folder)/log"
            policy_directory = "\(binary(""))"
            policies = [\(hasJetsam ? "\"jetsam\", " : "")"mobile"]
            [supervisor.memory]
            warning_available = \(percent(10))
            critical_available = \(percent(5))
            [policies.mobile]
            path = "libMobilePolicy.so"
            options = { max_active = 10000 }
            \(hasJetsam ? "[policies.jetsam]\npath = \"libJetsamPolicy.so\"" : "")
            [defaults]
            launch = "on-demand"
            restart = "always"
            log = "null"
            environment = { \(environment) }
            background_time = "1s"
            event_time = "5s"
            page_out_after = "1s"
            memory_needed = "36MiB"
            evict = "\(evicts ? "kill" : "never")"
            launch_deadline = "60s"
            [defaults.restart_backoff]
            initial = "100ms"
            limit = 10000

            """
        for state in ["inactive", "active", "background", "suspended"] {
            text += "[defaults.resources.\(state)]\noom_score_adj = \(state == "active" ? 900 : 950)\n"
        }
        for slot in 0..<load.count {
            let words = command(slot).map { "\"\($0)\"" }.joined(separator: ", ")
            text += "[apps.w\(slot)]\nexec = [\(words)]\n"
            text += "[[apps.w\(slot).sockets]]\nstream = \"127.0.0.1:\(DensityPlan.port + slot)\"\n"
        }
        return text
    }
}
