// SPDX-License-Identifier: Apache-2.0

import Foundation
import KeeperProtocol
import Linux
import Processes
import Testing

/// What stands for the service manager: a socket, and what it was told.
private final class Manager {
    let path = NSTemporaryDirectory() + "torpor-notify-\(UUID().uuidString.prefix(8))"
    let socket: Descriptor
    private(set) var texts: [String] = []
    /// Inodes by name, as after what was told so far.
    private(set) var store: [String: UInt64] = [:]

    init() throws { socket = try Sockets.bindDatagram(path: path) }

    deinit { try? File.remove(path) }

    var environment: [String: String] { ["NOTIFY_SOCKET": path] }

    /// Reads what is there.
    func read() throws {
        while let message = try Sockets.receive(socket.raw, maximum: 9000) {
            let text = String(decoding: message.bytes, as: UTF8.self)
            texts.append(text)
            let fields = Dictionary(
                text.split(separator: "\n").map { line in
                    let parts = line.split(separator: "=", maxSplits: 1).map(String.init)
                    return (parts[0], parts.count > 1 ? parts[1] : "")
                },
                uniquingKeysWith: { $1 }
            )
            guard let name = fields["FDNAME"] else { continue }
            if fields["FDSTOREREMOVE"] == "1" {
                #expect(store.removeValue(forKey: name) != nil, "removes what was never given: \(name)")
            } else {
                #expect(fields["FDSTORE"] == "1" && fields["FDPOLL"] == "0" && message.descriptors.count == 1)
                #expect(store[name] == nil, "given twice without being removed: \(name)")
                guard let descriptor = message.descriptors.first else { continue }
                store[name] = try File.status(descriptor: descriptor.raw).inode
            }
        }
    }
}

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
