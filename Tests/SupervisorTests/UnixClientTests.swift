// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
import MeasuredProgram
import Processes
import Testing

@testable import Supervisor

@Suite("Clients of Unix sockets", .serialized) struct UnixClientTests {
    /// A program that listens at a Unix socket.
    private final class Server {
        let program: MeasuredProgram
        /// As Torpor writes it: `@name` for an abstract one.
        let path: String

        init(isAbstract: Bool = false) throws {
            path = (isAbstract ? "@" : "/tmp/") + "torpor-clients-\(UUID().uuidString)"
            program = try MeasuredProgram()
            try program.run("l = socket.socket(socket.AF_UNIX); kept = []")
            try program.run("path = '\(path)'.replace('@', chr(0))")
            try program.run("l.bind(path); l.listen()")
        }

        func connect() throws -> Descriptor {
            let client = try Sockets.connect(path: path)
            try program.run("kept.append(l.accept()[0])")
            return client
        }

        func end() {
            program.end()
            unlink(path)
        }
    }

    private func measured(_ measurements: inout Measurements, _ app: MeasuredApp) throws -> AppMeasurement {
        measurements.measure([app], .connections)
        return try #require(measurements.measurement(of: app.id, app.tree))
    }

    @Test(
        "Their connections count while both ends are open, and are traffic when they come and go",
        arguments: [true, false]
    )
    func comeAndGo(isAbstract: Bool) throws {
        let server = try Server(isAbstract: isAbstract)
        defer { server.end() }
        let app = server.program.app()
        var measurements = Measurements()
        let none = try measured(&measurements, app)
        #expect(none.connections == 0 && none.lastTraffic == nil, "a socket that listens is no connection")
        let start = Clock.monotonic()
        let client = try server.connect()
        // A search that was long is not repeated at once.
        try eventually("it is found") { try measured(&measurements, app).connections == 1 }
        let began = try #require(measurements.measurement(of: app.id, app.tree)?.lastTraffic)
        #expect(began >= start)
        #expect(try measured(&measurements, app).lastTraffic == began, "the kernel does not say when data moves")
        client.close()
        #expect(try measured(&measurements, app).connections == 0, "the client is gone")
        try server.program.run("kept.pop().close()")
        let last = try measured(&measurements, app)
        #expect(last.connections == 0)
        #expect(try #require(last.lastTraffic) > began)
    }

    @Test("One that waits to be accepted is traffic")
    func waiting() throws {
        let server = try Server()
        defer { server.end() }
        var measurements = Measurements()
        _ = try measured(&measurements, server.program.app())
        let start = Clock.monotonic()
        let client = try Sockets.connect(path: server.path)
        defer { client.close() }
        let found = try measured(&measurements, server.program.app())
        #expect(found.connections == 0)
        #expect(try #require(found.lastTraffic) >= start)
    }

    @Test("Connections within the app, and those that it opened itself, are not those of clients")
    func own() throws {
        let (server, other) = (try Server(), try Server())
        defer { for one in [server, other] { one.end() } }
        try server.program.run("c = socket.socket(socket.AF_UNIX); c.connect(path); a = l.accept()[0]")
        try server.program.run("d = socket.socket(socket.AF_UNIX); d.connect('\(other.path)')")
        try other.program.run("kept.append(l.accept()[0])")
        var measurements = Measurements()
        let apps = [server.program.app(0), other.program.app(1)]
        measurements.measure(apps, .connections)
        #expect(apps.map { measurements.measurement(of: $0.id, $0.tree)?.connections } == [0, 1])
    }

    @Test("Connections within the app are no use, neither when they come nor when they go")
    func within() throws {
        let server = try Server()
        defer { server.end() }
        let app = server.program.app()
        // Each look is long after the one before, so that a search is never put off.
        let clock = TestClock()
        var measurements = Measurements(clock: {
            clock.advance(by: .seconds(3600))
            return clock.now
        })
        _ = try measured(&measurements, app)
        for _ in 0..<2 {
            try server.program.run("c = socket.socket(socket.AF_UNIX); c.connect(path); a = l.accept()[0]")
            let open = try measured(&measurements, app)
            #expect(open.connections == 0 && open.lastTraffic == nil)
            try server.program.run("c.close(); a.close()")
            let closed = try measured(&measurements, app)
            #expect(closed.connections == 0 && closed.lastTraffic == nil)
        }
        let client = try server.connect()
        defer { client.close() }
        let used = try measured(&measurements, app)
        #expect(used.connections == 1 && used.lastTraffic != nil)
    }

    @Test("A new connection within the app does not count before the app is searched again")
    func soon() throws {
        let server = try Server()
        defer { server.end() }
        let app = server.program.app()
        var measurements = Measurements()
        _ = try measured(&measurements, app)
        try server.program.run("c = socket.socket(socket.AF_UNIX); c.connect(path); a = l.accept()[0]")
        for _ in 0..<3 {
            let found = try measured(&measurements, app)
            #expect(found.connections == 0 && found.lastTraffic == nil)
        }
    }

    @Test("A search that is abandoned counts as none")
    func abandoned() throws {
        let server = try Server()
        defer { server.end() }
        let app = server.program.app()
        var measurements = Measurements()
        // After two rounds, sockets of other programs are no reason for a search.
        for _ in 0..<3 { _ = try measured(&measurements, app) }
        try server.program.run("c = socket.socket(socket.AF_UNIX); c.connect(path); a = l.accept()[0]")
        try eventually("a search begins") {
            measurements.begin([app], .connections)
            while !measurements.isSearching { if measurements.step(for: .zero) { return false } }
            return true
        }
        let found = try measured(&measurements, app)
        #expect(found.connections == 0 && found.lastTraffic == nil)
    }

    @Test("Clients are not new because the sockets could not be read in between")
    func unread() throws {
        let path = "/tmp/torpor-clients-\(UUID().uuidString)"
        let listener = try Sockets.listen(path: path)
        defer { unlink(path) }
        func inode(_ socket: Descriptor) throws -> UInt32 {
            UInt32(truncatingIfNeeded: try File.status(descriptor: socket.raw).inode)
        }
        var ledger = ConnectionLedger()
        var claim = ConnectionClaim()
        (claim.sockets, claim.isWhole) = ([try inode(listener)], true)
        var measurement = AppMeasurement(measuredAt: .zero, usage: .none, processorTime: .zero)
        func round() {
            let isOpen = ledger.open(until: nil, claims: [claim])
            #expect(isOpen)
            ledger.count(claim, saving: nil, into: &measurement)
            ledger.close(isComplete: true)
        }
        round()
        #expect(measurement.connections == 0 && measurement.lastTraffic == nil)
        let client = try Sockets.connect(path: path)
        try #require(try Descriptor.wait(listener.raw, timeout: .seconds(60)))
        let accepted = try #require(try Sockets.accept(listener.raw))
        claim.sockets.append(try inode(accepted))
        round()
        let came = try #require(measurement.lastTraffic)
        #expect(measurement.connections == 1)
        let readUnix = ledger.readUnix
        ledger.readUnix = { () throws(Errno) -> UnixSocketReading in throw .tooManyOpenFiles }
        round()
        #expect(measurement.connections == 1 && measurement.lastTraffic == came)
        ledger.readUnix = readUnix
        round()
        #expect(measurement.connections == 1 && measurement.lastTraffic == came)
        _ = client
    }
}
