// SPDX-License-Identifier: Apache-2.0

import Foundation
import KernelFiles
import Linux
import TestAddresses
import Testing

/// Two sockets that are connected over loopback, and the one that listens.
struct Loopback {
    let listener: Descriptor
    private(set) var pairs: [(client: Descriptor, server: Descriptor)] = []

    /// nil where the machine has no such address.
    init?(_ address: String, count: Int = 1) throws {
        do throws(Errno) {
            listener = try Sockets.listenTCP(address: address, port: TestAddress.port())
        } catch {
            if error == .addressNotAvailable || error == .addressFamilyNotSupported { return nil }
            throw error
        }
        for _ in 0..<count {
            let client = try Sockets.connectTCP(address: address, port: Sockets.port(listener.raw))
            try #require(try Descriptor.wait(listener.raw, timeout: .seconds(60)))
            pairs.append((client, try #require(try Sockets.accept(listener.raw))))
        }
    }

    var inodes: [UInt32] { get throws { try pairs.flatMap { [try inode($0.client), try inode($0.server)] } } }
}

func inode(_ descriptor: Descriptor) throws -> UInt32 {
    UInt32(try File.status(descriptor: descriptor.raw).inode)
}

@Suite("TCP connections") struct TCPConnectionTests {
    @Test("of another network namespace are read from /proc: open ones, and when the last one of a listener was closed")
    func foreign() throws {
        let loop = try #require(try Loopback("127.0.0.1", count: 2))
        let before = try ForeignConnections(of: ThisProcess.pid)
        #expect(try before.open.isSuperset(of: loop.inodes))
        let listener = try inode(loop.listener)
        #expect(before.lastClosed(at: [listener]) == nil)
        let start = Clock.monotonic()
        let gone = try [inode(loop.pairs[0].client), inode(loop.pairs[0].server)]
        loop.pairs[0].client.close()
        loop.pairs[0].server.close()
        let after = try ForeignConnections(of: ThisProcess.pid)
        #expect(after.open.isDisjoint(with: gone))
        #expect(try after.open.isSuperset(of: [inode(loop.pairs[1].client), inode(loop.pairs[1].server)]))
        // The kernel counts in hundredths of a second.
        let closed = try #require(after.lastClosed(at: [listener]))
        #expect(closed >= start - .seconds(1) && closed <= Clock.monotonic() + .seconds(1))
    }

    func found(_ descriptor: Descriptor) throws -> TCPConnection? {
        let number = try inode(descriptor)
        return try TCPConnections.established().first { $0.inode == number }
    }

    func idle(_ descriptor: Descriptor) throws -> Duration {
        let connection = try #require(try found(descriptor))
        return Clock.monotonic() - (try #require(connection.lastTraffic))
    }

    /// Looks again until it is so, at most 60 s.
    func eventually(_ what: Comment, _ body: () throws -> Bool) throws {
        let deadline = Clock.monotonic() + .seconds(60)
        while try !body() {
            try #require(Clock.monotonic() < deadline, what)
            usleep(1000)
        }
    }

    @Test(
        "whose the other side is shows once it is accepted, and as long as it is open",
        arguments: ["127.0.0.1", "::1"]
    )
    func peer(address: String) throws {
        guard let loopback = try Loopback(address) else { return print("skipped: there is no \(address)") }
        let pair = loopback.pairs[0]
        #expect(Sockets.peer(ofTCP: pair.client.raw) == .user(Users.effectiveUID))
        #expect(Sockets.peer(ofTCP: pair.server.raw) == .user(Users.effectiveUID))
        let waiting = try Sockets.connectTCP(address: address, port: Sockets.port(loopback.listener.raw))
        try #require(try Descriptor.wait(loopback.listener.raw, timeout: .seconds(60)))
        #expect(Sockets.peer(ofTCP: waiting.raw) == .unknown)
        var accepted = try Sockets.accept(loopback.listener.raw)
        #expect(accepted != nil && Sockets.peer(ofTCP: waiting.raw) == .user(Users.effectiveUID))
        accepted = nil
        #expect(Sockets.peer(ofTCP: waiting.raw) == .unknown)
    }

    @Test("whose the other side is shows with IPv4 over sockets of IPv6 too, and for addresses that are not 127.0.0.1")
    func otherPeers() throws {
        let address = "::ffff:127.0.0.2"
        guard let loopback = try Loopback(address) else { return print("skipped: there is no \(address)") }
        let plain = try Sockets.connectTCP(address: "127.0.0.2", port: Sockets.port(loopback.listener.raw))
        try #require(try Descriptor.wait(loopback.listener.raw, timeout: .seconds(60)))
        let accepted = try #require(try Sockets.accept(loopback.listener.raw))
        for socket in [loopback.pairs[0].client.raw, loopback.pairs[0].server.raw, plain.raw, accepted.raw] {
            #expect(Sockets.peer(ofTCP: socket) == .user(Users.effectiveUID))
        }
    }

    @Test("whose the other side is shows of another user's", .enabled(if: Users.isRoot, "only root can become another"))
    func othersPeer() throws {
        let port = try TestAddress.port()
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/setpriv")
        let program = """
            import socket
            s = socket.create_server(("127.0.0.1", \(port)))
            c = s.accept()[0]
            c.sendall(b"x")
            c.recv(1)
            """
        process.arguments = [
            "--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3", "-S", "-c", program,
        ]
        try process.run()
        defer { process.terminate() }
        var client: Descriptor?
        try eventually("it writes") {
            let made = try Sockets.connectTCP(address: "127.0.0.1", port: port)
            guard try Descriptor.wait(made.raw, timeout: .seconds(60)), Sockets.pendingError(made.raw) == nil,
                try Descriptor.read(made.raw, maximum: 1) == [UInt8(ascii: "x")]
            else { return false }
            client = made
            return true
        }
        #expect(Sockets.peer(ofTCP: try #require(client).raw) == .user(65534))
    }

    @Test("both ends of a connection are there, the socket that listens is not", arguments: ["127.0.0.1", "::1"])
    func established(address: String) throws {
        guard let loopback = try Loopback(address) else { return print("skipped: there is no \(address)") }
        #expect(try found(loopback.pairs[0].client)?.lastTraffic != nil)
        #expect(try found(loopback.pairs[0].server)?.lastTraffic != nil)
        #expect(try found(loopback.listener) == nil)
    }

    @Test(
        "a connection that one side has closed does not count, nor one in TIME_WAIT",
        arguments: ["127.0.0.1", "::1"]
    )
    func halfClosed(address: String) throws {
        guard let loopback = try Loopback(address) else { return print("skipped: there is no \(address)") }
        let (client, server) = loopback.pairs[0]
        try Sockets.shutdownWriting(client.raw)
        try eventually("half closed") { try found(client) == nil && found(server) == nil }
        let numbers = try loopback.inodes
        client.close()
        server.close()
        #expect(try !TCPConnections.established().contains { numbers.contains($0.inode) })
    }

    @Test("a connection that nobody has accepted has no number of a socket yet")
    func backlog() throws {
        let listener = try Sockets.listenTCP(address: "127.0.0.1", port: 0)
        let client = try Sockets.connectTCP(address: "127.0.0.1", port: Sockets.port(listener.raw))
        try #require(try Descriptor.wait(listener.raw, timeout: .seconds(60)))
        #expect(try found(client) != nil)
        #expect(try TCPConnections.established().contains { $0.inode == 0 })
    }

    @Test("data in either direction sets the time back to zero, silence lets it grow")
    func traffic() throws {
        let loopback = try #require(try Loopback("127.0.0.1"))
        let (client, server) = loopback.pairs[0]
        for (sender, receiver) in [(client, server), (server, client)] {
            try eventually("silence") { try idle(sender) >= .milliseconds(200) }
            try eventually("traffic") {
                try Sockets.send(sender.raw, [1, 2, 3])
                try #require(try Descriptor.wait(receiver.raw, timeout: .seconds(60)))
                return try idle(sender) < .milliseconds(200) && idle(receiver) < .milliseconds(200)
            }
        }
    }

    @Test("more connections than one message of the kernel holds are all there, once each")
    func many() throws {
        ThisProcess.raiseDescriptorLimit()
        let loopback = try #require(try Loopback("127.0.0.1", count: 450))
        let numbers = try Set(loopback.inodes)
        let found = try TCPConnections.established().map(\.inode).filter(numbers.contains)
        #expect(numbers.count == 900 && found.sorted() == numbers.sorted())
    }

    @Test("a reading that is out of time goes on where it was")
    func pieces() throws {
        let loopback = try #require(try Loopback("127.0.0.1", count: 200))
        let reading = try TCPConnectionReading()
        var pieces = 1
        while try !reading.read(until: .zero) { pieces += 1 }
        #expect(pieces > 3)
        #expect(try Set(loopback.inodes).isSubset(of: reading.connections.map(\.inode)))
    }

    /// When a connection to one that listens was last closed.
    func lastClosed(_ listeners: Descriptor...) throws -> [Duration?] {
        let reading = try TCPConnectionReading()
        try #require(try reading.read())
        return try listeners.map { listener in
            let number = try inode(listener)
            return try #require(reading.listeners.first { $0.inode == number }).lastClosed
        }
    }

    /// Closes both ends, that of the client or the server first, and waits until neither has any more to say.
    func end(_ pair: (client: Descriptor, server: Descriptor), clientFirst: Bool) throws {
        let (first, second) = clientFirst ? (pair.client, pair.server) : (pair.server, pair.client)
        try Sockets.shutdownWriting(first.raw)
        try #require(try Descriptor.wait(second.raw, timeout: .seconds(60)))
        second.close()
        try #require(try Descriptor.wait(first.raw, timeout: .seconds(60)))
        first.close()
    }

    @Test(
        "when a connection was closed is known of the socket that listens, whoever closed first",
        arguments: ["127.0.0.1", "::1", "0.0.0.0", "::"],
        [false, true]
    )
    func closed(address: String, clientFirst: Bool) throws {
        guard let loopback = try Loopback(address, count: 2) else { return print("skipped: there is no \(address)") }
        let port = try Sockets.port(loopback.listener.raw)
        #expect(try lastClosed(loopback.listener) == [nil], "none was closed yet")
        var before = Clock.monotonic()
        for pair in loopback.pairs {
            try end(pair, clientFirst: clientFirst)
            let time = try #require(try lastClosed(loopback.listener)[0])
            // The kernel's steps are up to 10 ms.
            #expect(time > before - .milliseconds(20) && time <= Clock.monotonic(), "\(port)")
            before = Clock.monotonic()
            try eventually("the kernel's time has moved") { Clock.monotonic() - before > .milliseconds(50) }
            #expect(try #require(try lastClosed(loopback.listener)[0]) < before + .milliseconds(20))
            before = Clock.monotonic()
        }
    }

    @Test("an IPv4 connection to a socket that listens on all addresses of both versions is one of its own")
    func mapped() throws {
        guard let loopback = try Loopback("::", count: 0) else { return print("skipped: there is no IPv6") }
        for clientFirst in [false, true] {
            let before = Clock.monotonic()
            let client = try Sockets.connectTCP(address: "127.0.0.1", port: Sockets.port(loopback.listener.raw))
            try #require(try Descriptor.wait(loopback.listener.raw, timeout: .seconds(60)))
            try end((client, try #require(try Sockets.accept(loopback.listener.raw))), clientFirst: clientFirst)
            let time = try #require(try lastClosed(loopback.listener)[0])
            #expect(time > before - .milliseconds(20))
            // Else the next one could be this one, read a step of the kernel's later.
            try eventually("the kernel's time has moved") { Clock.monotonic() - before > .milliseconds(50) }
        }
    }

    @Test(
        "of sockets that listen on one port, only that of the connection's address is concerned",
        arguments: [false, true]
    )
    func samePort(clientFirst: Bool) throws {
        let loopback = try #require(try Loopback("127.0.0.1"))
        let port = try Sockets.port(loopback.listener.raw)
        let other = try Sockets.listenTCP(address: "127.0.0.2", port: port)
        try end(loopback.pairs[0], clientFirst: clientFirst)
        let times = try lastClosed(loopback.listener, other)
        #expect(times[0] != nil && times[1] == nil)
    }

    @Test("of very many closed connections none is kept, and they are read in pieces")
    func manyClosed() throws {
        ThisProcess.raiseDescriptorLimit()
        let loopback = try #require(try Loopback("127.0.0.1", count: 450))
        for (index, pair) in loopback.pairs.enumerated() { try end(pair, clientFirst: index % 2 == 0) }
        let numbers = try Set([inode(loopback.listener)])
        let reading = try TCPConnectionReading()
        var pieces = 1
        while try !reading.read(until: .zero) { pieces += 1 }
        #expect(pieces > 5)
        #expect(reading.listeners.contains { numbers.contains($0.inode) && $0.lastClosed != nil })
        let port = try Sockets.port(loopback.listener.raw)
        #expect(reading.listeners.filter { $0.port == port }.count == 1)
    }

    @Test("the tables in /proc, for where diagnostics are forbidden, say the same without times")
    func tables() throws {
        for address in ["127.0.0.1", "::1"] {
            guard let loopback = try Loopback(address, count: 3) else { continue }
            let all = try TCPConnections.listed()
            #expect(try Set(loopback.inodes).isSubset(of: all.map(\.inode)))
            #expect(try !all.contains { try $0.inode == inode(loopback.listener) })
            #expect(all.allSatisfy { $0.lastTraffic == nil })
        }
    }

    @Test("a kernel without IPv6 has one table, and one without TCP an error")
    func files() throws {
        let head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
        let line =
            "   0: 0100007F:1F90 0100007F:A3D2 01 00000000:00000000 00:00000000 00000000  1000        0 4242 1 0 20\n"
        let listening =
            "   1: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4243 1 0\n"
        let found = try reading(["/proc/net/tcp": head + line + listening + "   2: broken\n"]) {
            try TCPConnections.listed(root: $0)
        }
        #expect(found.map(\.inode) == [4242])
        #expect(throws: Errno.noSuchFileOrDirectory) { try TCPConnections.listed(root: "/nonexistent") }
    }
}

@Suite("Whose sockets they are") struct OpenSocketTests {
    func sockets() throws -> [UInt32] {
        let reading = try SocketReading(ThisProcess.pid)
        #expect(reading.read())
        return reading.sockets
    }

    @Test("the sockets of a process are those that it has open")
    func own() throws {
        let loopback = try #require(try Loopback("127.0.0.1", count: 3))
        let numbers = try loopback.inodes
        let (read, _) = try Descriptor.pipe()
        let found = try sockets()
        #expect(Set(numbers).isSubset(of: found))
        #expect(try found.contains(inode(loopback.listener)))
        #expect(try !found.contains(inode(read)), "a pipe is no socket")
        loopback.pairs[0].client.close()
        #expect(try !sockets().contains(numbers[0]))
    }

    @Test("a reading that is out of time goes on where it was")
    func pieces() throws {
        let loopback = try #require(try Loopback("127.0.0.1", count: 30))
        let reading = try SocketReading(ThisProcess.pid)
        var pieces = 1
        while !reading.read(until: .zero) { pieces += 1 }
        #expect(pieces > 3 && reading.count >= 61)
        #expect(try Set(loopback.inodes).isSubset(of: reading.sockets))
    }

    @Test("a process that is gone has none, and is no error of another kind")
    func gone() throws {
        #expect(throws: Errno.noSuchFileOrDirectory) { try SocketReading(.max) }
        #expect(throws: Errno.noSuchFileOrDirectory) { try ProcFS.networkNamespace(.max) }
    }

    /// The network namespace of a program that is run by `launcher`; nil when that does not work here.
    func namespace(launcher: [String]) throws -> UInt64? {
        let child = Process()
        child.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        child.arguments = launcher + ["sh", "-c", "echo ready; read end"]
        let (input, output) = (Pipe(), Pipe())
        child.standardInput = input
        child.standardOutput = output
        child.standardError = FileHandle.nullDevice
        try child.run()
        defer {
            try? input.fileHandleForWriting.close()
            child.waitUntilExit()
        }
        guard output.fileHandleForReading.availableData == Data("ready\n".utf8) else { return nil }
        return try ProcFS.networkNamespace(child.processIdentifier)
    }

    @Test("a process in another network namespace is told apart")
    func namespaces() throws {
        let own = try ProcFS.networkNamespace(ThisProcess.pid)
        #expect(try namespace(launcher: []) == own)
        guard let other = try namespace(launcher: ["unshare", Users.isRoot ? "-n" : "-rn"]) else {
            return print("skipped: a network namespace of its own is not allowed here")
        }
        #expect(other != own)
    }
}
