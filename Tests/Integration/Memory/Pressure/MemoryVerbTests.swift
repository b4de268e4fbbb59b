// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import ScriptedServer
import Testing
import TorporAPI
import Varlink

/// What `torpor memory` shows, with a server that says how it is.
@Suite("torpor memory, told by a script") struct MemoryVerbTests {
    /// A machine with three apps, short of memory.
    private static let short: MemoryStatus = {
        var memory = MemoryStatus(
            level: "warning",
            totalBytes: 8 << 30,
            availableBytes: 512 << 20,
            swapTotalBytes: 4 << 30,
            swapFreeBytes: 1 << 30
        )
        (memory.somePercent, memory.fullPercent) = (12.34, 0.5)
        var mail = app("mail", "suspended", 300 << 20, swapped: 20 << 20, priority: -5, endsAtOnce: true)
        mail.limitBytes = 1 << 30
        var db = app("db", "background", 200 << 20)
        db.protection = "web requires it"
        memory.apps = [mail, app("web", "background", 100 << 20), db]
        memory.steps = [
            MemoryStep(rung: "tell", apps: ["web", "db"], bytes: nil, why: "they are in the background"),
            MemoryStep(rung: "page-out", apps: ["mail"], bytes: 300 << 20, why: "it is suspended"),
            MemoryStep(rung: "evict", apps: ["mail"], bytes: 320 << 20, why: "it has the lowest priority"),
            MemoryStep(rung: "end-background", apps: ["web"], bytes: 100 << 20, why: "db is passed over"),
        ]
        return memory
    }()

    private static func app(
        _ name: String,
        _ state: String,
        _ bytes: Int64,
        swapped: Int64 = 0,
        priority: Int64 = 0,
        endsAtOnce: Bool = false
    ) -> AppMemory {
        AppMemory(
            app: name,
            state: state,
            residentBytes: bytes,
            swappedBytes: swapped,
            priority: priority,
            evict: "auto",
            endsAtOnce: endsAtOnce
        )
    }

    private func run(_ memory: MemoryStatus, _ words: String...) throws -> (code: Int32, output: String) {
        let server = try ScriptedServer([
            .connection { talk in
                try talk.hear()
                try talk.say(["memory": memory.json])
            }
        ])
        let result = try Spawn.run([Built.path("torpor"), "memory"] + words + ["--socket", server.path])
        #expect(server.finish() == [])
        #expect(server.calls.map(\.method) == ["io.torpor.Manager.Memory"])
        return result
    }

    @Test("shows the machine, who has how much, and who would go next or why not")
    func page() throws {
        let result = try run(Self.short)
        #expect(result.code == 0)
        #expect(
            result.output == """
                memory:   8.0 GiB, 512.0 MiB available (6.3 %), level warning
                swap:     4.0 GiB, 1.0 GiB free (25.0 %)
                pressure: some work waited for memory for 12.3 % of the last 10 s, all work for 0.5 %
                order:    by state, then lower priority, more memory, longer unused

                APP   STATE             OWN      SWAP    LIMIT  PRIORITY  NEXT
                mail  suspended   300.0 MiB  20.0 MiB  1.0 GiB        -5  1, without notice
                web   background  100.0 MiB         -        -         0  2, with notice and a grace
                db    background  200.0 MiB         -        -         0  no: web requires it

                """
        )
    }

    @Test("rehearse shows every step in its order, what it would free, and why")
    func rehearse() throws {
        let result = try run(Self.short, "rehearse")
        #expect(result.code == 0)
        let lines = result.output.split(separator: "\n", omittingEmptySubsequences: false)
        #expect(
            lines.dropFirst(5).joined(separator: "\n") == """
                a rehearsal: each step would follow only if those before it did not help:

                   STEP            APP          FREES  WHY
                1  tell            web, db          -  they are in the background
                2  page-out        mail     300.0 MiB  it is suspended
                3  evict           mail     320.0 MiB  it has the lowest priority
                4  end-background  web      100.0 MiB  db is passed over

                """
        )
    }

    @Test("as JSON it is what the supervisor says, and of a rehearsal the steps")
    func json() throws {
        let whole = try run(Self.short, "--json")
        #expect(try MemoryStatus(json: JSON.parse(Array(whole.output.utf8))) == Self.short)
        let steps = try run(Self.short, "rehearse", "--json")
        let parsed = try #require(JSON.parse(Array(steps.output.utf8)).arrayValue)
        #expect(try parsed.map { try MemoryStep(json: $0) } == Self.short.steps)
    }

    @Test("without swap, pressure, apps and order of its own it says what that means")
    func bare() throws {
        var memory = MemoryStatus(
            level: "none",
            totalBytes: 1 << 30,
            availableBytes: 1 << 29,
            swapTotalBytes: 0,
            swapFreeBytes: 0
        )
        memory.policy = "jetsam"
        memory.trouble = "nothing is done\u{1b}[2J"
        let page = """
            memory:   1.0 GiB, 512.0 MiB available (50.0 %), level none
            swap:     none: nothing can be paged out (‘torpor doctor’ says how to add swap)
            pressure: unknown: the kernel does not report it (boot with psi=1)
            order:    as the policy jetsam says
            trouble:  nothing is done\u{fffd}[2J


            """
        #expect(try run(memory).output == page + "no app runs\n")
        #expect(
            try run(memory, "rehearse").output
                == page + "nothing would be done: no running app can be warned, paged out or ended\n"
        )
    }
}
