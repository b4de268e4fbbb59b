// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Testing

/// The tests that the client libraries bring, against a supervisor of their own in Python that breaks what can break.
@Suite("The client libraries by themselves")
struct ClientLibraryTests {
    @Test("C and Python lose and repeat nothing, whatever the supervisor does", .timeLimit(.minutes(5)))
    func ownTests() throws {
        let folder = try Daemon.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/python3")
        process.arguments = [
            "-W", "error::ResourceWarning", "-m", "unittest", "discover", "-s", Language.sources + "/Clients/tests",
        ]
        process.environment = ProcessInfo.processInfo.environment.merging(
            ["PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": folder, "TORPOR_PROGRAM": Built.path("torpor")]
        ) { $1 }
        let pipe = Pipe()
        process.standardOutput = pipe
        process.standardError = pipe
        try Spawn.lock.withLock { try process.run() }
        let output = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        #expect(process.terminationStatus == 0, "\(output.suffix(4000))")
        #expect(output.contains("\nOK"))
    }

    @Test("Python's is typed throughout")
    func types() throws {
        let cache = try Daemon.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: cache) }
        for target in ["3.9", "3.11"] {
            let (code, output) = try Spawn.run([
                "/usr/bin/mypy", "--strict", "--python-version", target, "--cache-dir", cache,
                "\(Language.sources)/Clients/python/torpor",
            ])
            #expect(code == 0, "\(output)")
        }
    }
}
