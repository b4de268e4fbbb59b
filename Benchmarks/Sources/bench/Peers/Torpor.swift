// SPDX-License-Identifier: Apache-2.0

import Foundation
import TorporAPI
import Varlink

/// Torpor with defaults: a cgroup, an output FIFO and a notify socket for each app.
struct Torpor: Peer {
    /// Whether apps get cgroups. If not, cgroup v2 is unmounted in torpord's mount namespace.
    var hasCgroups = true
    /// Whether it is an earlier build, which this one is compared with.
    var isBefore = false
    var binaries: String

    var name: String { isBefore ? "torpor-before" : hasCgroups ? "torpor" : "torpor-nocg" }
    var title: String {
        let version = (try? Child.output([binaries + "/torpor", "--version"])) ?? ""
        return "\(version.trimmingCharacters(in: .whitespacesAndNewlines))"
            + (isBefore ? ", an earlier build" : hasCgroups ? "" : ", without cgroups")
    }
    var missing: String? {
        for program in ["torpord", "torpor", "torpor-keeper"]
        where access(binaries + "/" + program, X_OK) != 0 {
            return "\(binaries)/\(program) is not there: make release"
        }
        guard hasCgroups || (geteuid() == 0 && Self.cgroupMount != nil) else {
            return "to do without cgroups, somebody must be root and have them"
        }
        return nil
    }
    var conditions: String {
        "restart = always with no delay, no limit of restarts; "
            + (hasCgroups
                ? "a cgroup, an output FIFO and a notify socket for each app"
                : "the cgroup hierarchy is unmounted for it, apps are followed by session and descent")
    }

    var needs: (processes: Int, descriptors: Int) { (0, 4) }

    func prepare(_ bench: Bench, _ load: Workload) throws -> Session { try TorporSession(bench, self, load) }

    /// Whether a peer is Torpor with all that it has, of this build or of an earlier one.
    static func isWhole(_ peer: any Peer) -> Bool { (peer as? Torpor)?.hasCgroups == true }

    static var cgroupMount: String? {
        for line in (Processes.read("/proc/self/mounts") ?? "").split(separator: "\n") {
            let fields = line.split(separator: " ")
            if fields.count > 2, fields[2] == "cgroup2" { return String(fields[1]) }
        }
        return nil
    }
}

final class TorporSession: Session {
    private let torpor: Torpor
    private var connection: VarlinkClient?
    /// The first contents of the configuration file.
    private(set) var configuration = ""
    var socket: String { runtime + "/io.torpor" }

    init(_ bench: Bench, _ torpor: Torpor, _ load: Workload) throws {
        self.torpor = torpor
        try super.init(bench, torpor, load)
        var text = """
            [supervisor]
            runtime_directory = "\(runtime)"
            state_directory = "\(folder)/state"
            log_directory = "\(folder)/log"
            [defaults]
            restart = "always"
            environment = { BENCH_REPORT = "\(page.path)" }
            \(load.settings["torpor"] ?? "")
            [defaults.restart_backoff]
            initial = "0s"
            limit = 10000

            """
        for slot in 0..<load.count {
            let command = ([load.program ?? bench.worker, "\(slot)"] + load.arguments).map { "\"\($0)\"" }.joined(
                separator: ", "
            )
            text += "[apps.w\(slot)]\nexec = [\(command)]\n" + (load.tables?(slot, runtime) ?? "")
        }
        configuration = text
        try text.write(toFile: folder + "/torpor.toml", atomically: false, encoding: .utf8)
    }

    override func start() throws {
        var command = [torpor.binaries + "/torpord", "--config", folder + "/torpor.toml"]
        if !torpor.hasCgroups, let mount = Torpor.cgroupMount {
            command = ["unshare", "--mount", "sh", "-c", "umount \"$0\" && exec \"$@\"", mount] + command
        }
        child = try Child(command, environment: environment, errors: errors)
    }

    override func ownProcesses() -> [pid_t] { child.map { Processes.family($0.pid, children: ["torpord"]) } ?? [] }

    /// The torpord below the keeper.
    var torpord: pid_t? { ownProcesses().dropFirst().first }

    /// Calls on a connection that is kept open.
    func call(_ request: ManagerRequest) throws -> JSON {
        let client: VarlinkClient
        if let connection { client = connection } else { client = try VarlinkClient(path: socket) }
        connection = client
        do {
            return try client.call(request.call, timeoutMilliseconds: 30_000)
        } catch {
            connection = nil
            throw Trouble("torpord answered: \(error)")
        }
    }

    /// Closes the connection; the next call reconnects.
    func disconnect() { connection = nil }

    /// The pid of each app from torpord, by slot; nil if it has none.
    func listedPIDs() throws -> [pid_t?] {
        var pids = [pid_t?](repeating: nil, count: load.count)
        for app in try call(.list)["apps"]?.arrayValue ?? [] {
            let summary = try AppSummary(json: app)
            if let slot = Int(summary.name.dropFirst()), slot < pids.count { pids[slot] = summary.pid }
        }
        return pids
    }

    /// A command line of torpor.
    func command(_ arguments: String...) -> [String] {
        [torpor.binaries + "/torpor"] + arguments + ["--socket", socket]
    }

    private func verb(_ verb: Verb, _ slot: Int) throws {
        let reply = try call(.verb(VerbRequest(verb: verb, apps: ["w\(slot)"])))
        guard let result = reply["results"]?.arrayValue?.first, try VerbResult(json: result).ok else {
            throw Trouble("\(verb.rawValue) of w\(slot) was refused: \(reply)")
        }
    }

    override var suspenders: [Suspender] {
        [
            Suspender(
                way: "connection",
                suspend: { try self.verb(.suspend, $0) },
                resume: { try self.verb(.resume, $0) }
            ),
            Suspender(
                way: "command",
                suspend: { _ = try Child.time(self.command("suspend", "w\($0)")) },
                resume: { _ = try Child.time(self.command("resume", "w\($0)")) }
            ),
        ]
    }

    override var queries: [Query] {
        let asked = { (request: ManagerRequest) in
            let began = now()
            _ = try self.call(request)
            return now() - began
        }
        return [
            Query(kind: .status, way: "command") { try Child.time(self.command("status", "w0")) },
            Query(kind: .status, way: "connection") { try asked(.status(app: "w0")) },
            Query(kind: .list, way: "command") { try Child.time(self.command("list")) },
            Query(kind: .list, way: "connection") { try asked(.list) },
        ]
    }

    /// A torpord that had to be killed leaves its cgroups behind: find them through a running app.
    override func end() {
        let line = (Processes.read("/proc/\(worker(0))/cgroup") ?? "").split(separator: "\n").first {
            $0.hasPrefix("0::")
        }
        let place = line.map { $0.dropFirst(3).split(separator: "/").dropLast().joined(separator: "/") }
        connection = nil
        super.end()
        guard let mount = Torpor.cgroupMount, let place,
            place.split(separator: "/").last?.hasPrefix("torpor-apps-") == true
        else { return }
        let path = mount + "/" + place
        for app in (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? [] { rmdir(path + "/" + app) }
        rmdir(path)
    }
}
