// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// A folder in which programs are run, and which is removed.
final class Workshop {
    let folder: String

    init() throws {
        folder = "/tmp/torpor-policy-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    }

    deinit { try? FileManager.default.removeItem(atPath: folder) }

    /// Where the sources of Torpor are.
    static let sources = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().path

    static var kit: String { sources + "/packaging/policy-kit" }

    struct Run {
        var status: Int32
        /// Of both standard output and standard error.
        var output: String
    }

    /// Runs a program to its end, found in PATH where its name has no slash.
    func run(_ program: String, _ arguments: [String], in place: String = ".") throws -> Run {
        let log = folder + "/output-\(UUID().uuidString)"
        try #require(FileManager.default.createFile(atPath: log, contents: nil))
        let output = try FileHandle(forWritingTo: URL(fileURLWithPath: log))
        let process = Process()
        process.executableURL = URL(fileURLWithPath: program.contains("/") ? program : "/usr/bin/env")
        process.arguments = program.contains("/") ? arguments : [program] + arguments
        process.currentDirectoryURL = URL(fileURLWithPath: folder + "/" + place)
        // SwiftPM leaves locks there.
        process.environment = ProcessInfo.processInfo.environment.merging(["TMPDIR": folder]) { _, new in new }
        process.standardOutput = output
        process.standardError = output
        process.standardInput = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        return Run(status: process.terminationStatus, output: try String(contentsOfFile: log, encoding: .utf8))
    }

    func text(_ path: String) throws -> String { try String(contentsOfFile: folder + "/" + path, encoding: .utf8) }

    func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: folder + "/" + path) }
}
