// SPDX-License-Identifier: Apache-2.0

import TestMachine
import Testing

extension Booted {
    @Suite("A reboot", .serialized) struct BootTests {
        @Test("Who installs the package, writes one app and applies it sees it run, and run again after a reboot")
        func newcomer() throws {
            let machine = try install()
            defer { machine.end() }
            try machine.write(
                "/etc/torpor/conf.d/clock.toml",
                """
                [apps.clock]
                exec = ["/bin/sh", "-c", "while date; do sleep 1; done"]

                """
            )
            try machine.done("torpor check")
            try machine.done("torpor apply")
            let first = try machine.waitFor("clock", in: "active")
            try machine.eventually("it has written") { try machine.run("torpor logs clock").lines.count > 1 }

            try machine.reboot()
            #expect(try machine.run("systemctl is-active torpord").text == "active")
            let second = try machine.waitFor("clock", in: "active")
            #expect(second.incarnation ?? 0 > first.incarnation ?? 0)
            let history = try machine.done("torpor history clock")
            #expect(history.contains("run 1 ") && history.contains("run \(second.incarnation ?? 0) "), "\(history)")
            #expect(try machine.run("systemctl --failed --plain --no-legend").text == "")
        }

        @Test(
            "A reboot ends apps in order within their graces; the boot launches what was running, and nothing fails it"
        )
        func order() throws {
            let machine = try install()
            defer { machine.end() }
            try machine.done("mkdir -m 777 /var/tmp/t")
            try machine.write(
                "/etc/torpor/conf.d/apps.toml",
                app("db", 1) + app("web", 4, "requires = [\"db\"]\ngrace = \"10s\"") + app("stopped")
                    + app("asked", nil, "launch = \"on-demand\"") + """
                        [apps.broken]
                        exec = ["/usr/local/bin/app-that-is-not-there"]
                        [apps.dies]
                        exec = ["/bin/false"]

                        """
            )
            // The grace of an app outlasts what systemd would wait.
            try machine.write("/etc/systemd/system/torpord.service.d/test.conf", "[Service]\nTimeoutStopSec=2s\n")
            try machine.done("systemctl daemon-reload; torpor apply; torpor stop stopped; torpor start asked")
            for name in ["web", "asked"] { try machine.waitFor(name, in: "active") }
            try machine.eventually("all are up") {
                Set(try record(machine).filter { $0.word == "up" }.map(\.app)).isSuperset(of: ["db", "web", "asked"])
            }
            try machine.reboot()

            let written = try record(machine)
            let words = written.map { "\($0.app) \($0.word)" }
            let ends = words.filter { ["web", "db"].contains($0.prefix { $0 != " " }) && !$0.hasSuffix(" up") }
            #expect(ends == ["web SIGTERM", "web end", "db SIGTERM", "db end"], "\(written)")
            #expect(words.suffix(3).allSatisfy { $0.hasSuffix(" up") }, "\(written)")
            #expect(words.contains("asked end"))
            let state = try machine.run("systemctl is-system-running").text
            let failed = try machine.run("systemctl --failed --plain --no-legend").text
            #expect(state == "running" && failed.isEmpty, "\(state) \(failed)")
            #expect(try machine.run("systemctl is-active torpord").text == "active")
            for name in ["db", "web"] { try machine.waitFor(name, in: "active") }
            #expect(try machine.app("stopped").state == "not-running")
            #expect(try machine.app("broken").state == "not-running")
        }

        @Test("A reboot ends apps in order with on_exit = \"leave\" too, also one that is frozen") func left() throws {
            let machine = try install()
            defer { machine.end() }
            try machine.done("mkdir -m 777 /var/tmp/t")
            try machine.write(
                "/etc/torpor/torpor.toml",
                "include = [\"conf.d/*.toml\"]\n[supervisor]\non_exit = \"leave\"\n"
            )
            try machine.write(
                "/etc/torpor/conf.d/apps.toml",
                app("db") + app("web", nil, "requires = [\"db\"]\nsuspend_with = \"freezer\"")
            )
            try machine.done("torpor apply")
            try machine.waitFor("web", in: "active")
            try machine.eventually("all are up") {
                Set(try record(machine).filter { $0.word == "up" }.map(\.app)).isSuperset(of: ["db", "web"])
            }
            try machine.done("torpor suspend web")
            try machine.waitFor("web", in: "suspended")
            try machine.reboot()
            let ends = try record(machine).map { "\($0.app) \($0.word)" }.filter { !$0.hasSuffix(" up") }
            #expect(ends == ["web SIGTERM", "web end", "db SIGTERM", "db end"])
        }
    }
}
