// SPDX-License-Identifier: Apache-2.0

import Foundation
import KeeperProtocol
import Linux
import Processes
import Testing

/// torpord and the keeper are replaced while what they care for goes on.
extension Scenarios {
    static func handOver(_ bench: Bench) throws {
        let one = try bench.launch(bench.shell("exec sleep 60", app: "stays")).get()
        let instance = bench.keeper.instance
        for round in 1...5 {
            try bench.settle()
            try bench.handOver()
            #expect(bench.keeper.instance == instance + UInt32(round))
            #expect(bench.keeper.leftOver.map(\.pid) == [one.pid])
            #expect(!bench.keeper.isFallback)
        }
        #expect(bench.log.isEmpty, "a hand-over is no failure: \(bench.log)")
        // Without SETTLED it is a death like any other, and damped like any other.
        for _ in 0..<2 { try bench.handOver() }
        #expect(bench.log.contains("torpord exited with status 0; the apps keep running"))
        #expect(bench.log.contains("starting it again in 100 ms"))
        try bench.end(one)
    }

    /// The keeper executes itself: 50 apps, 1,000 descriptors, an adopted process and a launch under way do not notice;
    /// an app that ends and a signal that comes in that moment are not lost.
    static func keeperReplaced(_ bench: Bench) throws {
        try? File.remove(bench.folder + "/moment")
        try File.makeFIFO(bench.folder + "/moment")
        let moment = try File.open(bench.folder + "/moment", .readWrite)
        let ends = try bench.launch(bench.shell("read line < \(bench.folder)/moment; exit 17", app: "ends")).get()
        var plan = bench.shell("exec sleep 60")
        var stay: [Launched] = []
        for index in 0..<50 {
            plan.app = "app\(index)"
            plan.incarnation = UInt32(index + 1)
            stay.append(try bench.launch(plan).get())
        }
        bench.keeper.keepsExits = true
        let kept = try bench.launch(bench.shell("exit 18", app: "kept")).get()
        #expect(try bench.turn { bench.exits.contains { $0.pid == kept.pid } })
        let foster = try Foster(folder: bench.folder)
        #expect(try bench.adopt(foster, app: "foster") == nil)
        let (hanging, gate) = try bench.hanging("hangs")
        bench.start(hanging) { _ in }

        let before = try bench.keeper.held().count
        let files = try (0..<1000).map { try File.open(bench.folder + "/held\($0)", [.readWrite, .create]) }
        let inodes = try files.map { try File.status(descriptor: $0.raw).inode }
        var errors: [Errno?] = []
        for index in 0..<500 {
            bench.keeper.hold("pair\(index)", [files[2 * index].raw, files[2 * index + 1].raw]) { errors.append($0) }
        }
        #expect(try bench.turn { errors.count == 500 })
        #expect(errors.allSatisfy { $0 == nil })
        try bench.settle()
        #expect(try bench.keeper.held().count == before + 500)
        let instance = bench.keeper.instance
        let old = try bench.commandLine()

        // What happens in that moment: the keeper sleeps until torpord and an app have ended and a signal waits.
        bench.keeper.handOver(replacingKeeper: true)
        bench.dropKeeper()
        try bench.whileKeeperSleeps {
            try Descriptor.writeAll(moment.raw, Array("now\n".utf8))
            try #require(try Descriptor.wait(ends.pidfd.raw, timeout: .seconds(60)))
            try bench.tellStandIn("0")
            try bench.waitForStandInsEnd()
            try Signal.send(try #require(Signal.number(named: "USR2")), to: bench.process.processIdentifier)
        }
        try bench.becomeTorpord()

        #expect(try bench.commandLine() != old && bench.commandLine().contains("--resume"))
        #expect(bench.keeper.instance == instance + 1)
        #expect(Set(bench.keeper.leftOver.map(\.app)) == Set((0..<50).map { "app\($0)" } + ["foster", "hangs"]))
        for (index, one) in stay.enumerated() {
            let entry = try #require(bench.keeper.leftOver.first { $0.app == "app\(index)" })
            #expect(entry.pid == one.pid && entry.startTime == one.startTime && entry.incarnation == index + 1)
            #expect(!Pidfd.hasEnded(entry.pidfd.raw))
            #expect(try ProcFS.stat(one.pid).parent == bench.process.processIdentifier)
        }
        #expect(Set(bench.keeper.waitingExits.map(\.app)) == ["ends", "kept"])
        let held = try bench.keeper.takeAllHeld().filter { $0.name.hasPrefix("pair") }
        #expect(held.count == 500)
        for index in 0..<500 {
            let pair = try #require(held.first { $0.name == "pair\(index)" })
            #expect(
                try pair.descriptors.map { try File.status(descriptor: $0.raw).inode }
                    == [inodes[2 * index], inodes[2 * index + 1]]
            )
        }
        bench.forgetExits()
        #expect(try bench.turn { bench.exits.count { ["ends", "kept"].contains($0.app) } == 2 })
        #expect(bench.exits.first { $0.app == "ends" }?.status == .exited(17))
        #expect(bench.exits.first { $0.app == "kept" }?.status == .exited(18))

        // The signal waits for somebody who listens.
        try bench.settle()
        #expect(try Descriptor.wait(bench.standIn.connection.raw, timeout: .seconds(60)))
        #expect(try Sockets.receive(bench.standIn.connection.raw, maximum: 16)?.bytes == Array("USR2".utf8))

        // Everything works as before.
        let reader = try File.open(gate, [.read, .nonBlocking])
        #expect(try bench.turn { bench.lateLaunches.contains { $0.app == "hangs" } })
        try foster.end(4)
        try foster.reap()
        #expect(try bench.turn { bench.exits.contains { $0.app == "foster" } })
        #expect(bench.exits.last { $0.app == "foster" }?.status == (bench.knowsFosters ? .exited(4) : nil))
        #expect(try bench.run { bench.shell("exit 3", output: $0) }.exit.status == .exited(3))
        for one in stay { try bench.end(one) }
        try bench.end(try #require(bench.lateLaunches.last?.launched))
        var released = 0
        for name in held.map(\.name) { bench.keeper.release(name) { _ in released += 1 } }
        #expect(try bench.turn { released == 500 })
        withExtendedLifetime(reader) {}
    }

    /// A replaced program that does not come up gives way to the one that worked before.
    static func fallback(_ bench: Bench) throws {
        let program = try #require(bench.torpord)
        try bench.settle()
        let instance = bench.keeper.instance

        try bench.install("/bin/false")
        try bench.handOver()
        #expect(bench.keeper.isFallback && bench.keeper.instance == instance + 2)
        #expect(bench.log.contains("\(program) ended before it had recovered"))
        #expect(bench.log.contains("starting the program that worked before instead"))
        // It stays so when that one dies as well, settled or not.
        try bench.killTorpord()
        try bench.becomeTorpord()
        #expect(bench.keeper.isFallback)
        try bench.settle()
        try bench.killTorpord()
        try bench.becomeTorpord()
        #expect(bench.keeper.isFallback)

        // Another program at the path is tried by itself; one that greets and ends as if it was meant has failed too.
        try bench.settle()
        try bench.install(Bench.python)
        try bench.killTorpord()
        try bench.becomeTorpord()
        #expect(!bench.keeper.isFallback)
        bench.keeper.sayBye()
        try bench.tellStandIn("0")
        try bench.becomeTorpord()
        #expect(bench.keeper.isFallback)

        // And one that settles is the good one from then on, also when nothing lies at the path.
        try bench.settle()
        try bench.handOver()
        #expect(!bench.keeper.isFallback)
        try bench.settle()
        try File.remove(program)
        try bench.killTorpord()
        try bench.becomeTorpord()
        #expect(bench.keeper.isFallback)
    }
}
