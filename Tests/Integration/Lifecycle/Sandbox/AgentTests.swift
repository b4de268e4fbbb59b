// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

/// What `sandbox = "agent"` gives in one line, as the kernel has it.
@Suite(
    "Code of strangers",
    .enabled(if: Confinement.isAvailable() && Users.isRoot, "needs root, and a kernel with Landlock")
) struct AgentTests {
    private static func toml(_ exec: String, _ keys: String = "") -> String {
        """
        [apps.worker]
        exec = [\(exec)]
        launch = "on-demand"
        restart = "never"
        sandbox = "agent"
        \(keys)

        """
    }

    /// The soft and the hard limit of a process.
    private func limit(_ name: String, of pid: Int32) throws -> [String] {
        let lines = try File.readString("/proc/\(pid)/limits").split(separator: "\n")
        let line = try #require(lines.first { $0.hasPrefix(name) })
        return line.dropFirst(name.count).split(separator: " ").prefix(2).map(String.init)
    }

    /// A file of the app's cgroup, where the kernel has it.
    private func bound(_ daemon: Daemon, _ file: String) throws -> String? {
        guard let path = try daemon.status("worker").cgroup, File.exists(path + "/" + file) else { return nil }
        return try File.readString(path + "/" + file).split(separator: "\n").first.map(String.init)
    }

    @Test("One line gives folders of its own and limits; what the app sets itself counts", arguments: [false, true])
    func limits(_ hasOwn: Bool) throws {
        let own = """
            umask = "0022"
            memory_limit = "64MiB"
            limits = { nofile = 100, tasks = 7, fsize = "1MiB" }
            resources = { active = { cpu_max = "50%" } }
            """
        try withDaemon(Self.toml("\"/bin/sleep\", \"1000\"", hasOwn ? own : "")) { daemon throws in
            try daemon.done(.start, "worker")
            let pid = try #require(try daemon.summary("worker").pid)
            let file = hasOwn ? "1048576" : "1073741824"
            let open = hasOwn ? "100" : "1024"
            #expect(try limit("Max file size", of: pid) == [file, file])
            #expect(try limit("Max open files", of: pid) == [open, open])
            #expect(try ProcFS.statusField(pid, "Umask") == (hasOwn ? "0022" : "0077"))
            let variables = try File.readString("/proc/\(pid)/environ").split(separator: "\0")
            let folder = daemon.directory + "/s/data/worker"
            #expect(variables.contains("TMPDIR=\(folder)/tmp") && variables.contains("TORPOR_CACHES=\(folder)/caches"))
            let memory = hasOwn ? "67108864" : "1073741824"
            for (name, expected, word) in [
                ("memory.max", memory, "memory_limit"), ("pids.max", hasOwn ? "7" : "256", "limits.tasks"),
                ("cpu.max", hasOwn ? "50000 100000" : "100000 100000", "cpu.max"),
            ] {
                try daemon.eventually("\(name) is \(expected), or has no controller, which is said") {
                    let missing = try daemon.status("worker").profileMissing
                    return try bound(daemon, name).map { $0 == expected } ?? missing.contains { $0.contains(word) }
                }
            }
            if let swap = try bound(daemon, "memory.swap.max") { #expect(swap == memory) }
        }
    }

    @Test("A file that reaches its limit ends the app, which cannot raise it; the report says which limit that is")
    func largeFile() throws {
        let exec = #""/bin/sh", "-c", 'ulimit -f unlimited; exec head -c 2000000 /dev/zero >"$TORPOR_DOCUMENTS/large"'"#
        try withDaemon(Self.toml(exec, "limits = { fsize = \"1MiB\" }")) { daemon throws in
            try daemon.done(.start, "worker") { $0.wait = false }
            try daemon.eventually("there is a report") { try !daemon.reports("worker").isEmpty }
            let report = try #require(try daemon.reports("worker").last)
            let text = report.text ?? ""
            #expect(text.contains("SIGXFSZ"), "\(text)")
            #expect(text.contains("reached the limit of 1.0 MiB: limits = { fsize"), "\(text)")
            let file = try File.read(daemon.directory + "/s/data/worker/documents/large", limit: 4 << 20)
            #expect(file.count == 1 << 20)
        }
    }

    @Test("A program for another architecture is ended at its first call, and the report says why")
    func otherArchitecture() throws {
        let probe = Built.path("sandbox-probe")
        let folder = try Daemon.makeFolder()
        defer { try? File.removeTree(folder) }
        _ = try Spawn.run([probe, folder + "/result", "i386"])
        guard (try? File.readString(folder + "/result")) == "i386=0\n" else {
            return print("skipped: this kernel runs no 32-bit programs")
        }
        let exec = "\"\(probe)\", \"@D/s/apps/worker/result\", \"i386\", \"stay\""
        for mode in ["\"agent\"", "true"] {
            let toml = Self.toml(exec).replacingOccurrences(of: "sandbox = \"agent\"", with: "sandbox = \(mode)")
            try withDaemon(toml) { daemon throws in
                try daemon.done(.start, "worker") { $0.wait = false }
                try daemon.eventually("there is a report") { try !daemon.reports("worker").isEmpty }
                let text = try #require(try daemon.reports("worker").last).text ?? ""
                #expect(text.contains("SIGSYS") && text.contains("for another architecture"), "\(text)")
                #expect(!File.exists(daemon.directory + "/s/apps/worker/result"))
            }
        }
    }
}
