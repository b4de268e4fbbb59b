// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

@Suite("What the chaos test checks with") struct CheckerTests {
    private static let stamp = "2026-01-31T12:00:00.123Z "

    private func line(_ incarnation: Int, _ number: Int, voice: Character = "m", padding: Int = 3) -> String {
        let letter = Character(UnicodeScalar(UInt8(97 + number % 26)))
        return "\(Self.stamp)web \(incarnation) \(voice) \(number) \(String(repeating: letter, count: padding)).\n"
    }

    private func problems(_ text: String, truth: [(Int, UInt64, UInt64)] = []) -> [String] {
        var checker = LogChecker(app: "web")
        checker.take(Array(text.utf8))
        var problems = checker.problems
        for (incarnation, accepted, attempted) in truth {
            let voice = LogChecker.Voice(incarnation: UInt64(incarnation), letter: "m")
            let missing = checker.missing(voice, accepted: accepted, attempted: attempted)
            if missing > 0 { problems.append("\(missing) missing") }
        }
        return checker.problems.count > problems.count ? checker.problems : problems
    }

    @Test("A good log has no problem, however its bytes come in")
    func good() {
        let text =
            line(1, 1) + line(1, 1, voice: "e") + line(1, 2) + line(1, 2, voice: "e", padding: 0) + line(2, 1)
            + line(2, 2)
        #expect(problems(text, truth: [(1, 2, 2), (2, 2, 2)]) == [])
        var checker = LogChecker(app: "web")
        for byte in text.utf8 { checker.take([byte]) }
        #expect(checker.problems == [] && checker.lines == 6)
        #expect(checker.last[.init(incarnation: 2, letter: "m")] == 2)
    }

    @Test("The one line in flight may be there or not")
    func inFlight() {
        #expect(problems(line(1, 1) + line(1, 2), truth: [(1, 1, 2)]) == [])
        #expect(problems(line(1, 1), truth: [(1, 1, 2)]) == [])
        #expect(problems(line(1, 1) + line(1, 2) + line(1, 3), truth: [(1, 1, 2)]).count == 1)
    }

    @Test("A doubled, missing, swapped, torn, foreign or late line is a problem")
    func bad() {
        #expect(problems(line(1, 1) + line(1, 1)).count == 1)
        #expect(problems(line(1, 1) + line(1, 2) + line(1, 1) + line(1, 2)).count == 2)
        #expect(problems(line(1, 2)).count == 1)
        #expect(problems(line(1, 1) + line(1, 3)).count == 1)
        #expect(problems(line(1, 1) + line(1, 3) + line(1, 2)).count == 2)
        #expect(problems(String(line(1, 1).dropLast(3)) + line(1, 2)).count == 1)
        #expect(problems(line(1, 1).replacingOccurrences(of: "web", with: "db")).count == 1)
        #expect(problems(line(1, 1).replacingOccurrences(of: "bbb", with: "bcb")).count == 1)
        #expect(problems("12 bytes of output are missing\n").count == 1)
        #expect(problems(line(2, 1) + line(1, 1)).count == 1)
        #expect(problems(line(1, 1), truth: [(1, 3, 3)]) == ["2 missing"])
        #expect(problems("", truth: [(1, 3, 3)]) == ["3 missing"])
    }

    @Test("A log is followed through any number of rotations")
    func rotations() throws {
        let folder = try Daemon.makeFolder()
        defer { try? File.removeTree(folder) }
        let path = folder + "/log"
        var tail = LogTail(path: path)
        #expect(try tail.read() == [])
        func rotate(keeping count: Int = 9) throws {
            for index in (0..<count).reversed() {
                let from = index == 0 ? path : "\(path).\(index)"
                if File.exists(from) { try File.rename(from, "\(path).\(index + 1)") }
            }
        }
        try File.append(path, Array("a".utf8))
        #expect(try tail.read() == Array("a".utf8))
        try File.append(path, Array("b".utf8))
        try rotate()
        try File.append(path, Array("c".utf8))
        try rotate()
        try File.append(path, Array("d".utf8))
        #expect(try tail.read() == Array("bcd".utf8))
        #expect(try tail.read() == [])
        try File.remove(path)
        try File.append(path, Array("e".utf8))
        #expect(throws: Trouble.self) { try tail.read() }
    }

    @Test("The same seed and round make the same choices, another round others")
    func dice() {
        func some(_ seed: UInt64, _ round: Int) -> [UInt64] {
            var dice = Dice(seed: seed, round: round)
            return (0..<5).map { _ in dice.next() }
        }
        #expect(some(1, 7) == some(1, 7))
        #expect(some(1, 7) != some(1, 8) && some(1, 7) != some(2, 7))
    }

    @Test("A second incarnation, a missing or additional process, a stopped or running one: each is seen")
    func goals() throws {
        let fleet = Fleet()
        var goals = Goals(fleet)
        func member(_ pid: Int32, _ incarnation: UInt64 = 1, stopped: Bool = false) -> Census.Member {
            Census.Member(pid: pid, incarnation: incarnation, isStopped: stopped)
        }
        func isRight(_ name: String, _ members: [Census.Member]) throws -> Bool {
            goals.problem(try #require(fleet.apps.first { $0.name == name }), members) == nil
        }
        #expect(try isRight("plain1", [member(1)]))
        #expect(try !isRight("plain1", []))
        #expect(try !isRight("plain1", [member(1), member(2)]))
        #expect(try !isRight("plain1", [member(1, stopped: true)]))
        #expect(try isRight("tree1", [member(1), member(2), member(3)]))
        #expect(try !isRight("tree1", [member(1), member(2)]))
        #expect(try !isRight("tree1", [member(1), member(2), member(3, 2)]))
        #expect(try !isRight("tree1", [member(1), member(2), member(3, stopped: true)]))
        #expect(try isRight("oneshot1", []) && !isRight("oneshot1", [member(1)]))
        goals.acknowledged(.suspend, "tree1")
        #expect(try !isRight("tree1", [member(1, stopped: true), member(2), member(3, stopped: true)]))
        #expect(try !isRight("tree1", (1...5).map { member($0, stopped: true) }))
        #expect(try isRight("tree1", (1...3).map { member($0, stopped: true) }))
        goals.acknowledged(.resume, "tree1")
        #expect(try isRight("tree1", (1...3).map { member($0) }))
        goals.acknowledged(.stop, "base1")
        for name in ["base1", "middle1", "top1"] { #expect(try isRight(name, []) && !isRight(name, [member(1)])) }
        goals.acknowledged(.start, "middle1")
        #expect(try isRight("base1", [member(1)]) && isRight("middle1", [member(1)]) && isRight("top1", []))
    }

    @Test("Processes are found by their environment, with the incarnation, stopped or not, and nobody else's")
    func census() throws {
        let folder = try Daemon.makeFolder()
        defer { try? File.removeTree(folder) }
        try File.makeDirectories(folder + "/t")
        let census = Census(folder: folder)
        func start(_ folder: String, _ incarnation: Int) throws -> Int32 {
            try Spawn.start(
                [Built.path("torpor-test-app"), "--period", "100000"],
                environment: ["TPTEST": folder, "TORPOR_APP": "web", "TORPOR_INCARNATION": "\(incarnation)"],
                output: "/dev/null"
            )
        }
        let pids = try [start(folder, 1), start(folder, 2), start(folder + "0", 1)]
        defer {
            for pid in pids {
                kill(pid, SIGKILL)
                waitpid(pid, nil, 0)
            }
        }
        func eventually(_ isSo: ([Census.Member]) throws -> Bool) rethrows -> Bool {
            let end = Clock.monotonic() + .seconds(60)
            while Clock.monotonic() < end {
                if try isSo(census.look().members("web").sorted { $0.pid < $1.pid }) { return true }
                usleep(1_000)
            }
            return false
        }
        #expect(eventually { $0.map(\.pid) == [pids[0], pids[1]].sorted() && Set($0.map(\.incarnation)) == [1, 2] })
        // One could not have the lock of the app while the other had it.
        #expect(
            try eventually { _ in
                try File.list(folder + "/t").compactMap { TruthFile(folder: folder + "/t", name: $0) }
                    .filter { $0.wrongs.contains { $0.contains("beside another") } }.count == 1
            }
        )
        kill(pids[0], SIGSTOP)
        #expect(eventually { $0.contains { $0.pid == pids[0] && $0.isStopped } })
        kill(pids[0], SIGKILL)
        #expect(eventually { $0.map(\.pid) == [pids[1]] })
    }

    @Test("A decoy tells of a signal that was handled, of a stop and of its death")
    func decoys() throws {
        let folder = try Daemon.makeFolder()
        defer { try? File.removeTree(folder) }
        let decoys = try Decoys(folder: folder)
        for name in ["one", "two", "three", "four"] { try decoys.add(like: name) }
        #expect(decoys.problems() == [])
        kill(decoys.pids[0], SIGCONT)
        kill(decoys.pids[1], SIGSTOP)
        kill(decoys.pids[2], SIGKILL)
        let end = Clock.monotonic() + .seconds(60)
        while decoys.problems().count < 3, Clock.monotonic() < end { usleep(1_000) }
        let problems = decoys.problems()
        #expect(problems.count == 3 && problems[0].contains("got signal 18 from process \(getpid())"))
        #expect(problems.last?.contains("was killed") == true)
    }
}
