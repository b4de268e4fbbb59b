// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import KernelFiles
import Linux
import Testing
import TorporAPI
import Varlink

/// torpord on a machine whose kernel says of its memory what the test wants: 8 GiB, half of it available at first.
enum ShortMemory {
    /// No tenth is left, and a twentieth.
    static let warning = 0.07
    /// Not a twentieth is left: nothing is waited for.
    static let critical = 0.03
    static let enough = 0.5

    /// After an ending there is time to say that it was enough.
    static let head = """
        [supervisor.memory]
        settling = "500ms"

        [defaults]
        launch = "on-demand"
        restart = "never"


        """

    /// Has so many MiB, ends by SIGTERM and records that.
    static let program = """
        import tp
        tp.on("SIGTERM", lambda: tp.os._exit(0))
        tp.on("SIGUSR1")
        food = bytearray(b"x" * (int(tp.sys.argv[1]) << 20))
        tp.record("up")
        tp.wait()
        """

    /// Hears SIGTERM and goes on.
    static let stubborn = program.replacingOccurrences(of: ", lambda: tp.os._exit(0)", with: "")

    /// An app that has so many MiB, with further keys.
    static func app(_ name: String, _ megabytes: Int = 4, _ keys: String = "", program: String = "app.py") -> String {
        "[apps.\(name)]\n\(Scripts.python)\"@D/\(program)\", \"\(megabytes)\"]\n\(keys)\n\n"
    }

    static func with(
        _ apps: String,
        files: [String: String] = [:],
        machine: (KernelFiles) throws -> Void = { _ in },
        environment: [String: String] = [:],
        at location: SourceLocation = #_sourceLocation,
        _ body: (Daemon, KernelFiles) throws -> Void
    ) throws {
        let kernel = try KernelFiles()
        try machine(kernel)
        let own = ["app.py": program, "stubborn.py": stubborn]
        try withDaemon(
            apps.contains("[defaults]") ? apps : head + apps,
            files: own.merging(files) { $1 },
            environment: environment.merging(["TORPOR_KERNEL_FILES": kernel.root]) { $1 },
            at: location
        ) { daemon throws in try body(daemon, kernel) }
    }
}

extension Daemon {
    /// Starts apps and takes each to its state.
    func bring(_ apps: KeyValuePairs<String, String>, at location: SourceLocation = #_sourceLocation) throws {
        for (app, state) in apps {
            try done(.start, app, at: location)
            try waitForRecord(app, "up", at: location)
            switch state {
            case "suspended": try done(.suspend, app, at: location)
            case "background": try done(.background, app, at: location)
            case "inactive": try done(.interrupt, app, at: location)
            default: break
            }
            try waitFor(app, state, at: location)
        }
    }

    /// What was done for want of memory, in order: `evict web`, `tell `.
    func steps() throws -> [String] {
        let rungs: Set = [
            "tell", "purge", "page-out", "evict", "end-background", "end-inactive", "end-active",
        ]
        return try events().filter { $0.kind == "memory" && rungs.contains($0.reason ?? "") }
            .map { "\($0.reason ?? "") \($0.app ?? "")" }
    }

    /// The same without what harms nobody.
    func endings() throws -> [String] {
        try steps().filter { $0.hasPrefix("evict ") || $0.hasPrefix("end-") }
    }

    /// Waits for a step of the ladder, and gives its event.
    @discardableResult
    func waitForStep(
        _ rung: String,
        _ app: String? = nil,
        at location: SourceLocation = #_sourceLocation
    ) throws -> EventRecord {
        var found: EventRecord?
        try eventually("\(rung) \(app ?? "")", at: location) {
            found = try events().first { $0.kind == "memory" && $0.reason == rung && (app == nil || $0.app == app) }
            return found != nil
        }
        guard let found else { throw Trouble("no \(rung)") }
        return found
    }

    /// Waits for an event of no app whose text has this in it.
    @discardableResult
    func waitForNews(_ text: String, at location: SourceLocation = #_sourceLocation) throws -> EventRecord {
        var found: EventRecord?
        try eventually("it is said that \(text)", at: location) {
            found = try events().first { $0.app == nil && $0.text.contains(text) }
            return found != nil
        }
        guard let found else { throw Trouble("no news that \(text)") }
        return found
    }

    /// Waits until memory is no longer short.
    func waitUntilEnough(at location: SourceLocation = #_sourceLocation) throws {
        try waitForNews("memory is no longer short", at: location)
    }

    func memory() throws -> MemoryStatus { try MemoryStatus(json: call(.memory)["memory"] ?? .null) }

    /// Whether the app has come to its end for its memory.
    func isEvicted(_ app: String) throws -> Bool {
        let summary = try summary(app)
        return summary.state == "not-running" && summary.lastExit?.reason == "evicted"
    }
}
