// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux

/// Processes that are none of the supervisor's business. Each handles every signal that can be handled and writes down
/// what came; being gone or stopped tells of the two that cannot.
final class Decoys {
    private struct Decoy {
        let file: String
        /// Our own child; nil for one that was made where an app had been.
        let child: Int32?
        let pid: Int32
        let startTime: UInt64
        let what: String
    }

    private let folder: String
    private var decoys: [Decoy] = []
    /// Pids of dead apps that were given to strangers, and those that could not be had.
    private(set) var reused = 0
    private(set) var refused = 0

    init(folder: String) throws {
        self.folder = folder + "/decoys"
        try File.makeDirectories(self.folder)
    }

    deinit { end() }

    /// One with a process name and an environment as an app of ours has them, but of another supervisor.
    func add(like app: String) throws {
        let file = folder + "/\(decoys.count)"
        let environment = [
            "TPDECOY": folder, "TORPOR_APP": app, "TORPOR_INCARNATION": "1",
            "TORPOR_MANAGER_SOCKET": folder + "/io.torpor", "NOTIFY_SOCKET": folder + "/notify",
        ]
        let child = try Spawn.start(
            [Built.path("torpor-test-app"), "--decoy", file, "--name", "torpor-test-app"],
            environment: environment,
            output: "/dev/null"
        )
        try wait(for: file, child: child, "a decoy like \(app)")
    }

    /// One that has the pid of a process that has just ended. Only root can ask for a pid, and it may be taken.
    func add(pid: Int32, of app: String) throws {
        let file = folder + "/\(decoys.count)"
        let result = try Spawn.run(
            [Built.path("torpor-test-app"), "--decoy", file, "--name", "torpor-test-app", "--pid", "\(pid)"],
            environment: ["TPDECOY": folder]
        )
        guard result.code == 0 else {
            refused += 1
            try? File.remove(file)
            return
        }
        reused += 1
        try wait(for: file, child: nil, "a stranger with the pid of \(app)")
    }

    private func wait(for file: String, child: Int32?, _ what: String) throws {
        let end = Clock.monotonic() + .seconds(60)
        while Clock.monotonic() < end {
            if let record = Self.read(file), let stat = try? ProcFS.stat(record.pid) {
                decoys.append(
                    Decoy(file: file, child: child, pid: record.pid, startTime: stat.startTime, what: what)
                )
                return
            }
            usleep(1_000)
        }
        throw Trouble("\(what) did not come up")
    }

    /// `struct decoy` of Tests/Support/torpor-test-app/decoy.c.
    private static func read(_ file: String) -> (pid: Int32, received: UInt64, signal: UInt64, sender: UInt64)? {
        guard let bytes = try? File.read(file), bytes.count >= 48, bytes.starts(with: "CHDECOY1".utf8) else {
            return nil
        }
        func field(_ index: Int) -> UInt64 {
            bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: index * 8, as: UInt64.self) }
        }
        return (Int32(truncatingIfNeeded: field(1)), field(2), field(3), field(4))
    }

    /// Their numbers.
    var pids: [Int32] { decoys.map(\.pid) }

    /// Which of them felt something.
    func problems() -> [String] {
        decoys.compactMap { decoy in
            guard let record = Self.read(decoy.file) else { return "\(decoy.what) lost its record" }
            if record.received > 0 {
                return "\(decoy.what) (\(decoy.pid)) got signal \(record.signal) from process \(record.sender)"
            }
            guard let stat = try? ProcFS.stat(decoy.pid), stat.startTime == decoy.startTime, !stat.hasEnded else {
                return "\(decoy.what) (\(decoy.pid)) was killed"
            }
            return stat.state == "T" ? "\(decoy.what) (\(decoy.pid)) was stopped" : nil
        }
    }

    /// Ends them all, each only if it is still the one that was started.
    func end() {
        for decoy in decoys {
            guard let process = try? Pidfd.open(decoy.pid), let stat = try? ProcFS.stat(decoy.pid),
                stat.startTime == decoy.startTime
            else { continue }
            try? Pidfd.sendSignal(process.raw, SIGKILL)
            if let child = decoy.child { waitpid(child, nil, 0) }
        }
        decoys = []
    }
}
