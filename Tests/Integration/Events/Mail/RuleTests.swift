// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import MockLogind
import Testing
import TorporAPI
import Varlink

@Suite("When events wake an app, and when not")
struct RuleTests {
    @Test("an app that is woken too often is held back, told of, and woken when the time is over")
    func storm() throws {
        let toml = Posting.head + "wake_storm = { limit = 2, window = \"1min\", hold = \"1s\" }\n"
        try withDaemon(toml, files: Delegates.files()) { daemon in
            for number in 1...2 as ClosedRange<Int64> {
                #expect(try daemon.post("news", .int(number)) { $0.urgent = true }.outcome == "woken")
                try daemon.eventually("it is told") { try daemon.told().count == Int(number) }
                try daemon.done(.suspend, "web")
            }
            let held = try daemon.post("news", .int(3)) { $0.urgent = true }
            #expect(held.outcome == "held-back" && held.message == "was woken too often")
            #expect(try daemon.waitForEvent("web", "wake_storm, 0xbad22222").text.contains("woken 2 times"))
            #expect(try daemon.summary("web").state == "suspended")
            // Nobody posts anything more.
            try daemon.eventually("it is told when the hold is over") { try daemon.told().count == 3 }
            try daemon.done(.suspend, "web")
        }
    }

    @Test("a person who starts it ends the hold, and an app may be ended by its storm")
    func stormEnds() throws {
        let toml =
            Posting.head + "wake_storm = { limit = 1, window = \"1h\", hold = \"1h\", action = \"end\" }\n"
        try withDaemon(toml, files: Delegates.files()) { daemon in
            try daemon.post("news", .int(1)) { $0.urgent = true }
            try daemon.eventually("it is told") { try daemon.told().count == 1 }
            try daemon.done(.suspend, "web")
            #expect(try daemon.post("news", .int(2)) { $0.urgent = true }.outcome == "held-back")
            try daemon.waitFor("web", "not-running")
            #expect(try daemon.summary("web").lastExit?.reason == "wake-storm")
            try daemon.done(.start, "web", { $0.background = true })
            try daemon.eventually("it is told") { try daemon.told().count == 2 }
            try daemon.done(.suspend, "web")
            #expect(try daemon.post("news", .int(3)) { $0.urgent = true }.outcome == "woken")
            try daemon.eventually("it is told") { try daemon.told().count == 3 }
        }
    }

    @Test("after a force quit nothing wakes it but the modes that it names")
    func forceQuit() throws {
        let toml =
            Posting.head
            + "background_modes = [\"remote-notification\"]\nwake_after_force_quit = [\"remote-notification\"]\n"
        try withDaemon(toml, files: Delegates.files()) { daemon in
            try daemon.done(.start, "web")
            try daemon.done(.kill, "web")
            let refused = try daemon.post("news", .int(1)) { $0.urgent = true }
            #expect(refused.outcome == "held-back" && refused.message?.contains("until a user starts it") ?? false)
            #expect(try daemon.summary("web").state == "not-running")
            let remote = try daemon.post("news", .int(2)) {
                $0.urgent = true
                $0.remote = true
                $0.sender = "gateway"
            }
            #expect(remote.outcome == "woken")
            let heard = try daemon.waitForMessage("didReceiveRemoteNotification")
            #expect(heard.parameters["sender"]?.stringValue == "gateway" && heard.parameters["payload"] == .int(2))
            // What waited is told with it, in its order.
            #expect(try daemon.told(incarnation: 2) == [.int(1)])
        }
    }

    @Test("without the mode what comes from outside wakes nothing, and waits")
    func remote() throws {
        try withDaemon(Posting.head, files: Delegates.files()) { daemon in
            let result = try daemon.post("news") {
                $0.urgent = true
                $0.remote = true
            }
            #expect(result.outcome == "waits")
            #expect(try daemon.summary("web").state == "not-running")
        }
    }

    @Test(
        "before the first unlock only those are woken that may be, and after it the others are",
        .enabled(if: MockLogind.obstacle == nil, "python3-dbusmock and dbus are needed: make deps")
    )
    func firstUnlock() throws {
        let mock = try MockLogind { body in try Spawn.lock.withLock { try body() } }
        try mock.startLogind(delay: .seconds(5))
        try mock.run("add_session('c1', 1000)\nhint('c1', True)")
        func app(_ name: String, _ keys: String) -> String {
            Posting.head.replacingOccurrences(of: "apps.web", with: "apps.\(name)") + keys + "\n\n"
        }
        let toml =
            "session = \"c1\"\n\n" + app("never", "before_first_unlock = \"none\"")
            + app("asks", "before_first_unlock = \"unprotected\"\nnotifications = [\"protected-data\"]")
            + app("other", "before_first_unlock = \"unprotected\"") + app("all", "")
        let daemon = try Daemon(
            toml,
            files: Delegates.files(),
            environment: ["DBUS_SYSTEM_BUS_ADDRESS": mock.address],
            nested: true
        )
        try daemon.waitUntilItAnswers()
        try daemon.eventually("the lock is known") { try daemon.events().contains { $0.text.contains("is locked") } }
        func post(_ name: String) throws -> String { try daemon.post("news", to: name) { $0.urgent = true }.outcome }
        #expect(try post("never") == "held-back" && post("asks") == "held-back")
        #expect(try post("other") == "woken" && post("all") == "woken")
        try daemon.lose(.killed)
        try daemon.eventually("it is still held back") { try post("never") == "held-back" }
        try mock.run("hint('c1', False)")
        for name in ["never", "asks"] { try daemon.waitForMessage("didReceiveEvent", app: name) }
        // The next lock is none before the first unlock.
        try daemon.done(.suspend, "never")
        try mock.run("hint('c1', True)")
        try daemon.eventually("the lock is known") {
            try daemon.events().count { $0.text.contains("is locked") } >= 2
        }
        #expect(try post("never") == "woken")
        try daemon.endEverything()
    }
}
