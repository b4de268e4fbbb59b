// SPDX-License-Identifier: Apache-2.0

import Foundation

/// s6-svscan with one s6-supervise for each app.
struct S6: Peer {
    let name = "s6"
    var title: String { "s6 \(Packages.version("s6"))" }
    var missing: String? { Packages.missing("s6", programs: ["s6-svscan", "s6-supervise", "s6-svc", "s6-svstat"]) }
    let conditions =
        "`run` is a link to the worker, so that no shell runs; restart delay of 1 s is built in; it has no list: that is "
        + "s6-svstat of each service in a shell's loop"

    var needs: (processes: Int, descriptors: Int) { (1, 1) }

    func prepare(_ bench: Bench, _ load: Workload) throws -> Session { try S6Session(bench, self, load) }
}

final class S6Session: Session {
    override init(_ bench: Bench, _ peer: any Peer, _ load: Workload) throws {
        try super.init(bench, peer, load)
        for slot in 0..<load.count { try ServiceFolder.make(folder(slot), bench.worker, load) }
    }

    private func folder(_ slot: Int) -> String { runtime + "/w\(slot)" }

    override func start() throws {
        child = try Child(
            ["s6-svscan", "-c", "\(max(1_000, load.count + 10))", runtime],
            environment: environment,
            errors: errors
        )
    }

    override func ownProcesses() -> [pid_t] {
        child.map { Processes.family($0.pid, children: ["s6-supervise"]) } ?? []
    }

    override var suspenders: [Suspender] {
        [
            ServiceFolder.suspender { self.folder($0) },
            Suspender(
                way: "command",
                suspend: { _ = try Child.time(["s6-svc", "-p", self.folder($0)]) },
                resume: { _ = try Child.time(["s6-svc", "-c", self.folder($0)]) }
            ),
        ]
    }

    override var queries: [Query] {
        [
            Query(kind: .status, way: "command") { try Child.time(["s6-svstat", self.folder(0)]) },
            Query(kind: .list, way: "command") {
                try Child.time(["sh", "-c", "for folder in \"$0\"/w*; do s6-svstat \"$folder\"; done", self.runtime])
            },
        ]
    }
}

/// The folder of a service, for s6 and runit: `run`, and a FIFO `supervise/control`.
enum ServiceFolder {
    /// Creates the folder. The worker derives its slot from the folder's name.
    static func make(_ folder: String, _ worker: String, _ load: Workload) throws {
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let run = folder + "/run"
        if load.arguments.isEmpty {
            // A symlink works across filesystems, and on a tmpfs mounted noexec.
            guard symlink(worker, run) == 0 else { throw Trouble("\(run) cannot be made") }
            return
        }
        let digits = folder.reversed().prefix { $0.isNumber }.reversed()
        let command = ([worker, String(digits)] + load.arguments).joined(separator: " ")
        try "#!/bin/sh\nexec \(command)\n".write(toFile: run, atomically: false, encoding: .utf8)
        chmod(run, 0o755)
    }

    /// Writes to the control FIFO directly, as s6-svc and sv do, but without a process for it.
    static func suspender(_ folder: @escaping (Int) -> String) -> Suspender {
        func control(_ slot: Int, _ letter: String) throws {
            let file = open(folder(slot) + "/supervise/control", O_WRONLY | O_NONBLOCK | O_CLOEXEC)
            defer { close(file) }
            guard file >= 0, letter.withCString({ write(file, $0, 1) }) == 1 else {
                throw Trouble("\(folder(slot))/supervise/control cannot be written")
            }
        }
        return Suspender(way: "control FIFO", suspend: { try control($0, "p") }, resume: { try control($0, "c") })
    }
}

/// Queries Debian's packages.
enum Packages {
    static func version(_ package: String) -> String {
        let text = try? Child.output(["dpkg-query", "-W", "-f", "${Version}", package])
        return text?.trimmingCharacters(in: .whitespacesAndNewlines) ?? ""
    }

    /// An error message if one of the programs is not in the PATH.
    static func missing(_ package: String, programs: [String]) -> String? {
        let places = (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin").split(separator: ":")
        for program in programs where !places.contains(where: { access("\($0)/\(program)", X_OK) == 0 }) {
            return "\(program) is not there: apt-get install \(package)"
        }
        return nil
    }
}
