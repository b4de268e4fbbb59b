// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

@Suite("Apps that hold file locks") struct LockTests {
    @Test("An app with a lock that others wait for is suspended when it has let go", arguments: Locking.Sort.allCases)
    func deferred(sort: Locking.Sort) throws {
        let files = ["holder.py": Locking.app(sort.take), "file": ""]
        try withDaemon(Locking.toml(), files: files) { daemon throws in
            try daemon.waitForRecord("holder", "locked")
            let waiter = try daemon.startWaiter(sort.wait)
            try daemon.wantSuspended()
            let event = try daemon.waitForEvent("holder", "cannot stay suspended")
            let holder = try #require(daemon.processes(of: "holder").first)
            let kind = sort == .lease ? "lease" : "lock"
            #expect(event.text.contains("process \(holder) (python3) holds a \(kind) on \(daemon.directory)/file"))
            #expect(event.text.contains("for which process \(waiter) (python3) waits"))
            try daemon.waitFor("holder", "background")
            #expect(!daemon.isStopped("holder"))
            #expect(!daemon.waiterGotIt)
            // It is tried again without anybody's asking, and not told each time.
            try daemon.eventually("it was tried again") {
                try daemon.events("holder").filter { $0.to == "suspending" }.count >= 2
            }
            #expect(try daemon.events("holder").filter { $0.text.contains("cannot stay suspended") }.count == 1)
            try daemon.release()
            try daemon.waitFor("holder", "suspended")
            #expect(daemon.isStopped("holder"))
            #expect(daemon.records("holder").contains("released"))
            try daemon.eventually("the waiter has it") { daemon.waiterGotIt }
            daemon.endWaiter(waiter)
        }
    }

    @Test(
        "An app that keeps its lock for task_time, or for a moment with on_lock = terminate, is ended, and told why",
        arguments: [#"task_time = "1500ms""#, #"on_lock = "terminate""#]
    )
    func ended(rule: String) throws {
        let sort = Locking.Sort.flock
        let files = ["holder.py": Locking.app(sort.take), "file": ""]
        try withDaemon(Locking.toml(rule), files: files) { daemon throws in
            try daemon.waitForRecord("holder", "locked")
            let holder = try #require(daemon.processes(of: "holder").first)
            let waiter = try daemon.startWaiter(sort.wait)
            try daemon.wantSuspended()
            try daemon.waitFor("holder", "not-running")
            let report = try #require(try daemon.reports("holder").first)
            #expect(report.reason == "lock-while-suspending")
            #expect(report.code == 0xdead_10cc)
            let path = daemon.directory + "/file"
            #expect(report.locks == [LockInfo(file: path, kind: "flock", holder: holder, waiter: waiter)])
            #expect(report.text?.contains("holds a lock on \(path) (flock)") ?? false)
            #expect(report.text?.contains("process \(waiter)") ?? false)
            let tries = try daemon.events("holder").filter { $0.to == "suspending" }.count
            #expect(rule.contains("terminate") ? tries == 1 : tries >= 2)
            let page = try Spawn.run([Built.path("torpor"), "--socket", daemon.socket, "report", "holder"]).output
            #expect(page.contains("\(path) (flock, held by process \(holder), process \(waiter) waited for it)"))
            try daemon.eventually("the waiter has it") { daemon.waiterGotIt }
            daemon.endWaiter(waiter)
        }
    }

    @Test("With on_lock = ignore nobody looks")
    func ignored() throws {
        let sort = Locking.Sort.posix
        let files = ["holder.py": Locking.app(sort.take), "file": ""]
        try withDaemon(Locking.toml(#"on_lock = "ignore""#), files: files) { daemon throws in
            try daemon.waitForRecord("holder", "locked")
            let waiter = try daemon.startWaiter(sort.wait)
            try daemon.done(.suspend, "holder")
            #expect(daemon.isStopped("holder"))
            daemon.endWaiter(waiter)
        }
    }

    @Test("Who waits for the lock of a suspended app is found, also by another torpord", arguments: [false, true])
    func later(afterDeath: Bool) throws {
        let sort = Locking.Sort.flock
        let files = ["holder.py": Locking.app(sort.take), "file": ""]
        try withDaemon(Locking.toml(), files: files) { daemon throws in
            try daemon.waitForRecord("holder", "locked")
            try daemon.done(.suspend, "holder")
            #expect(daemon.isStopped("holder"), "nobody waits")
            if afterDeath {
                kill(try daemon.torpord(), SIGKILL)
                try daemon.waitUntilItAnswers()
                #expect(daemon.isStopped("holder"))
            }
            let waiter = try daemon.startWaiter(sort.wait)
            // It may have to wait for the next look, ten seconds after the last.
            try daemon.eventually("it is found") {
                try daemon.events("holder").contains { $0.text.contains("cannot stay suspended") }
            }
            try daemon.release()
            try daemon.eventually("the waiter has it") { daemon.waiterGotIt }
            try daemon.waitFor("holder", "suspended")
            daemon.endWaiter(waiter)
        }
    }

    @Test("A lock that only other processes of the app wait for does not keep it from being suspended")
    func inside() throws {
        let take = """
            f = open(path, 'r+'); fcntl.flock(f, fcntl.LOCK_EX)
            def wait():
                g = open(path, 'r+')
                tp.record("waits")
                fcntl.flock(g, fcntl.LOCK_EX)
            tp.fork(wait)
            """
        try withDaemon(Locking.toml(), files: ["holder.py": Locking.app(take), "file": ""]) { daemon throws in
            try daemon.waitForRecord("holder", "locked")
            try daemon.waitForRecord("holder", "waits")
            try daemon.done(.suspend, "holder")
            #expect(daemon.isStopped("holder"))
            #expect(try !daemon.events("holder").contains { $0.text.contains("cannot stay suspended") })
        }
    }

    @Test("A lock that a shell took by a command that has ended is the shell's")
    func shell() throws {
        let script = """
            exec 9<>"$1"
            flock 9
            echo locked > "$1.locked"
            while ! test -e "$2/release"; do sleep 0.02; done
            exec 9>&-
            exec sleep 1000
            """
        let toml = """
            [apps.holder]
            exec = ["/bin/sh", "@D/holder.sh", "@D/file", "@D"]
            """
        try withDaemon(toml, files: ["holder.sh": script, "file": ""]) { daemon throws in
            try daemon.eventually("it is locked") { File.exists(daemon.directory + "/file.locked") }
            let waiter = try daemon.startWaiter(Locking.Sort.flock.wait)
            try daemon.wantSuspended()
            try daemon.waitForEvent("holder", "cannot stay suspended")
            try daemon.release()
            try daemon.waitFor("holder", "suspended")
            daemon.endWaiter(waiter)
        }
    }
}
