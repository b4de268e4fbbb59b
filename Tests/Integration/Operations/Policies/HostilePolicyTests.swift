// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import KernelFiles
import Linux
import PolicyLibraries
import Testing
import TorporAPI
import Varlink

@Suite("Policies that do harm, in the daemon") struct HostilePolicyTests {
    /// What the policy does, and what a person reads of it.
    static let harms: [(harm: String, sentence: String)] = [
        ("segfault", "was ended by SIGSEGV"), ("abort", "it cannot go on"), ("exit", "exited with status 0"),
        ("loop", "no answer within"), ("sleep", "no answer within"), ("close", "the policy's process"),
        ("garbage", "broke the protocol"), ("flood", "pieces of advice"), ("stop", "no answer within"),
        ("allocate", "the policy"),
    ]

    @Test("whatever a policy does, apps are managed without it at once, and it is tried again", arguments: harms)
    func harm(_ harm: String, _ sentence: String) throws {
        let toml = Governed.toml(
            [("bad", try Governed.hostile(harm))],
            apps: Governed.sleeper("a") + Governed.sleeper("b", "launch = \"on-demand\"")
        )
        try withCalmDaemon(toml) { daemon throws in
            try daemon.waitFor("a", "active")
            let torpord = try daemon.torpord()
            try daemon.waitForPolicy("bad", "fails") { $0.failures >= 1 }
            let told = try daemon.policyEvents()
            #expect(told.contains { $0.contains(sentence) }, "\(told)")
            try daemon.done(.start, "b")
            try daemon.done(.suspend, "b")
            let b = try #require(daemon.processes(of: "b").first)
            #expect(try ProcFS.stat(b).state == "T")
            try daemon.waitForPolicy("bad", "is loaded again") { $0.restarts >= 1 }
            #expect(try daemon.torpord() == torpord)
        }
    }

    @Test("what it writes to standard error is in torpord's log by lines, a few in each second")
    func chatter() throws {
        let bad = try Governed.hostile("chatter", at: "decide", "deadline = \"10s\"")
        let start = Clock.monotonic()
        try withDaemon(Governed.toml([("bad", bad)], apps: Governed.sleeper("a"))) { daemon throws in
            let first = "policy bad: line 0 of very many that nobody wants to read at all\n"
            try daemon.eventually("it is in the log") { daemon.log.contains(first) }
            try daemon.eventually("what was left out is counted") {
                daemon.log.contains("policy bad: (") && daemon.log.contains(" more lines)\n")
            }
            let lines = daemon.log.components(separatedBy: "policy bad: line ").count - 1
            let seconds = Int((Clock.monotonic() - start).components.seconds)
            #expect(lines <= 20 * (seconds + 2), "\(lines) in \(seconds) s")
            #expect(try daemon.policy("bad").failures == 0)
        }
    }

    @Test("a library that is overwritten while it is loaded is no failure of the policy, and is loaded again")
    func overwritten() throws {
        let folder = try Libraries.makeFolder("overwritten")
        let path = folder + "/libadvisor.so"
        let good = try Data(contentsOf: URL(fileURLWithPath: Libraries.path("advisor.c")))
        try good.write(to: URL(fileURLWithPath: path))
        let toml = Governed.toml(
            [("own", "path = \"\(path)\"\ndeadline = \"5s\"")],
            apps: Governed.sleeper("a") + Governed.sleeper("b", "launch = \"on-demand\"")
        )
        try withDaemon(toml) { daemon throws in
            try daemon.waitFor("a", "active")
            try daemon.waitForPolicy("own", "is loaded") { $0.state == "ready" }
            // As cp does, into the same file.
            let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
            try file.write(contentsOf: Data(count: good.count))
            try daemon.done(.start, "b")
            try daemon.eventually("that is said") {
                try daemon.policyEvents().contains { $0.contains("its library was overwritten while it was loaded") }
            }
            try file.seek(toOffset: 0)
            try file.write(contentsOf: good)
            try file.close()
            _ = try daemon.call(.reloadPolicy(name: "own"))
            try daemon.waitForPolicy("own", "is loaded again") { $0.state == "ready" && $0.failures == 0 }
        }
    }

    /// A daemon on a machine whose memory nobody waits for: late answers are the policies' doing.
    private func withCalmDaemon(_ toml: String, _ body: (Daemon) throws -> Void) throws {
        let kernel = try KernelFiles()
        try withDaemon(toml, environment: ["TORPOR_KERNEL_FILES": kernel.root], body)
        withExtendedLifetime(kernel) {}
    }

    @Test("one that fails again and again is quarantined, which health fails for, and is tried again later or at once")
    func quarantine() throws {
        let toml = Governed.toml([("bad", try Governed.hostile("segfault"))], apps: Governed.sleeper("a"))
        try withDaemon(toml) { daemon throws in
            try daemon.waitForPolicy("bad", "is quarantined") { $0.state == "quarantined" }
            let policy = try daemon.policy("bad")
            #expect(policy.failures == 6 && policy.stalls == 0)
            let retry = try #require(policy.retryMilliseconds)
            #expect((1...60_000).contains(retry))
            #expect(try daemon.hosts().isEmpty)
            #expect(try daemon.policyEvents().contains { $0.contains("is quarantined: it is reloaded in 1 min") })
            let health = try Spawn.run([Built.path("torpor"), "health", "--socket", daemon.socket])
            #expect(health.code == 1 && health.output.contains("the policy bad is quarantined and is not asked"))
            let checks = try (daemon.call(.doctor)["checks"]?.arrayValue ?? []).map { try DoctorCheck(json: $0) }
            let check = try #require(checks.first { $0.name == "policy bad" })
            #expect(!check.ok && check.message?.contains("torpor policy reload bad") == true)
            #expect(try daemon.call(.reloadPolicy(name: "bad"))["policy"]?["state"]?.stringValue == "ready")
            try daemon.waitForPolicy("bad", "fails again") { $0.failures == 7 && $0.state != "quarantined" }
        }
    }

    @Test("late answers while work waits for memory are no failures, and the policy is tried again until it answers")
    func stalls() throws {
        let kernel = try KernelFiles()
        kernel.averages = (40, 10)
        let toml = Governed.toml([("slow", try Governed.hostile("sleep"))], apps: Governed.sleeper("a"))
        try withDaemon(toml, environment: ["TORPOR_KERNEL_FILES": kernel.root]) { daemon throws in
            try daemon.waitForPolicy("slow", "stalls") { $0.stalls == 1 }
            #expect(try daemon.policyEvents().contains { $0.contains("this does not count as a failure") })
            #expect(try daemon.policy("slow").failures == 0)
            kernel.averages = (0, 0)
            try daemon.waitForPolicy("slow", "fails on a calm machine") { $0.failures == 1 && $0.stalls == 1 }
        }
    }

    @Test("a library that is none, or none for here, is refused with a sentence and not tried again")
    func refused() throws {
        let folder = try Libraries.makeFolder("refused")
        let open = folder + "/open"
        try File.write(folder + "/libtext.so", "no library")
        try File.makeDirectory(open)
        try File.write(open + "/liba.so", "no library")
        try File.setMode(open, 0o777)
        let cases = [
            ("text", "path = \"\(folder)/libtext.so\"", "not a library"),
            ("gone", "path = \"\(folder)/libgone.so\"", "libgone.so"),
            ("open", "path = \"\(open)/liba.so\"", "can be written to by everybody"),
            ("wrong", "path = \"\(try Libraries.path("hostile.c"))\"", "it does not know what to do"),
        ]
        let toml = Governed.toml(cases.map { ($0.0, $0.1) }, apps: Governed.sleeper("a"))
        try withDaemon(toml) { daemon throws in
            for (name, _, sentence) in cases {
                try daemon.waitForPolicy(name, "is refused") { $0.state == "refused" }
                let failure = try daemon.policy(name).lastFailure ?? ""
                #expect(failure.contains(sentence), "\(name): \(failure)")
            }
            try daemon.waitFor("a", "active")
            #expect(try daemon.hosts().isEmpty)
        }
    }

    @Test("a policy in torpord's own process that kills it is left out after the third time, and no app notices")
    func inProcess() throws {
        let toml = Governed.toml(
            [("bad", try Governed.hostile("segfault", at: "decide", "isolation = \"none\""))],
            apps: Governed.sleeper("a")
        )
        try withDaemon(toml) { daemon throws in
            try daemon.eventually("the policy is quarantined") {
                (try? daemon.policy("bad").state) == "quarantined"
            }
            #expect(try daemon.policy("bad").lastFailure?.contains("torpord has died 3 times") == true)
            try daemon.waitFor("a", "active")
            #expect(try daemon.summary("a").incarnation == 1)
        }
    }
}
