// SPDX-License-Identifier: Apache-2.0

import Foundation

/// runsvdir with one runsv for each app.
struct Runit: Peer {
    let name = "runit"
    var title: String { "runit \(Packages.version("runit"))" }
    var missing: String? { Packages.missing("runit", programs: ["runsvdir", "runsv", "sv"]) }
    let conditions =
        "`run` is a link to the worker, so that no shell runs; no restart delay after a run of over 1 s, which every app "
        + "has had; one runsvdir for each 1,000 services, its limit; list is `sv status` of all"

    var needs: (processes: Int, descriptors: Int) { (1, 0) }

    func prepare(_ bench: Bench, _ load: Workload) throws -> Session { try RunitSession(bench, self, load) }
}

final class RunitSession: Session {
    /// MAXSERVICES of runsvdir.c.
    private static let most = 1_000
    /// Further instances of runsvdir.
    private var others: [Child] = []
    private var scans: Int { max(1, (load.count + Self.most - 1) / Self.most) }

    override init(_ bench: Bench, _ peer: any Peer, _ load: Workload) throws {
        try super.init(bench, peer, load)
        for scan in 0..<scans {
            try FileManager.default.createDirectory(atPath: runtime + "/\(scan)", withIntermediateDirectories: true)
        }
        for slot in 0..<load.count { try ServiceFolder.make(folder(slot), bench.worker, load) }
    }

    private func folder(_ slot: Int) -> String { runtime + "/\(slot / Self.most)/w\(slot)" }

    override func start() throws {
        for scan in 0..<scans {
            let one = try Child(["runsvdir", runtime + "/\(scan)"], environment: environment, errors: errors)
            if scan == 0 { child = one } else { others.append(one) }
        }
    }

    private var all: [Child] { (child.map { [$0] } ?? []) + others }

    override var isRunning: Bool { all.contains { $0.isRunning } }

    override func ownProcesses() -> [pid_t] {
        let scans = all.map(\.pid)
        return scans + Processes.all().filter { $0.name == "runsv" && scans.contains($0.parent) }.map(\.pid)
    }

    /// On SIGHUP runsvdir sends SIGTERM to each runsv.
    override func askStop() throws { for scan in all { scan.signal(SIGHUP) } }

    override func cleanUp() { for scan in others { scan.end(grace: 0) } }

    override var suspenders: [Suspender] {
        [
            ServiceFolder.suspender { self.folder($0) },
            Suspender(
                way: "command",
                suspend: { _ = try Child.time(["sv", "pause", self.folder($0)]) },
                resume: { _ = try Child.time(["sv", "cont", self.folder($0)]) }
            ),
        ]
    }

    override var queries: [Query] {
        [
            Query(kind: .status, way: "command") { try Child.time(["sv", "status", self.folder(0)]) },
            Query(kind: .list, way: "command") {
                try Child.time(["sv", "status"] + (0..<self.load.count).map(self.folder))
            },
        ]
    }
}
