// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
import MeasuredProgram
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
        let first = try measured(&measurements, app)
        #expect(first.connections == 1)
        let began = try #require(first.lastTraffic)
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
}
