// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Linux

@Suite("Sockets of processes, seen from outside") struct SocketCopyTests {
    private static func copies() throws -> [SocketCopy] {
        let reading = try SocketCopyReading(ThisProcess.pid, pidfd: Pidfd.open(ThisProcess.pid))
        #expect(try reading.read())
        return reading.copies
    }

    @Test("A listener, what came in by it and what went out are told apart, and what waits is counted")
    func facts() throws {
        let listener = try Sockets.listenTCP(address: "127.0.0.1", port: 0)
        let port = try Sockets.port(listener.raw)
        let client = try Sockets.connectTCP(address: "127.0.0.1", port: port)
        #expect(try Descriptor.wait(listener.raw, timeout: .seconds(60)))
        func find(_ raw: Int32) throws -> SocketCopy? {
            let inode = try File.status(descriptor: raw).inode
            return try Self.copies().first { UInt64($0.inode) == inode }
        }
        let copy = try #require(try find(listener.raw))
        #expect(copy.facts.listens && copy.facts.family == .internet && copy.facts.kind == .stream)
        #expect(copy.facts.local == "127.0.0.1:\(port)")
        #expect(copy.facts.place == UInt64(port))
        #expect(Descriptor.readiness(copy.descriptor.raw).contains(.readable))
        let queues = try SocketQueues.read([copy.inode])
        #expect(queues[copy.inode]?.listens == true)
        #expect(queues[copy.inode]?.unread == 1)
        let accepted = try #require(try Sockets.accept(listener.raw))
        #expect(!Descriptor.readiness(copy.descriptor.raw).contains(.readable))
        let sent = Clock.monotonic()
        try Descriptor.writeAll(client.raw, Array("abc".utf8))
        #expect(try Descriptor.wait(accepted.raw, timeout: .seconds(60)))
        let incoming = try #require(try find(accepted.raw))
        #expect(incoming.facts.isConnected && incoming.facts.place == UInt64(port))
        #expect(incoming.traffic.unread == 3)
        let quiet = try #require(incoming.traffic.quiet)
        // The kernel's steps are up to 10 ms.
        #expect(quiet < Clock.monotonic() - sent + .milliseconds(20))
        let unanswered = try #require(incoming.traffic.unanswered)
        #expect(unanswered < Clock.monotonic() - sent + .milliseconds(20))
        #expect(try SocketQueues.read([incoming.inode])[incoming.inode]?.unread == 3)
        let outgoing = try #require(try find(client.raw))
        #expect(outgoing.facts.remote == "127.0.0.1:\(port)" && outgoing.facts.place != UInt64(port))
        #expect(outgoing.facts.local == incoming.facts.remote)
        #expect(outgoing.traffic.unanswered == nil, "it has received nothing")
        try Descriptor.writeAll(accepted.raw, Array("d".utf8))
        #expect(incoming.traffic.unanswered == nil)
        // What follows an answer at once: it came later, or within the same tick.
        for _ in 0..<50 {
            try Descriptor.writeAll(client.raw, Array("e".utf8))
            #expect(try Descriptor.wait(accepted.raw, timeout: .seconds(60)))
            while try Descriptor.read(accepted.raw, maximum: 100)?.isEmpty == false {}
            let traffic = incoming.traffic
            #expect((traffic.unanswered != nil) != (traffic.tied != nil))
            let queue = try #require(try SocketQueues.read([incoming.inode])[incoming.inode]).traffic
            #expect((queue.unanswered != nil) == (traffic.unanswered != nil))
            #expect((queue.tied != nil) == (traffic.tied != nil))
            #expect(queue.unread == 0 && queue.quiet != nil)
            try Descriptor.writeAll(accepted.raw, Array("f".utf8))
        }
    }

    @Test("Connections that nobody has accepted are told apart by numbers that stay")
    func unaccepted() throws {
        let listener = try Sockets.listenTCP(address: "127.0.0.1", port: 0)
        let port = try Sockets.port(listener.raw)
        func waiting() throws -> Set<UInt64> { try SocketQueues.unaccepted(at: [UInt64(port)])[UInt64(port)] ?? [] }
        #expect(try waiting().isEmpty)
        var clients = [try Sockets.connectTCP(address: "127.0.0.1", port: port)]
        #expect(try Descriptor.wait(listener.raw, timeout: .seconds(60)))
        let first = try waiting()
        #expect(first.count == 1 && !first.contains(0))
        clients.append(try Sockets.connectTCP(address: "127.0.0.1", port: port))
        let both = try waiting()
        #expect(both.count == 2 && both.isSuperset(of: first))
        let accepted = try #require(try Sockets.accept(listener.raw))
        #expect(try waiting() == both.subtracting(first))
        withExtendedLifetime((clients, accepted)) {}
    }

    @Test("A listener at a Unix socket has the place of its connections", arguments: [true, false])
    func unix(isAbstract: Bool) throws {
        let path = (isAbstract ? "@torpor-copies-" : "/tmp/torpor-copies-") + "\(ThisProcess.pid)"
        let listener = try Sockets.listen(path: path)
        defer { if !isAbstract { try? File.remove(path) } }
        let client = try Sockets.connect(path: path, nonBlocking: true)
        let facts = try SocketFacts(listener.raw)
        #expect(facts.local == path && facts.listens && facts.family == .unix)
        let inode = UInt32(try File.status(descriptor: listener.raw).inode)
        let waiting = try SocketQueues.read([inode])[inode]
        #expect(waiting?.unread == 1 && waiting?.place == facts.place)
        let accepted = try #require(try Sockets.accept(listener.raw))
        #expect(try SocketFacts(accepted.raw).place == facts.place)
        #expect(try SocketFacts(client.raw).place == 0)
    }

    @Test("The kernel knows the file of a Unix socket also when it is removed; an abstract socket has none")
    func file() throws {
        // On tmpfs, stat(2) shows the device that the kernel uses itself.
        let path = "/dev/shm/torpor-file-\(ThisProcess.pid)"
        let socket = try Sockets.listen(path: path)
        let status = try File.status(path)
        try File.remove(path)
        let file = try Sockets.file(of: socket.raw)
        #expect(file.device == status.device && file.inode == UInt32(truncatingIfNeeded: status.inode))
        let abstract = try Sockets.listen(path: "@torpor-file-\(ThisProcess.pid)")
        #expect(throws: Errno.self) { try Sockets.file(of: abstract.raw) }
    }

    @Test("A copy is another descriptor of the same socket, and a process that is gone has none")
    func copies() throws {
        let (one, other) = try Sockets.pair(.datagram)
        let mine = try Pidfd.open(ThisProcess.pid)
        let copy = try Pidfd.copy(mine.raw, one.raw)
        #expect(copy.raw != one.raw && Descriptor.sameFile(copy.raw, one.raw))
        other.close()
        one.close()
        #expect(throws: Errno.badFileDescriptor) { try Pidfd.copy(mine.raw, 1_000_000) }
        #expect(Pidfd.copyObstacle(ThisProcess.pid) == nil)
    }
}
