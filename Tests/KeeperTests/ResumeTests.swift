// SPDX-License-Identifier: Apache-2.0

import Foundation
import KeeperProtocol
import Linux
import Processes
import Testing

/// The state that one keeper leaves to the next (torpor_keeper_resume.h).
@Suite("A keeper that goes on from another one's state", .serialized)
struct ResumeTests {
    private func file(_ bytes: [UInt8]) throws -> Descriptor {
        let file = try Memory.file(named: "state")
        try Descriptor.writeAll(file.raw, bytes)
        return file
    }

    private func state(_ held: [(name: String, descriptors: [Int32])] = [], instance: UInt32 = 4) -> [UInt8] {
        ResumeState(instance: instance, appDescriptorLimit: nil, held: held).encoded()
    }

    /// Runs a keeper that is to refuse; its status, and what it said.
    private func refused(
        _ program: String,
        _ bytes: [UInt8],
        passing: [Int32] = [],
        _ bench: Bench
    ) throws -> (output: String, exit: ExitRecord) {
        let memory = try file(bytes)
        return try bench.run {
            var plan = bench.keeperPlan(program, options: ["--resume", "3"])
            plan.passed = [memory.raw] + passing
            plan.standardOutput = $0
            plan.standardError = $0
            return plan
        }
    }

    @Test(
        "a torpord that lost its keeper becomes one, which has all that was held",
        arguments: SanitizedKeeper.programs
    )
    func become(program: String) throws {
        try withBench { bench in
            let files = try (0..<300).map { try File.open(bench.folder + "/held\($0)", [.readWrite, .create]) }
            let inodes = try files.map { try File.status(descriptor: $0.raw).inode }
            let memory = try file(
                state([("lock", [4]), ("many", (5..<203).map { $0 }), ("", [4]), ("gone", [900]), ("none", [])])
            )
            var plan = bench.keeperPlan(program, options: ["--resume", "3"])
            plan.passed = [memory.raw] + files.prefix(199).map(\.raw)
            let first = bench.keepFirst()
            let second = try bench.launch(plan).get()
            try bench.becomeTorpord()
            #expect(bench.keeper.pid == second.pid && bench.keeper.instance == 5)
            #expect(bench.keeper.leftOver.isEmpty && bench.keeper.waitingExits.isEmpty)
            let held = try bench.keeper.takeAllHeld()
            #expect(held.map(\.name) == ["lock", "many"])
            #expect(
                try held.flatMap(\.descriptors).map { try File.status(descriptor: $0.raw).inode }
                    == Array(inodes.prefix(199))
            )
            #expect(bench.log.contains("descriptor 900 (gone) is lost"))
            // A torpord that dies before it greets is not the end of such a keeper: there are apps.
            try bench.killTorpord()
            try bench.becomeTorpord(greet: false)
            try bench.killTorpord()
            try bench.becomeTorpord()
            #expect(bench.keeper.instance == 7)
            bench.keeper.sayBye()
            try bench.tellStandIn("0")
            #expect(try Descriptor.wait(second.pidfd.raw, timeout: .seconds(20)))
            withExtendedLifetime(first) {}
        }
    }

    @Test("a state that it cannot read is refused with a sentence", arguments: SanitizedKeeper.programs)
    func refusal(program: String) throws {
        try withBench { bench in
            var newer = state()
            newer[4] = 9
            var answer = try refused(program, newer, bench)
            #expect(answer.exit.status == .exited(1))
            #expect(
                answer.output.contains("cannot resume from a keeper's state of version 9: this program reads version 1")
            )

            for (index, damage) in [
                Array(state([("lock", [3])]).dropLast()), state() + [0], Array(state().prefix(100)),
                [UInt8](repeating: 0xff, count: 400),
            ].enumerated() {
                answer = try refused(program, damage, bench)
                #expect(answer.exit.status == .exited(1), "\(index)")
                #expect(answer.output.contains("cannot resume from the last keeper's state"), "\(answer.output)")
                #expect(!answer.output.contains("Sanitizer") && !answer.output.contains("runtime error"))
            }
            answer = try refused(program, [], bench)
            #expect(answer.exit.status == .exited(1) && answer.output.contains("run torpord instead"))
        }
    }

    @Test("the program that wrote it goes on when the new one refuses it")
    func back() throws {
        try withBench { bench in
            let writer = try File.open("/bin/echo")
            var newer = state()
            newer[4] = 9
            withUnsafeBytes(of: Int32(4)) { newer.replaceSubrange(12..<16, with: $0) }
            let answer = try refused(Bench.program, newer, passing: [writer.raw], bench)
            #expect(answer.exit.status == .exited(0))
            #expect(answer.output.contains("the previous keeper continues\n--resume-back 3 /usr/bin/python3"))
        }
    }

    @Test("it says which states it can go on from")
    func accepts() throws {
        try withBench { bench in
            func accepts(_ version: String) throws -> (status: Processes.ExitStatus?, output: String) {
                let (output, exit) = try bench.run {
                    var plan = bench.shell("", output: $0)
                    plan.executable = Bench.program
                    plan.arguments = ["torpor-keeper", "--accepts", version]
                    return plan
                }
                return (exit.status, output)
            }
            #expect(try accepts("\(bench.keeper.resumeVersion)") == (.exited(0), ""))
            for version in ["9", "0", "", "x", "1x", "-1"] {
                let answer = try accepts(version)
                #expect(answer.status == .exited(1), "\(version)")
                #expect(answer.output.contains("cannot resume from a keeper's state of version \(version):"))
            }
        }
    }

    @Test("a keeper whose own program is gone goes on as it is")
    func withoutProgram() throws {
        let program = NSTemporaryDirectory() + "torpor-keeper-\(UUID().uuidString.prefix(8)).program"
        try copyProgram(Bench.program, to: program)
        defer { try? File.remove(program) }
        try withBench(program: program) { bench in
            let one = try bench.launch(bench.shell("exec sleep 60", app: "stays")).get()
            let file = try File.open("/dev/null")
            bench.keeper.hold("one", [file.raw])
            try bench.settle()
            #expect(try bench.keeper.held() == ["one"])
            try File.remove(program)
            try bench.handOver(replacingKeeper: true)
            #expect(bench.log.contains("could not run \(program) again, so it is not replaced"))
            #expect(bench.keeper.leftOver.map(\.pid) == [one.pid])
            #expect(try bench.keeper.takeAllHeld().map(\.name) == ["one"])
            // Nothing of it is left open to what is started.
            let folder = "/proc/\(bench.standIn.pid)/fd"
            let open = try FileManager.default.contentsOfDirectory(atPath: folder)
                .compactMap { try? File.readLink(folder + "/" + $0) }
            #expect(!open.contains { $0.contains("memfd") || $0.contains("pidfd") }, "\(open)")
            #expect(open.count { $0 == "/dev/null" } == 1, "standard input, and not what is held")
            try bench.settle()
            try copyProgram(Bench.program, to: program)
            try bench.handOver(replacingKeeper: true)
            #expect(try bench.commandLine().contains("--resume"))
            #expect(bench.keeper.leftOver.map(\.pid) == [one.pid])
            #expect(try bench.keeper.takeAllHeld().map(\.name) == ["one"])
        }
    }

    @Test("3,000 descriptors are taken back in milliseconds")
    func speed() throws {
        try withBench { bench in
            let pairs = try (0..<1000).map { _ in try [Descriptor.event(), .event(), .event()] }
            var answers = 0
            for (index, three) in pairs.enumerated() {
                bench.keeper.hold("app/number-\(index)", three.map(\.raw)) { _ in answers += 1 }
            }
            #expect(try bench.turn { answers == 1000 })
            // What the two have of a processor for it: others may want it too.
            func spent() throws -> Duration {
                var own = timespec()
                clock_gettime(CLOCK_THREAD_CPUTIME_ID, &own)
                let keeper = try ProcFS.stat(bench.process.processIdentifier)
                return .seconds(own.tv_sec) + .nanoseconds(own.tv_nsec)
                    + Clock.duration(ticks: keeper.userTicks + keeper.systemTicks)
            }
            let rounds = 10
            let before = try spent()
            for _ in 0..<rounds {
                let all = try bench.keeper.takeAllHeld()
                #expect(all.count == 1000 && all.allSatisfy { $0.descriptors.count == 3 })
            }
            let each = try (spent() - before) / rounds
            print("3,000 descriptors under 1,000 names were taken back in \(each)")
            #expect(each < .milliseconds(50))
        }
    }
}
