// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Testing
import TorporAPI

@Suite("Standard output of the command line") struct StandardOutputTests {
    private static let toml = """
        [apps.web]
        exec = ["/bin/sh", "-c", "echo hello; exec sleep 1000"]
        """

    /// What a shell says to a line in which `$T` is the program with the supervisor's socket.
    private static func shell(_ daemon: Daemon, _ line: String) throws -> (code: Int32, output: String) {
        try Spawn.run(
            ["/bin/bash", "-c", line],
            environment: ["T": Built.path("torpor"), "TORPOR_MANAGER_SOCKET": daemon.socket]
        )
    }

    private static func withApp(_ body: (Daemon) throws -> Void) throws {
        try withDaemon(toml) { daemon in
            try daemon.eventually("it has written") {
                try Self.shell(daemon, "$T logs web").output == "hello\n"
            }
            try body(daemon)
        }
    }

    @Test(
        "a full disk is an error, and said",
        arguments: [
            "list", "list --json", "status web", "logs web", "logs web web", "logs -f web", "history web", "events",
            "metrics", "memory", "timers", "doctor", "graph", "check $D", "start web", "--help", "--version",
        ]
    )
    func full(words: String) throws {
        try Self.withApp { daemon in
            let words = words.replacing("$D", with: daemon.directory + "/torpor.toml")
            let (code, output) = try Self.shell(daemon, "$T \(words) >/dev/full")
            #expect(code == 1, "\(words): \(output)")
            #expect(
                output.contains("standard output cannot be written: No space left on device"),
                "\(words): \(output)"
            )
        }
    }

    @Test(
        "what follows ends with its reader, though nothing comes",
        arguments: ["logs -f web", "logs -f web other", "events -f web", "events --record -"]
    )
    func reader(words: String) throws {
        let toml = Self.toml + "\n[apps.other]\nexec = [\"/bin/sh\", \"-c\", \"echo hello; exec sleep 1000\"]"
        try withDaemon(toml) { daemon in
            for app in ["web", "other"] {
                try daemon.eventually("\(app) has written") {
                    try Self.shell(daemon, "$T logs \(app)").output == "hello\n"
                }
            }
            // The shell waits for both, and ends only when both have ended.
            let (code, output) = try Self.shell(daemon, "$T \(words) | head -n 1; exit ${PIPESTATUS[0]}")
            #expect(code == 0 || code == 141, "\(words): \(output)")
            #expect(output.split(separator: "\n").count == 1, "\(words): \(output)")
        }
    }
}
