// SPDX-License-Identifier: Apache-2.0

import KeeperProtocol
import Linux
import Processes
import Testing

/// What a later torpord needs to go on where an earlier one was.
extension Scenarios {
    /// Whether this kernel tells how another's child ended (PIDFD_INFO_EXIT, Linux 6.15).
    static let kernelTellsExits: Bool = {
        let parts = ((try? File.readString("/proc/sys/kernel/osrelease")) ?? "").split { !$0.isNumber }
            .prefix(2).compactMap { Int($0) }
        return parts.count == 2 && (parts[0], parts[1]) >= (6, 15)
    }()

    static func adoption(_ bench: Bench) throws {
        func status(_ code: Int32, reapFirst: Bool = false) throws -> ExitRecord {
            let foster = try Foster(folder: bench.folder)
            if reapFirst {
                try foster.end(code)
                try foster.reap()
                // It is gone from /proc when its parent has reaped it.
                try #require(try bench.turn { (try? ProcFS.stat(foster.identity.pid)) == nil })
            }
            #expect(try bench.adopt(foster, app: "foster") == nil)
            if !reapFirst {
                #expect(try bench.adopt(foster, app: "again") == .fileExists)
                #expect(!bench.exits.contains { $0.pid == foster.identity.pid })
                try foster.end(code)
                try foster.reap()
            }
            var exit: ExitRecord?
            _ = try bench.turn {
                exit = bench.exits.last { $0.pid == foster.identity.pid && $0.startTime == foster.identity.startTime }
                return exit != nil
            }
            return try #require(exit, "no end of what was adopted: \(bench.log)")
        }
        let known = bench.knowsFosters
        let first = try status(7)
        #expect(first.app == "foster" && first.incarnation == 5)
        #expect(first.status == (known ? .exited(7) : nil))
        #expect(try status(0).status == (known ? .exited(0) : nil))
        #expect(try status(-9).status == (known ? .signaled(9, coreDumped: false) : nil))
        #expect(try status(9, reapFirst: true).status == (known ? .exited(9) : nil))

        // Its parent never reaps it: it is not waited for long.
        let zombie = try Foster(folder: bench.folder)
        #expect(try bench.adopt(zombie, app: "zombie") == nil)
        try zombie.end(3)
        #expect(try bench.turn { bench.exits.contains { $0.pid == zombie.identity.pid } })
        #expect(bench.exits.last { $0.pid == zombie.identity.pid }?.status == nil)

        let file = try File.open("/dev/null")
        var error: Errno?
        bench.keeper.adopt(app: "file", incarnation: 1, identity: zombie.identity, pidfd: file.raw) { error = $0 }
        #expect(try bench.turn { error != nil })
        #expect(error == Errno(rawValue: 9))
    }

    /// What is adopted may lose its parent and become the keeper's own child.
    static func adoptedChild(_ bench: Bench) throws {
        try? File.remove(bench.folder + "/nursery")
        try File.makeFIFO(bench.folder + "/nursery")
        let script = "(read line < \(bench.folder)/nursery; exit 11) & echo $!; exec sleep 60"
        let output = try File.open(bench.folder + "/output", [.write, .create, .truncate])
        let parent = try bench.launch(bench.shell(script, output: output.raw)).get()
        var child: Int32?
        #expect(
            try bench.turn {
                let text = (try? File.readString(bench.folder + "/output")) ?? ""
                child = text.hasSuffix("\n") ? Int32(text.dropLast()) : nil
                return child != nil
            }
        )
        let pid = try #require(child)
        let pidfd = try Pidfd.open(pid)
        let identity = Identity(pid: pid, startTime: try ProcFS.stat(pid).startTime)
        var error: Errno?? = .none
        bench.keeper.adopt(app: "child", incarnation: 2, identity: identity, pidfd: pidfd.raw) { error = $0 }
        #expect(try bench.turn { error != nil })
        #expect(error == .some(nil))
        try Pidfd.sendSignal(parent.pidfd.raw, Signal.kill)
        #expect(try bench.turn { bench.exits.contains { $0.pid == parent.pid } })
        let gate = try File.open(bench.folder + "/nursery", .readWrite)
        try Descriptor.writeAll(gate.raw, Array("go\n".utf8))
        #expect(try bench.turn { bench.exits.contains { $0.pid == pid } })
        let exit = try #require(bench.exits.last { $0.pid == pid })
        #expect(exit.app == "child" && exit.status == .exited(11))
        #expect(!bench.orphans.contains { $0.pid == pid })
    }

    /// torpord dies while launches hang; some of them succeed, one fails while nobody is there, one after it.
    static func launchesOfAnEarlierOne(_ bench: Bench) throws {
        func letGo(_ gate: String) throws -> Descriptor { try File.open(gate, [.read, .nonBlocking]) }
        let later = try bench.hanging("later")
        let failsAway = try bench.hanging("fails-away", executable: "/nowhere/program")
        let failsLater = try bench.hanging("fails-later", executable: "/nowhere/program")
        for one in [later, failsAway, failsLater] { bench.start(one.plan) { _ in } }
        _ = try bench.keeper.held()  // the keeper has read the launches that were sent before
        try bench.killTorpord()
        try bench.becomeTorpord(greet: false)
        let away = try letGo(failsAway.gate)
        // Its end is known before the greeting: then it is no left-over.
        try bench.waitUntilTable(shows: "fails-away", inState: 3)
        try bench.greet()
        let left = bench.keeper.leftOver
        #expect(Set(left.map(\.app)) == ["later", "fails-later"])
        #expect(left.allSatisfy { $0.isLaunching && !$0.isAdopted })
        #expect(bench.keeper.waitingExits.map(\.app) == ["fails-away"])
        let gates = try [letGo(later.gate), letGo(failsLater.gate)]
        #expect(try bench.turn { bench.lateLaunches.count == 1 && bench.exits.count >= 2 })
        let launched = try #require(bench.lateLaunches.first)
        #expect(launched.app == "later" && launched.launched.pid == left.first { $0.app == "later" }?.pid)
        for app in ["fails-away", "fails-later"] {
            let failure = bench.exits.last { $0.app == app }?.launchFailure
            #expect(failure?.stage == .exec && failure?.errno == .noSuchFileOrDirectory, "\(app)")
        }
        try Pidfd.sendSignal(launched.launched.pidfd.raw, Signal.kill)
        #expect(try bench.turn { bench.exits.contains { $0.app == "later" } })
        withExtendedLifetime((gates, away)) {}
    }

    /// The table of more processes than one message has room for, among them some that have ended.
    static func manyLeftOver(_ bench: Bench) throws {
        let plans = (0..<230).map { bench.shell("exec sleep 1000", app: "many\($0)") }
        var launched: [String: Launched] = [:]
        for plan in plans { bench.start(plan) { launched[plan.app] = try? $0.get() } }
        try #require(try bench.turn { launched.count == plans.count })
        let ended = ["many0", "many100", "many229"]
        for app in ended { try Pidfd.sendSignal(try #require(launched[app]).pidfd.raw, Signal.kill) }
        try #require(try bench.turn { Set(bench.exits.map(\.app)).isSuperset(of: ended) })
        try bench.killTorpord()
        try bench.becomeTorpord()
        let left = bench.keeper.leftOver.filter { $0.app.hasPrefix("many") }
        #expect(left.count == plans.count - ended.count)
        #expect(Set(left.map(\.app)).isDisjoint(with: ended))
        for one in left {
            #expect(one.pid == launched[one.app]?.pid && one.startTime == launched[one.app]?.startTime)
            #expect(try File.readString("/proc/self/fdinfo/\(one.pidfd.raw)").contains("Pid:\t\(one.pid)\n"))
        }
    }

    /// An exit that was told and not forgotten is told to every torpord until one forgets it.
    static func keptExits(_ bench: Bench) throws {
        bench.keeper.keepsExits = true
        let exit = try bench.run { bench.shell("exit 21", app: "kept", output: $0) }.exit
        for _ in 0..<2 {
            try bench.killTorpord()
            try bench.becomeTorpord()
            bench.keeper.keepsExits = true
            #expect(bench.keeper.waitingExits.contains { $0.app == "kept" })
            bench.forgetExits()
            #expect(try bench.turn { bench.exits.contains { $0.app == "kept" } })
            let again = try #require(bench.exits.first { $0.app == "kept" })
            #expect(again == exit)
        }
        bench.keeper.forget(exit)
        try bench.killTorpord()
        try bench.becomeTorpord()
        #expect(!bench.keeper.waitingExits.contains { $0.app == "kept" })
        #expect(!bench.keeper.leftOver.contains { $0.app == "kept" })
    }

    static func takingAll(_ bench: Bench) throws {
        let before = try bench.keeper.takeAllHeld().map(\.name)
        let files = try (0..<300).map { try File.open(bench.folder + "/all\($0)", [.readWrite, .create]) }
        let inodes = try files.map { try File.status(descriptor: $0.raw).inode }
        var errors: [Errno?] = []
        let long = String(repeating: "n", count: 255)
        bench.keeper.hold("many", files.map(\.raw)) { errors.append($0) }
        for (index, file) in files.enumerated() {
            bench.keeper.hold("\(index)-" + (index % 2 == 0 ? "x" : String(long.dropFirst(4))), [file.raw]) {
                errors.append($0)
            }
        }
        bench.keeper.hold("replaced", files.prefix(3).map(\.raw)) { errors.append($0) }
        bench.keeper.hold("replaced", [files[7].raw, files[8].raw], replacing: true) { errors.append($0) }
        #expect(try bench.turn { errors.count == 303 })
        #expect(errors.allSatisfy { $0 == nil })
        let all = try bench.keeper.takeAllHeld()
        #expect(all.count == before.count + 302)
        func taken(_ name: String) throws -> [UInt64] {
            try #require(all.first { $0.name == name }).descriptors.map { try File.status(descriptor: $0.raw).inode }
        }
        #expect(try taken("many") == inodes)
        #expect(try taken("replaced") == [inodes[7], inodes[8]])
        for (index, inode) in inodes.enumerated() where index % 50 < 2 {
            #expect(try taken("\(index)-" + (index % 2 == 0 ? "x" : String(long.dropFirst(4)))) == [inode])
        }
        var released = 0
        for name in all.map(\.name) where !before.contains(name) { bench.keeper.release(name) { _ in released += 1 } }
        #expect(try bench.turn { released == 302 })
        #expect(try bench.keeper.takeAllHeld().map(\.name) == before)
    }
}
