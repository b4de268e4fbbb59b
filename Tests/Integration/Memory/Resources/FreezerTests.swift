// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

@Suite("Suspended by the freezer") struct FreezerTests {
    private static let program = """
        import os, signal, tp
        def bye():
            tp.record("handled")
            os._exit(0)
        tp.on("SIGTERM", bye)
        tp.on("SIGCONT")
        child = tp.fork(tp.wait)
        lame = tp.fork(lambda: (os.kill(os.getpid(), signal.SIGSTOP), tp.wait()))
        tp.record("up %d" % lame)
        tp.wait()
        """
    private static let toml = """
        [apps.a]
        \(Scripts.python)"@D/app.py"]
        suspend_with = "freezer"
        """

    /// Runs a scenario with an app that is suspended, where there is a freezer.
    private func frozen(_ body: (Daemon, String) throws -> Void) throws {
        try withDaemon(Self.toml, files: ["app.py": Self.program]) { daemon throws in
            try daemon.waitFor("a", "active")
            guard let cgroup = try daemon.status("a").cgroup else { return print("skipped: no cgroups here") }
            try daemon.eventually("its child has stopped itself") {
                guard let lame = daemon.records("a").first.flatMap({ Int32($0.dropFirst(3)) }) else { return false }
                return Truth.isStopped(lame)
            }
            try daemon.done(.suspend, "a")
            #expect(try Cgroup.events(cgroup).frozen)
            try body(daemon, cgroup)
        }
    }

    private func lame(_ daemon: Daemon) throws -> Int32 {
        try #require(daemon.records("a").first.flatMap { Int32($0.dropFirst(3)) })
    }

    @Test("it is not told, goes on by the thaw alone, and what had stopped itself stays so")
    func resume() throws {
        try frozen { daemon, cgroup throws in
            try daemon.done(.resume, "a")
            #expect(try !Cgroup.events(cgroup).frozen && !Cgroup.isFreezeWanted(cgroup))
            try daemon.done(.foreground, "a")
            #expect(!daemon.records("a").contains("SIGCONT"))
            #expect(Truth.isStopped(try lame(daemon)))
        }
    }

    @Test("a person's stop lets its handler run")
    func stop() throws {
        try frozen { daemon, _ throws in
            try daemon.done(.stop, "a")
            #expect(daemon.records("a").contains("handled"))
            let exit = try #require(try daemon.summary("a").lastExit)
            #expect(exit.reason == "stopped" && exit.code == 0)
        }
    }

    @Test("a force quit ends it frozen, and the next launch is not frozen")
    func kill() throws {
        try frozen { daemon, cgroup throws in
            try daemon.done(.kill, "a")
            #expect(daemon.processes(of: "a").isEmpty)
            try daemon.done(.start, "a")
            try daemon.waitFor("a", "active")
            #expect(try !Cgroup.events(cgroup).frozen)
            #expect(try daemon.summary("a").incarnation == 2)
        }
    }

    @Test("the next torpord finds it frozen, and thaws it")
    func recovered() throws {
        try frozen { daemon, cgroup throws in
            try daemon.replaceTorpord()
            #expect(try daemon.summary("a").state == "suspended")
            #expect(try Cgroup.events(cgroup).frozen)
            try daemon.done(.foreground, "a")
            #expect(try !Cgroup.events(cgroup).frozen)
            #expect(Truth.isStopped(try lame(daemon)))
        }
    }

    @Test("one that somebody thaws is frozen again")
    func thawed() throws {
        try frozen { daemon, cgroup throws in
            try Cgroup.freeze(cgroup, false)
            try daemon.eventually("it is frozen again") {
                _ = try daemon.list()
                return try Cgroup.events(cgroup).frozen
            }
            #expect(try daemon.summary("a").state == "suspended")
        }
    }

    @Test("cgroups that it makes itself are part of it: frozen, thawed as they were, ended and removed")
    func nested() throws {
        try frozen { daemon, cgroup throws in
            try daemon.done(.foreground, "a")
            let inner = [cgroup + "/x", cgroup + "/x/y", cgroup + "/own"]
            for path in inner { try Cgroup.create(path) }
            let pids = daemon.processes(of: "a")
            let main = try #require(try daemon.summary("a").pid)
            let others = pids.filter { $0 != main }
            try Cgroup.add(inner[1], pid: others[0])
            try Cgroup.add(inner[2], pid: others[1])
            try Cgroup.freeze(inner[2], true)
            try daemon.eventually("its own is frozen") { try Cgroup.events(inner[2]).frozen }
            #expect(Set(try daemon.status("a").processes.map(\.pid)) == Set(pids))
            try daemon.done(.suspend, "a")
            #expect(try Cgroup.events(inner[1]).frozen)
            try daemon.done(.resume, "a")
            #expect(try !Cgroup.events(inner[1]).frozen)
            #expect(try Cgroup.events(inner[2]).frozen, "that is its own affair")
            try daemon.done(.suspend, "a")
            try daemon.done(.kill, "a")
            #expect(daemon.processes(of: "a").isEmpty)
            #expect(!File.exists(cgroup))
        }
    }

    @Test("A torpord that leaves its apps leaves none frozen, since nothing could end it: it is stopped by a signal")
    func left() throws {
        let toml = "on_exit = \"leave\"\n" + Self.toml
        let daemon = try Daemon(toml, files: ["app.py": Self.program], nested: true)
        try daemon.waitUntilItAnswers()
        try daemon.waitFor("a", "active")
        if let cgroup = try daemon.status("a").cgroup {
            try daemon.eventually("it is up") { !daemon.records("a").isEmpty }
            let pid = try #require(try daemon.summary("a").pid)
            try daemon.done(.suspend, "a")
            #expect(try Cgroup.events(cgroup).frozen)
            let count = daemon.records("a").count
            try Signal.send(SIGTERM, to: daemon.livingKeeper())
            try daemon.eventually("keeper and torpord are gone") {
                let look = Census(folder: daemon.directory).look()
                return look.keepers.isEmpty && look.torpords.isEmpty
            }
            try daemon.eventually("it is stopped, and not frozen") {
                Truth.isStopped(pid) && !Cgroup.isFreezeWanted(cgroup)
            }
            #expect(daemon.records("a").count == count)
            // The next torpord finds it asleep, and wakes it.
            try daemon.startAgain()
            try daemon.waitUntilItAnswers()
            #expect(try daemon.summary("a").state == "suspended" && Truth.isStopped(pid))
            try daemon.done(.resume, "a")
            #expect(!Truth.isStopped(pid))
            #expect(try !daemon.events("a").contains { $0.text.contains("was resumed by another process") })
        } else {
            print("skipped: no cgroups here")
        }
        try daemon.configure(Self.toml)
        try daemon.apply()
        try daemon.endEverything()
    }
}
