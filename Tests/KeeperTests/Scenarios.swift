// SPDX-License-Identifier: Apache-2.0

import EventLoop
import KeeperProtocol
import Linux
import Processes
import Testing

/// What is tried with the keeper as it ships, and again with one built to notice every wrong access.
enum Scenarios {
    static let all: [@Sendable (Bench) throws -> Void] = [
        launchFailures, exitsAndSignals, orphans, exitWhileAway, holding, garbage, inFlight, adoption, adoptedChild,
        launchesOfAnEarlierOne, manyLeftOver, keptExits, takingAll, handOver, keeperReplaced,
    ]

    static func launchFailures(_ bench: Bench) throws {
        func failure(_ change: (inout LaunchPlan) -> Void) throws -> LaunchFailure? {
            var plan = bench.shell("exit 0")
            change(&plan)
            guard case .failure(let failure) = try bench.launch(plan) else { return nil }
            return failure
        }
        let missing = try failure { $0.executable = "/nowhere/program" }
        #expect(missing?.stage == .exec && missing?.errno == .noSuchFileOrDirectory)
        #expect(missing?.description == "could not run /nowhere/program (exec): No such file or directory")
        let refused = try failure { $0.executable = bench.folder + "/log" }
        #expect(refused?.stage == .exec && refused?.errno == .permissionDenied)
        let directory = try failure { $0.directory = "/nowhere" }
        #expect(directory?.stage == .directory && directory?.errno == .noSuchFileOrDirectory)
        let file = try failure { $0.directory = "/etc/passwd" }
        #expect(file?.stage == .directory && file?.errno == .notDirectory)
        let limits = try failure { $0.limits = [(resource: 7, soft: 100, hard: 50)] }
        #expect(limits?.stage == .limits && limits?.errno == .invalidArgument)
        let cgroupFolder = try File.open("/etc", .directory)
        let cgroup = try failure { $0.cgroup = cgroupFolder.raw }
        #expect(cgroup?.stage == .cgroup && cgroup?.errno == .noSuchFileOrDirectory)
        let large = try failure { $0.arguments.append(String(repeating: "x", count: 200 * 1024)) }
        #expect(large?.stage == .plan)
        #expect(large?.description.contains("put long values into a file") == true)
        #expect(bench.exits.isEmpty, "a failed launch is no exit")
    }

    static func exitsAndSignals(_ bench: Bench) throws {
        #expect(try bench.run { bench.shell("exit 7", output: $0) }.exit.status == .exited(7))
        let killed = try bench.run { bench.shell("kill -9 $$", output: $0) }.exit
        #expect(killed.status == .signaled(Signal.kill, coreDumped: false))
        let aborted = try bench.run {
            var plan = bench.shell("kill -ABRT $$", app: "worker", output: $0)
            plan.limits = [(resource: 4, soft: 0, hard: 0)]
            plan.incarnation = 12
            return plan
        }.exit
        #expect(aborted.app == "worker" && aborted.incarnation == 12 && aborted.maxResidentBytes > 0)
        guard case .signaled(Signal.abort, _) = aborted.status else {
            Issue.record("an abort was reported as \(aborted.status)")
            return
        }
    }

    static func orphans(_ bench: Bench) throws {
        let before = bench.orphans.count
        // The middle shell ends at once, so that the last one loses its parent; it outlives the app too.
        let script = "( (read line < \(bench.folder)/gate; exit 5) & ) ; exit 0"
        try? File.remove(bench.folder + "/gate")
        try File.makeFIFO(bench.folder + "/gate")
        _ = try bench.run { bench.shell(script, app: "forker", output: $0) }
        let gate = try File.open(bench.folder + "/gate", .readWrite)
        try Descriptor.writeAll(gate.raw, Array("go\n".utf8))
        try #require(try bench.turn { bench.orphans.count > before }, "no orphan: \(bench.log)")
        let orphan = try #require(bench.orphans.last)
        #expect(orphan.app == "forker" && orphan.incarnation == 1 && orphan.status == .exited(5))
        #expect(orphan.command == "sh")
    }

    static func exitWhileAway(_ bench: Bench) throws {
        var plan = bench.shell("read line < \(bench.folder)/door; exit 42", app: "away")
        try? File.remove(bench.folder + "/door")
        try File.makeFIFO(bench.folder + "/door")
        let door = try File.open(bench.folder + "/door", .readWrite)
        let one = try bench.launch(plan).get()
        plan = bench.shell("exec sleep 60", app: "stays")
        plan.incarnation = 3
        let stays = try bench.launch(plan).get()
        plan = bench.shell("exec sleep 60", app: "helper")
        plan.isHelper = true
        let helper = try bench.launch(plan).get()

        let instance = bench.keeper.instance
        try bench.killTorpord()
        #expect(try Descriptor.wait(helper.pidfd.raw, timeout: .seconds(60)), "a helper must end with torpord")
        try Descriptor.writeAll(door.raw, Array("go\n".utf8))
        #expect(try Descriptor.wait(one.pidfd.raw, timeout: .seconds(60)))
        try bench.becomeTorpord()
        #expect(bench.keeper.instance == instance + 1)
        #expect(bench.keeper.leftOver.map(\.app) == ["stays"])
        #expect(bench.keeper.leftOver.first?.pid == stays.pid && bench.keeper.leftOver.first?.incarnation == 3)
        #expect(bench.keeper.leftOver.first.map { !Pidfd.hasEnded($0.pidfd.raw) } == true)
        #expect(try bench.turn { bench.exits.contains { $0.pid == one.pid } })
        #expect(bench.exits.first { $0.pid == one.pid }?.status == .exited(42))
        #expect(!bench.exits.contains { $0.pid == helper.pid }, "nobody wants a dead torpord's helper")
        try Pidfd.sendSignal(stays.pidfd.raw, Signal.kill)
        #expect(try bench.turn { bench.exits.contains { $0.pid == stays.pid } })
        #expect(bench.keeper.leftOver.isEmpty, "the pidfd of what has exited must not stay open")
    }

    static func holding(_ bench: Bench) throws {
        let before = Set(try bench.keeper.held())
        let files = try (0..<300).map { try File.open(bench.folder + "/held\($0)", [.readWrite, .create]) }
        var errors: [Errno?] = []
        bench.keeper.hold("web/fifo", files.map(\.raw)) { errors.append($0) }
        bench.keeper.hold("other", [files[0].raw]) { errors.append($0) }
        #expect(try bench.turn { errors.count == 2 })
        #expect(errors == [nil, nil])
        try bench.killTorpord()
        try bench.becomeTorpord()
        #expect(Set(try bench.keeper.held()) == before.union(["other", "web/fifo"]))
        let taken = try bench.keeper.takeHeld("web/fifo")
        #expect(
            try taken.map { try File.status(descriptor: $0.raw).inode }
                == files.map { try File.status(descriptor: $0.raw).inode }
        )
        #expect(try bench.keeper.takeHeld("web/fifo").count == 300, "taking leaves the keeper's own")
        #expect(try bench.keeper.takeHeld("unknown").isEmpty)
        errors = []
        for name in ["web/fifo", "other", "unknown"] { bench.keeper.release(name) { errors.append($0) } }
        #expect(try bench.turn { errors.count == 3 })
        #expect(errors == [nil, nil, .noSuchFileOrDirectory])
        #expect(Set(try bench.keeper.held()) == before)
    }

    static func garbage(_ bench: Bench) throws {
        var random = SplitMix(state: 42)
        let valid = try {
            var request = LaunchRequest()
            request.app = "x"
            request.executable = "/bin/true"
            request.arguments = ["true"]
            return try request.encoded(id: 0x7fff_ffff)
        }()
        for round in 0..<2000 {
            var message: [UInt8]
            switch round % 4 {
            case 0:
                message = (0..<Int.random(in: 1...200, using: &random)).map { _ in .random(in: 0...255, using: &random)
                }
            case 1:
                // BYE (10) is no garbage: it would be believed.
                let type = [1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 14, 99, 101].randomElement(using: &random)!
                message = [UInt8(type), 0, 0, 0, 255, 255, 255, 127]
                message += (0..<Int.random(in: 0...80, using: &random)).map { _ in .random(in: 0...255, using: &random)
                }
            case 2: message = Array(valid.prefix(Int.random(in: 1..<valid.count, using: &random)))
            default:
                message = valid
                message[Int.random(in: 8..<56, using: &random)] ^= .random(in: 128...255, using: &random)
            }
            if message.first == 10 { message[0] = 99 }
            let descriptors = round % 3 == 0 ? [bench.socket.raw] : []
            while try Sockets.send(bench.socket.raw, message, descriptors: descriptors) == nil {
                try bench.loop.runOnce(timeout: .milliseconds(20))
            }
            if round % 16 == 0 { try bench.loop.runOnce(timeout: .zero) }
        }
        let huge = [UInt8](repeating: 2, count: 300 * 1024)
        _ = try? Sockets.send(bench.socket.raw, huge)
        let exit = try bench.run { bench.shell("exit 9", output: $0) }.exit
        #expect(exit.status == .exited(9))
    }

    static func inFlight(_ bench: Bench) throws {
        // Opening a FIFO without a reader waits, as an exec on a dead filesystem does.
        let folder = bench.folder + "/cgroup"
        try File.makeDirectories(folder)
        try File.makeFIFO(folder + "/cgroup.procs")
        let directory = try File.open(folder, .directory)
        var plan = bench.shell("exit 0", app: "hangs")
        plan.cgroup = directory.raw
        var started = 0
        var refused: [LaunchFailure] = []
        for _ in 0..<KeeperProtocol.launchesInFlight {
            bench.start(plan) { if case .failure(let failure) = $0 { refused.append(failure) } else { started += 1 } }
        }
        var full = false
        bench.start(plan) {
            guard case .failure(let failure) = $0 else { return }
            full = failure.stage == .slot && failure.errno == .resourceTemporarilyUnavailable
        }
        #expect(try bench.turn { full })
        #expect(started == 0 && refused.isEmpty)
        #expect(try bench.keeper.held().isEmpty, "the keeper answers while launches hang")
        let reader = try File.open(folder + "/cgroup.procs", [.read, .nonBlocking])
        #expect(try bench.turn { started == KeeperProtocol.launchesInFlight }, "\(started) \(refused.prefix(2))")
        #expect(
            try bench.turn {
                bench.exits.count { $0.app == "hangs" } == KeeperProtocol.launchesInFlight
            }
        )
        reader.close()
    }
}

private struct SplitMix: RandomNumberGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }
}
