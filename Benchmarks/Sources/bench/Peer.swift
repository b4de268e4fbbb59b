// SPDX-License-Identifier: Apache-2.0

import Foundation

/// What a supervisor is asked to run: so many workers.
struct Workload {
    var count: Int
    /// The worker's mode and what belongs to it; none: it reports and waits.
    var arguments: [String] = []
    /// Further settings, by the peer's name: lines of its configuration, for every app.
    var settings: [String: String] = [:]
    /// Further lines of Torpor's configuration for one app, by its slot and the folder of the run on the tmpfs.
    var tables: ((_ slot: Int, _ runtime: String) -> String)?
    /// What runs; nil: the worker.
    var program: String?

    init(_ count: Int, arguments: [String] = [], settings: [String: String] = [:]) {
        self.count = count
        self.arguments = arguments
        self.settings = settings
    }
}

/// A supervisor, or what stands for the least that there can be: floor.
protocol Peer {
    /// One word, for `--peers` and the tables.
    var name: String { get }
    /// Name and version, as the machine has it.
    var title: String { get }
    /// Why it cannot be measured here; nil when it can.
    var missing: String? { get }
    /// What it is told that is worth knowing, in a sentence.
    var conditions: String { get }
    /// How many processes of its own, and descriptors in one of them, each app costs: whether so many apps fit.
    var needs: (processes: Int, descriptors: Int) { get }
    /// Writes its configuration; nothing runs yet.
    func prepare(_ bench: Bench, _ load: Workload) throws -> Session
}

extension Peer {
    var needs: (processes: Int, descriptors: Int) { (0, 0) }
}

/// A way to stop a worker in memory and let it run on.
struct Suspender {
    /// What tells it from the peer's other ways, such as `command`; empty for the only one.
    var way: String
    var suspend: (_ slot: Int) throws -> Void
    var resume: (_ slot: Int) throws -> Void
    /// Whether it is stopped; nil: its state in /proc is T.
    var isSuspended: ((_ slot: Int) -> Bool)?
}

/// A question whose answer is timed. `ask` returns what it took in seconds, since a command is timed by its process.
struct Query {
    enum Kind: String { case status, list }
    var kind: Kind
    /// What tells it from the peer's other ways, such as `connection`; empty for the only one.
    var way: String
    var ask: () throws -> Double
}

/// One supervisor with its apps, from its configuration to its end. `end` must be called whatever happens.
class Session {
    let bench: Bench
    let peer: any Peer
    let load: Workload
    let page: ReportPage
    /// On a tmpfs: runtime directories, sockets, FIFOs.
    let runtime: String
    /// On the disk: states and configuration.
    let folder: String
    /// The supervisor.
    var child: Child?

    init(_ bench: Bench, _ peer: any Peer, _ load: Workload) throws {
        guard load.count <= ReportPage.slots else { throw Trouble("no more than \(ReportPage.slots) workers") }
        self.bench = bench
        self.peer = peer
        self.load = load
        let name = bench.uniqueName(peer.name)
        runtime = bench.memory + "/" + name
        folder = bench.disk + "/" + name
        try FileManager.default.createDirectory(atPath: runtime, withIntermediateDirectories: true)
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        page = try ReportPage(path: bench.memory + "/" + name + ".report")
    }

    /// What the supervisor and its apps have in their environment.
    var environment: [String: String] { ["BENCH_REPORT": page.path] }
    /// What the supervisor complains of goes here.
    var errors: String { folder + "/errors" }

    /// Starts the supervisor and returns at once. The caller has looked at the clock before.
    func start() throws { throw Trouble("\(peer.name) cannot be started") }
    /// All processes of the supervisor itself, none of an app.
    func ownProcesses() -> [pid_t] { child.map { [$0.pid] } ?? [] }
    /// The worker in this slot, as /proc of the harness has it.
    func worker(_ slot: Int) -> pid_t { page.pid(slot) }
    /// Begins to stop everything; returns at once or later.
    func askStop() throws { child?.signal(SIGTERM) }
    /// The ways to suspend one app.
    var suspenders: [Suspender] { [] }
    /// The questions that it answers.
    var queries: [Query] { [] }
    /// Last steps of `end`, once the supervisor is gone.
    func cleanUp() {}

    /// Whether the supervisor is there.
    var isRunning: Bool { child?.isRunning ?? false }

    /// Starts it and waits until every worker has reported; the seconds from before the start to the last report.
    @discardableResult
    func launch(seconds: Double = 300) throws -> Double {
        let began = now()
        do {
            try start()
            try page.wait(load.count, seconds: seconds) { isRunning }
        } catch let trouble as Trouble {
            throw Trouble(trouble.description + (lastError.map { "; it said: \($0)" } ?? ""))
        }
        return load.count > 0 ? page.last(load.count) - began : now() - began
    }

    /// Waits until no worker lives. Looks at one at a time, so that looking costs next to nothing.
    func waitForWorkersEnd(seconds: Double = 300) throws {
        let limit = now() + seconds
        for slot in 0..<load.count {
            let pid = worker(slot)
            guard try waitUntil(max(0.001, limit - now()), { !Processes.isAlive(pid) }) else {
                throw Trouble("the worker in slot \(slot) still lives \(Int(seconds)) s after the stop was asked for")
            }
        }
    }

    /// Ends the supervisor and what is left of its apps, and removes its files.
    func end() {
        let workers = (0..<load.count).map(worker)
        let own = Set(ownProcesses())
        if child != nil { try? askStop() }
        let limit = now() + 60
        while isRunning, now() < limit { pause(0.005) }
        child?.end(grace: 0)
        for pid in own where pid != child?.pid { endStray(pid, own: true) }
        for pid in workers { endStray(pid, own: false) }
        cleanUp()
        try? FileManager.default.removeItem(atPath: runtime)
        try? FileManager.default.removeItem(atPath: folder)
    }

    private func endStray(_ pid: pid_t, own: Bool) {
        guard pid > 1, let entry = Processes.entry(pid), entry.state != "Z", own || entry.name == "worker" else {
            return
        }
        kill(pid, SIGKILL)
    }

    private var lastError: String? {
        (try? String(contentsOfFile: errors, encoding: .utf8))?.split(separator: "\n").last.map(String.init)
    }
}
