// SPDX-License-Identifier: Apache-2.0

import Foundation
import Lifecycle
import Linux
import Testing

@testable import Processes

@Suite("Shares of the machine", .serialized) struct ResourceProfileTests {
    /// Applies a profile; an ordinary user has to wait between changes of autogroups.
    func apply(_ profile: StateProfile, to tree: ProcessTree) throws -> ProfileReport {
        try repeated {
            tree.apply(profile)
        } until: {
            !$0.isWorthRepeating
        }
    }

    func apply(_ state: AppState, to tree: ProcessTree) throws -> ProfileReport {
        try apply(StateProfile(of: state), to: tree)
    }

    /// `oom_score_adj` of every process, in the order of their numbers.
    func scores(_ tree: ProcessTree) throws -> [Int32] { try tree.members().sorted().map(ProcFS.oomScoreAdjust) }

    func threads(_ tree: ProcessTree) throws -> [Int32] { try tree.members().flatMap { try ProcFS.tasks($0) } }

    /// Whether this process may do something that an ordinary user may not, by number (linux/capability.h).
    func may(_ capability: Int) throws -> Bool {
        let mask = try #require(try ProcFS.statusField(ThisProcess.pid, "CapEff").flatMap { UInt64($0, radix: 16) })
        return mask >> capability & 1 == 1
    }

    /// Set timers' slack of others: CAP_SYS_NICE.
    var maySetSlack: Bool { get throws { try may(23) } }
    /// Set a lower `oom_score_adj`: CAP_SYS_RESOURCE.
    var mayProtect: Bool { get throws { try may(24) } }

    /// What torpord, and so each app, was born with.
    func inherited() throws -> Int32 { max(0, try ProcFS.oomScoreAdjust(ThisProcess.pid)) }

    @Test("each state has the share that the lifecycle says")
    func standard() {
        let states: [AppState] = [.active, .inactive, .background, .suspended]
        let profiles = states.map(StateProfile.init(of:))
        #expect(profiles.map(\.cpuWeight) == [100, 100, 25, 1])
        #expect(profiles.map(\.ioWeight) == [100, 100, 25, 1])
        #expect(profiles.map(\.oomScoreAdjust) == [0, 50, 300, 900])
        #expect(profiles.map { $0.timerSlack == nil } == [true, true, false, false])
    }

    @Test("a weight without a cgroup is the nice value that weighs as much, and a priority for disks")
    func equivalents() {
        let weights = [10_000, 300, 125, 100, 80, 50, 25, 10, 1]
        #expect(weights.map(ProcessTree.nice(forWeight:)) == [-20, -5, -1, 0, 1, 3, 6, 10, 19])
        let order = [1, 25, 50, 75, 100, 150, 300, 500, 10_000].map(ProcessTree.ioPriority(forWeight:))
        #expect(
            order.map(\.description) == [
                "idle", "best-effort 7", "best-effort 6", "best-effort 5", "none", "best-effort 3", "best-effort 2",
                "best-effort 1", "best-effort 0",
            ]
        )
    }

    @Test("without a cgroup every process and thread gets it, and has nothing of it when it is active again")
    func thereAndBack() throws {
        let app = try TestApp(
            """
            for _ in range(2): threading.Thread(target=lambda: time.sleep(1000), daemon=True).start()
            os.fork()
            say('ready')
            time.sleep(1000)
            """
        )
        for _ in 0..<2 { #expect(try app.line() == "ready") }
        let obstacle = ProcFS.autogroupObstacle(app.pid)
        let before = try inherited()
        for (state, nice, priority, score, slack) in [
            (AppState.background, Int32(6), IOPriority.bestEffort(7), Int32(300), UInt64(40_000_000)),
            (.suspended, 19, .idle, 900, 40_000_000), (.inactive, 0, .none, 50, 50_000), (.active, 0, .none, 0, 50_000),
        ] {
            let report = try apply(state, to: app.tree)
            if obstacle == nil {
                #expect(try ProcFS.autogroupNice(app.pid) == nice)
                #expect(report.done.contains("autogroup nice \(nice)"))
            } else if nice != 0 {
                #expect(report.failed.contains { $0.hasPrefix("autogroup nice") })
            }
            #expect(try threads(app.tree).count == 4)
            #expect(try threads(app.tree).allSatisfy { try IOPriority.of($0) == priority })
            #expect(try scores(app.tree) == Array(repeating: max(score, before), count: 2))
            if try maySetSlack {
                #expect(try threads(app.tree).allSatisfy { try ProcFS.timerSlack($0) == slack })
                #expect(obstacle != nil || report.failed.isEmpty)
            } else if slack > 50_000 {
                #expect(report.failed.contains { $0.hasPrefix("timer slack") })
            }
        }
    }

    @Test("what is forked in the background inherits it, and loses it with the others")
    func children() throws {
        let app = try TestApp(
            """
            before = open('/proc/self/oom_score_adj').read()
            say('ready')
            while open('/proc/self/oom_score_adj').read() == before: time.sleep(0.001)
            os.fork()
            say('forked')
            time.sleep(1000)
            """
        )
        #expect(try app.line() == "ready")
        _ = try apply(.suspended, to: app.tree)
        for _ in 0..<2 { #expect(try app.line() == "forked") }
        #expect(try scores(app.tree) == [900, 900])
        #expect(try threads(app.tree).allSatisfy { try IOPriority.of($0) == .idle })
        _ = try apply(.active, to: app.tree)
        #expect(try scores(app.tree) == [try inherited(), try inherited()])
        #expect(try threads(app.tree).allSatisfy { try IOPriority.of($0) == .none })
    }

    @Test("all processes of a stopped app get it, and those that are forked after the stop lose it too")
    func stopped() throws {
        let app = try TestApp(
            """
            before = open('/proc/self/oom_score_adj').read()
            os.fork()
            say('ready')
            while open('/proc/self/oom_score_adj').read() == before: time.sleep(0.001)
            os.fork()
            say('forked')
            time.sleep(1000)
            """
        )
        for _ in 0..<2 { #expect(try app.line() == "ready") }
        #expect(try app.stop() == .stopped)
        _ = try apply(.suspended, to: app.tree)
        #expect(try scores(app.tree) == [900, 900])
        #expect(try threads(app.tree).allSatisfy { try IOPriority.of($0) == .idle })
        try app.tree.continue()
        for _ in 0..<4 { #expect(try app.line() == "forked") }
        _ = try apply(.active, to: app.tree)
        #expect(try scores(app.tree) == Array(repeating: try inherited(), count: 4))
        #expect(try threads(app.tree).allSatisfy { try IOPriority.of($0) == .none })
    }

    @Test("a process that has moved to a session of its own gets it too")
    func sessions() throws {
        let app = try TestApp(
            """
            if os.fork() == 0: os.setsid()
            say('ready')
            time.sleep(1000)
            """
        )
        for _ in 0..<2 { #expect(try app.line() == "ready") }
        let report = try apply(.background, to: app.tree)
        guard ProcFS.autogroupObstacle(app.pid) == nil else { return print("skipped: autogroups do not count here") }
        #expect(try app.tree.members().map { try ProcFS.autogroupNice($0) } == [6, 6])
        #expect(report.done.contains("autogroup nice 6 for 2 sessions"))
    }

    @Test("a session that is not the app's alone is left as it is")
    func strangers() throws {
        let child = Process()
        child.executableURL = URL(fileURLWithPath: "/bin/sleep")
        child.arguments = ["1000"]
        try child.run()
        let pid = child.processIdentifier
        defer {
            kill(pid, SIGKILL)
            child.waitUntilExit()
        }
        let tree = ProcessTree(
            tag: AppTag(app: "x", incarnation: 1),
            main: try Identity(of: pid),
            pidfd: try Pidfd.open(pid),
            adopter: ThisProcess.pid
        )
        guard ProcFS.autogroupObstacle(pid) == nil else { return print("skipped: autogroups do not count here") }
        let before = try ProcFS.autogroupNice(ThisProcess.pid)
        let report = try apply(.background, to: tree)
        #expect(report.failed.contains("autogroup nice 6 (it has no session of its own)"))
        #expect(try ProcFS.autogroupNice(ThisProcess.pid) == before)
    }

    @Test("what a thread has chosen for itself it keeps")
    func ownChoice() throws {
        let app = try TestApp(
            """
            import ctypes
            ctypes.CDLL(None).prctl(29, ctypes.c_ulong(1234567))
            say('ready')
            time.sleep(1000)
            """
        )
        #expect(try app.line() == "ready")
        try IOPriority.bestEffort(1).set(app.pid)
        for state in [AppState.background, .suspended, .active] {
            let report = try apply(state, to: app.tree)
            #expect(try IOPriority.of(app.pid) == .bestEffort(1))
            #expect(report.failed.contains("I/O priority of one thread (it is the app's own choice)"))
            if try maySetSlack { #expect(try ProcFS.timerSlack(app.pid) == 1_234_567) }
        }
    }

    @Test("a process that offers itself keeps doing so, and one that protects itself does while it is in use")
    func ownScore() throws {
        let app = try TestApp(
            """
            open('/proc/self/oom_score_adj', 'w').write(sys.stdin.readline() or '500')
            say('ready')
            time.sleep(1000)
            """
        )
        #expect(try app.line() == "ready")
        let states: [AppState] = [.background, .suspended, .background, .active]
        func score(in state: AppState) throws -> Int32 {
            _ = try apply(state, to: app.tree)
            return try ProcFS.oomScoreAdjust(app.pid)
        }
        #expect(try states.map(score(in:)) == [500, 900, 500, 500])
        guard try mayProtect else { return print("skipped: not even root may protect a process here") }
        try ProcFS.setOOMScoreAdjust(app.pid, -600)
        #expect(try states.map(score(in:)) == [300, 900, 300, -600])
    }

    @Test(
        "what comes of a wish, of what a process has given itself and of what it was born with",
        arguments: [
            (0, 0, 0, 0), (300, 0, 0, 300), (300, 500, 0, 500), (0, 500, 0, 500), (0, -600, 0, -600),
            (300, -600, 0, 300), (-700, 0, 0, -700), (-700, 500, 0, -700), (0, 200, 200, 200), (50, 200, 200, 200),
            (0, -900, -900, 0), (300, -900, -900, 300), (5000, 0, 0, 1000), (-5000, 0, 0, -1000),
        ] as [(Int32, Int32, Int32, Int32)]
    )
    func score(wish: Int32, own: Int32, inherited: Int32, expected: Int32) {
        #expect(ProcessTree.score(wish, own: own, inherited: inherited) == expected)
    }

    @Test("a supervisor that did not give it takes it back")
    func successor() throws {
        let app = try TestApp("say('ready')\ntime.sleep(1000)")
        #expect(try app.line() == "ready")
        _ = try apply(.background, to: app.tree)
        let tree = ProcessTree(
            tag: app.tag,
            main: app.tree.main,
            pidfd: try Pidfd.open(app.pid),
            adopter: ThisProcess.pid
        )
        _ = try apply(.active, to: tree)
        #expect(try scores(tree) == [try inherited()])
        #expect(try IOPriority.of(app.pid) == .none)
        if try maySetSlack { #expect(try ProcFS.timerSlack(app.pid) == 50_000) }
    }

    @Test("less than nothing is what somebody wants, and is had by those who may")
    func protected() throws {
        let app = try TestApp("say('ready')\ntime.sleep(1000)")
        #expect(try app.line() == "ready")
        var profile = StateProfile(of: .active)
        profile.oomScoreAdjust = -700
        let report = try apply(profile, to: app.tree)
        let expected = try mayProtect ? -700 : inherited()
        #expect(try scores(app.tree) == [expected])
        #expect(report.done.contains("oom_score_adj \(expected) for one process"))
    }

    @Test("a cgroup's weights are used where it has them, and nothing in their place")
    func weights() throws {
        let app = try TestApp("say('ready')\ntime.sleep(1000)")
        #expect(try app.line() == "ready")
        // Stands for a cgroup whose controllers are delegated, which few machines have.
        let folder = NSTemporaryDirectory() + "torpor-weights-" + UUID().uuidString
        try File.makeDirectories(folder)
        defer { try? File.removeTree(folder) }
        for file in ["cpu.weight", "io.weight", "io.bfq.weight"] { try File.write(folder + "/" + file, "") }
        try File.write(folder + "/cgroup.procs", "\(app.pid)\n")
        let tree = ProcessTree(
            tag: app.tag,
            main: app.tree.main,
            pidfd: try Pidfd.open(app.pid),
            cgroupPath: folder
        )
        var profile = StateProfile(of: .background)
        profile.ioWeight = 2000
        let report = try apply(profile, to: tree)
        #expect(try File.readString(folder + "/cpu.weight") == "25\n")
        #expect(try File.readString(folder + "/io.weight") == "default 2000\n")
        #expect(try File.readString(folder + "/io.bfq.weight") == "1000\n")
        #expect(report.done.prefix(3) == ["cpu.weight 25", "io.weight default 2000", "io.bfq.weight 1000"])
        #expect(try ProcFS.autogroupNice(app.pid) ?? 0 == 0)
        #expect(try IOPriority.of(app.pid) == .none)
        #expect(try scores(tree) == [max(300, try inherited())])

        try File.remove(folder + "/cpu.weight")
        try File.makeDirectory(folder + "/cpu.weight")
        #expect(try apply(.suspended, to: tree).failed.first?.hasPrefix("cpu.weight 1 (") == true)
        // What failed is tried again, not taken for given.
        #expect(try apply(.suspended, to: tree).failed.first?.hasPrefix("cpu.weight 1 (") == true)
    }

    @Test("an app that ends gets an active app's share of the processors at least, and nothing else is changed")
    func ending() throws {
        let app = try TestApp("say('ready')\ntime.sleep(1000)")
        #expect(try app.line() == "ready")
        let folder = NSTemporaryDirectory() + "torpor-ending-" + UUID().uuidString
        try File.makeDirectories(folder)
        defer { try? File.removeTree(folder) }
        for file in ["cpu.weight", "cpu.max", "io.weight"] { try File.write(folder + "/" + file, "") }
        try File.write(folder + "/cgroup.procs", "\(app.pid)\n")
        let tree = ProcessTree(
            tag: app.tag,
            main: app.tree.main,
            pidfd: try Pidfd.open(app.pid),
            cgroupPath: folder
        )
        // What is written over a longer text leaves its end in these files.
        func line(_ file: String) throws -> String? {
            try File.readString(folder + "/" + file).split(separator: "\n").first.map(String.init)
        }
        var profile = StateProfile(of: .suspended)
        profile.cpuMaximum = 5000
        _ = try apply(profile, to: tree)
        #expect(try line("cpu.weight") == "1" && line("cpu.max") == "5000 100000")
        for state in [AppState.active, .background] {
            tree.raiseProcessorShare(to: StateProfile(of: state))
            #expect(try line("cpu.weight") == "100" && line("cpu.max") == "max 100000", "not lowered for \(state)")
        }
        #expect(try line("io.weight") == "default 1")
        #expect(try scores(tree) == [max(900, try inherited())])
    }

    @Test("of an app that is gone it is said that there is nothing")
    func gone() throws {
        let app = try TestApp("say('ready')\ntime.sleep(1000)")
        #expect(try app.line() == "ready")
        #expect(try app.kill() == .gone)
        #expect(app.tree.apply(StateProfile(of: .active)).description == "not anything (no process is left)")
    }

    @Test("a report is half a sentence")
    func report() {
        var report = ProfileReport()
        report.done = ["cpu.weight 25", "io.weight default 25"]
        #expect(report.description == "cpu.weight 25, io.weight default 25")
        report.fail(.timerSlack, "timer slack (EPERM)")
        report.fail(.ownChoice, "tea")
        #expect(report.description == "cpu.weight 25, io.weight default 25; not timer slack (EPERM), nor tea")
    }
}
