// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Instructions by `valgrind --tool=callgrind`: exact, even on a busy machine.
enum Callgrind {
    /// Instructions of one operation: the difference of two runs with different counts.
    static func instructions(of part: Part) throws -> Double {
        let few = try run(part.name, part.counts.few)
        let many = try run(part.name, part.counts.many)
        return Double(many - few) / Double(part.counts.many - part.counts.few)
    }

    private static func run(_ name: String, _ count: Int) throws -> Int {
        let result = try Tool.run([
            "valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", try program(), "run", name, "\(count)",
        ])
        // ==123== Collected : 4567
        let collected = result.split(separator: "\n").first { $0.contains("Collected :") }
        guard let text = collected?.split(separator: ":").last,
            let number = Int(text.trimmingCharacters(in: .whitespaces))
        else { throw WentWrong("callgrind did not count: \(result.suffix(300))") }
        return number
    }

    nonisolated(unsafe) private static var stripped: String?

    /// This program without debug information, which valgrind 3.19 cannot read.
    private static func program() throws -> String {
        if let stripped { return stripped }
        let path = Scratch.path("micro")
        let own = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        _ = try Tool.run(["strip", "--strip-debug", "-o", path, own])
        stripped = path
        return path
    }
}

/// Runs programs to their end.
enum Tool {
    /// Returns standard output and error together. Throws if the program fails.
    static func run(_ command: [String]) throws -> String {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = command
        let pipe = Pipe()
        process.standardOutput = pipe
        process.standardError = pipe
        process.standardInput = FileHandle.nullDevice
        try process.run()
        let output = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw WentWrong("\(command[0]) failed: \(output.suffix(300))")
        }
        return output
    }
}
