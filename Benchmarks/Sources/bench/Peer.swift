// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The workers that a supervisor must run.
struct Workload {
    var count: Int
    /// The worker's mode with its arguments; empty: it reports and waits.
    var arguments: [String] = []
    /// More lines of configuration for every app, by the peer's name.
    var settings: [String: String] = [:]
    /// More lines of Torpor's configuration for one app, from its slot and the run's folder on the tmpfs.
    var tables: ((_ slot: Int, _ runtime: String) -> String)?
    /// The program to run; nil: the worker.
    var program: String?
    /// More variables of the supervisor and its apps.
    var environment: [String: String] = [:]

    init(_ count: Int, arguments: [String] = [], settings: [String: String] = [:]) {
        self.count = count
        self.arguments = arguments
        self.settings = settings
    }
}

/// A supervisor, or `floor`, which does the least possible.
protocol Peer {
    /// One word, for `--peers` and the tables.
    var name: String { get }
    /// Name and installed version.
    var title: String { get }
    /// Why it cannot be measured here; nil if it can.
    var missing: String? { get }
    /// Notable settings, as a sentence.
    var conditions: String { get }
    /// The processes of the supervisor per app, and the descriptors per app in one of them: tells whether so many
    /// apps fit.
    var needs: (processes: Int, descriptors: Int) { get }
    /// Writes its configuration; starts nothing yet.
    func prepare(_ bench: Bench, _ load: Workload) throws -> Session
}

extension Peer {
    var needs: (processes: Int, descriptors: Int) { (0, 0) }
}

/// A way to suspend and resume a worker.
struct Suspender {
    /// Tells it from the peer's other ways, such as `command`; empty if it is the only one.
    var way: String
    var suspend: (_ slot: Int) throws -> Void
    var resume: (_ slot: Int) throws -> Void
    /// Whether the worker is suspended; nil: check for state T in /proc.
    var isSuspended: ((_ slot: Int) -> Bool)?
}

/// A timed query. `ask` returns the seconds, since a command is timed by its process.
struct Query {
    enum Kind: String { case status, list }
    var kind: Kind
    /// Tells it from the peer's other ways, such as `connection`; empty if it is the only one.
    var way: String
    var ask: () throws -> Double
}

/// A supervisor with its apps, from configuration to end. `end` must always be called.
class Session {
    let bench: Bench
    let peer: any Peer
    let load: Workload
    let page: ReportPage
    /// A folder on a tmpfs for runtime directories, sockets, FIFOs.
    let runtime: String
    /// A folder on the disk for state and configuration.
    let folder: String
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

    /// The environment of the supervisor and its apps.
    var environment: [String: String] { load.environment.merging(["BENCH_REPORT": page.path]) { $1 } }
    /// The file for the supervisor's standard error.
    var errors: String { folder + "/errors" }

    /// Starts the supervisor without waiting. The caller has already read the clock.
    func start() throws { throw Trouble("\(peer.name) cannot be started") }
    /// The supervisor's own processes, without apps.
    func ownProcesses() -> [pid_t] { child.map { [$0.pid] } ?? [] }
    /// The worker in this slot, by its pid outside of any container.
    func worker(_ slot: Int) -> pid_t { page.pid(slot) }
    /// Starts to stop everything; may return before the end.
    func askStop() throws { child?.signal(SIGTERM) }
    /// The ways to suspend an app.
    var suspenders: [Suspender] { [] }
    /// The supported queries.
    var queries: [Query] { [] }
    /// The last steps of `end`, after the supervisor's end.
    func cleanUp() {}

    var isRunning: Bool { child?.isRunning ?? false }

    /// Starts it and waits until every worker has reported. Returns the seconds from before the start to the last
    /// report.
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

    /// Waits until all workers have ended. Polls one at a time to use little CPU.
    func waitForWorkersEnd(seconds: Double = 300) throws {
        let limit = now() + seconds
        for slot in 0..<load.count {
            let pid = worker(slot)
            guard try waitUntil(max(0.001, limit - now()), { !Processes.isAlive(pid) }) else {
                throw Trouble("the worker in slot \(slot) still lives \(Int(seconds)) s after the stop was asked for")
            }
        }
    }

    /// Ends the supervisor and its remaining apps, and removes its files.
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
