// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

/// Keeper and torpord are gone, and what they left in the runtime directory is not what it should be.
@Suite("Recovery: files that cannot be used, and none") struct FilesTests {
    /// What was done to the recovery file.
    enum Damage: String, CaseIterable, CustomTestStringConvertible {
        case newer
        case garbage
        case empty
        case cutInHeader
        case cutInRecords
        case otherBoot
        case removed
        case directoryRemoved

        var testDescription: String { rawValue }

        /// It is set aside for whoever wants to know.
        var isKept: Bool {
            switch self {
            case .newer, .garbage, .empty, .cutInHeader, .cutInRecords: true
            case .otherBoot, .removed, .directoryRemoved: false
            }
        }

        /// The layout is that of Sources/Recovery/RecoveryFile.swift.
        func apply(to daemon: Daemon) throws {
            let path = daemon.runtime + "/recovery"
            let size = try File.status(path).size
            let file = try File.open(path, .readWrite)
            switch self {
            case .newer: try File.write(file.raw, at: 8, [0xff, 0, 0, 0])
            case .garbage:
                var dice = Dice(seed: 1, round: 1)
                try File.write(file.raw, at: 0, (0..<size).map { _ in UInt8(truncatingIfNeeded: dice.next()) })
            case .empty: try File.truncate(file.raw, to: 0)
            case .cutInHeader: try File.truncate(file.raw, to: 100)
            case .cutInRecords: try File.truncate(file.raw, to: 4_096 + 300)
            case .otherBoot: try File.write(file.raw, at: 32, Array("00000000".utf8))
            case .removed: try File.remove(path)
            case .directoryRemoved: try File.removeTree(daemon.runtime)
            }
        }
    }

    private static let toml = """
        [apps.web]
        exec = ["@B/torpor-test-app", "--period", "3000"]
        [apps.asleep]
        exec = ["@B/torpor-test-app", "--tree"]
        [apps.stopped]
        exec = ["@B/torpor-test-app"]

        """

    private func prepare(_ daemon: Daemon) throws {
        for app in ["web", "asleep", "stopped"] { try daemon.waitFor(app, "active") }
        try daemon.eventually("the tree is there") { daemon.processes(of: "asleep").count == 3 }
        try daemon.done(.suspend, "asleep")
        try daemon.done(.stop, "stopped")
    }

    @Test("Apps are found by /proc and adopted as they are", arguments: Damage.allCases)
    func adopted(damage: Damage) throws {
        try withRecovery(Self.toml) { daemon throws in
            try prepare(daemon)
            let web = try #require(try daemon.summary("web").pid)
            let asleep = daemon.processes(of: "asleep").sorted()
            let main = try #require(try daemon.summary("asleep").pid)
            try daemon.lose(.both) { try damage.apply(to: daemon) }
            try daemon.waitFor("web", "active")
            try daemon.waitFor("asleep", "suspended")
            #expect(try daemon.summary("web").pid == web && daemon.processes(of: "web") == [web])
            #expect(try daemon.summary("asleep").pid == main)
            #expect(daemon.processes(of: "asleep").sorted() == asleep && asleep.allSatisfy(Truth.isStopped))
            #expect(try daemon.summary("web").incarnation == 1)
            #expect(File.exists(daemon.runtime + "/recovery.unusable") == damage.isKept)
            #expect(!damage.isKept || daemon.log.contains("set aside"))
            // A person's wish is not in that file alone.
            #expect(try daemon.summary("stopped").state == "not-running")
            // They are the daemon's again: it hears of their ends, and ends them whole.
            kill(web, SIGKILL)
            try daemon.eventually("it was restarted") { try daemon.summary("web").incarnation == 2 }
            try daemon.done(.stop, "asleep")
            #expect(daemon.processes(of: "asleep").isEmpty)
            try daemon.eventually("it writes") { (try? daemon.truth("web", 2).accepted) ?? 0 > 0 }
            try daemon.expectWholeLog("web", 2)
            try? File.remove(daemon.runtime + "/recovery.unusable")
        }
    }

    @Test("What a user requested of an app holds although it was adopted without its record") func goal() throws {
        try withRecovery(Self.toml) { daemon throws in
            try prepare(daemon)
            try daemon.lose(.both) { try Damage.garbage.apply(to: daemon) }
            try daemon.waitFor("asleep", "suspended")
            let old = daemon.processes(of: "asleep")
            try daemon.lose(.both) {
                for pid in old { kill(pid, SIGKILL) }
                try daemon.eventually("it is gone") { !old.contains(where: Truth.isAlive) }
                try File.removeTree(daemon.runtime)
            }
            try daemon.waitForEvent("asleep", "will be suspended, as a user left it before this start")
            try daemon.waitFor("asleep", "suspended")
            #expect(try daemon.summary("asleep").pid.map(Truth.isStopped) == true)
        }
    }

    @Test("orphans = \"end\": what is found without a record is ended before anything is launched")
    func ended() throws {
        let toml = "orphans = \"end\"\n" + Self.toml
        try withRecovery(toml) { daemon throws in
            try prepare(daemon)
            let old = daemon.processes(of: "web") + daemon.processes(of: "asleep")
            try daemon.lose(.both) { try Damage.garbage.apply(to: daemon) }
            try daemon.waitFor("web", "active")
            // As a person had asked for it.
            try daemon.waitFor("asleep", "suspended")
            #expect(!old.contains(where: Truth.isAlive))
            #expect(daemon.processes(of: "web").count == 1)
            try daemon.done(.resume, "asleep")
            try daemon.eventually("the tree is there") { daemon.processes(of: "asleep").count == 3 }
            // Nobody found the lock of its app taken.
            let records = try File.list(daemon.directory + "/t")
                .compactMap { TruthFile(folder: daemon.directory + "/t", name: $0) }
            #expect(records.count >= 8 && records.allSatisfy { $0.wrongs == [] })
            try File.remove(daemon.runtime + "/recovery.unusable")
        }
    }

    @Test("orphans = \"end\" is for those without a record alone")
    func recorded() throws {
        try withRecovery("orphans = \"end\"\n" + Self.toml) { daemon throws in
            try prepare(daemon)
            let pids = try daemon.list().map(\.pid)
            try daemon.lose(.both)
            #expect(try daemon.list().map(\.pid) == pids)
        }
    }

    @Test("A pid that a stranger has by now is never touched", arguments: [Loss.killed, .keeper, .both])
    func stranger(loss: Loss) throws {
        let toml = """
            [apps.web]
            exec = ["@B/torpor-test-app"]
            restart_backoff = { initial = "10ms" }
            [apps.asleep]
            exec = ["@B/torpor-test-app"]
            restart = "never"
            [apps.ending]
            exec = ["@B/torpor-test-app", "--stubborn"]
            grace = "3s"
            [apps.later]
            exec = ["@B/torpor-test-app", "--stubborn"]
            grace = "3s"
            launch = "on-demand"
            """
        try withRecovery(toml) { daemon throws in
            let decoys = try Decoys(folder: daemon.directory)
            let apps = ["web", "asleep", "ending"]
            for app in apps { try daemon.waitFor(app, "active") }
            try daemon.eventually("it is deaf") { (try? daemon.truth("ending").attempted) ?? 0 > 0 }
            try daemon.done(.suspend, "asleep")
            _ = try daemon.verb(.stop, "ending") { $0.wait = false }
            let pids = try apps.map { try #require(try daemon.summary($0).pid) }
            let keeper = try daemon.livingKeeper()
            try daemon.lose(loss) {
                for pid in pids { kill(pid, SIGKILL) }
                // Their parent must have taken them in before their numbers are free.
                if loss == .killed { kill(keeper, SIGCONT) }
                try daemon.eventually("their numbers are free") { !pids.contains { File.exists("/proc/\($0)") } }
                for (app, pid) in zip(apps, pids) { try decoys.add(pid: pid, of: app) }
            }
            try daemon.eventually("web runs again") {
                let summary = try daemon.summary("web")
                return summary.state == "active" && !pids.contains(summary.pid ?? 0)
            }
            for app in ["asleep", "ending"] {
                try daemon.eventually("the end of \(app) is known") { try daemon.summary(app).state == "not-running" }
            }
            // When the same grace of one that is stopped later is over, so would its be.
            try daemon.done(.start, "later")
            try daemon.eventually("it is deaf") { (try? daemon.truth("later").attempted) ?? 0 > 0 }
            _ = try daemon.verb(.stop, "later") { $0.wait = false }
            try daemon.eventually("its grace is over") { try daemon.summary("later").lastExit?.signal == "SIGKILL" }
            #expect(decoys.problems() == [])
            if getuid() == 0 { #expect(decoys.reused + decoys.refused == 3) }
            if decoys.reused < 3 { print("only \(decoys.reused) of 3 pids could be given to strangers") }
        }
    }
}
