// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import MockLogind
import Testing
import TorporAPI

/// Locks that do not go as they should: runs of torpor-protect that fail, sleeps that do not wait, apps that are on
/// their way, and processes that hide what they have open.
@Suite("Locks of protected data that fail", .enabled(if: Users.isRoot, "only root sees who holds files of others"))
struct FailingLocksTests {
    /// A torpor-protect whose step fails while a file of that name is there, says what `says-STEP` has, or once leaves
    /// out web and fails because of `omits-STEP`; `close` without its end while `cut` is there.
    static let program = """
        #!/bin/sh
        [ -e "@D/fails-$1" ] && { echo >>"@D/failed"; exit 1; }
        [ -e "@D/says-$1" ] && { cat "@D/says-$1"; exit 0; }
        if [ -e "@D/omits-$1" ]; then
            rm "@D/omits-$1"
            \(Built.path("torpor-protect")) "$@" | grep -v '"app":"web"'
            exit 1
        fi
        [ -e "@D/cut" ] && { \(Built.path("torpor-protect")) "$@" | grep -v '"end"'; exit 0; }
        exec \(Built.path("torpor-protect")) "$@"
        """

    private static let other = """
        [apps.other]
        exec = ["/bin/sleep", "1000"]
        launch = "on-demand"
        \(ProtectionTests.keys)
        """

    static func with(
        _ answers: String = ProtectionTests.closing,
        keys: String = "",
        _ body: (Daemon) throws -> Void
    ) throws {
        let daemon = try Daemon(
            Delegates.head + ProtectionTests.keys + keys,
            files: Delegates.files(answers).merging(["protect": program]) { $1 },
            wrapper: ["/bin/sh", "-c", "export TORPOR_PROTECT=@D/protect; exec \"$@\"", "sh"]
        )
        try daemon.waitUntilItAnswers()
        try body(daemon)
        try daemon.stop()
    }

    @Test("A run that fails never counts as a lock: the person is told, and it is tried until the folder is closed")
    func failingClose() throws {
        try Self.with { daemon throws in
            try ProtectionTests.begin(daemon)
            try File.write(daemon.directory + "/fails-close", "")
            #expect(throws: (any Error).self) { try ProtectionTests.lock(daemon) }
            #expect(try ProtectionTests.door(daemon) == 0o711)
            let state = try ProtectionTests.state(daemon)
            #expect(state.state == "locking" && state.message?.contains("could not be locked") == true, "\(state)")
            #expect(try daemon.events().contains { $0.text.contains("could not be locked, which is tried again") })
            try File.remove(daemon.directory + "/fails-close")
            try daemon.eventually("it is locked") { try ProtectionTests.state(daemon).text == "locked, not encrypted" }
            #expect(try ProtectionTests.door(daemon) == 0o700)
        }
    }

    @Test("A search for holders that does not come to its end closes the folder all the same, and says so")
    func cutSearch() throws {
        try Self.with { daemon throws in
            try ProtectionTests.begin(daemon)
            try File.write(daemon.directory + "/cut", "")
            #expect(try ProtectionTests.lock(daemon)?.contains("search for processes") == true)
            #expect(try ProtectionTests.door(daemon) == 0o700)
            try File.remove(daemon.directory + "/cut")
        }
    }

    @Test("A folder that could not be opened for a launch keeps the app waiting; it does not fail for good")
    func failingOpen() throws {
        try Self.with { daemon throws in
            try ProtectionTests.unlock(daemon)
            try File.write(daemon.directory + "/fails-open", "")
            // Its folder was opened by the unlock: the next run of the app opens it again.
            try ProtectionTests.lock(daemon)
            #expect(throws: (any Error).self) { try ProtectionTests.unlock(daemon) }
            let client = try Client(daemon, "start", "web")
            try daemon.eventually("it waits") { try daemon.summary("web").heldBack?.contains("locked") ?? false }
            #expect(try daemon.summary("web").lastExit == nil)
            try File.remove(daemon.directory + "/fails-open")
            try ProtectionTests.unlock(daemon)
            #expect(try client.finish(daemon) == 0)
        }
    }

    @Test("A folder that could not be opened for a launch is tried again and again, without another unlock")
    func retriedOpen() throws {
        try Self.with { daemon throws in
            try ProtectionTests.unlock(daemon)
            try File.write(daemon.directory + "/fails-open", "")
            // The unlock knew no folder of this app.
            try daemon.apply(Delegates.head + ProtectionTests.keys + Self.other)
            let client = try Client(daemon, "start", "other")
            try daemon.eventually("it waits") {
                try daemon.summary("other").heldBack?.contains("could not be opened") ?? false
            }
            try daemon.eventually("it is tried again") {
                try File.readString(daemon.directory + "/failed").utf8.count == 2
            }
            #expect(try daemon.summary("other").pid == nil)
            try File.remove(daemon.directory + "/fails-open")
            #expect(try client.finish(daemon) == 0)
        }
    }

    @Test("An app that is launched although data is locked is not while its folder cannot be closed")
    func closesFirst() throws {
        try Self.with { daemon throws in
            try daemon.eventually("it is locked") { try ProtectionTests.state(daemon).state == "locked" }
            try File.write(daemon.directory + "/fails-close", "")
            let other = Self.other + "launch_when_locked = true\n"
            try daemon.apply(Delegates.head + ProtectionTests.keys + other)
            let client = try Client(daemon, "start", "other")
            try daemon.eventually("it waits") {
                try daemon.summary("other").heldBack?.contains("could not be locked") ?? false
            }
            #expect(try daemon.summary("other").pid == nil)
            try File.remove(daemon.directory + "/fails-close")
            #expect(try client.finish(daemon) == 0)
            #expect(try ProtectionTests.state(daemon).state == "locked")
        }
    }

    @Test("A stopped launch goes on when its folder is opened after the unlock, and fails if it never can be")
    func notOpenedByTheUnlock() throws {
        let hook = """
            before_start = [["/bin/sh", "-c", "touch @D/first; while [ ! -e @D/go ]; do sleep 0.05; done"]]
            launch_deadline = "10min"

            """
        for isRefused in [false, true] {
            try Self.with(keys: hook + Self.other) { daemon throws in
                try ProtectionTests.unlock(daemon)
                let client = try Client(daemon, "start", "web")
                try daemon.eventually("it is on its way") { File.exists(daemon.directory + "/first") }
                #expect(try ProtectionTests.lock(daemon) == nil)
                try File.write(daemon.directory + "/go", "")
                try daemon.eventually("it waits") { try daemon.summary("web").heldBack?.contains("locked") ?? false }
                // The other app's folder is opened, so that data counts as unlocked.
                let answer = """
                    {"app":"web","state":"refused","problem":"has no place","busy":false}
                    {"app":"other","state":"open","encrypted":false,"busy":false}
                    {"end":true}

                    """
                try File.write(daemon.directory + (isRefused ? "/says-open" : "/omits-open"), isRefused ? answer : "")
                try ProtectionTests.unlock(daemon)
                if isRefused {
                    #expect(try client.finish(daemon) != 0)
                    #expect(try daemon.summary("web").lastExit?.reason == "launch-failed")
                } else {
                    #expect(try client.finish(daemon) == 0)
                }
                #expect(try daemon.summary("web").heldBack == nil)
            }
        }
    }

    @Test("A lock while the app is on its way stops the launch, which goes on with the unlock and is no failure")
    func onTheWay() throws {
        let hook = """
            before_start = [["/bin/sh", "-c", "touch @D/first; while [ ! -e @D/go ]; do sleep 0.05; done"]]
            launch_deadline = "10min"

            """
        try ProtectionTests.with(keys: ProtectionTests.keys + hook) { daemon throws in
            try ProtectionTests.unlock(daemon)
            let client = try Client(daemon, "start", "web")
            try daemon.eventually("it is on its way") { File.exists(daemon.directory + "/first") }
            #expect(try ProtectionTests.lock(daemon) == nil)
            try File.write(daemon.directory + "/go", "")
            try daemon.eventually("it waits") { try daemon.summary("web").heldBack?.contains("locked") ?? false }
            let summary = try daemon.summary("web")
            #expect(summary.lastExit == nil && summary.pid == nil)
            try ProtectionTests.unlock(daemon)
            #expect(try client.finish(daemon) == 0)
            #expect(try daemon.summary("web").heldBack == nil)
            // One that is stopped meanwhile is over at once.
            try File.remove(daemon.directory + "/go")
            try daemon.done(.stop, "web")
            try File.remove(daemon.directory + "/first")
            let second = try Client(daemon, "start", "web")
            try daemon.eventually("it is on its way") { File.exists(daemon.directory + "/first") }
            try ProtectionTests.lock(daemon)
            try File.write(daemon.directory + "/go", "")
            try daemon.eventually("it waits") { try daemon.summary("web").heldBack?.contains("locked") ?? false }
            try daemon.done(.stop, "web")
            try daemon.waitFor("web", "not-running")
            try second.finish(daemon)
        }
    }

    @Test("A suspended app that must not be evicted is ended all the same if it has a file open")
    func neverEvicted() throws {
        try ProtectionTests.with(keys: ProtectionTests.keys + "evict = \"never\"\n") { daemon throws in
            try ProtectionTests.begin(daemon)
            try daemon.done(.background, "web")
            try daemon.done(.suspend, "web")
            #expect(try ProtectionTests.lock(daemon) == nil)
            #expect(try daemon.summary("web").lastExit?.reason == "protected-data-open")
        }
    }

    @Test("A thread with a table of descriptors of its own hides nothing")
    func threads() throws {
        try ProtectionTests.with { daemon throws in
            try ProtectionTests.begin(daemon)
            let script = """
                import ctypes, sys, threading, time
                def hold():
                    assert ctypes.CDLL(None).unshare(0x400) == 0
                    file = open(sys.argv[1])
                    print("held", flush=True)
                    time.sleep(1000)
                threading.Thread(target=hold).start()
                """
            let log = daemon.directory + "/thread"
            let other = try Spawn.start(
                ["/usr/bin/python3", "-c", script, daemon.directory + "/s/protected/web/files/secret"],
                environment: [:],
                output: log
            )
            defer {
                kill(other, SIGKILL)
                waitpid(other, nil, 0)
            }
            try daemon.eventually("it holds the file") { try File.readString(log).contains("held") }
            #expect(try ProtectionTests.lock(daemon) == "1 file busy: PID \(other) (python3)")
        }
    }

    @Test("An app that has no protected data any more, or is gone, leaves no open folder behind")
    func removed() throws {
        try ProtectionTests.with { daemon throws in
            try daemon.apply(Delegates.head + ProtectionTests.keys + Self.other)
            try ProtectionTests.begin(daemon)
            let door = daemon.directory + "/s/protected/other"
            try daemon.eventually("it has a folder") {
                try ProtectionTests.unlock(daemon)
                return try File.kind(door) != nil && File.status(door).mode == 0o711
            }
            try daemon.apply(Delegates.head + ProtectionTests.keys)
            try daemon.eventually("the folder of the one that is gone is closed") {
                try File.status(door).mode == 0o700
            }
            #expect(try ProtectionTests.door(daemon) == 0o711)
            try daemon.apply(Delegates.head)
            try daemon.done(.restart, "web")
            try daemon.eventually("the other one is closed too") { try ProtectionTests.door(daemon) == 0o700 }
        }
    }

    @Test("Before a sleep apps have no more time than the machine waits; a sleep locks what was unlocked by hand")
    func sleep() throws {
        guard MockLogind.obstacle == nil else { return print("skipped: \(MockLogind.obstacle ?? "")") }
        let mock = try MockLogind { body in try Spawn.lock.withLock { try body() } }
        try mock.startLogind()
        try mock.run("add_session('c1', 1000)")
        let daemon = try Daemon(
            "session = \"c1\"\n[supervisor.protected]\nprotected_deadline = \"50s\"\n" + Delegates.head
                + ProtectionTests.keys,
            files: Delegates.files("protectedDataWillBecomeUnavailable=hold"),
            environment: ["DBUS_SYSTEM_BUS_ADDRESS": mock.address]
        )
        try daemon.waitUntilItAnswers()
        try daemon.eventually("the session unlocks it") { try ProtectionTests.state(daemon).state == "unlocked" }
        try daemon.eventually("it keeps the machine awake") { try mock.inhibitors == 1 }
        try ProtectionTests.begin(daemon)
        let begin = Clock.monotonic()
        try mock.sleep(true)
        try daemon.eventually("it is locked") { try ProtectionTests.state(daemon).text == "locked, not encrypted" }
        #expect(Clock.monotonic() - begin < .seconds(40))
        try daemon.eventually("the machine may sleep") { try mock.inhibitors == 0 }
        try mock.sleep(false)
        try daemon.eventually("its end unlocks") { try ProtectionTests.state(daemon).state == "unlocked" }
        try daemon.waitFor("web", "active")
        try daemon.done(.stop, "web")
        try mock.hint("c1", true)
        try daemon.eventually("the session locks") { try ProtectionTests.state(daemon).state == "locked" }
        try ProtectionTests.unlock(daemon)
        try daemon.eventually("it keeps the machine awake again") { try mock.inhibitors == 1 }
        try mock.sleep(true)
        try daemon.eventually("the sleep locks too") { try ProtectionTests.state(daemon).state == "locked" }
        try mock.sleep(false)
        try daemon.stop()
    }
}
