// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The cost of the kernel alone: Programs/floor.c, a bare posix_spawn loop and the like.
struct Floor: Peer {
    let name = "floor"
    let title = "floor: a bare posix_spawn loop in C"
    let missing: String? = nil
    let conditions = "launches and reaps; watches nothing, logs nothing, answers no clients"

    func prepare(_ bench: Bench, _ load: Workload) throws -> Session { try FloorSession(bench, self, load) }
}

final class FloorSession: Session {
    override func start() throws {
        child = try Child(
            [bench.program("floor"), "launch", "\(load.count)", "--", bench.worker, "{}"] + load.arguments,
            environment: environment,
            hasInput: true,
            errors: errors
        )
    }

    override func askStop() throws { child?.write(line: "") }

    /// The least cost of any command's process.
    override var queries: [Query] {
        [
            Query(kind: .status, way: "hello in C") { try Child.time([self.bench.program("hello")]) },
            Query(kind: .status, way: "hello in Swift") { try Child.time([Self.helloInSwift]) },
        ]
    }

    /// Built with this program, and beside it.
    private static let helloInSwift =
        URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().path + "/hello"

    /// Runs `floor MODE ROUNDS`; returns its numbers line by line, in nanoseconds.
    func measure(_ mode: String, rounds: Int) throws -> [[Double]] {
        let output = folder + "/output-" + mode
        unlink(output)
        let child = try Child(
            [bench.program("floor"), mode, "\(rounds)", "--", bench.worker, "0"],
            environment: environment,
            output: output,
            errors: errors
        )
        // Its worker is on the report page, so it ends with the session.
        defer { child.end() }
        let status = try child.wait(60, "floor \(mode)")
        guard status == 0, let text = try? String(contentsOfFile: output, encoding: .utf8) else {
            throw Trouble("floor \(mode) failed")
        }
        return text.split(separator: "\n").map { $0.split(separator: " ").compactMap { Double($0) } }
    }
}
