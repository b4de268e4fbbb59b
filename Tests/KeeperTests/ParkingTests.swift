// SPDX-License-Identifier: Apache-2.0

import Foundation
import KeeperProtocol
import Linux
import Processes
import Testing

@Suite("What is held is parked with the service manager", .serialized)
struct ParkingTests {
    private func files(_ count: Int, _ bench: Bench) throws -> (open: [Descriptor], inodes: [UInt64]) {
        let open = try (0..<count).map { try File.open(bench.folder + "/parked\($0)", [.readWrite, .create]) }
        return (open, try open.map { try File.status(descriptor: $0.raw).inode })
    }

    private func hold(
        _ bench: Bench,
        _ name: String,
        _ descriptors: ArraySlice<Descriptor>,
        replacing: Bool = false
    ) throws {
        var answer: Errno??
        bench.keeper.hold(name, descriptors.map(\.raw), replacing: replacing) { answer = $0 }
        #expect(try bench.turn { answer != nil })
        #expect(answer == .some(nil))
    }

    private func release(_ bench: Bench, _ name: String) throws {
        var answer: Errno??
        bench.keeper.release(name) { answer = $0 }
        #expect(try bench.turn { answer != nil })
        #expect(answer == .some(nil))
    }

    static let programs = SanitizedKeeper.programs

    @Test("held, added, replaced, released: the manager has the same", arguments: programs)
    func follows(program: String) throws {
        let manager = try Manager()
        try withBench(program: program, environment: manager.environment) { bench in
            let (open, inodes) = try files(6, bench)
            try hold(bench, "app/web", open[0..<2])
            try hold(bench, "app/web", open[2..<3])
            try hold(bench, "lock", open[3..<4])
            // systemd refuses such names.
            try hold(bench, "colon:name", open[0..<1])
            try hold(bench, "tab\tname", open[0..<1])
            try hold(bench, "bär", open[0..<1])
            try hold(bench, String(repeating: "x", count: 255), open[0..<1])
            bench.keeper.tellManager("READY=1")
            var wanted = ["app/web#0": inodes[0], "app/web#1": inodes[1], "app/web#2": inodes[2], "lock#0": inodes[3]]
            #expect(
                try bench.turn {
                    try? manager.read()
                    return manager.store == wanted && manager.texts.contains("READY=1")
                }
            )
            try hold(bench, "app/web", open[4..<6], replacing: true)
            wanted = ["app/web#0": inodes[4], "app/web#1": inodes[5], "lock#0": inodes[3]]
            #expect(
                try bench.turn {
                    try? manager.read()
                    return manager.store == wanted
                }
            )
            try release(bench, "lock")
            try release(bench, "colon:name")
            try hold(bench, "lock", open[0..<1])
            wanted["lock#0"] = inodes[0]
            #expect(
                try bench.turn {
                    try? manager.read()
                    return manager.store == wanted
                }
            )
            #expect(!bench.log.contains("Sanitizer") && !bench.log.contains("runtime error"), "\(bench.log)")

            // A meant end leaves nothing there.
            bench.keeper.sayBye()
            try bench.tellStandIn("0")
            #expect(try bench.status() == 0)
            try manager.read()
            #expect(manager.store.isEmpty)
        }
    }

    @Test("a manager that does not read holds up nobody, also while the keeper is replaced", arguments: programs)
    func full(program: String) throws {
        let manager = try Manager()
        try withBench(program: program, environment: manager.environment) { bench in
            let (open, inodes) = try files(2, bench)
            for index in 0..<700 { bench.keeper.hold("name\(index)", open.map(\.raw)) }
            #expect(try bench.keeper.held().count == 700, "the keeper answers")
            bench.keeper.tellManager("READY=1")
            for index in 0..<100 { bench.keeper.release("name\(index)") }
            for index in 100..<200 { bench.keeper.hold("name\(index)", [open[1].raw], replacing: true) }
            bench.keeper.settled()
            #expect(try bench.keeper.held().count == 600)
            try bench.handOver(replacingKeeper: true)
            #expect(try bench.keeper.held().count == 600)
            var wanted: [String: UInt64] = [:]
            for index in 100..<700 {
                wanted["name\(index)#0"] = inodes[index < 200 ? 1 : 0]
                wanted["name\(index)#1"] = index < 200 ? nil : inodes[1]
            }
            #expect(
                try bench.turn {
                    try? manager.read()
                    return manager.store == wanted && manager.texts.contains("READY=1")
                }
            )
            #expect(!bench.log.contains("Sanitizer") && !bench.log.contains("runtime error"), "\(bench.log)")
        }
    }

    /// One end of a connection that has unsent data and would wait for an hour to send it; and the other end.
    private func lingering() throws -> [Descriptor] {
        let listener = try Sockets.listenTCP(address: "127.0.0.1", port: 0)
        let one = try Sockets.connectTCP(address: "127.0.0.1", port: Sockets.port(listener.raw))
        #expect(try Descriptor.wait(listener.raw, timeout: .seconds(60)))
        let other = try #require(try Sockets.accept(listener.raw))
        var value = linger(l_onoff: 1, l_linger: 3600)
        setsockopt(one.raw, SOL_SOCKET, SO_LINGER, &value, socklen_t(MemoryLayout<linger>.size))
        let much = [UInt8](repeating: 0, count: 1 << 16)
        while send(one.raw, much, much.count, Int32(MSG_DONTWAIT)) > 0 {}
        return [one, other]
    }

    /// Processes of the keeper's that close something.
    private func closers(_ bench: Bench) -> [Int32] {
        let keeper = bench.process.processIdentifier
        let children = (try? File.readString("/proc/\(keeper)/task/\(keeper)/children")) ?? ""
        return children.split(separator: " ").compactMap { Int32($0) }
            .filter { (try? ProcFS.stat($0).comm) == "torpor-closer" }
    }

    @Test(
        "of what an app has stored neither the keeper nor the manager is the last to close it, since that may take for ever",
        arguments: programs
    )
    func lastClose(program: String) throws {
        let manager = try Manager()
        try withBench(program: program, environment: manager.environment) { bench in
            var pairs = try (0..<2).map { _ in try lingering() }
            let name = "store/web/000000nx"
            try hold(bench, name, [pairs[0][0], pairs[1][0]][...])
            let inodes = try pairs.map { try File.status(descriptor: $0[0].raw).inode }
            pairs = pairs.map { [$0[1]] }
            #expect(
                try bench.turn {
                    try? manager.read()
                    return manager.store.count == 2
                }
            )
            try release(bench, name)
            #expect(
                try bench.turn {
                    try? manager.read()
                    return manager.store.isEmpty && manager.barriers.count == 1
                }
            )
            // The manager has closed its own, and not said so yet.
            let wanted = Set(inodes.map { "socket:[\($0)]" })
            #expect(
                try bench.turn {
                    guard let pid = closers(bench).first else { return false }
                    let open = ((try? File.list("/proc/\(pid)/fd")) ?? [])
                        .compactMap { try? File.readLink("/proc/\(pid)/fd/\($0)") }
                    return wanted.isSubset(of: open) && open.count == 3
                }
            )
            let mine = try File.list("/proc/\(bench.process.processIdentifier)/fd").compactMap {
                try? File.readLink("/proc/\(bench.process.processIdentifier)/fd/\($0)")
            }
            #expect(wanted.isDisjoint(with: mine))
            manager.barriers = []
            #expect(try bench.turn { closers(bench).isEmpty })

            // Nor is it when all ends.
            let last = try lingering()
            try hold(bench, name, last[0..<1])
            #expect(!bench.log.contains("Sanitizer") && !bench.log.contains("runtime error"), "\(bench.log)")
            bench.keeper.sayBye()
            try bench.tellStandIn("0")
            #expect(try bench.status() == 0)
            withExtendedLifetime(pairs) {}
        }
    }

    @Test("those that close for an app have ended when the keeper ends, so that the manager need not kill them")
    func leave() throws {
        let manager = try Manager()
        try withBench(environment: manager.environment) { bench in
            // Only the keeper and the manager have the other end from here on.
            let reader = try { () throws -> Descriptor in
                let (reader, writer) = try Descriptor.pipe()
                try hold(bench, "store/web/000000n", [writer][...])
                return reader
            }()
            #expect(
                try bench.turn {
                    try? manager.read()
                    return manager.store.count == 1
                }
            )
            bench.keeper.sayBye()
            try bench.tellStandIn("0")
            // The manager reads on, as systemd does while a service stops.
            let keeper = try Pidfd.open(bench.process.processIdentifier)
            let end = Clock.monotonic() + .seconds(20)
            while try !Descriptor.wait(keeper.raw, timeout: .milliseconds(1)), Clock.monotonic() < end {
                try manager.read()
                manager.barriers = []
            }
            #expect(try bench.status() == 0)
            #expect(manager.store.isEmpty)
            // The last copy of the descriptor was the closer's. On a busy machine, the keeper does not wait for it.
            #expect(try Descriptor.wait(reader.raw, timeout: .seconds(20)))
        }
    }

    @Test("an app that stores and removes without end keeps the manager no busier than it may")
    func churn() throws {
        let manager = try Manager()
        try withBench(environment: manager.environment) { bench in
            let (open, _) = try files(1, bench)
            // The manager does not read: what is let go of before it heard of it need not be told.
            for index in 0..<50_000 {
                let name = "store/web/\(index)n"
                bench.keeper.hold(name, [open[0].raw])
                bench.keeper.release(name)
                if index.isMultiple(of: 500) { _ = try bench.keeper.held() }
            }
            try hold(bench, "lock", open[...])
            #expect(try bench.keeper.held() == ["lock"], "there is room for what others hold")
            #expect(
                try bench.turn {
                    try? manager.read()
                    manager.barriers = []
                    return manager.store["lock#0"] != nil
                }
            )
            #expect(manager.texts.count < 10_000, "\(manager.texts.count)")
        }
    }

    @Test("while those that close for an app are stuck, nothing more of it is held, and what others hold is")
    func stuck() throws {
        let manager = try Manager()
        var environment = manager.environment
        environment["TORPOR_CLOSER_PATIENCE_MS"] = "100"
        try withBench(environment: environment) { bench in
            let (open, _) = try files(1, bench)
            func answer(_ name: String) throws -> Errno? {
                var answer: Errno??
                bench.keeper.hold(name, [open[0].raw]) { answer = $0 }
                #expect(try bench.turn { answer != nil })
                return answer ?? nil
            }
            // The manager reads, and does not say so: each of them waits for it.
            for number in 1...4 {
                let name = "store/web/\(number)n"
                try hold(bench, name, open[...])
                try release(bench, name)
                #expect(
                    try bench.turn {
                        try? manager.read()
                        return closers(bench).count == number
                    }
                )
            }
            #expect(
                try bench.turn {
                    try? manager.read()
                    return manager.barriers.count == 4
                }
            )
            let end = Clock.monotonic() + .seconds(20)
            var refusal: Errno?
            while refusal == nil, Clock.monotonic() < end {
                refusal = try answer("store/web/more")
                if refusal == nil { try release(bench, "store/web/more") }
                try? manager.read()
            }
            #expect(refusal == .resourceBusy)
            try hold(bench, "lock", open[...])
            #expect(closers(bench).count == 4, "what it lets go of waits for them")
            // Another app is served as ever.
            #expect(try answer("store/db/one") == nil)
            try release(bench, "store/db/one")
            #expect(try bench.turn { closers(bench).count == 5 })
            manager.barriers = []
            #expect(
                try bench.turn {
                    try? manager.read()
                    manager.barriers = []
                    return closers(bench).isEmpty
                }
            )
            #expect(try answer("store/web/more") == nil)
        }
    }

    @Test("what one user sends without end does not use up the keeper's descriptors, though all that close it wait")
    func flood() throws {
        // It reads, and does not say so: each of them waits for it.
        let manager = try Manager()
        try withBench(environment: manager.environment) { bench in
            let keeper = bench.process.processIdentifier
            let limiting = try Process.run(
                URL(fileURLWithPath: "/usr/bin/prlimit"),
                arguments: ["--pid=\(keeper)", "--nofile=16384"]
            )
            limiting.waitUntilExit()
            try #require(limiting.terminationStatus == 0)
            // The keeper takes it for one whose close may block. If it did, the test's own would, too.
            let own = try unconnected()
            let sent = Array(repeating: own.raw, count: 250)
            var most = 0
            // More than 64 of them take with little more than 1024 each, and the keeper may have besides.
            for _ in 0..<400 {
                var answer: Errno??
                // systemd refuses such a name: the manager is told of nothing but those that wait.
                bench.keeper.hold("discard/4242/:", sent)
                bench.keeper.release("discard/4242/:") { answer = $0 }
                // An eighth of what it may open, and what it has of its own.
                let isTaken = try bench.turn {
                    try? manager.read()
                    most = (try? File.list("/proc/\(keeper)/fd").count) ?? .max
                    return answer == .some(nil) && most < 4096
                }
                try #require(isTaken, "it has \(most), and answers \(String(describing: answer))")
            }
            // Another user is served as ever.
            let other = try unconnected()
            let link = "socket:[\(try File.status(descriptor: other.raw).inode)]"
            func has(_ pid: Int32) -> Bool {
                let open = (try? File.list("/proc/\(pid)/fd")) ?? []
                return open.contains { (try? File.readLink("/proc/\(pid)/fd/\($0)")) == link }
            }
            try hold(bench, "discard/4243/:", [other][...])
            try release(bench, "discard/4243/:")
            #expect(
                try bench.turn {
                    try? manager.read()
                    return !has(keeper) && closers(bench).contains(where: has)
                }
            )
            #expect(
                try bench.turn {
                    try? manager.read()
                    manager.barriers = []
                    return closers(bench).isEmpty
                }
            )
            withExtendedLifetime(own) {}
        }
    }

    /// A TCP socket that nothing is connected to.
    private func unconnected() throws -> Descriptor {
        let fd = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        try #require(fd >= 0)
        return Descriptor(owning: fd)
    }

    @Test("a keeper that may open no more closes what is let go of, and holds again")
    func exhausted() throws {
        try withBench { bench in
            let (open, _) = try files(1, bench)
            var plan = bench.keeperPlan(Bench.program)
            plan.limits = [(resource: 7, soft: 128, hard: 128)]
            let first = bench.keepFirst()
            let second = try bench.launch(plan).get()
            try bench.becomeTorpord()
            func held(_ name: String) throws -> Bool {
                var answer: Errno??
                bench.keeper.hold(name, [open[0].raw]) { answer = $0 }
                #expect(try bench.turn { answer != nil })
                return answer == .some(nil)
            }
            var count = 0
            while count < 200, try held("store/web/\(count)n") { count += 1 }
            #expect(count > 20 && count < 128)
            for index in 0..<count { bench.keeper.release("store/web/\(index)n") }
            #expect(try bench.keeper.held().isEmpty)
            for index in 0..<count { #expect(try held("store/web/again\(index)n"), "\(index) of \(count)") }
            bench.keeper.sayBye()
            try bench.tellStandIn("0")
            #expect(try Descriptor.wait(second.pidfd.raw, timeout: .seconds(20)))
            withExtendedLifetime(first) {}
        }
    }

    @Test("no more is parked than the service can be started with")
    func descriptorLimit() throws {
        let manager = try Manager()
        try withBench { bench in
            // systemd could not start a service with more than half as many as its soft limit.
            let (open, _) = try files(100, bench)
            var plan = bench.keeperPlan(Bench.program)
            plan.limits = [(resource: 7, soft: 128, hard: 4096)]
            plan.environment.append("NOTIFY_SOCKET=\(manager.path)")
            let first = bench.keepFirst()
            let second = try bench.launch(plan).get()
            try bench.becomeTorpord()
            try hold(bench, "many", open[...])
            #expect(
                try bench.turn {
                    try? manager.read()
                    return bench.log.contains("LimitNOFILE=")
                }
            )
            #expect(manager.store.count == 32)
            // One that goes makes room for another.
            try release(bench, "many")
            try hold(bench, "few", open[0..<3])
            #expect(
                try bench.turn {
                    try? manager.read()
                    return manager.store.keys.sorted() == ["few#0", "few#1", "few#2"]
                }
            )
            bench.keeper.sayBye()
            try bench.tellStandIn("0")
            #expect(try Descriptor.wait(second.pidfd.raw, timeout: .seconds(20)))
            withExtendedLifetime(first) {}
        }
    }

    @Test("what was parked comes back in its order, and no more than fits is given", arguments: programs)
    func restored(program: String) throws {
        let manager = try Manager()
        try withBench { bench in
            let (open, inodes) = try files(5, bench)
            // As systemd does it: names in no order, and a listening socket of its own.
            var plan = bench.keeperPlan(program)
            plan.passed = [open[1].raw, open[0].raw, open[3].raw, open[2].raw]
            plan.setListenPid = true
            plan.environment += [
                "LISTEN_FDS=4", "LISTEN_FDNAMES=app/web#1:app/web#0:web.socket:app/web#4",
                "NOTIFY_SOCKET=\(manager.path)", "FDSTORE=4",
            ]
            let first = bench.keepFirst()
            let second = try bench.launch(plan).get()
            try bench.becomeTorpord()
            #expect(bench.standIn.environment.split(separator: "\n").contains { $0 == "FDSTORE" } == false)
            let held = try bench.keeper.takeAllHeld()
            #expect(Set(held.map(\.name)) == ["app/web", "web.socket"])
            #expect(
                try held.first { $0.name == "app/web" }?.descriptors.map { try File.status(descriptor: $0.raw).inode }
                    == [inodes[0], inodes[1], inodes[2]]
            )
            try hold(bench, "app/web", open[4..<5])
            try hold(bench, "more", open[0..<1])
            #expect(
                try bench.turn {
                    try? manager.read()
                    return manager.store == ["app/web#5": inodes[4]] && bench.log.contains("FileDescriptorStoreMax=")
                }
            )
            bench.keeper.sayBye(keepingParked: true)
            try bench.tellStandIn("0")
            #expect(try Descriptor.wait(second.pidfd.raw, timeout: .seconds(20)))
            try manager.read()
            #expect(manager.store == ["app/web#5": inodes[4]], "it was to be kept")
            withExtendedLifetime(first) {}
        }
    }
}
