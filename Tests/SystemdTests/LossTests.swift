// SPDX-License-Identifier: Apache-2.0

import TestMachine
import Testing

extension Booted {
    @Suite("Whatever happens to the supervisor, apps go on", .serialized) struct LossTests {
        static let apps = app("web") + app("db") + app("queue", nil, "requires = [\"db\"]")
        static let names = ["web", "db", "queue"]
        /// Who watches acts within two seconds.
        static let impatient = """
            [Service]
            WatchdogSec=2s
            TimeoutAbortSec=2s
            Environment=TORPOR_LOOP_WATCHDOG_MS=1000
            """

        /// The service with all apps up; the keeper and torpord.
        private func running() throws -> (machine: Container, keeper: Int, torpord: Int) {
            let machine = try service(Self.apps, dropIn: Self.impatient)
            for name in Self.names { try machine.waitFor(name, in: "active") }
            try machine.eventually("all apps are up") { try record(machine).count == Self.names.count }
            let keeper = try machine.mainPid("torpord")
            return (machine, keeper, try #require(try machine.torpord(below: keeper)))
        }

        @Test("torpord is killed: the keeper starts another one") func killTorpord() throws {
            let (machine, keeper, torpord) = try running()
            try expectUntouched(machine, Self.names) {
                try machine.done("kill -KILL \(torpord)")
                try machine.eventually("there is another torpord") {
                    let now = try machine.torpord(below: keeper)
                    return now != nil && now != torpord
                }
            }
            #expect(try machine.mainPid("torpord") == keeper)
            try expectSupervised(machine, restarts: "web", stops: "queue")
        }

        @Test("torpord is stuck: the keeper replaces it") func stopTorpord() throws {
            let (machine, keeper, torpord) = try running()
            try expectUntouched(machine, Self.names) {
                try machine.done("kill -STOP \(torpord)")
                try machine.eventually("there is another torpord", within: 20) {
                    let now = try machine.torpord(below: keeper)
                    return now != nil && now != torpord
                }
            }
            #expect(try machine.mainPid("torpord") == keeper)
            try expectSupervised(machine, restarts: "web", stops: "queue")
        }

        @Test("The keeper is killed: the service goes on with the apps that it finds") func killKeeper() throws {
            let (machine, keeper, _) = try running()
            try expectUntouched(machine, Self.names) {
                try machine.done("kill -KILL \(keeper)")
                try waitForKeeper(machine, otherThan: keeper)
            }
            try expectSupervised(machine, restarts: "web", stops: "queue")
        }

        @Test("The keeper is stuck: systemd replaces it") func stopKeeper() throws {
            let (machine, keeper, _) = try running()
            try expectUntouched(machine, Self.names) {
                try machine.done("kill -STOP \(keeper)")
                try waitForKeeper(machine, otherThan: keeper)
            }
            try expectSupervised(machine, restarts: "web", stops: "queue")
        }

        @Test("Keeper and torpord are killed at once") func killBoth() throws {
            let (machine, keeper, torpord) = try running()
            try expectUntouched(machine, Self.names) {
                try machine.done("kill -KILL \(keeper) \(torpord)")
                try waitForKeeper(machine, otherThan: keeper)
            }
            try expectSupervised(machine, restarts: "web", stops: "queue")
        }

        @Test("systemctl restart: a new supervisor for the same apps") func restart() throws {
            let (machine, keeper, _) = try running()
            try expectUntouched(machine, Self.names) { try machine.done("systemctl restart torpord") }
            #expect(try machine.mainPid("torpord") != keeper)
            try expectSupervised(machine, restarts: "web", stops: "queue")
        }

        @Test("systemctl restart goes by what was edited, and by what was in force where that is not valid")
        func restartEdited() throws {
            let (machine, _, _) = try running()
            let file = "/etc/torpor/conf.d/edited.toml"
            let before = try machine.identities(Self.names)
            try machine.write(file, app("edited"))
            try machine.done("systemctl restart torpord")
            try machine.waitFor("edited", in: "active")
            try machine.write(file, "[apps.edited]\nexce = [\"x\"]\n")
            try machine.done("systemctl restart torpord")
            try machine.eventually("the status says so") {
                try machine.done("systemctl show -P StatusText torpord").contains("is not valid")
            }
            try machine.waitFor("edited", in: "active")
            try machine.done("rm \(file)")
            try machine.done("systemctl reload torpord")
            #expect(try machine.identities(Self.names) == before)
        }

        @Test("systemctl restart five times in a row") func restartOften() throws {
            let (machine, _, _) = try running()
            try expectUntouched(machine, Self.names) {
                for _ in 0..<5 { try machine.done("systemctl restart torpord") }
            }
            try expectSupervised(machine, restarts: "web", stops: "queue")
        }

        @Test("An upgrade of the package: new programs for the same apps") func upgrade() throws {
            let (machine, _, torpord) = try running()
            try machine.put(laterPackage, "/root/later.deb")
            defer { _ = try? machine.run("dpkg -i --force-downgrade /root/torpor.deb") }
            let keeper = try machine.mainPid("torpord")
            try expectUntouched(machine, Self.names) {
                try machine.done("dpkg -i /root/later.deb")
                try machine.eventually("another torpord is there") {
                    let keeper = try machine.mainPid("torpord")
                    let now = try machine.torpord(below: keeper)
                    return now != nil && now != torpord
                }
            }
            // Replaced in place, and by the new files.
            #expect(try machine.mainPid("torpord") == keeper)
            for pid in [keeper, try machine.torpord(below: keeper) ?? 0] {
                let program = try machine.done("readlink /proc/\(pid)/exe")
                #expect(!program.contains("deleted"), "\(program)")
            }
            try expectSupervised(machine, restarts: "web", stops: "queue")
        }

        private func waitForKeeper(_ machine: Container, otherThan old: Int) throws {
            try machine.eventually("the service has another keeper", within: 30) {
                let now = try machine.mainPid("torpord")
                return try now != 0 && now != old && machine.run("systemctl is-active torpord").text == "active"
            }
        }
    }
}
