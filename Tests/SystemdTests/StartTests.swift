// SPDX-License-Identifier: Apache-2.0

import TestMachine
import Testing

extension Booted {
    @Suite("Starting, stopping and reloading the service", .serialized) struct StartTests {
        @Test("Apps are in a scope of their own, the supervisor alone is in the service") func whereAppsAre() throws {
            let machine = try service(app("web") + app("db"))
            let apps = try machine.identities(["web", "db"])
            for (name, identity) in apps {
                let place = try machine.done("grep ^0: /proc/\(identity.pid)/cgroup")
                #expect(place.contains("torpor-apps.scope/"), "\(place)")
                #expect(place.hasSuffix("/\(name)"), "\(place)")
            }
            let keeper = try machine.mainPid("torpord")
            let torpord = try #require(try machine.torpord(below: keeper))
            for pid in [keeper, torpord] {
                let place = try machine.done("grep ^0: /proc/\(pid)/cgroup")
                #expect(place.contains("/torpord.service") && !place.contains("torpor-apps"), "\(place)")
            }
            let status = try machine.run("systemctl status --no-pager --full torpor-apps.scope").output
            #expect(apps.values.allSatisfy { status.contains("\($0.pid)") }, "\(status)")
            #expect(try machine.done("systemctl show -P Delegate torpor-apps.scope") == "yes")
            #expect(try machine.done("systemctl show -P Before torpor-apps.scope").contains("torpord.service"))
        }

        @Test("systemctl start returns once the apps that belong to it were launched") func ready() throws {
            let names = (1...12).map { "app\($0)" }
            let slow = app("slow", nil, "before_start = [[\"/bin/sleep\", \"1\"]]")
            let machine = try service(names.map { app($0) }.joined() + slow, start: false)
            // One command: nothing can be made up for between the two.
            let list = try machine.done("systemctl start torpord && torpor list --json")
            for name in names + ["slow"] { #expect(list.contains("\"\(name)\""), "\(list)") }
            let apps = try machine.apps()
            #expect(apps.allSatisfy { $0.pid != nil }, "\(apps)")
            #expect(try machine.mainPid("torpord") > 0)
        }

        @Test("An app that cannot be launched does not make the start fail") func failingApp() throws {
            let broken = """
                [apps.broken]
                exec = ["/usr/local/bin/app-that-is-not-there"]
                restart = "never"
                [apps.dies]
                exec = ["/bin/false"]
                restart_backoff = { limit = 1 }

                """
            let machine = try service(app("web") + broken)
            #expect(try machine.done("systemctl is-active torpord") == "active")
            try expectNothing(machine, "systemctl --failed --plain --no-legend")
            try machine.waitFor("web", in: "active")
            #expect(try machine.app("broken").state == "not-running")
        }

        @Test("What systemctl status says is kept current") func status() throws {
            let machine = try service(app("web") + app("db"))
            let before = try machine.done("systemctl show -P StatusText torpord")
            #expect(before.contains("2"), "\(before)")
            try machine.done("torpor stop web")
            try machine.eventually("the status has changed from \(before)") {
                let now = try machine.done("systemctl show -P StatusText torpord")
                return !now.isEmpty && now != before
            }
        }

        @Test("systemctl stop ends apps in order, dependents first, and each one's handler runs") func order() throws {
            let apps = app("db", 1) + app("web", 1, "requires = [\"db\"]") + app("front", nil, "requires = [\"web\"]")
            let machine = try service(apps)
            for name in ["db", "web", "front"] { try machine.waitFor(name, in: "active") }
            try machine.eventually("all are up") { try record(machine).count == 3 }
            try machine.done("systemctl stop torpord")
            let written = try record(machine)
            let ends = written.map { "\($0.app) \($0.word)" }.filter { !$0.hasSuffix(" up") }
            #expect(
                ends == ["front SIGTERM", "front end", "web SIGTERM", "web end", "db SIGTERM", "db end"],
                "\(written)"
            )
            #expect(try machine.run("systemctl is-active torpord").text == "inactive")
            try machine.eventually("nothing is left of the scope") {
                try machine.run("systemctl is-active torpor-apps.scope").text == "inactive"
            }
            try expectNothing(machine, "grep -l '[/]usr/local/bin/app' /proc/[0-9]*/cmdline")
        }

        @Test("An app's grace is waited for, however long systemd would have waited") func longGrace() throws {
            let machine = try service(
                app("patient", 8, "grace = \"20s\"") + app("web"),
                dropIn: "[Service]\nTimeoutStopSec=3s\n"
            )
            try machine.eventually("both are up") { try record(machine).count == 2 }
            try machine.done("systemctl stop torpord")
            let written = try record(machine)
            let heard = try #require(written.first { $0.app == "patient" && $0.word == "SIGTERM" })
            let ended = try #require(written.first { $0.app == "patient" && $0.word == "end" }, "it was killed")
            #expect(ended.time - heard.time >= 7.9)
            #expect(try machine.done("systemctl show -P Result torpord") == "success")
        }

        @Test("An app that does not hear SIGTERM is killed after its grace, and the stop succeeds") func deaf() throws {
            let machine = try service(
                "[apps.deaf]\nexec = [\"/bin/sh\", \"-c\", \"trap '' TERM; while :; do sleep 1; done\"]\ngrace = \"1s\"\n"
            )
            let pid = try #require(try machine.app("deaf").pid)
            try machine.done("systemctl stop torpord", within: 20)
            #expect(try machine.letter(pid).isEmpty)
            #expect(try machine.done("systemctl show -P Result torpord") == "success")
        }

        @Test("systemctl reload puts a new configuration in force, and touches only what changed") func reload() throws
        {
            let machine = try service(app("web") + app("db"))
            let before = try machine.identities(["web", "db"])
            try machine.write(
                "/etc/torpor/conf.d/apps.toml",
                app("web") + app("db", nil, "environment = { NEW = \"1\" }") + app("queue")
            )
            try machine.done("systemctl reload torpord")
            try machine.waitFor("queue", in: "active")
            // A new environment counts from the next launch on: nothing is restarted that nobody asked to be.
            #expect(try machine.identities(["web", "db"]) == before)
            try machine.done("torpor restart db")
            let pid = try #require(try machine.app("db").pid)
            #expect(try machine.done("tr '\\0' '\\n' </proc/\(pid)/environ").contains("NEW=1"))
        }

        @Test("systemctl reload of an invalid configuration fails with its errors, and changes nothing")
        func invalidReload() throws {
            let machine = try service(app("web") + app("db"))
            let before = try machine.identities(["web", "db"])
            try machine.write("/etc/torpor/conf.d/apps.toml", app("web") + "[apps.db]\nexce = [\"x\"]\n")
            #expect(try machine.run("systemctl reload torpord").ok == false)
            #expect(try machine.done("systemctl is-active torpord") == "active")
            #expect(try machine.identities(["web", "db"]) == before)
            try machine.eventually("the journal has the error") {
                try machine.run("journalctl -u torpord -n 50").output.contains("apps.toml:")
            }
        }

        @Test("A service whose configuration is invalid from the start does not try again and again")
        func invalidStart() throws {
            let machine = try service("[apps.db]\nexce = [\"x\"]\n", start: false)
            #expect(try machine.run("systemctl start torpord").ok == false)
            #expect(try machine.run("systemctl is-active torpord").text == "failed")
            #expect(try machine.done("systemctl show -P NRestarts torpord") == "0")
            // What a service wrote may come to the journal after its end did.
            try machine.eventually("the journal has the error") {
                try machine.run("journalctl -u torpord -n 50").output.contains("apps.toml:1")
            }
        }
    }
}
