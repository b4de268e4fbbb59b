// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

@Suite("Each state's share of the machine") struct ProfileTests {
    /// Records what it has when it is told something, and answers.
    private static let teller = """
        import tp
        def hear(message):
            tp.record("score " + open("/proc/self/oom_score_adj").read().strip())
            if message:
                tp.notify("X_TORPOR_DONE=" + message)
        tp.on("SIGUSR1", lambda: hear("willEnterForeground"))
        tp.on("SIGUSR2", lambda: hear("didEnterBackground"))
        tp.on("SIGCONT", lambda: hear(None))
        tp.notify("READY=1")
        tp.wait()
        """

    private static let tells = """
        [apps.a]
        \(Scripts.python)"@D/app.py"]
        ready = "notify"
        answers = true
        signals = { willEnterForeground = "SIGUSR1", didEnterBackground = "SIGUSR2" }
        """

    @Test("an app has its state's share when it has come into the state, and nothing of it when it is active again")
    func states() throws {
        try withDaemon(Apps.sleeper("a")) { daemon throws in
            try daemon.waitFor("a", "active")
            #expect(try daemon.score(of: "a") == Born.score)
            #expect(try daemon.status("a").profileDone == [], "nothing was given to it")
            for (verb, score, weight) in [
                (Verb.background, Int32(300), "25"), (.suspend, 900, "1"), (.resume, 300, "25"),
            ] {
                try daemon.done(verb, "a")
                try daemon.eventually("it has the share of \(verb)") {
                    try daemon.score(of: "a") == max(score, Born.score)
                }
                if let present = try daemon.cgroupFile("a", "cpu.weight") { #expect(present == weight) }
                if let present = try daemon.cgroupFile("a", "io.weight") { #expect(present == "default \(weight)") }
            }
            let status = try daemon.status("a")
            #expect(status.profile == "background")
            #expect(status.profileDone.contains { $0.hasPrefix("oom_score_adj \(max(300, Born.score))") })
            try daemon.done(.foreground, "a")
            try daemon.eventually("it has nothing of it") { try daemon.score(of: "a") == Born.score }
            if let present = try daemon.cgroupFile("a", "cpu.weight") { #expect(present == "100") }
            #expect(try IOPriority.of(daemon.process(of: "a")) == .none)
        }
    }

    @Test("its share comes before it is told of the foreground, and goes after it has heard of the background")
    func order() throws {
        try withDaemon(Self.tells, files: ["app.py": Self.teller]) { daemon throws in
            try daemon.waitFor("a", "active")
            try daemon.done(.background, "a")
            try daemon.waitForRecord("a", "score \(Born.score)")
            #expect(daemon.records("a") == ["SIGUSR2", "score \(Born.score)"])
            try daemon.eventually("it has its share") { try daemon.score(of: "a") == max(300, Born.score) }
            try daemon.done(.suspend, "a")
            try daemon.eventually("it has its share") { try daemon.score(of: "a") == max(900, Born.score) }
            try daemon.done(.foreground, "a")
            try daemon.waitForRecord("a", "SIGUSR1")
            try daemon.eventually("it has recorded all") { daemon.records("a").count >= 6 }
            let scores = daemon.records("a").dropFirst(2).filter { $0.hasPrefix("score") }
            #expect(scores.allSatisfy { $0 == "score \(Born.score)" }, "\(daemon.records("a"))")
        }
    }

    @Test("only the newest state counts, and what was passed through leaves nothing")
    func coalesced() throws {
        try withDaemon(Apps.sleeper("a", "instances = 20")) { daemon throws in
            try daemon.waitFor("a@20", "active")
            for verb in [Verb.background, .suspend, .foreground, .background, .foreground] {
                _ = try daemon.verbs(verb, ["a@*"]) { $0.wait = false }
            }
            for number in 1...20 {
                try daemon.waitFor("a@\(number)", "active")
                try daemon.eventually("a@\(number) has what it was born with") {
                    try daemon.score(of: "a@\(number)") == Born.score
                }
            }
        }
    }

    @Test("launched into the background it has the score from its birth, and the rest when it is ready")
    func background() throws {
        let toml = Self.tells.replacing("ready = \"notify\"", with: "ready = \"notify\"\nlaunch = \"background\"")
        let program = "import tp\ntp.record(open('/proc/self/oom_score_adj').read().strip())\n" + Self.teller
        try withDaemon(toml, files: ["app.py": program]) { daemon throws in
            try daemon.waitFor("a", "background")
            #expect(daemon.records("a").first == "\(max(300, Born.score))")
            try daemon.eventually("it has its share") { try daemon.status("a").profile == "background" }
            try daemon.done(.foreground, "a")
            try daemon.eventually("it has what others are born with") { try daemon.score(of: "a") == Born.score }
        }
    }

    @Test("another share in the configuration is given at once, by apply too")
    func applied() throws {
        try withDaemon(Apps.sleeper("a")) { daemon throws in
            try daemon.waitFor("a", "active")
            let pid = try daemon.process(of: "a")
            try daemon.apply(Apps.sleeper("a", "resources = { active = { oom_score_adj = 400, io_weight = 20 } }"))
            try daemon.eventually("it has it") { try daemon.score(of: "a") == max(400, Born.score) }
            if let weight = try daemon.cgroupFile("a", "io.weight") {
                #expect(weight == "default 20")
            } else {
                #expect(try IOPriority.of(pid) == .bestEffort(7))
            }
            try daemon.apply(Apps.sleeper("a"))
            try daemon.eventually("it has nothing of it") { try daemon.score(of: "a") == Born.score }
            #expect(try daemon.process(of: "a") == pid)
        }
    }

    @Test("the next torpord knows what was given, writes nothing that is so, and takes it back all the same")
    func recovered() throws {
        let keys = "resources = { suspended = { oom_score_adj = 420 } }"
        try withDaemon(Apps.sleeper("a", keys) + Apps.sleeper("b")) { daemon throws in
            for app in ["a", "b"] { try daemon.waitFor(app, "active") }
            try daemon.done(.suspend, "a")
            try daemon.eventually("it has its share") { try daemon.score(of: "a") == max(420, Born.score) }
            // Whoever wrote again would write over this.
            try ProcFS.setOOMScoreAdjust(daemon.process(of: "a"), 999)
            try ProcFS.setOOMScoreAdjust(daemon.process(of: "b"), 777)
            try daemon.replaceTorpord()
            for app in ["a", "b"] { #expect(try daemon.summary(app).state == (app == "a" ? "suspended" : "active")) }
            #expect(try daemon.score(of: "a") == 999)
            #expect(try daemon.score(of: "b") == 777)
            try ProcFS.setOOMScoreAdjust(daemon.process(of: "a"), max(420, Born.score))
            try daemon.done(.foreground, "a")
            try daemon.eventually("it has nothing of it") { try daemon.score(of: "a") == Born.score }
        }
    }

    @Test("what cannot be had is said once, whatever many apps want it, and shown by status")
    func told() throws {
        let keys = "resources = { background = { cpu_max = \"50%\", memory_high = \"64MiB\" } }"
        try withDaemon(Apps.sleeper("a", "instances = 5\n" + keys)) { daemon throws in
            for number in 1...5 {
                try daemon.waitFor("a@\(number)", "active")
                try daemon.done(.background, "a@\(number)")
                try daemon.eventually("it has its share") { try daemon.status("a@\(number)").profile == "background" }
            }
            let missing = try daemon.status("a@5").profileMissing
            for (file, text) in [("cpu.max", "50000 100000"), ("memory.high", "67108864")] {
                let lines = daemon.log.split(separator: "\n").count { $0.contains("\(file) \(text) (no ") }
                if let present = try daemon.cgroupFile("a@5", file) {
                    #expect(present == text)
                    #expect(lines == 0)
                } else {
                    #expect(missing.contains { $0.hasPrefix("\(file) \(text) (no ") })
                    #expect(lines == 1, "\(daemon.log)")
                }
            }
        }
    }

    @Test("a protected torpord protects neither apps nor the commands that run for them")
    func unprotected() throws {
        let mask = try #require(try ProcFS.statusField(ThisProcess.pid, "CapEff").flatMap { UInt64($0, radix: 16) })
        guard mask >> 24 & 1 == 1 else { return print("skipped: not even root may protect a process here") }
        let before = try ProcFS.oomScoreAdjust(ThisProcess.pid)
        // Inherited by the keeper, and so by torpord.
        try ProcFS.setOOMScoreAdjust(ThisProcess.pid, -900)
        let daemon: Daemon
        do {
            defer { try? ProcFS.setOOMScoreAdjust(ThisProcess.pid, before) }
            daemon = try Daemon(
                Apps.sleeper(
                    "a",
                    "before_start = [[\"/bin/sh\", \"-c\", \"cat /proc/self/oom_score_adj >> @D/rec.hook\"]]"
                )
            )
        }
        try daemon.waitUntilItAnswers()
        try daemon.waitFor("a", "active")
        #expect(try ProcFS.oomScoreAdjust(daemon.torpord()) == -900)
        #expect(try daemon.score(of: "a") == 0)
        #expect(daemon.records("hook") == ["0"])
        try daemon.done(.suspend, "a")
        try daemon.eventually("it has its share") { try daemon.score(of: "a") == 900 }
        try daemon.done(.foreground, "a")
        try daemon.eventually("it has nothing of it") { try daemon.score(of: "a") == 0 }
        try daemon.stop()
    }
}
