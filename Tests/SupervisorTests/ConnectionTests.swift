// SPDX-License-Identifier: Apache-2.0

import Foundation
import KernelFiles
import Linux
import MeasuredProgram
import Processes
import TestAddresses
import Testing

@testable import EventSources
@testable import Supervisor

@Suite("Whose connections they are", .serialized) struct ConnectionTests {
    /// A program that listens, and a connection of this process to it.
    struct Server {
        let program: MeasuredProgram
        let port: UInt16

        init(cgroup: String? = nil) throws {
            program = try MeasuredProgram(cgroup: cgroup)
            port = try TestAddress.port()
            try program.run("l = socket.create_server(('127.0.0.1', \(port))); kept = []")
        }

        func connect() throws -> Descriptor {
            let client = try Sockets.connectTCP(address: "127.0.0.1", port: port)
            try program.run("kept.append(l.accept()[0])")
            return client
        }
    }

    func connections(_ measurements: inout Measurements, _ app: MeasuredApp) throws -> AppMeasurement {
        measurements.measure([app], .connections)
        return try #require(measurements.measurement(of: app.id, app.tree))
    }

    /// Cgroups if there are any: with and without them connections are found in different ways.
    func withPlaces(_ body: (_ cgroup: String?) throws -> Void) throws {
        try body(nil)
        guard let cgroups = try? CgroupTree(instance: UUID().uuidString) else {
            return print("skipped: there are no cgroups here")
        }
        defer { cgroups.removeAll() }
        try body(try cgroups.create("web").path)
    }

    @Test("Connections are counted as they come and go, and the last traffic is remembered")
    func comeAndGo() throws {
        try withPlaces { cgroup in
            let server = try Server(cgroup: cgroup)
            defer { server.program.end() }
            var measurements = Measurements()
            let app = server.program.app()
            let none = try connections(&measurements, app)
            #expect(none.connections == 0 && none.lastTraffic == nil, "a socket that listens is no connection")

            let start = Clock.monotonic()
            var clients = [try server.connect()]
            // A search that was long is not repeated at once.
            try eventually("it is found") { try connections(&measurements, app).connections == 1 }
            let began = try #require(measurements.measurement(of: app.id, app.tree)?.lastTraffic)
            // The kernel's steps are up to 10 ms.
            #expect(began > start - .milliseconds(20) && began <= Clock.monotonic())
            clients.append(try server.connect())
            try eventually("so is the second") { try connections(&measurements, app).connections == 2 }

            var last = began
            try eventually("what is sent is traffic") {
                let before = Clock.monotonic()
                try Sockets.send(clients[0].raw, [1])
                try server.program.run("kept[0].recv(1)")
                last = try #require(try connections(&measurements, app).lastTraffic)
                #expect(last > before - .milliseconds(20))
                // Else it may be the same as before, read a step of the kernel's later.
                return last > began + .milliseconds(40)
            }

            try server.program.run("kept.pop().close()")
            try eventually("one is gone") { try connections(&measurements, app).connections == 1 }
            let closing = Clock.monotonic()
            clients = []
            try eventually("both are gone") { try connections(&measurements, app).connections == 0 }
            try eventually("to close one was traffic") {
                let now = try #require(try connections(&measurements, app).lastTraffic)
                #expect(now >= last)
                return now > closing - .milliseconds(20)
            }
        }
    }

    @Test("A connection of a child counts, and one that two processes share counts once")
    func children() throws {
        let server = try Server()
        defer { server.program.end() }
        var measurements = Measurements()
        let client = try server.connect()
        defer { client.close() }
        try server.program.run("os.fork() or time.sleep(1000)")
        #expect(try connections(&measurements, server.program.app()).connections == 1)
        try server.program.run("kept.pop().close()")
        measurements = Measurements()
        #expect(try connections(&measurements, server.program.app()).connections == 1, "the child has it")
    }

    @Test("Each app has its own connections")
    func several() throws {
        let servers = [try Server(), try Server()]
        defer { for server in servers { server.program.end() } }
        let clients = [try servers[0].connect(), try servers[1].connect(), try servers[1].connect()]
        defer { for client in clients { client.close() } }
        var measurements = Measurements()
        let apps = servers.enumerated().map { $1.program.app($0) }
        measurements.measure(apps, .connections)
        #expect(apps.map { measurements.measurement(of: $0.id, $0.tree)?.connections } == [1, 2])
    }

    @Test("A connection to a suspended app counts until the other side ends it, without a look at the app")
    func suspended() throws {
        let server = try Server()
        defer { server.program.end() }
        let client = try server.connect()
        var measurements = Measurements()
        #expect(try connections(&measurements, server.program.app()).connections == 1)
        try eventually("it stops") { server.program.tree.stopPass() == .stopped }
        let since = Clock.monotonic()
        let app = server.program.app(suspendedSince: since)
        #expect(try connections(&measurements, app).connections == 1)
        let before = Clock.monotonic()
        try Sockets.send(client.raw, [1, 2, 3])
        try eventually("traffic") {
            try #require(try connections(&measurements, app).lastTraffic) > before - .milliseconds(20)
        }
        client.close()
        try eventually("it is closed") { try connections(&measurements, app).connections == 0 }
    }

    @Test("Connections that are over before anybody looks are traffic, whoever closed first, and are not open")
    func short() throws {
        try withPlaces { cgroup in
            let (server, other) = (try Server(cgroup: cgroup), try Server())
            defer { for one in [server, other] { one.program.end() } }
            var measurements = Measurements()
            let apps = [server.program.app(0), other.program.app(1)]
            measurements.measure(apps, .connections)
            #expect(try #require(measurements.measurement(of: 0, apps[0].tree)).lastTraffic == nil)
            for isServerFirst in [true, false] {
                let before = Clock.monotonic()
                let client = try server.connect()
                if !isServerFirst { client.close() }
                try server.program.run("c = kept.pop(); isServerFirst = \(isServerFirst ? 1 : 0)")
                try server.program.run("if not isServerFirst: c.recv(1)")
                try server.program.run("c.close()")
                client.close()
                try eventually("it was used") {
                    measurements.measure(apps, .connections)
                    let found = try #require(measurements.measurement(of: 0, apps[0].tree))
                    #expect(found.connections == 0)
                    return found.lastTraffic.map { $0 > before - .milliseconds(20) } ?? false
                }
                // Else the next one could be this one, read a step of the kernel's later.
                try eventually("the kernel's time has moved") { Clock.monotonic() - before > .milliseconds(50) }
            }
            #expect(try #require(measurements.measurement(of: 1, apps[1].tree)).lastTraffic == nil)
        }
    }

    @Test("Connections between the processes of an app do not count, and are no traffic")
    func within() throws {
        let server = try Server()
        defer { server.program.end() }
        try server.program.run("c = socket.create_connection(('127.0.0.1', \(server.port))); a = l.accept()[0]")
        try server.program.run("os.fork() or time.sleep(1000)")
        try server.program.run("c.close(); c = None")
        var measurements = Measurements()
        let found = try connections(&measurements, server.program.app())
        #expect(found.connections == 0 && found.lastTraffic == nil)
        let client = try server.connect()
        defer { client.close() }
        try eventually("one of a client counts") {
            try connections(&measurements, server.program.app()).connections == 1
        }
    }

    @Test("A connection that is over while the app saves its state is no traffic, as its own command may have made it")
    func saving() throws {
        let server = try Server()
        defer { server.program.end() }
        let began = Clock.monotonic() - .milliseconds(20)
        let client = try server.connect()
        client.close()
        try server.program.run("c = kept.pop(); c.recv(1); c.close()")
        let saving = began...(Clock.monotonic() + .milliseconds(20))
        var measurements = Measurements()
        let app = server.program.app(saving: saving)
        #expect(try connections(&measurements, app).lastTraffic == nil)
        // It is seen all the same where it did not save then.
        try eventually("it was used") { try connections(&measurements, server.program.app()).lastTraffic != nil }
    }

    @Test("A socket that an app opens to listen later on is found")
    func listensLater() throws {
        let program = try MeasuredProgram()
        defer { program.end() }
        var measurements = Measurements()
        #expect(try connections(&measurements, program.app()).lastTraffic == nil)
        let port = try TestAddress.port()
        try program.run("l = socket.create_server(('127.0.0.1', \(port)))")
        let client = try Sockets.connectTCP(address: "127.0.0.1", port: port)
        try program.run("l.accept()[0].close()")
        client.close()
        try eventually("it was used") { try connections(&measurements, program.app()).lastTraffic != nil }
    }

    @Test("Many connections are found in steps")
    func many() throws {
        let server = try Server()
        defer { server.program.end() }
        ThisProcess.raiseDescriptorLimit()
        var clients: [Descriptor] = []
        for _ in 0..<100 { clients.append(try server.connect()) }
        var measurements = Measurements()
        let app = server.program.app()
        measurements.begin([app], .connections)
        var steps = 1
        while !measurements.step(for: .zero) { steps += 1 }
        #expect(steps > 10)
        #expect(measurements.measurement(of: 0, app.tree)?.connections == 100)
    }

    @Test("What an app in another network namespace has is counted at each look")
    func namespace() throws {
        let options = Users.isRoot ? "-n" : "-rn"
        let probe = try Process.run(URL(fileURLWithPath: "/usr/bin/unshare"), arguments: [options, "true"])
        probe.waitUntilExit()
        guard probe.terminationStatus == 0 else {
            return print("skipped: a network namespace of its own is not allowed here")
        }
        let program = try MeasuredProgram(launcher: ["unshare", options])
        defer { program.end() }
        // A look that comes soon after the last one is put off.
        let clock = TestClock()
        var measurements = Measurements(clock: { clock.now })
        let found = try connections(&measurements, program.app())
        #expect(found.connections == 0 && found.usage.processes == 1)
        // A namespace that was made just now has no loopback: it is brought up by an ioctl.
        try program.run("import fcntl, struct; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)")
        try program.run("fcntl.ioctl(s, 0x8914, struct.pack('16sH14s', b'lo', 1, b''))")
        try program.run("l = socket.create_server(('127.0.0.1', 80)); c = socket.create_connection(('127.0.0.1', 80))")
        try program.run("a = l.accept()[0]")
        #expect(try connections(&measurements, program.app()).connections == 0)
        clock.advance(by: .seconds(3600))
        #expect(try connections(&measurements, program.app()).connections == 2)
        try program.run("c.close(); a.close()")
        clock.advance(by: .seconds(3600))
        #expect(try connections(&measurements, program.app()).connections == 0)
    }

    @Test("What an app has whose processes may not be looked into cannot be told")
    func unreadable() throws {
        if Users.isRoot { return print("skipped: root may look into everything") }
        let search = SocketSearch([try Identity(of: 1)])
        #expect(search.read(until: nil) && !search.isWhole)
    }

    @Test("Processes that are gone by then are no reason not to tell")
    func gone() throws {
        let search = SocketSearch([Identity(pid: .max, startTime: 1), try Identity(of: ThisProcess.pid)])
        #expect(search.read(until: nil) && search.isWhole)
    }

    @Test("Connections of others are looked for twice, not for ever")
    func foreign() throws {
        let loopback = try Sockets.listenTCP(address: "127.0.0.1", port: 0)
        let client = try Sockets.connectTCP(address: "127.0.0.1", port: Sockets.port(loopback.raw))
        defer { client.close() }
        try #require(try Descriptor.wait(loopback.raw, timeout: .seconds(60)))
        var ledger = ConnectionLedger()
        let now = Clock.monotonic()
        var claim = ConnectionClaim()
        claim.searchedAt = now
        let claims = [claim]
        func round(isComplete: Bool) -> Bool {
            let isOpen = ledger.open(until: nil, claims: claims)
            #expect(isOpen)
            let hasUnclaimed = ledger.isUnclaimed(UInt32((try? File.status(descriptor: client.raw).inode) ?? 0))
            ledger.close(isComplete: isComplete)
            return hasUnclaimed
        }
        #expect([true, false, true, true].map(round) == [true, true, true, false])
    }

    @Test("Descriptors are read again where that can find something")
    func decisions() throws {
        let listener = try Sockets.listenTCP(address: "127.0.0.1", port: 0)
        let client = try Sockets.connectTCP(address: "127.0.0.1", port: Sockets.port(listener.raw))
        defer { client.close() }
        try #require(try Descriptor.wait(listener.raw, timeout: .seconds(60)))
        var ledger = ConnectionLedger()
        var claim = ConnectionClaim()
        let time = Duration.seconds(1)
        let now = Clock.monotonic()
        #expect(ledger.decide(claim, processorTime: time, now) == .needless, "nothing is known yet")
        let isOpen = ledger.open(until: nil, claims: [claim])
        #expect(isOpen)
        #expect(ledger.decide(claim, processorTime: time, now) == .search, "never looked")
        claim.searchedAt = now
        claim.atProcessorTime = time
        claim.cost = .milliseconds(5)
        let later = now + .seconds(1)
        #expect(ledger.decide(claim, processorTime: time, later) == .needless, "it did nothing")
        #expect(ledger.decide(claim, processorTime: nil, later) == .search, "it may have done something")
        #expect(ledger.decide(claim, processorTime: time * 2, later) == .search)
        #expect(ledger.decide(claim, processorTime: time * 2, now + .milliseconds(400)) == .later)
        claim.isOwed = true
        #expect(ledger.decide(claim, processorTime: time, later) == .search, "it had done something")
    }
}
