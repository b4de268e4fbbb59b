// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

@Suite("Supervisors stay in memory") struct LockedMemoryTests {
    private static let app = """
        [apps.a]
        exec = ["/bin/sleep", "1000"]
        """

    /// Bytes that are locked.
    private func locked(_ pid: Int32) -> Int {
        (try? ProcFS.statusField(pid, "VmLck")).flatMap { Int($0.split(separator: " ")[0]) } ?? 0
    }

    private func limit(_ pid: Int32) -> String? {
        (try? File.readString("/proc/\(pid)/limits"))?.split(separator: "\n").first {
            $0.hasPrefix("Max locked memory")
        }
        .map(String.init)
    }

    @Test("keeper and torpord are locked in memory once they have come to rest, with what they touch, and apps are not")
    func locks() throws {
        guard try isAllowed() else { return print("skipped: memory cannot be locked without bounds here") }
        try withDaemon(Self.app) { daemon in
            try daemon.waitFor("a", "active")
            let both = [daemon.pid, try daemon.torpord()]
            try daemon.eventually("both are locked") { both.allSatisfy { locked($0) > 1 << 10 } }
            // Tables that are reserved are not touched for that.
            for pid in both { #expect(try ProcFS.memory(pid).resident < 64 << 20) }
            try daemon.done(.restart, "a")
            try daemon.waitFor("a", "active")
            let app = try #require(try daemon.summary("a").pid)
            #expect(locked(app) == 0)
            #expect(limit(app) == limit(ThisProcess.pid) && limit(daemon.pid) == limit(ThisProcess.pid))
            #expect(both.allSatisfy { locked($0) > 1 << 10 })
        }
    }

    /// As the kernel answers, to a process of its own.
    private func isAllowed() throws -> Bool {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [
            "python3", "-c",
            """
            import ctypes, resource, sys
            hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
            if hard[0] != resource.RLIM_INFINITY: resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, hard[1]))
            sys.exit(0 if ctypes.CDLL(None).mlockall(7) == 0 else 3)
            """,
        ]
        try process.run()
        process.waitUntilExit()
        return process.terminationStatus == 0
    }
}
