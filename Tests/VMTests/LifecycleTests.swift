// SPDX-License-Identifier: Apache-2.0

import TestMachine
import Testing

extension Emulation {
    @Suite("Every edge of the lifecycle", .serialized) struct LifecycleTests {
        /// What the kernel must show in a state: cpu.weight and io.weight, oom_score_adj, and whether processes are stopped.
        struct Shown {
            let state: String
            let weight: Int
            let score: Int
            var isStopped: Bool { state == "suspended" }
            static let active = Shown(state: "active", weight: 100, score: 0)
            static let inactive = Shown(state: "inactive", weight: 100, score: 50)
            static let background = Shown(state: "background", weight: 25, score: 300)
            static let suspended = Shown(state: "suspended", weight: 1, score: 900)
        }

        /// Verbs in an order in which each edge is walked, far ways included. An interruption lasts until it is ended, also
        /// through other states.
        static let walk: [(verb: String, shown: Shown)] = [
            ("start", .active), ("interrupt", .inactive), ("interrupt --end", .active), ("background", .background),
            ("foreground", .active), ("interrupt", .inactive), ("background", .background), ("suspend", .suspended),
            ("resume", .background), ("foreground", .inactive), ("interrupt --end", .active), ("suspend", .suspended),
            ("foreground", .active),
        ]

        @Test(
            "An app has each state's share of the machine, and is stopped where it is suspended",
            arguments: [
                "signalled", "frozen",
            ]
        )
        func walked(app: String) throws {
            let machine = try Emulation.machine()
            defer { _ = try? machine.run("torpor kill \(app)") }
            var group = ""
            var pids: [Int] = []
            for (step, (verb, shown)) in Self.walk.enumerated() {
                // An app that is interrupted gets only as far as that: the verb says so, and fails.
                let isRefused = verb == "foreground" && shown.state == Shown.inactive.state
                try machine.done(isRefused ? "! torpor \(verb) \(app)" : "torpor \(verb) \(app)")
                if group.isEmpty {
                    group = try cgroup(machine, app)
                    try machine.eventually("the whole family is there") {
                        pids = try processes(machine, group)
                        return pids.count == 3
                    }
                }
                let isFrozen = app == "frozen" && shown.isStopped
                #expect(
                    try seen(machine, app, group, pids) == Seen(shown, isFrozen: isFrozen),
                    "step \(step), \(verb)"
                )
            }
            #expect(try Set(processes(machine, group)) == Set(pids), "the same processes all the way")
        }

        /// What is seen of an app and its processes.
        struct Seen: Equatable {
            var state: String
            var processorWeight, deviceWeight: Int
            var isFrozen: Bool
            var scores: Set<Int>
            var letters: Set<String>

            /// What must be seen. The freezer leaves the letters as they are: a sleeping process is S.
            init(_ shown: Shown, isFrozen: Bool) {
                state = shown.state
                processorWeight = shown.weight
                deviceWeight = shown.weight
                self.isFrozen = isFrozen
                scores = [shown.score]
                letters = shown.isStopped && !isFrozen ? ["T"] : ["S"]
            }
        }

        /// One question for all, since each takes its time.
        private func seen(_ machine: Emulated, _ app: String, _ group: String, _ pids: [Int]) throws -> Seen {
            let files =
                ["\(group)/cpu.weight", "\(group)/io.weight", "\(group)/cgroup.events"]
                + pids.flatMap { ["/proc/\($0)/oom_score_adj", "/proc/\($0)/stat"] }
            let lines = try machine.done("torpor list | grep '^\(app) '; cat \(files.joined(separator: " "))")
                .split(separator: "\n").map(String.init)
            // The list, two weights, populated and frozen, two lines a process.
            try #require(lines.count == 5 + 2 * pids.count, "\(lines)")
            var seen = Seen(.active, isFrozen: lines[4] == "frozen 1")
            seen.state = String(lines[0].split(separator: " ")[1])
            seen.processorWeight = Int(lines[1]) ?? -1
            seen.deviceWeight = Int(lines[2].split(separator: " ").last ?? "") ?? -1
            seen.scores = Set(stride(from: 5, to: lines.count, by: 2).map { Int(lines[$0]) ?? -1 })
            seen.letters = Set(
                stride(from: 6, to: lines.count, by: 2).map {
                    String(lines[$0].split(separator: ")").last?.split(separator: " ").first ?? "")
                }
            )
            return seen
        }

        @Test("A stop reaches a suspended app's handler", arguments: ["signalled", "frozen"])
        func stopSuspended(app: String) throws {
            let machine = try Emulation.machine()
            try machine.done("rm -f /run/record; torpor start \(app)")
            let group = try cgroup(machine, app)
            try machine.done("torpor suspend \(app) && torpor stop \(app)")
            #expect(try machine.read("/run/record").contains("\(app) SIGTERM"))
            #expect(try processes(machine, group).isEmpty)
            #expect(try machine.app(app).lastExit?.reason == "stopped")
        }

        @Test("A force quit ends a suspended app whole, without a word to it", arguments: ["signalled", "frozen"])
        func killSuspended(app: String) throws {
            let machine = try Emulation.machine()
            try machine.done("rm -f /run/record; torpor start \(app)")
            let group = try cgroup(machine, app)
            try machine.done("torpor suspend \(app) && torpor kill \(app)")
            #expect(try !machine.read("/run/record").contains("SIGTERM"))
            #expect(try processes(machine, group).isEmpty)
            #expect(try machine.app(app).lastExit?.reason == "force-quit")
        }

        @Test("A background launch never was in the foreground, and a message is a signal") func background() throws {
            let machine = try Emulation.machine()
            defer { _ = try? machine.run("torpor kill signalled") }
            try machine.done("rm -f /run/record; torpor start --background signalled")
            #expect(try machine.app("signalled").state == "background")
            try machine.done("torpor foreground signalled && torpor background signalled")
            try machine.eventually("it heard of the background") {
                try machine.read("/run/record").contains("signalled SIGUSR1")
            }
        }

        @Test("The supervisor is killed, then the whole service restarted: suspended apps stay where they are")
        func survives() throws {
            let machine = try Emulation.machine()
            defer { _ = try? machine.run("torpor kill signalled frozen") }
            try machine.done("torpor start signalled frozen && torpor suspend signalled frozen")
            let before = try machine.identities(["signalled", "frozen"])
            let keeper = try machine.mainPid("torpord")
            try machine.done("kill -KILL \(try #require(try machine.torpord(below: keeper)))")
            try machine.eventually("another one answers") {
                (try? machine.identities(["signalled", "frozen"])) == before
            }
            try machine.done("systemctl restart torpord")
            #expect(try machine.identities(["signalled", "frozen"]) == before)
            for name in ["signalled", "frozen"] { #expect(try machine.app(name).state == "suspended") }
            try machine.done("torpor foreground signalled frozen")
            #expect(try machine.identities(["signalled", "frozen"]) == before)
        }
    }
}
