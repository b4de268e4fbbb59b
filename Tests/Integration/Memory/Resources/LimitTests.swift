// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

@Suite("Limits of an app as a whole") struct LimitTests {
    /// Takes memory and keeps it, when it is asked to.
    private static let hungry = """
        import tp
        tp.record("up")
        tp.await_file("eat")
        food = bytearray(b"x" * (96 << 20))
        tp.record("eaten")
        tp.wait()
        """

    private static func toml(_ keys: String) -> String {
        """
        [apps.a]
        \(Scripts.python)"@D/app.py"]
        restart = "never"
        \(keys)
        """
    }

    /// Whether apps' cgroups have a controller here.
    private func has(_ controller: String, _ daemon: Daemon) throws -> Bool {
        let checks = try (daemon.call(.doctor)["checks"]?.arrayValue ?? []).map { try DoctorCheck(json: $0) }
        return !checks.contains { $0.name == "\(controller) controller" && !$0.ok }
    }

    @Test("an app that has more memory than its limit is ended for that, with the kernel's help or without")
    func memory() throws {
        try withDaemon(Self.toml("memory_limit = \"48MiB\""), files: ["app.py": Self.hungry]) { daemon throws in
            try daemon.waitForRecord("a", "up")
            let isKept = try has("memory", daemon)
            if let limit = try daemon.cgroupFile("a", "memory.max") { #expect(limit == "\(48 << 20)") }
            let missing = try daemon.status("a").profileMissing
            #expect(missing.contains { $0.hasPrefix("memory_limit") } == !isKept)
            try File.write(daemon.directory + "/eat", "")
            try daemon.waitFor("a", "not-running")
            let exit = try #require(try daemon.summary("a").lastExit)
            #expect(exit.reason == "memory-limit")
            #expect(exit.signal == (isKept ? "SIGKILL" : "SIGTERM"))
            #expect(try daemon.reports("a").first?.reason == "memory-limit")
        }
    }

    @Test("a limit that comes by apply counts at once, one that goes does not count any more")
    func applied() throws {
        try withDaemon(Self.toml(""), files: ["app.py": Self.hungry]) { daemon throws in
            try daemon.waitForRecord("a", "up")
            try daemon.apply(Self.toml("memory_limit = \"48MiB\"\nlimits = { tasks = 77 }"))
            if try has("memory", daemon) { #expect(try daemon.cgroupFile("a", "memory.max") == "\(48 << 20)") }
            if try has("pids", daemon) { #expect(try daemon.cgroupFile("a", "pids.max") == "77") }
            try daemon.apply(Self.toml(""))
            #expect(try daemon.cgroupFile("a", "memory.max") ?? "max" == "max")
            try File.write(daemon.directory + "/eat", "")
            try daemon.waitForRecord("a", "eaten")
            // It has more than that now.
            let reply = try daemon.apply(Self.toml("memory_limit = \"48MiB\""))
            #expect(reply.lines == ["a: changed memory_limit none → 48MiB (live)"])
            try daemon.waitFor("a", "not-running")
            #expect(try daemon.summary("a").lastExit?.reason == "memory-limit")
        }
    }

    @Test("an app that sets no limit has room for 15 % of the machine's tasks, and as many as it wants if it says so")
    func ordinary() throws {
        try withDaemon(Apps.sleeper("a")) { daemon throws in
            try daemon.waitFor("a", "active")
            let isKept = try has("pids", daemon)
            let limits = try ["pid_max", "threads-max"].map { name throws in
                Int(try File.readString("/proc/sys/kernel/\(name)").split(separator: "\n")[0]) ?? .max
            }
            // Of a container there may be another limit, below these.
            let most = max(512, (limits.min() ?? 0) * 15 / 100)
            func now() throws -> String? { try daemon.cgroupFile("a", "pids.max") }
            let ordinary = try now()
            #expect(isKept ? ordinary.flatMap { Int($0) }.map { (512...most).contains($0) } == true : ordinary == nil)
            #expect(try !daemon.status("a").profileMissing.contains { $0.hasPrefix("limits.tasks") })
            #expect(!daemon.log.contains("limits.tasks"))
            for (limit, expected) in [("\"unlimited\"", "max"), ("77", "77")] {
                try daemon.apply(Apps.sleeper("a", "limits = { tasks = \(limit) }"))
                #expect(try now() == (isKept ? expected : nil))
            }
            try daemon.apply(Apps.sleeper("a"))
            #expect(try now() == ordinary)
        }
    }

    @Test("pages that processes share are not counted for each")
    func shared() throws {
        let program = """
            import tp
            food = bytearray(b"x" * (24 << 20))
            for _ in range(5):
                tp.fork(tp.wait)
            tp.record("up")
            tp.wait()
            """
        let toml =
            Self.toml("memory_limit = \"96MiB\"") + """

                [apps.hungry]
                \(Scripts.python)"@D/hungry.py"]
                launch = "on-demand"
                restart = "never"
                memory_limit = "48MiB"
                """
        try withDaemon(toml, files: ["app.py": program, "hungry.py": Self.hungry]) { daemon throws in
            try daemon.waitForRecord("a", "up")
            // Where somebody has to look, all are looked at.
            try daemon.done(.start, "hungry")
            try File.write(daemon.directory + "/eat", "")
            try daemon.eventually("another one is ended for its memory") {
                try daemon.summary("hungry").lastExit?.reason == "memory-limit"
            }
            #expect(try daemon.summary("a").state == "active")
            let isKept = try has("memory", daemon)
            let counted = try #require(try daemon.status("a").countedMemory)
            #expect(counted.bytes < 96 << 20 && counted.measure == (isKept ? .cgroup : .proportional), "\(counted)")
            let page = try Spawn.run([Built.path("torpor"), "--socket", daemon.socket, "status", "a"]).output
            let line = page.split(separator: "\n").first { $0.contains("memory: ") } ?? ""
            #expect(line.contains(isKept ? "MiB (of its cgroup)" : "MiB (PSS: shared pages count once)"), "\(page)")
            if !isKept {
                let pids = daemon.processes(of: "a")
                let resident = try pids.map { try ProcFS.stat($0).residentPages * UInt64(Memory.pageSize) }.reduce(0, +)
                #expect(resident > 96 << 20, "it looked closer")
            }
        }
    }

    @Test("an app has no more processes than its limit, where somebody counts them")
    func tasks() throws {
        let program = """
            import os, tp
            count = 1
            try:
                while count < 40:
                    tp.fork(tp.wait)
                    count += 1
            except OSError:
                pass
            tp.record("count %d" % count)
            tp.wait()
            """
        try withDaemon(Self.toml("limits = { tasks = 7, nofile = 100 }"), files: ["app.py": program]) { daemon throws in
            let isKept = try has("pids", daemon)
            try daemon.waitForRecord("a", isKept ? "count 7" : "count 40")
            #expect(try daemon.cgroupFile("a", "pids.max") == (isKept ? "7" : nil))
            let missing = try daemon.status("a").profileMissing
            #expect(missing.contains("limits.tasks 7 (no pids controller)") == !isKept)
            // Where there is no cgroup nothing of it can fail.
            let hasCgroup = try daemon.cgroupFile("a", "cgroup.procs") != nil
            let failures = daemon.log.split(separator: "\n").count { $0.contains("limits.tasks of a") }
            #expect(failures == (isKept || !hasCgroup ? 0 : 1))
            let limits = try File.readString("/proc/\(try #require(try daemon.summary("a").pid))/limits")
            #expect(limits.split(separator: "\n").contains { $0.hasPrefix("Max open files") && $0.contains(" 100 ") })
        }
    }

    @Test("doctor has a line for each controller that is missing, with its cost")
    func doctor() throws {
        try withDaemon(Apps.sleeper("a")) { daemon throws in
            let checks = try (daemon.call(.doctor)["checks"]?.arrayValue ?? []).map { try DoctorCheck(json: $0) }
            for name in ["cpu", "io", "memory", "pids"] {
                let check = checks.first { $0.name == "\(name) controller" }
                let had = checks.first { $0.name == "controllers" }?.value ?? ""
                #expect((check == nil) == had.contains("\(name) ("), "\(name)")
                if let check { #expect(!check.ok && (check.message ?? "").contains(". Without it ")) }
            }
        }
    }
}
