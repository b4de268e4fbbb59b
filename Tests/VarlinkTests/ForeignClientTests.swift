// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import Varlink

/// The server is called by a client that others wrote: the package `varlink` of PyPI.
@Suite struct ForeignClientTests {
    private static let script = """
        import sys, varlink
        with varlink.Client.new_with_address("unix:" + sys.argv[1]) as client:
            with client.open("org.varlink.service") as service:
                info = service.GetInfo()
                print("interfaces", ",".join(info["interfaces"]))
            with client.open("org.example.test") as test:
                print("echo", test.Echo("hällo")["text"])
                print("stream", sum(1 for _ in test.Stream(5, 3, _more=True)))
            with client.open("org.example.test") as test:
                try:
                    test.Nothing()
                except Exception as error:
                    print("error", type(error).__name__)
        """

    @Test("the client of PyPI lists the interfaces, calls and streams")
    func python() throws {
        // Kept for the next run: fetching it takes long.
        let folder = FileManager.default.currentDirectoryPath + "/.build/python-varlink"
        guard let python = try Self.environment(folder) else { return }
        let server = try TestServer()
        defer { server.stop() }
        let (status, output) = try Self.run(python, ["-c", Self.script, server.path])
        #expect(status == 0, "\(output)")
        #expect(output.contains("interfaces org.varlink.service,org.example.test"))
        #expect(output.contains("echo hällo"))
        #expect(output.contains("stream 5"))
        #expect(output.contains("error "))
    }

    /// A Python with the package: the one of TORPOR_TEST_PYTHON, else a fresh environment; nil, with a word, without.
    private static func environment(_ folder: String) throws -> String? {
        if let python = ProcessInfo.processInfo.environment["TORPOR_TEST_PYTHON"] { return python }
        let python = folder + "/bin/python3"
        if FileManager.default.fileExists(atPath: python), try run(python, ["-c", "import varlink"]).0 == 0 {
            return python
        }
        for command in [
            ["python3", "-m", "venv", folder],
            [
                folder + "/bin/pip", "install", "-q", "--disable-pip-version-check", "--retries", "0", "--timeout",
                "10", "varlink",
            ],
        ] {
            let (status, output) = try run("/usr/bin/env", command)
            guard status == 0 else {
                print("skipped: “\(command.joined(separator: " "))” failed: \(output.suffix(200))")
                return nil
            }
        }
        return python
    }

    private static func run(_ program: String, _ arguments: [String]) throws -> (Int32, String) {
        let process = Process()
        let pipe = Pipe()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        process.standardOutput = pipe
        process.standardError = pipe
        try process.run()
        let output = pipe.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return (process.terminationStatus, String(decoding: output, as: UTF8.self))
    }
}
