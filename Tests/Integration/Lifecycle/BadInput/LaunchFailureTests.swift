// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

@Suite("Launches that cannot be") struct LaunchFailureTests {
    private func failing(
        _ keys: String,
        files: [String: String] = [:],
        prepare: (String) throws -> Void = { _ in },
        expecting words: [String],
        at location: SourceLocation = #_sourceLocation
    ) throws {
        let toml = """
            [apps.bad]
            launch = "on-demand"
            restart = "never"
            \(keys)
            [apps.good]
            exec = ["/bin/sleep", "1000"]
            """
        try withDaemon(toml, files: files) { daemon throws in
            try prepare(daemon.directory)
            let result = try daemon.verb(.start, "bad")
            #expect(!result.ok, sourceLocation: location)
            #expect(result.error == "launch-failed", sourceLocation: location)
            let message = result.message ?? ""
            for word in words {
                #expect(message.contains(word), "\(message)", sourceLocation: location)
            }
            #expect(try daemon.summary("bad").lastExit?.reason == "launch-failed", sourceLocation: location)
            let reports = try daemon.reports("bad")
            #expect(reports.count == 1, "\(reports)", sourceLocation: location)
            #expect(daemon.processes(of: "bad").isEmpty, sourceLocation: location)
            try daemon.waitFor("good", "active", at: location)
        }
    }

    @Test("A program that does not exist")
    func missing() throws {
        try failing(#"exec = ["/nonexistent/program"]"#, expecting: ["/nonexistent/program", "No such file"])
    }

    @Test("Launches in a row that fail for the same reason have one report, so that reports of runs stay")
    func again() throws {
        let toml = """
            [apps.bad]
            exec = ["@D/program"]
            launch = "on-demand"
            restart = "never"
            """
        try withDaemon(toml) { daemon throws in
            try File.write(daemon.directory + "/program", "#!/bin/sh\nexit 7\n", mode: 0o755)
            _ = try daemon.verb(.start, "bad")
            try daemon.eventually("its end has a report") { try daemon.reports("bad").count == 1 }
            try File.remove(daemon.directory + "/program")
            for _ in 1...3 { #expect(try daemon.verb(.start, "bad").error == "launch-failed") }
            #expect(try daemon.reports("bad").map(\.reason) == ["launch-failed", "exit-failure"])
            try File.write(daemon.directory + "/program", "not a script", mode: 0o755)
            #expect(try daemon.verb(.start, "bad").error == "launch-failed")
            let reasons = try daemon.reports("bad").map(\.reason)
            #expect(reasons == ["launch-failed", "launch-failed", "exit-failure"], "another reason has its own")
        }
    }

    @Test("A script whose interpreter is missing, or that names none")
    func scripts() throws {
        try failing(
            #"exec = ["@D/run"]"#,
            prepare: { try File.write($0 + "/run", "#!/bin/sh\r\nexit 0\r\n", mode: 0o755) },
            expecting: ["/run (exec): the interpreter that it needs, which its first line names, is missing"]
        )
        try failing(
            #"exec = ["@D/run"]"#,
            prepare: { try File.write($0 + "/run", "exit 0\n", mode: 0o755) },
            expecting: ["/run (exec): ", "nor a script whose first line names its interpreter, as in #!/bin/sh"]
        )
    }

    @Test("A user that does not exist", .enabled(if: Users.effectiveUID == 0))
    func noUser() throws {
        try failing(
            "exec = [\"/bin/sleep\", \"1000\"]\nuser = \"no-such-user\"",
            expecting: ["bad was not launched: there is no user no-such-user"]
        )
    }

    @Test("A program that is not on the PATH")
    func notOnPath() throws {
        try failing(#"exec = ["no-such-program-anywhere"]"#, expecting: ["no-such-program-anywhere", "PATH"])
    }

    @Test("A file that is not executable")
    func notExecutable() throws {
        try failing(
            #"exec = ["@D/data"]"#,
            prepare: { try File.write($0 + "/data", "hello", mode: 0o644) },
            expecting: ["/data", "Permission denied: it needs chmod +x"]
        )
    }

    @Test("A script whose interpreter does not exist")
    func badInterpreter() throws {
        try failing(
            #"exec = ["@D/script"]"#,
            files: ["script": "#!/nonexistent/interpreter\n"],
            expecting: ["/script", "the interpreter that it needs"]
        )
    }

    @Test("A working directory that does not exist")
    func directory() throws {
        try failing(
            "exec = [\"/bin/sleep\", \"1000\"]\ndirectory = \"/nonexistent/place\"",
            expecting: ["directory", "No such file"]
        )
    }

    @Test("A working directory that may not be entered")
    func forbiddenDirectory() throws {
        guard ThisProcessIs.root else {
            print("skipped: entering a forbidden folder as another user needs root")
            return
        }
        try failing(
            "exec = [\"/bin/sleep\", \"1000\"]\nuser = \"nobody\"\ndirectory = \"@D/closed\"",
            prepare: { try File.makeDirectory($0 + "/closed", mode: 0o700) },
            expecting: ["directory", "Permission denied"]
        )
    }

    @Test("A user that may have no more processes")
    func processLimit() throws {
        guard ThisProcessIs.root else {
            print("skipped: running as another user needs root")
            return
        }
        let toml = """
            [apps.bad]
            exec = ["/bin/sh", "-c", "sleep 0.01 & sleep 0.01 & wait; sleep 1000 | sleep 1000"]
            launch = "on-demand"
            restart = "never"
            user = "nobody"
            limits = { nproc = 1 }
            """
        try withDaemon(toml) { daemon throws in
            _ = try daemon.verb(.start, "bad")
            // sh cannot fork: it ends, and says why in the log.
            try daemon.waitFor("bad", "not-running")
            let reason = try daemon.summary("bad").lastExit?.reason
            #expect(reason == "exit-failure" || reason == "launch-failed")
        }
    }

    @Test("An unknown user is a warning of the configuration, with its place")
    func unknownUser() throws {
        let toml = "[apps.bad]\nexec = [\"/bin/true\"]\nuser = \"nobody-of-that-name\"\n"
        let folder = try Daemon.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let path = try Daemon.writeConfiguration(toml, in: folder)
        let (code, output) = try Spawn.run([Built.path("torpor"), "check", path])
        #expect(code == 0, "it fails its launch alone (AccountTests)")
        #expect(output.contains("nobody-of-that-name"))
        #expect(output.contains("apps.bad.user") && output.contains("torpor.toml:"), "\(output)")
    }

    /// Starts torpord on a configuration that it must refuse.
    static func check(_ toml: String) throws -> (code: Int32, output: String) {
        let folder = try Daemon.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let path = try Daemon.writeConfiguration(toml, in: folder)
        return try Spawn.run([Built.path("torpord"), "--config", path])
    }
}

enum ThisProcessIs {
    static var root: Bool { geteuid() == 0 }
}
