// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import PolicyLibraries
import TestAddresses
import Testing
import TorporAPI
import Varlink

@Suite("The policies that ship, in the daemon") struct ShippedPoliciesTests {
    /// A configuration that uses one of them, from a folder that nobody else can write to.
    private func toml(_ name: String, _ lines: String, apps: String) throws -> String {
        let folder = try Libraries.makeFolder("shipped")
        let library = "lib\(name.capitalized)Policy.so"
        try copyProgram(Built.path(library), to: folder + "/" + library)
        return Governed.toml([(name, "path = \"\(folder)/\(library)\"\ndeadline = \"5s\"\n" + lines)], apps: apps)
    }

    private static let apps =
        Governed.sleeper("a", "background_time = \"100ms\"")
        + Governed.sleeper("b", "background_time = \"100ms\"\nlaunch = \"on-demand\"")

    @Test(
        "Mobile keeps one app in front and suspends the other, in a process of its own and in torpord's",
        arguments: ["process", "none"]
    )
    func mobile(_ isolation: String) throws {
        try withDaemon(toml("mobile", "isolation = \"\(isolation)\"", apps: Self.apps)) { daemon throws in
            try daemon.waitForPolicy("mobile", "is there") { $0.state == "ready" }
            try daemon.waitFor("a", "active")
            try daemon.done(.start, "b")
            try daemon.waitFor("a", "suspended")
            let a = try #require(daemon.processes(of: "a").first)
            #expect(try ProcFS.stat(a).state == "T")
            let told = try daemon.policyEvents("a")
            #expect(
                told == [
                    "is sent to background: 1 app may be in the foreground, and b came after it (mobile)",
                    "is sent to suspended: its time in the background is used up (mobile)",
                ]
            )
            try daemon.done(.foreground, "a")
            try daemon.waitFor("b", "suspended")
            #expect(try daemon.summary("a").state == "active")
            let policy = try daemon.policy("mobile")
            #expect(policy.refused == 0 && policy.failures == 0 && policy.taken == 4)
        }
    }

    @Test("Server brings back what it protects from now on, and torpord what it had sent away when it is not used")
    func broughtBack() throws {
        func server(_ protect: String) throws -> String {
            try toml("server", "options = { idle_after = \"1s\", suspend = true\(protect) }", apps: Self.apps)
        }
        try withDaemon(server("")) { daemon throws in
            try daemon.waitFor("a", "suspended")
            // The policy suspends b too, but did not send it from the foreground.
            try daemon.done(.start, "b") { $0.background = true }
            try daemon.waitFor("b", "suspended")
            try daemon.apply(server(", protect = [\"a\", \"b\"]"))
            try daemon.waitFor("a", "active")
            try daemon.waitForEvent("a", "it is protected now, and had been sent away")
            try daemon.apply(server(""))
            try daemon.waitFor("a", "suspended")
            // Its next run is where the policy sent it, too.
            try daemon.done(.restart, "a")
            try daemon.waitFor("a", "suspended")
            try daemon.apply(Self.apps)
            try daemon.waitFor("a", "active")
            try daemon.waitForEvent("a", "which had sent it to the background, is not used any longer")
            #expect(try daemon.summary("b").state == "suspended")
        }
    }

    @Test("Server brings back what it has put to sleep when nothing wakes it any longer")
    func stranded() throws {
        func server(_ timer: String) throws -> String {
            let app = Governed.sleeper("a", "background_time = \"50ms\"\n" + timer)
            return try toml("server", "options = { idle_after = \"1s\" }", apps: app)
        }
        try withDaemon(server("timers = [{ name = \"nightly\", every = \"1h\" }]")) { daemon throws in
            try daemon.waitFor("a", "suspended")
            try daemon.apply(server(""))
            // Unused as it is, it goes to the background again, where it stays.
            try daemon.waitForEvent("a", "no event wakes it any longer")
        }
    }

    @Test("What a user suspends after a policy has sent it away stays suspended without the policy")
    func suspendedByUser() throws {
        let text = try toml("server", "options = { idle_after = \"1s\", suspend = false }", apps: Self.apps)
        try withDaemon(text) { daemon throws in
            try daemon.waitFor("a", "background")
            try daemon.done(.suspend, "a")
            try daemon.done(.start, "b")
            try daemon.waitFor("b", "background")
            try daemon.apply(Self.apps)
            try daemon.waitFor("b", "active")
            #expect(try daemon.summary("a").state == "suspended")
        }
    }

    @Test("What an app requires sleeps once that app does", arguments: ["mobile", "server"])
    func required(_ policy: String) throws {
        let apps =
            Governed.sleeper("front", "background_time = \"300ms\"\nrequires = [\"db\"]\nlaunch = \"background\"")
            + Governed.sleeper("db", "background_time = \"100ms\"\nlaunch = \"background\"")
        try withDaemon(toml(policy, "options = { suspend = true }", apps: apps)) { daemon throws in
            for app in ["front", "db"] { try daemon.waitFor(app, "suspended") }
            let told = try daemon.policyEvents("db") + daemon.policyEvents("front")
            #expect(told.count == 2, "neither was sent anywhere in vain: \(told)")
            try daemon.done(.background, "front")
            try daemon.eventually("front has slept again") {
                try daemon.walk("front").filter { $0 == "suspended" }.count == 2
            }
            try daemon.waitFor("db", "suspended")
        }
    }

    @Test("What a removed app required sleeps once that app is gone", arguments: ["mobile", "server"])
    func requiredByRemoved(_ policy: String) throws {
        let front = Governed.sleeper(
            "front",
            "background_time = \"none\"\nrequires = [\"db\"]\nlaunch = \"background\""
        )
        let others =
            Governed.sleeper("db", "background_time = \"100ms\"\nlaunch = \"background\"")
            + Governed.sleeper("later", "background_time = \"100ms\"\nlaunch = \"on-demand\"")
        let text = try toml(policy, "options = { suspend = true }", apps: others + front)
        try withDaemon(text) { daemon throws in
            for app in ["front", "db"] { try daemon.waitFor(app, "background") }
            // Its time in the background ends after that of db.
            try daemon.done(.start, "later") { $0.background = true }
            try daemon.waitFor("later", "suspended")
            #expect(try daemon.summary("db").state == "background")
            try daemon.apply(text.replacingOccurrences(of: front, with: ""))
            try daemon.waitFor("db", "suspended")
        }
    }

    @Test("Mobile suspends what was overdue before its advice was taken")
    func overdue() throws {
        try withDaemon(toml("mobile", "mode = \"advise\"", apps: Self.apps)) { daemon throws in
            try daemon.waitForPolicy("mobile", "is there") { $0.state == "ready" }
            try daemon.waitFor("a", "active")
            try daemon.done(.background, "a")
            try daemon.waitForEvent("a", "would say that a is sent to suspended")
            #expect(try daemon.summary("a").state == "background")
            try daemon.apply(toml("mobile", "", apps: Self.apps))
            try daemon.waitFor("a", "suspended")
        }
    }

    @Test("Server sees a web server in use by connections that are all shorter than the time between two looks")
    func shortConnections() throws {
        let port = try TestAddress.port()
        let folder = try Libraries.makeFolder("served")
        let web = """
            [apps.web]
            exec = ["/usr/bin/python3", "-m", "http.server", "--bind", "127.0.0.1", "--directory", "\(folder)", "\(port)"]
            ready = { tcp = "127.0.0.1:\(port)" }
            background_time = "500ms"
            wake_on_connect = "foreground"
            log = "null"

            """ + Governed.sleeper("idle", "background_time = \"500ms\"")
        let rules = "options = { idle_after = \"2s\", idle_cpu = \"50%\", suspend = true }"
        try withDaemon(toml("server", rules, apps: web)) { daemon throws in
            try daemon.waitForPolicy("server", "is there") { $0.state == "ready" }
            for app in ["web", "idle"] { try daemon.waitFor(app, "active") }
            // What is not used goes to sleep while web, by the same rules, stays.
            var (rounds, stalls) = (0, 0)
            while rounds < 3, stalls < 10 {
                try daemon.done(.foreground, "idle")
                let before = try daemon.policyEvents("web")
                var last = Clock.monotonic()
                var longest = Duration.zero
                try daemon.eventually("idle is suspended") {
                    try request(port)
                    usleep(50_000)
                    longest = max(longest, Clock.monotonic() - last)
                    last = Clock.monotonic()
                    return try daemon.summary("idle").state == "suspended"
                }
                // A machine that is so busy leaves web unused for too long.
                guard longest < .seconds(1) else {
                    stalls += 1
                    continue
                }
                rounds += 1
                #expect(try daemon.policyEvents("web") == before)
                #expect(try daemon.summary("web").state == "active")
            }
            #expect(rounds == 3, "the machine stood still too often")
            try daemon.waitFor("web", "suspended")
            // Who comes now is answered as well, and then it is idle again.
            try request(port)
            try daemon.waitFor("web", "active")
            try daemon.waitFor("web", "suspended")
        }
    }

    @Test("Jetsam knows that an app is used by the connections that launch or wake it in the background")
    func usedByConnections() throws {
        let port = try TestAddress.port()
        let lines = "launch = \"on-demand\"\nsockets = [{ stream = \"127.0.0.1:\(port)\" }]"
        let apps = Governed.sleeper("visited", lines) + Governed.sleeper("other", "launch = \"background\"")
        try withDaemon(toml("jetsam", "", apps: apps)) { daemon throws in
            try daemon.waitForPolicy("jetsam", "is there") { $0.state == "ready" }
            try daemon.waitFor("other", "background")
            let client = try Sockets.connectTCP(address: "127.0.0.1", port: port)
            try daemon.waitForEvent("visited", "woken by a connection")
            try daemon.waitFor("visited", "background")
            let order = try (daemon.call(.evictionOrder)["apps"]?.arrayValue ?? []).map {
                try EvictionCandidate(json: $0)
            }
            #expect(order.map(\.app) == ["other", "visited"])
            #expect(order.last?.reason.contains("last used") == true, "\(order)")
            client.close()
        }
    }

    @Test("Server suspends what nobody uses, however short its time in the background is", arguments: ["0s", "200ms"])
    func briefBackground(_ time: String) throws {
        let apps = Governed.sleeper("a", "background_time = \"\(time)\"")
        let rules = "options = { idle_after = \"1s\", suspend = true }"
        try withDaemon(toml("server", rules, apps: apps)) { daemon throws in
            try daemon.waitFor("a", "suspended")
            let told = try daemon.policyEvents("a")
            #expect(!told.contains { $0.contains("in use") }, "\(told)")
            #expect(told.count { $0.hasPrefix("is sent to background") } == 1, "\(told)")
        }
    }

    @Test("Server leaves an app running that no event can wake, and says so; what it requires and timers wake sleeps")
    func neverWoken() throws {
        let lines = "background_time = \"100ms\""
        let apps =
            Governed.sleeper("worker", lines) + Governed.sleeper("db", lines + "\nlaunch = \"on-demand\"")
            + Governed.sleeper(
                "front",
                lines
                    + "\nlaunch = \"on-demand\"\nrequires = [\"db\"]\n[[apps.front.timers]]\nname = \"t\"\nevery = \"1h\""
            )
        try withDaemon(toml("server", "options = { idle_after = \"1s\" }", apps: apps)) { daemon throws in
            try daemon.waitForEvent("worker", "is sent to background")
            // The time of worker in the background is over long before front has been idle for a second.
            try daemon.done(.start, "front")
            try daemon.waitFor("front", "suspended")
            try daemon.waitFor("db", "suspended")
            #expect(try daemon.summary("worker").state == "background")
            let status = try daemon.status("worker")
            #expect(try !Truth.states(#require(status.summary.pid)).contains("T"))
            #expect(status.wokenBy == [])
            #expect(status.notWokenBy == ["any event (so the policy server leaves it running)"])
        }
    }

    @Test("Server leaves a required app running that listens, unless connections wake it: it may have other clients")
    func requiredListener() throws {
        let lines = "background_time = \"100ms\"\nlaunch = \"on-demand\"\n"
        func listener(_ name: String, _ rest: String = "") -> String {
            """
            [apps.\(name)]
            exec = ["/usr/bin/python3", "-S", "@D/listen.py"]
            ready = "notify"
            \(lines)\(rest)

            """
        }
        let apps =
            listener("db") + listener("cache", "wake_on_connect = true") + Governed.sleeper("quiet", lines)
            + Governed.sleeper(
                "front",
                lines
                    + "requires = [\"db\", \"cache\", \"quiet\"]\n[[apps.front.timers]]\nname = \"t\"\nevery = \"1h\""
            ) + Governed.sleeper("late", lines + "[[apps.late.timers]]\nname = \"t\"\nevery = \"1h\"")
        let program = """
            from tp import *
            listener = socket.socket()
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            notify("READY=1")
            wait()
            """
        let text = try toml("server", "options = { idle_after = \"1s\" }", apps: apps)
        try withDaemon(text, files: ["listen.py": program]) { daemon throws in
            try daemon.done(.start, "front")
            for name in ["front", "cache", "quiet"] { try daemon.waitFor(name, "suspended") }
            try daemon.waitFor("db", "background")
            // The time of db in the background is over long before another app has been idle for a second.
            try daemon.done(.start, "late")
            try daemon.waitFor("late", "suspended")
            #expect(try daemon.summary("db").state == "background")
            let status = try daemon.status("db")
            let text = "clients other than the apps that require it (so the policy server leaves it running)"
            #expect(status.notWokenBy.contains(text), "\(status.notWokenBy)")
        }
    }

    @Test("apply changes nothing if a policy refuses its new options, and says which name no app")
    func refusedOptions() throws {
        let good = try toml("server", "options = { idle_after = \"1h\" }", apps: Governed.sleeper("a", ""))
        try withDaemon(good) { daemon throws in
            try daemon.waitForPolicy("server", "is there") { $0.state == "ready" }
            let before = try daemon.policy("server").pid
            func apply(_ options: String) throws -> (code: Int32, output: String) {
                try daemon.configure(good.replacing("idle_after = \"1h\"", with: options))
                return try Spawn.run([Built.path("torpor"), "apply", "--socket", daemon.socket])
            }
            for wrong in ["protet = [\"a\"]", "idle_after = \"5 min\""] {
                let check = try apply(wrong)
                #expect(check.code == 2 && check.output.contains("nothing was changed"), "\(check.output)")
                #expect(check.output.contains("policies.server: "), "\(check.output)")
                let now = try daemon.policy("server")
                #expect(now.state == "ready" && now.pid == before)
                let checked = try Spawn.run([Built.path("torpor"), "check", daemon.directory + "/torpor.toml"])
                #expect(checked.code == 2 && checked.output.contains("policies.server: "), "\(checked.output)")
            }
            let unknown = try apply("protect = [\"b\"]")
            #expect(unknown.code == 0, "\(unknown.output)")
            #expect(
                unknown.output.contains("warning: policies.server: options.protect: there is no app \"b\""),
                "\(unknown.output)"
            )
            #expect(try apply("idle_after = \"1h\"").code == 0)
            #expect(try daemon.summary("a").state == "active")
        }
    }

    /// One request over a connection that the server closes.
    private func request(_ port: UInt16) throws {
        let client = try Sockets.connectTCP(address: "127.0.0.1", port: port)
        try #require(try Descriptor.wait(client.raw, writable: true, timeout: .seconds(60)))
        _ = try Sockets.send(client.raw, Array("GET / HTTP/1.0\r\n\r\n".utf8))
        repeat {
            try #require(try Descriptor.wait(client.raw, timeout: .seconds(60)))
        } while try Descriptor.read(client.raw, maximum: 65_536)?.isEmpty != true
    }
}
