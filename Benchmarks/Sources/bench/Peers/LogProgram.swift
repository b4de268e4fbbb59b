// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A program that only writes a log, reading a pipe from the worker.
struct LogProgram: Peer {
    let name: String
    let package: String
    let conditions: String
    /// Its command; DIRECTORY stands for its output folder.
    let command: [String]
    /// A `config` in that directory.
    var configuration: String?

    var title: String { "\(name) of \(package) \(Packages.version(package))" }
    var missing: String? { Packages.missing(package, programs: [command[0]]) }

    func prepare(_ bench: Bench, _ load: Workload) throws -> Session { try LogProgramSession(bench, self, load) }

    static let all = [
        LogProgram(
            name: "svlogd",
            package: "runit",
            conditions: "-tt: a stamp in UTC to 10 µs; rotates at 16 MiB, its most",
            command: ["svlogd", "-tt", "DIRECTORY"],
            configuration: "s16777215\nn1000\n"
        ),
        LogProgram(
            name: "s6-log",
            package: "s6",
            conditions: "T: a stamp as ISO 8601 to the nanosecond; rotates at 256 MiB, its most",
            command: ["s6-log", "n1000", "s268435455", "T", "DIRECTORY"]
        ),
        LogProgram(
            name: "multilog",
            package: "daemontools",
            conditions: "t: a TAI64N stamp; rotates at 16 MiB, its most",
            command: ["multilog", "t", "n1000", "s16777215", "DIRECTORY"]
        ),
    ]

    /// The kernel's share: copies bytes from a pipe to a file without splitting lines.
    static let copying = LogProgram(
        name: "cat",
        package: "coreutils",
        conditions: "copies bytes, stamps nothing",
        command: ["cat"]
    )
}

final class LogProgramSession: Session {
    private let program: LogProgram
    var directory: String { folder + "/log" }

    init(_ bench: Bench, _ program: LogProgram, _ load: Workload) throws {
        self.program = program
        try super.init(bench, program, load)
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        try program.configuration?.write(toFile: directory + "/config", atomically: false, encoding: .utf8)
    }

    override func start() throws {
        let script = "\"$0\" 0 \(load.arguments.joined(separator: " ")) | exec \"$@\""
        let command = program.command.map { $0 == "DIRECTORY" ? directory : $0 }
        child = try Child(
            ["sh", "-c", script, bench.worker] + command,
            environment: environment,
            // Only cat writes to standard output; the others open their own files.
            output: program.command == ["cat"] ? directory + "/current" : "/dev/null",
            errors: errors
        )
    }

    override func ownProcesses() -> [pid_t] {
        child.map { Array(Processes.family($0.pid, children: [program.command[0]]).dropFirst()) } ?? []
    }

    /// Signals the whole pipeline.
    override func askStop() throws {
        if let child, child.isRunning { kill(-child.pid, SIGTERM) }
    }
}
