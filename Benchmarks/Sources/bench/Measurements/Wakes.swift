// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
import TorporAPI

/// A connection to an app that is suspended or not running: the time to the first byte of its answer.
struct Wakes: Measurement {
    let name = "wake"

    private func apps(_ bench: Bench) -> Int { bench.quick ? 100 : 1_000 }
    /// The number of launches of a plain app, and of one in Python.
    private func starts(_ bench: Bench) -> (plain: Int, python: Int) { bench.quick ? (30, 5) : (300, 40) }
    private func rest(_ bench: Bench) -> Double { bench.quick ? 2 : 20 }

    func conditions(_ bench: Bench) -> String {
        "Unix sockets that the supervisor holds, a byte there and the pid of who answers back, one connection at a time, "
            + "each of \(grouped(apps(bench))) apps in turn: once while all run, once while all are stopped (T in /proc "
            + "just before). floor, stopped: a frozen cgroup that a program thaws in time, as with docker "
            + "pause. Started: apps that end after one answer, in C, and in Python with http.server; floor: "
            + "posix_spawn in the place of who listens."
    }

    func figures(_ bench: Bench) -> [Figure] {
        let count = grouped(apps(bench))
        return [
            Figure(name: "wake-running", title: "answer of an app that runs", unit: "µs"),
            Figure(name: "wake-suspended", title: "answer of one of \(count) suspended apps", unit: "µs"),
            Figure(name: "wake-suspended-99", title: "the same, 99th percentile", unit: "µs"),
            Figure(name: "wake-started", title: "answer of an app that does not run", unit: "ms"),
            Figure(name: "wake-started-99", title: "the same, 99th percentile", unit: "ms"),
            Figure(name: "wake-python", title: "answer of an app in Python that does not run", unit: "ms"),
            Figure(name: "wake-rest", title: "context switches with \(count) sockets watched", unit: "1/s"),
        ]
    }

    func measure(_ run: Run) throws {
        let python = run.bench.root + "/Benchmarks/Programs/answer.py"
        try run.interleave(
            "connections",
            rounds: 1,
            only: { ["floor", "torpor", "systemd"].contains($0.name) }
        ) { peer in
            switch peer.name {
            case "torpor": try torpor(run, peer, python)
            case "systemd": try systemd(run, peer)
            default: try floor(run, peer, python)
            }
        }
    }

    private func record(_ run: Run, _ figure: String, _ peer: any Peer, seconds: [Double], per unit: Double) {
        let values = seconds.map { $0 * unit }
        run.record(figure, peer, values: values)
        if let high = Statistics(values)?.percentile99,
            figures(run.bench).contains(where: { $0.name == figure + "-99" })
        {
            run.record(figure + "-99", peer, high)
        }
    }

    // MARK: Torpor

    private func torpor(_ run: Run, _ peer: any Peer, _ python: String) throws {
        let count = apps(run.bench)
        func socket(_ slot: Int, _ runtime: String) -> String {
            "[[apps.w\(slot).sockets]]\nname = \"s\"\nstream = \"\(runtime)/a\(slot)\"\n"
        }
        // Disable the limit on wakes, which a run would exceed.
        let calm = "wake_storm = { limit = 0 }\n"
        var load = Workload(count, arguments: ["answer"], settings: ["torpor": "launch = \"background\"\n" + calm])
        load.tables = socket
        try run.session(peer, load) { session in
            guard let session = session as? TorporSession else { return }
            try session.launch()
            let address = { (slot: Int) in "\(session.runtime)/a\(slot)" }
            pause(1)
            let running = try (0..<count).map { try Connecting.ask(address($0), expecting: session.worker($0)) }
            record(run, "wake-running", peer, seconds: running, per: 1e6)
            _ = try session.call(.verb(VerbRequest(verb: .suspend, apps: ["*"])))
            for slot in 0..<count { try Connecting.requireStopped(session.worker(slot)) }
            // torpord checks suspended apps once more after a second: wait for that.
            pause(run.bench.quick ? 2 : 12)
            let switches = Processes.switches(session.ownProcesses())
            pause(rest(run.bench))
            let more = Processes.switches(session.ownProcesses()) - switches
            run.record("wake-rest", peer, Double(more) / rest(run.bench))
            let suspended = try (0..<count).map { slot in
                pause(0.002)
                try Connecting.requireStopped(session.worker(slot))
                return try Connecting.ask(address(slot), expecting: session.worker(slot))
            }
            record(run, "wake-suspended", peer, seconds: suspended, per: 1e6)
        }
        let onDemand = "launch = \"on-demand\"\n" + calm
        for (figure, program, rounds) in [
            ("wake-started", String?.none, starts(run.bench).plain), ("wake-python", python, starts(run.bench).python),
        ] {
            // One app at a time, but not always the same.
            var load = Workload(10, arguments: ["answer", "once"], settings: ["torpor": onDemand])
            load.program = program
            load.tables = { "restart = \"never\"\n" + socket($0, $1) }
            try run.session(peer, load) { session in
                try session.start()
                let address = { (slot: Int) in "\(session.runtime)/a\(slot)" }
                guard try waitUntil(10, { access(address(9), F_OK) == 0 }) else { throw Trouble("nobody listens") }
                pause(0.5)
                record(run, figure, peer, seconds: try Self.start(rounds) { address($0 % 10) }, per: 1e3)
            }
        }
    }

    // MARK: systemd

    private func systemd(_ run: Run, _ peer: any Peer) throws {
        let settings = "Restart=no\nStartLimitIntervalSec=0"
        let load = Workload(10, arguments: ["answer", "once"], settings: ["systemd": settings])
        try run.session(peer, load) { session in
            guard let container = (session as? SystemdSession)?.container else { return }
            let unit = "[Socket]\nListenStream=\(session.runtime)/a%i\nTriggerLimitIntervalSec=0\n"
            try unit.write(
                toFile: container.path("/run/systemd/system") + "/bench@.socket",
                atomically: false,
                encoding: .utf8
            )
            try container.run("systemctl daemon-reload")
            try container.run("systemctl start " + (0..<10).map { "bench@\($0).socket" }.joined(separator: " "))
            pause(0.5)
            let seconds = try Self.start(starts(run.bench).plain) { "\(session.runtime)/a\($0 % 10)" }
            record(run, "wake-started", peer, seconds: seconds, per: 1e3)
            try container.run("systemctl stop " + (0..<10).map { "bench@\($0).socket" }.joined(separator: " "))
        }
    }

    // MARK: floor

    private func floor(_ run: Run, _ peer: any Peer, _ python: String) throws {
        let path = run.bench.memory + "/floor-answer"
        unlink(path)
        let listener = try Sockets.listen(path: path)
        try Descriptor.setNonBlocking(listener.raw, false)
        defer { unlink(path) }
        let answering = try Child([run.bench.worker, "0", "answer"], passed: listener.raw)
        defer { answering.end() }
        let times = run.bench.quick ? 100 : 1_000
        record(
            run,
            "wake-running",
            peer,
            seconds: try (0..<times).map { _ in try Connecting.ask(path, expecting: answering.pid) },
            per: 1e6
        )
        if let mount = Torpor.cgroupMount {
            let frozen = try Frozen(mount + "/torpor-bench-\(getpid())", answering.pid)
            defer { frozen.end(answering) }
            let seconds = try (0..<times).map { _ in
                try frozen.freeze()
                pause(0.002)
                return try Connecting.ask(path, expecting: answering.pid, meanwhile: frozen.thaw)
            }
            record(run, "wake-suspended", peer, seconds: seconds, per: 1e6)
        } else {
            run.note(peer.name, "no cgroup v2, so nothing was frozen")
        }
        answering.end()
        for (figure, command, rounds) in [
            ("wake-started", [run.bench.worker, "0", "answer", "once"], starts(run.bench).plain),
            ("wake-python", [python], starts(run.bench).python),
        ] {
            let seconds = try (0..<rounds).map { _ in
                var child: Child?
                defer { child?.end(grace: 5) }
                let took = try Connecting.ask(path, meanwhile: { child = try Child(command, passed: listener.raw) })
                _ = try child?.wait(10, command[0])
                return took
            }
            record(run, figure, peer, seconds: seconds, per: 1e3)
        }
    }

    // MARK: One connection

    /// Launches apps by connecting to them: each exits after its answer, before the next is launched.
    private static func start(_ rounds: Int, _ address: (Int) -> String) throws -> [Double] {
        var last: pid_t = 0
        return try (0..<rounds).map { round in
            var pid: pid_t = 0
            let seconds = try Connecting.ask(address(round), answered: { pid = $0 })
            guard pid == 0 || pid != last else { throw Trouble("process \(pid) has answered twice") }
            last = pid
            // If the pid is unknown, or is one of a container, this is the time it has to exit.
            _ = try waitUntil(0.1, { pid > 0 && !Processes.isAlive(pid) })
            pause(0.01)
            return seconds
        }
    }
}

/// A cgroup that the harness freezes and thaws itself.
private struct Frozen {
    private let path: String

    init(_ path: String, _ pid: pid_t) throws {
        self.path = path
        guard mkdir(path, 0o755) == 0 || errno == EEXIST else { throw Trouble("\(path) cannot be made") }
        try write("\(pid)", "cgroup.procs")
    }

    private func write(_ text: String, _ file: String) throws {
        try text.write(toFile: path + "/" + file, atomically: false, encoding: .utf8)
    }

    func freeze() throws {
        try write("1", "cgroup.freeze")
        guard try waitUntil(5, { (Processes.read(path + "/cgroup.events") ?? "").contains("frozen 1") }) else {
            throw Trouble("\(path) is not frozen")
        }
    }

    func thaw() throws {
        let file = open(path + "/cgroup.freeze", O_WRONLY | O_CLOEXEC)
        defer { close(file) }
        guard Glibc.write(file, "0", 1) == 1 else { throw Trouble("\(path) cannot be thawed") }
    }

    func end(_ child: Child) {
        try? thaw()
        child.end()
        rmdir(path)
    }
}
