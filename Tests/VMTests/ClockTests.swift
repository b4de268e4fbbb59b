// SPDX-License-Identifier: Apache-2.0

import TestMachine
import Testing

extension Emulation {
    /// Only here a test may set the clock: it is the machine's own.
    @Suite("The clock of the machine is set", .serialized) struct ClockTests {
        /// So many records of USR1 an app has.
        private func told(_ machine: Emulated, _ app: String) throws -> Int {
            Int(try machine.run("grep -c '^\(app) SIGUSR1' /run/record || :").output.trimmed) ?? 0
        }

        @Test("Apps that sleep hear of it once each when they wake, and timers by the calendar go by the new time")
        func set() throws {
            let machine = try Emulation.machine()
            let apps = (1...5).map { "clock\($0)" }
            let toml = apps.map { app in
                """
                [apps.\(app)]
                exec = ["/usr/local/bin/family"]
                ready = "notify"
                signals = { significantTimeChange = "SIGUSR1" }
                timers = [{ name = "noon", calendar = "*-*-* 12:00:00 UTC", wake = "none" }]

                """
            }.joined()
            try machine.write("/etc/torpor/torpor.toml", Emulation.head + Emulation.apps + toml)
            try machine.done("torpor apply")
            defer {
                _ = try? machine.run("torpor kill 'clock*'")
                try? machine.write("/etc/torpor/torpor.toml", Emulation.head + Emulation.apps)
                _ = try? machine.run("torpor apply")
            }
            try machine.done("systemctl stop systemd-timesyncd 2>/dev/null || :; rm -f /run/record")
            try machine.done("torpor start 'clock*' && torpor suspend 'clock*'")
            // Half an hour before noon, then past it, then back.
            for time in ["2030-05-05 11:30:00", "2030-05-05 12:10:00", "2030-05-05 12:05:00"] {
                try machine.done("date -u -s '\(time)'")
            }
            try machine.eventually("torpord has seen it") {
                try machine.run("torpor events | grep -c 'the clock was set'").output.trimmed == "3"
            }
            for app in apps { #expect(try told(machine, app) == 0) }
            let timers = try machine.done("torpor timers 'clock*'")
            // What was jumped over by forty minutes has come; the next one is tomorrow's.
            #expect(
                timers.split(separator: "\n").dropFirst().allSatisfy { $0.contains("2030-05-06T12:00:00Z") },
                "\(timers)"
            )
            #expect(timers.contains("2030-05-05T12:10:"), "\(timers)")
            try machine.done("torpor resume 'clock*'")
            for app in apps {
                try machine.eventually("\(app) is told") { try told(machine, app) > 0 }
            }
            try machine.done("torpor foreground 'clock*'")
            for app in apps { #expect(try told(machine, app) == 1) }
        }
    }
}

extension String {
    fileprivate var trimmed: String {
        String(self.drop { $0.isWhitespace }.reversed().drop { $0.isWhitespace }.reversed())
    }
}
