// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
import Testing

@testable import Processes

@Suite("Limits by cgroup") struct AppLimitsTests {
    /// A folder that stands for a cgroup with these files.
    private func withFiles(_ files: [String: String], _ body: (String) throws -> Void) throws {
        let folder = NSTemporaryDirectory() + "torpor-limits-" + UUID().uuidString
        try File.makeDirectories(folder)
        defer { try? File.removeTree(folder) }
        for (name, text) in files { try File.write(folder + "/" + name, text) }
        try body(folder)
    }

    /// A file's first line; what stands for a control file keeps the end of what was longer.
    private func line(_ path: String) throws -> String {
        try File.readString(path).split(separator: "\n").first.map(String.init) ?? ""
    }

    private func write(_ limits: AppLimits, _ path: String, _ before: AppLimits?) -> [String] {
        var usage: UInt64?
        return limits.write(to: path, replacing: before, usage: &usage).failures.map(\.text)
    }

    @Test("a new cgroup is written to only for what is limited, and one that was limited only for what has changed")
    func onlyWhatChanged() throws {
        try withFiles(["memory.max": "", "memory.oom.group": "", "pids.max": "", "memory.current": "0\n"]) {
            path throws in
            func all() throws -> [String] {
                try ["memory.max", "memory.oom.group", "pids.max"].map { try line(path + "/" + $0) }
            }
            #expect(write(AppLimits(), path, AppLimits()) == [])
            #expect(try all() == ["", "", ""])
            #expect(write(AppLimits(memory: 1 << 20, tasks: 9), path, AppLimits()) == [])
            #expect(try all() == ["1048576", "1", "9"])
            try File.write(path + "/memory.max", "")
            #expect(write(AppLimits(memory: 1 << 20, tasks: 8), path, AppLimits(memory: 1 << 20, tasks: 9)) == [])
            #expect(try all() == ["", "1", "8"])
            // Nobody knows what was there.
            #expect(write(AppLimits(), path, nil) == [])
            #expect(try all() == ["max", "0", "max"])
        }
    }

    @Test("swap is limited where the kernel accounts it, and what was limited before is not any more")
    func swap() throws {
        let limited = AppLimits(memory: 1 << 20, swap: 1 << 20)
        try withFiles(["memory.max": "", "memory.swap.max": "", "memory.current": "0\n"]) { path throws in
            func now() throws -> String { try line(path + "/memory.swap.max") }
            #expect(write(AppLimits(memory: 1 << 20), path, AppLimits()) == [])
            #expect(try now() == "")
            #expect(write(limited, path, AppLimits(memory: 1 << 20)) == [])
            #expect(try now() == "1048576")
            #expect(write(AppLimits(memory: 1 << 20), path, limited) == [])
            #expect(try now() == "max")
        }
        try withFiles(["memory.max": "", "memory.current": "0\n"]) { path throws in
            #expect(write(limited, path, AppLimits()) == [])
            #expect(!File.exists(path + "/memory.swap.max"))
        }
    }

    @Test("without a controller it is said what is missing, and only for what is wanted")
    func missing() throws {
        try withFiles([:]) { path throws in
            #expect(write(AppLimits(), path, nil) == [])
            #expect(
                write(AppLimits(memory: 5, tasks: 9), path, AppLimits()) == [
                    "memory.max (no memory controller)", "pids.max 9 (no pids controller)",
                ]
            )
            #expect(write(AppLimits(tasks: 4915, isDefaultOfTasks: true), path, AppLimits()) == [])
            #expect(File.exists(path + "/memory.max") == false)
        }
    }

    @Test("memory is lowered in steps, and at once where there is nothing to take back")
    func steps() throws {
        let megabyte = UInt64(1) << 20
        try withFiles(["memory.max": "max\n", "memory.current": "\(100 * megabyte)\n"]) { path throws in
            var usage: UInt64?
            func lower() throws -> Bool { try Cgroup.lowerMemory(path, "memory.max", to: 50 * megabyte, usage: &usage) }
            #expect(try !lower())
            #expect(try line(path + "/memory.max") == "\(92 * megabyte)")
            try File.write(path + "/memory.current", "\(92 * megabyte)\n")
            #expect(try !lower())
            #expect(try line(path + "/memory.max") == "\(84 * megabyte)")
            // It has not become less: nothing more can be had.
            #expect(try lower())
            #expect(try line(path + "/memory.max") == "\(50 * megabyte)")
            usage = nil
            try File.write(path + "/memory.current", "\(51 * megabyte)\n")
            #expect(try lower())
        }
    }

    @Test("an end at the app's own limit is told from one for want of memory on the machine")
    func shortage() throws {
        let none = "low 0\nhigh 0\nmax 3\noom 0\noom_kill 0\noom_group_kill 0\n"
        let killed = none.replacingOccurrences(of: "oom_kill 0", with: "oom_kill 2")
        let own = killed.replacingOccurrences(of: "oom 0", with: "oom 1")
        for (events, local, expected) in [
            (none, none, nil), (killed, none, .machine), (own, own, .ownLimit), (own, none, .machine),
            (own, nil, .ownLimit),
        ] as [(String, String?, Cgroup.MemoryShortage?)] {
            var files = ["memory.events": events]
            files["memory.events.local"] = local
            try withFiles(files) { path throws in #expect(Cgroup.memoryShortage(path) == expected) }
        }
        try withFiles([:]) { path throws in #expect(Cgroup.memoryShortage(path) == nil) }
    }

    @Test("why a controller is missing is said for each of the steps")
    func obstacles() throws {
        let table =
            "#subsys_name\thierarchy\tnum_cgroups\tenabled\n"
            + "cpu\t3\t1\t1\nblkio\t0\t1\t1\nmemory\t0\t9\t0\npids\t0\t2\t1\n"
        try withFiles(["cgroup.controllers": "", "cgroup.subtree_control": ""]) { mount throws in
            try File.makeDirectories(mount + "/proc")
            try File.write(mount + "/proc/cgroups", table)
            let place = mount + "/place"
            try File.makeDirectories(place)
            func obstacle(_ name: String) -> String? { Cgroup.obstacle(to: name, at: place, mount: mount, root: mount) }
            // Hybrid, and a kernel without.
            #expect(obstacle("cpu")?.contains("cgroup v1") == true)
            #expect(obstacle("memory")?.contains("cgroup_enable=memory") == true)
            #expect(obstacle("io") == "\(mount) does not have it")
            #expect(obstacle("rdma") == "the kernel does not have it")
            // Not delegated, in the way, had.
            try File.write(mount + "/cgroup.controllers", "cpu io memory pids\n")
            #expect(obstacle("cpu")?.contains("Delegate=yes") == true)
            try File.write(place + "/cgroup.controllers", "cpu pids\n")
            #expect(obstacle("cpu")?.contains("processes of its own") == true)
            #expect(obstacle("io")?.contains("Delegate=yes") == true)
            try File.write(place + "/cgroup.subtree_control", "cpu\n")
            #expect(obstacle("cpu") == nil)
        }
    }

    @Test("memory that processes share is counted once")
    func proportional() throws {
        let app = try TestApp(
            """
            food = bytearray(b'x' * (32 << 20))
            for _ in range(3):
             if os.fork() == 0: break
            say('ready')
            time.sleep(1000)
            """
        )
        for _ in 0..<4 { #expect(try app.line() == "ready") }
        let usage = app.tree.usage()
        #expect(usage.memoryBytes > 128 << 20)
        let (isOver, bytes) = app.tree.exceeds(96 << 20, usage)
        #expect(!isOver && bytes > 32 << 20 && bytes < 96 << 20)
        #expect(app.tree.exceeds(16 << 20, usage).0)
        #expect(app.tree.exceeds(1 << 40, usage).1 == usage.memoryBytes, "nobody looked closer")
    }
}

@Suite("Controllers for apps' cgroups", .serialized) struct CgroupPlaceTests {
    /// A cgroup to try things in; nil where this user can make none.
    private func withPlace(_ body: (String) throws -> Void) throws {
        guard let mount = Cgroup.mount, Users.isRoot else { return print("skipped: no cgroups for this user") }
        let path = mount + "/torpor-place-" + UUID().uuidString
        try Cgroup.create(path)
        defer {
            try? Cgroup.kill(path)
            _ = try? repeated {
                try? Cgroup.removeTree(path)
            } until: {
                $0 != nil
            }
        }
        try body(path)
    }

    @Test(
        "a place with processes that are not the supervisor's hands nothing down, and apps can still be launched below"
    )
    func occupied() throws {
        try withPlace { place throws in
            let stranger = try TestApp("say('here')\ntime.sleep(1000)", cgroup: place)
            #expect(try stranger.line() == "here")
            let base = place + "/apps"
            try Cgroup.create(base)
            #expect(CgroupPlace(place, instance: "x").handDown(to: base) == [])
            #expect(try File.readString(base + "/cgroup.type") == "domain\n")
            try Cgroup.create(base + "/a")
            let app = try TestApp("say('here')\ntime.sleep(1000)", cgroup: base + "/a")
            #expect(try app.line() == "here")
            #expect(app.tree.members() == [app.pid])
        }
    }

    @Test("a place without processes hands down all that it has")
    func free() throws {
        try withPlace { place throws in
            let base = place + "/apps"
            try Cgroup.create(base)
            let offered = try File.readString(place + "/cgroup.controllers")
            let had = CgroupPlace(place, instance: "x").handDown(to: base)
            #expect(
                had == CgroupPlace.wanted.filter { offered.split { $0 == " " || $0 == "\n" }.contains(Substring($0)) }
            )
            try Cgroup.create(base + "/a")
            for (controller, file) in [("memory", "memory.max"), ("pids", "pids.max"), ("cpu", "cpu.weight")] {
                #expect(File.exists(base + "/a/" + file) == had.contains(controller), "\(file)")
            }
        }
    }

    @Test("an app's cgroup that is left over is a new one for its next launch")
    func again() throws {
        guard let cgroups = try? CgroupTree(instance: UUID().uuidString) else { return print("skipped: no cgroups") }
        defer { cgroups.removeAll() }
        let first = try cgroups.create("web")
        #expect(first.isFresh)
        try Cgroup.create(first.path + "/of-its-own")
        try Cgroup.freeze(first.path, true)
        let second = try cgroups.create("web")
        #expect(second.isFresh && !Cgroup.isFreezeWanted(second.path))
        #expect(!File.exists(first.path + "/of-its-own"))
        let app = try TestApp("say('here')\ntime.sleep(1000)", cgroup: second.path)
        #expect(try app.line() == "here")
        let third = try cgroups.create("web")
        #expect(!third.isFresh, "somebody is in it")
        #expect(cgroups.path(of: "web", around: app.pid) == third.path)
        #expect(try app.kill() == .gone)
    }

    @Test("an app in another place is found by its process, unless all apps are known to be in this one")
    func elsewhere() throws {
        guard let cgroups = try? CgroupTree(instance: UUID().uuidString) else { return print("skipped: no cgroups") }
        defer { cgroups.removeAll() }
        let other = cgroups.place + "/torpor-test-" + UUID().uuidString
        let base = other + "/" + (cgroups.base.split(separator: "/").last.map(String.init) ?? "")
        defer { try? Cgroup.removeTree(other) }
        for path in [other, base, base + "/web"] { try Cgroup.create(path) }
        let app = try TestApp("say('here')\ntime.sleep(1000)", cgroup: base + "/web")
        #expect(try app.line() == "here")
        let own = try cgroups.create("web").path
        #expect(cgroups.entries().contains("web") && !cgroups.entries().contains("db"))
        #expect(cgroups.path(of: "web", around: app.pid) == base + "/web")
        #expect(cgroups.path(of: "web", around: app.pid, known: ["db", "cgroup.procs"]) == base + "/web")
        #expect(cgroups.path(of: "web", around: app.pid, known: cgroups.entries()) == own)
        #expect(try app.kill() == .gone)
    }
}
