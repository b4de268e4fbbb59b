// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux

/// systemd, really booted, in a minimal Debian container.
struct Systemd: Peer {
    let name = "systemd"
    private let script: String
    private let tree: String

    init(_ bench: Bench) {
        script = bench.root + "/scripts/systemd-container"
        tree = bench.root + "/.build/bench/systemd-root"
    }

    var title: String {
        let text = try? Child.output(["chroot", tree, "systemctl", "--version"])
        let version = text?.split(separator: "\n").first.map(String.init) ?? "systemd"
        return version + ", booted in a container"
    }

    var missing: String? {
        if geteuid() != 0 { return "booting it in a container needs root" }
        if access("/usr/bin/systemd-nspawn", X_OK) != 0 {
            return "systemd-nspawn is missing: apt-get install systemd-container"
        }
        if access(tree + "/etc/torpor-tree", R_OK) != 0 {
            return "its tree is not there: \(script) make bench \(tree)"
        }
        return nil
    }

    var conditions: String {
        "booted before, so launch is timed from systemctl start of a target that wants all instances of a template unit, "
            + "with Restart=always, RestartSec=0, StartLimitIntervalSec=0 and StandardOutput=null; memory is that of PID 1 "
            + "alone, without its journal and bus, which are there as well; its journal stores nothing; commands are run by "
            + "a shell in the container, the open connection is systemctl's own private socket"
    }

    func prepare(_ bench: Bench, _ load: Workload) throws -> Session {
        let session = try SystemdSession(bench, self, load)
        do {
            try session.boot(script, tree)
        } catch {
            session.end()
            throw error
        }
        return session
    }
}

final class SystemdSession: Session {
    private(set) var container: SystemdContainer?
    private var bus: SystemdBus?

    fileprivate func boot(_ script: String, _ tree: String) throws {
        let made = try SystemdContainer(
            script: script,
            root: tree,
            folders: [bench.memory, bench.disk],
            scratch: runtime,
            errors: errors
        )
        container = made
        let folder = made.path("/run/systemd/system")
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let command = ([bench.worker, "%i"] + load.arguments).joined(separator: " ")
        let service = """
            [Unit]
            PartOf=bench.target
            StartLimitIntervalSec=0
            [Service]
            ExecStart=\(command)
            Environment=BENCH_REPORT=\(page.path)
            StandardOutput=null
            Restart=always
            RestartSec=0
            \(load.settings["systemd"] ?? "")

            """
        try service.write(toFile: folder + "/bench@.service", atomically: false, encoding: .utf8)
        // systemd limits the length of a line.
        let target = stride(from: 0, to: load.count, by: 100).map { first in
            let units = (first..<min(first + 100, load.count)).map { "bench@\($0).service" }
            return "Wants=" + units.joined(separator: " ") + "\n"
        }
        let text = "[Unit]\n" + target.joined()
        try text.write(toFile: folder + "/bench.target", atomically: false, encoding: .utf8)
        try made.run("systemctl daemon-reload")
    }

    private func running() throws -> SystemdContainer {
        guard let container else { throw Trouble("systemd does not run") }
        return container
    }

    override func start() throws { try running().run("systemctl start --no-block bench.target") }
    override func askStop() throws { try running().run("systemctl stop --no-block bench.target") }
    override var isRunning: Bool { container?.isRunning ?? false }
    override func ownProcesses() -> [pid_t] { container.map { [$0.systemd] } ?? [] }

    /// The unit's cgroup, which systemd removes with its last process.
    func group(_ slot: Int) -> String {
        (container?.group ?? "") + "/payload/system.slice/system-bench.slice/bench@\(slot).service"
    }

    /// The pid on the report page is the container's, so read the cgroup.
    override func worker(_ slot: Int) -> pid_t {
        let text = Processes.read(group(slot) + "/cgroup.procs") ?? ""
        return text.split(separator: "\n").first.flatMap { pid_t($0) } ?? 0
    }

    /// A connection like systemctl's, made inside the container (Programs/connect.c).
    private func openBus() throws -> SystemdBus {
        let path = runtime + "/bus"
        let listener = try Sockets.listen(path: path)
        defer { unlink(path) }
        try running().run("\(bench.program("connect")) /run/systemd/private \(path)")
        guard let sender = try Sockets.accept(listener.raw), let message = try Sockets.receive(sender.raw, maximum: 1),
            let connection = message.descriptors.first
        else { throw Trouble("the connection to systemd did not arrive") }
        return try SystemdBus(taking: connection.take())
    }

    private func call(_ path: String, _ interface: String, _ member: String, _ argument: String...) throws {
        let open: SystemdBus
        if let bus { open = bus } else { open = try openBus() }
        bus = open
        let interface = "org.freedesktop." + interface
        if let first = argument.first {
            try open.call(path, interface, member, first)
        } else {
            try open.call(path, interface, member)
        }
    }

    /// Starts a job of a unit without waiting for its end.
    func begin(_ job: String, _ unit: String) throws {
        if bus == nil { bus = try openBus() }
        try bus?.call(SystemdBus.manager, "org.freedesktop.systemd1.Manager", job, unit, "replace")
    }

    private func isFrozen(_ slot: Int) -> Bool {
        Processes.read(group(slot) + "/cgroup.events")?.contains("frozen 1") ?? false
    }

    override var suspenders: [Suspender] {
        let manager = SystemdBus.manager
        return [
            Suspender(
                way: "connection",
                suspend: { try self.call(manager, "systemd1.Manager", "FreezeUnit", "bench@\($0).service") },
                resume: { try self.call(manager, "systemd1.Manager", "ThawUnit", "bench@\($0).service") },
                isSuspended: isFrozen
            ),
            Suspender(
                way: "command",
                suspend: { try self.running().run("systemctl freeze bench@\($0).service") },
                resume: { try self.running().run("systemctl thaw bench@\($0).service") },
                isSuspended: isFrozen
            ),
        ]
    }

    override var queries: [Query] {
        let asked = { (work: () throws -> Void) in
            let began = now()
            try work()
            return now() - began
        }
        let unit = SystemdBus.object("bench@0.service")
        return [
            Query(kind: .status, way: "command") {
                try self.running().run("systemctl --no-pager status bench@0.service")
            },
            Query(kind: .status, way: "connection") {
                try asked { try self.call(unit, "DBus.Properties", "GetAll", "") }
            },
            Query(kind: .list, way: "command") { try self.running().run("systemctl --no-pager list-units") },
            Query(kind: .list, way: "connection") {
                try asked { try self.call(SystemdBus.manager, "systemd1.Manager", "ListUnits") }
            },
        ]
    }

    override func end() {
        bus = nil
        container?.end()
        container = nil
        super.end()
    }
}
