// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

@Suite("Snapshots that last") struct KeptTests {
    @Test(
        "It survives an eviction, torpord and the keeper, and says of which run it is",
        arguments: [Loss.killed, .both]
    )
    func lasts(loss: Loss) throws {
        let toml = Pictured.head + "evict = \"kill\"\n" + Pictured.shell("echo run $TORPOR_INCARNATION")
        try withRecovery(toml, loss: loss) { daemon in
            try daemon.waitFor("web", "active")
            try daemon.done(.suspend, "web")
            try daemon.waitForSnapshot("run 1\n")
            // As the kernel does it, when memory is short.
            kill(try #require(try daemon.summary("web").pid), SIGKILL)
            try daemon.waitFor("web", "not-running")
            #expect(try daemon.snapshotText() == "run 1\n")
            try daemon.lose(loss)
            #expect(try daemon.snapshotText() == "run 1\n")
            try daemon.done(.start, "web") { $0.background = true }
            try daemon.waitForSnapshot("run 2\n")
            #expect(try daemon.status("web").snapshot?.incarnation == 2)
            try daemon.eventually("the one before is gone") { daemon.snapshotFiles() == ["2.text"] }
        }
    }

    @Test(
        "A torpord that dies while one is taken is followed by one that takes it, and then suspends",
        arguments: [Loss.killed, .upgraded]
    )
    func midway(loss: Loss) throws {
        // It looks before it is seen to run.
        let script = "[ -e @D/go ]; there=$?; echo >>@D/times; [ $there = 0 ] && exec echo there; exec sleep 1000"
        try withRecovery(Pictured.head + Pictured.shell(script, deadline: "30s"), loss: loss) { daemon in
            try daemon.waitFor("web", "active")
            let pid = try #require(try daemon.summary("web").pid)
            try daemon.done(.suspend, "web") { $0.wait = false }
            try daemon.eventually("the command runs") { (try? File.readString(daemon.directory + "/times")) == "\n" }
            #expect(!Truth.isStopped(pid))
            try File.write(daemon.directory + "/go", "")
            try daemon.lose(loss)
            try daemon.waitFor("web", "suspended")
            try daemon.waitForSnapshot("there\n")
            #expect(try File.readString(daemon.directory + "/times") == "\n\n")
            try daemon.eventually("one process is left") { daemon.processes(of: "web") == [pid] }
        }
    }

    @Test("What belongs to no app, or to one that declined, is gone when torpord begins")
    func strange() throws {
        let toml = Pictured.head.replacingOccurrences(of: "web", with: "shown") + Pictured.shell("echo shown")
        try withDaemon(toml) { daemon in
            try daemon.waitFor("shown", "active")
            try daemon.done(.suspend, "shown")
            try daemon.waitForSnapshot("shown\n", of: "shown")
            let folder = daemon.directory + "/s/snapshots/gone"
            try File.makeDirectories(folder)
            try File.write(folder + "/1.text", "old")
            try daemon.stop()
            try daemon.startAgain()
            try daemon.eventually("nothing is left of it") { !File.exists(folder + "/1.text") }
            #expect(try daemon.snapshotText("shown") != nil)
        }
    }

    @Test("An app that shows something new all the time is seen now and then, and sleeps all the same")
    func restless() throws {
        let script = Scripts.python + "\"@D/restless.py\"]\nready = \"notify\"\n"
        let source = """
            from tp import *
            notify("READY=1")
            while True:
                notify("X_TORPOR_SNAPSHOT=1")
                time.sleep(0.01)
            """
        let toml = "[apps.web]\n" + script + Pictured.shell("echo >>@D/times; echo seen")
        try withDaemon(toml, files: ["restless.py": source]) { daemon in
            try daemon.waitFor("web", "active")
            try daemon.done(.background, "web")
            try daemon.waitForSnapshot("seen\n")
            try daemon.eventually("three are taken") {
                (try? File.readString(daemon.directory + "/times").count) ?? 0 >= 3
            }
            let events = try daemon.events("web").filter { $0.text.hasPrefix("gave a snapshot") }
            let apart = zip(events, events.dropFirst()).map { $1.at - $0.at }
            // Each begins a second after the one before; what it takes is not the same each time.
            #expect(apart.allSatisfy { $0 > 500_000 }, "\(apart)")
            try daemon.done(.suspend, "web")
        }
    }

    @Test("Where two are found the newer one counts; what is none is none")
    func files() throws {
        try withDaemon(Pictured.head) { daemon in
            let folder = daemon.directory + "/s/snapshots/web"
            try File.makeDirectories(folder)
            try File.makeDirectory(folder + "/9.text")
            try File.write(folder + "/1.text", "old")
            for name in [".new-1", "x.text", "2.svg", "2.png.text"] { try File.write(folder + "/" + name, "x") }
            #expect(try daemon.snapshotText() == "old")
            usleep(20_000)
            try File.write(folder + "/3.png", "newer")
            let found = try #require(try daemon.snapshot())
            #expect(found.info.kind == .png && found.info.incarnation == 3 && found.data == Array("newer".utf8))
            #expect(try daemon.call(.snapshot(app: "web", offset: 100))["data"]?.stringValue == "")
            #expect(throws: (any Error).self) { try daemon.call(.snapshot(app: "nobody", offset: 0)) }
            #expect(throws: (any Error).self) { try daemon.call(.snapshot(app: "web", offset: -1)) }
        }
    }
}
