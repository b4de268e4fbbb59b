// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

/// System V IPC and POSIX message queues: these have no path, and any process of a user reaches all of that user.
@Suite(
    "Shared memory and sandboxes",
    .enabled(if: Confinement.isAvailable() && Users.isRoot, "needs root, and a kernel with Landlock")
) struct SharedMemoryTests {
    private static let kinds = ["shm", "sem", "msg", "queue"]

    private static func words(_ verb: String, _ key: Int32, _ kinds: [String] = kinds) -> [String] {
        kinds.map { "\(verb)\($0):\($0 == "queue" ? "torpor-\(key)" : "\(key)")" }
    }

    /// An app outside makes them, and each app that is named tries to reach them, and makes its own.
    private func check(
        _ apps: [String: String],
        environment: [String: String] = [:],
        _ body: (Daemon, _ key: Int32) throws -> Void
    ) throws {
        let (key, inner) = (ThisProcess.pid, ThisProcess.pid | 1 << 24)
        let toml =
            SandboxTests.app("outside", Self.words("make", key), "launch = \"on-demand\"")
            + SandboxTests.app("again", Self.words("", key) + Self.words("", inner), "launch = \"on-demand\"")
            + apps.map { name, keys in
                let words = Self.words("", key) + Self.words("make", inner)
                return SandboxTests.app(name, words, "launch = \"on-demand\"\n\(keys)")
            }.joined()
        defer {
            for key in [key, inner] {
                _ = try? Spawn.run(["/usr/bin/ipcrm", "-M", "\(key)", "-S", "\(key)", "-Q", "\(key)"])
                let file = NSTemporaryDirectory() + "torpor-queue-\(key)"
                _ = try? Spawn.run([Built.path("sandbox-probe"), file, "dropqueue:torpor-\(key)"])
                try? File.remove(file)
            }
        }
        try withDaemon(toml, environment: environment) { daemon throws in
            try daemon.done(.start, "outside")
            #expect(try Self.errors(daemon, "outside") == Self.kinds.map { _ in 0 })
            try body(daemon, key)
        }
    }

    /// The errors of the first four words, in the order of ``kinds``.
    private static func errors(_ daemon: Daemon, _ app: String, _ range: Range<Int> = 0..<4) throws -> [Int] {
        let path = daemon.directory + "/s/apps/\(app)/result"
        _ = try SandboxTests.results(daemon, app)
        return try File.readString(path).split(separator: "\n")[range].compactMap { line in
            line.split(separator: "=").last.flatMap { Int($0) }
        }
    }

    @Test("An app in a sandbox reaches none of those outside, and nobody reaches its own")
    func apart() throws {
        try check(["web": "sandbox = true", "agent": "sandbox = \"agent\""]) { daemon, _ in
            for app in ["web", "agent"] {
                try daemon.done(.start, app)
                #expect(try Self.errors(daemon, app) == Self.kinds.map { _ in 2 }, "\(app)")
                // Landlock closes queues that have names.
                #expect(try Self.errors(daemon, app, 4..<8) == [0, 0, 0, 13], "\(app)")
                #expect(try daemon.status(app).sandbox?.unenforced.contains { $0.contains("System V") } == false)
            }
            try daemon.done(.start, "again")
            #expect(try Self.errors(daemon, "again") == Self.kinds.map { _ in 0 })
            #expect(try Self.errors(daemon, "again", 4..<8) == Self.kinds.map { _ in 2 })
        }
    }

    @Test("Where no namespace can be had, status says so, and code of strangers is refused the calls")
    func together() throws {
        let apps = ["web": "sandbox = true", "agent": "sandbox = \"agent\""]
        try check(apps, environment: ["TORPOR_TEST_NO_IPC": "1"]) { daemon, _ in
            try daemon.done(.start, "web")
            #expect(try Self.errors(daemon, "web", 0..<3) == [0, 0, 0])
            #expect(try daemon.status("web").sandbox?.unenforced.contains { $0.contains("System V") } == true)
            try daemon.done(.start, "agent")
            #expect(try Self.errors(daemon, "agent", 0..<8) == [1, 1, 1, 1, 1, 1, 1, 1])
            #expect(try daemon.status("agent").sandbox?.unenforced.contains { $0.contains("System V") } == false)
        }
    }
}
