// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Foundation
import Linux
import Testing
import Varlink
import VarlinkServer

@Suite struct ServerTests {
    private func serving(
        _ limits: VarlinkServer.Limits = VarlinkServer.Limits(),
        _ body: (TestServer) throws -> Void
    ) throws {
        let server = try TestServer(limits: limits)
        defer { server.stop() }
        try body(server)
    }

    private func echo(_ text: String, method: String = "Echo") -> String {
        VarlinkCall(method: "org.example.test.\(method)", parameters: ["text": .string(text)]).json.description + "\0"
    }

    @Test("answers a call, and says who called")
    func call() throws {
        try serving { server in
            let client = try VarlinkClient(path: server.path)
            let reply = try client.call(VarlinkCall(method: "org.example.test.Echo", parameters: ["text": "hallo\0é"]))
            #expect(reply["text"] == "hallo\0é")
            let who = try client.call(VarlinkCall(method: "org.example.test.Who"))
            #expect(who["pid"] == .int(Int64(ProcessInfo.processInfo.processIdentifier)))
            #expect(who["uid"] == .int(Int64(Users.effectiveUID)))
            #expect(try File.status(server.path).mode & 0o777 == 0o666)
            #expect(try File.status(server.folder + "/run").mode & 0o777 == 0o755)
        }
    }

    @Test("answers org.varlink.service as the standard says")
    func service() throws {
        try serving { server in
            let client = try VarlinkClient(path: server.path)
            let info = try client.call(VarlinkCall(method: "org.varlink.service.GetInfo"))
            #expect(info["interfaces"] == ["org.varlink.service", "org.example.test"])
            let text = try client.call(
                VarlinkCall(
                    method: "org.varlink.service.GetInterfaceDescription",
                    parameters: ["interface": "org.example.test"]
                )
            )
            #expect(text["description"] == .string(TestServer.description))
            for (method, parameters, name) in [
                (
                    "org.varlink.service.GetInterfaceDescription", ["interface": "no.such"],
                    VarlinkErrorName.interfaceNotFound
                ),
                ("org.varlink.service.GetInterfaceDescription", [:], VarlinkErrorName.invalidParameter),
                ("org.varlink.service.Nothing", [:], VarlinkErrorName.methodNotFound),
                ("org.example.test.Nothing", [:], VarlinkErrorName.methodNotFound),
                ("no.such.Method", [:], VarlinkErrorName.interfaceNotFound),
                ("Method", [:], VarlinkErrorName.interfaceNotFound),
            ] as [(String, JSON, String)] {
                do throws(VarlinkClientError) {
                    _ = try client.call(VarlinkCall(method: method, parameters: parameters))
                    Issue.record("\(method) was answered")
                } catch {
                    guard case .service(let given, _) = error else {
                        Issue.record("\(method): \(error)")
                        continue
                    }
                    #expect(given == name, "\(method)")
                }
            }
        }
    }

    @Test("answers calls that come at once in their order, also when an answer takes its time")
    func pipelining() throws {
        try serving { server in
            let client = try RawClient(server.path)
            let calls = (0..<500).map { echo("\($0)", method: $0 % 3 == 0 ? "Later" : "Echo") }
            try client.send(calls.joined())
            try client.finishSending()
            for number in 0..<500 { #expect(try client.receive()?.parameters["text"] == .string("\(number)")) }
            #expect(try client.receive() == nil)
        }
    }

    @Test("gives a oneway call no answer")
    func oneway() throws {
        try serving { server in
            let client = try RawClient(server.path)
            let call = VarlinkCall(method: "org.example.test.Echo", parameters: ["text": "a"], oneway: true)
            try client.send(call.json.description + "\0" + echo("b"))
            #expect(try client.receive()?.parameters["text"] == "b")
        }
    }

    @Test("streams to a caller that asks for more, and gives others one reply")
    func streams() throws {
        try serving { server in
            let client = try VarlinkClient(path: server.path)
            var numbers: [Int64] = []
            let parameters: JSON = ["count": 1000, "size": 1000]
            let last = try client.callMore(
                VarlinkCall(method: "org.example.test.Stream", parameters: parameters, more: true)
            ) { numbers.append($0["number"]?.intValue ?? -1) }
            #expect(numbers == Array(0..<999))
            #expect(last["number"] == 999)
            let only = try client.call(VarlinkCall(method: "org.example.test.Stream", parameters: parameters))
            #expect(only["number"] == 0)
        }
    }

    @Test(
        "hangs up on garbage and goes on serving others",
        arguments: ["hello\0", "\0", "GET / HTTP/1.0\r\n\r\n\0"]
    )
    func garbage(text: String) throws {
        try serving { server in
            let client = try RawClient(server.path)
            try client.send(text)
            #expect(try client.receive() == nil)
            let next = try RawClient(server.path)
            try next.send(echo("still here"))
            #expect(try next.receive()?.parameters["text"] == "still here")
        }
    }

    @Test("says what is wrong with JSON that is no call", arguments: ["[]\0", "{}\0", "{\0", #"{"method":1}"# + "\0"])
    func notACall(text: String) throws {
        try serving { server in
            let client = try RawClient(server.path)
            try client.send(text)
            #expect(try client.receive()?.error == VarlinkErrorName.invalidParameter)
            #expect(try client.receive() == nil)
        }
    }

    @Test("waits for the rest of half a message")
    func half() throws {
        try serving { server in
            let client = try RawClient(server.path)
            let bytes = Array(echo("whole").utf8)
            try client.send(Array(bytes[..<20]))
            let other = try RawClient(server.path)
            try other.send(echo("other"))
            #expect(try other.receive()?.parameters["text"] == "other")
            for byte in bytes[20...] { try client.send([byte]) }
            #expect(try client.receive()?.parameters["text"] == "whole")
        }
    }

    @Test("refuses a message of 100 MiB without taking it in")
    func huge() throws {
        try serving { server in
            let client = try RawClient(server.path)
            let chunk = [UInt8](repeating: UInt8(ascii: " "), count: 1 << 20)
            var sent = 0
            while sent < 100, try client.send(chunk) { sent += 1 }
            #expect(sent < 10)
            #expect(try client.receive()?.error == VarlinkErrorName.invalidParameter)
            #expect(try client.receive() == nil)
        }
    }

    @Test("drops a client that asks for much and never reads, and tells the handler")
    func neverReads() throws {
        try serving { server in
            let client = try RawClient(server.path)
            let call = VarlinkCall(
                method: "org.example.test.Stream",
                parameters: ["count": 1000, "size": 100_000],
                more: true
            )
            try client.send(call.json.description + "\0")
            let other = try VarlinkClient(path: server.path)
            let deadline = Clock.monotonic() + .seconds(60)
            var count = try other.call(VarlinkCall(method: "org.example.test.Count"))
            while count["closed"] == 0, Clock.monotonic() < deadline {
                count = try other.call(VarlinkCall(method: "org.example.test.Count"))
            }
            #expect(count == ["connections": 1, "closed": 1])
        }
    }

    @Test("holds no replies back for a client that sends calls and does not read them")
    func pipeliningWithoutReading() throws {
        try serving { server in
            let client = try RawClient(server.path)
            let text = String(repeating: "y", count: 100_000)
            let path = server.path
            // 20 MB in and out do not fit into the sockets' buffers: the server must stop reading, and go on later.
            let call = echo(text)
            // Only its descriptor is used there, and nothing else of it changes.
            nonisolated(unsafe) let sender = client
            Thread.detachNewThread {
                _ = try? sender.send(Array(String(repeating: call, count: 200).utf8))
            }
            let other = try VarlinkClient(path: path)
            _ = try other.call(VarlinkCall(method: "org.example.test.Who"))
            for _ in 0..<200 { #expect(try client.receive()?.parameters["text"]?.stringValue?.utf8.count == 100_000) }
        }
    }

    @Test("tells the handler that a client went while its call was open")
    func closed() throws {
        try serving { server in
            do {
                let client = try RawClient(server.path)
                try client.send(#"{"method":"org.example.test.Open"}"# + "\0")
            }
            let other = try VarlinkClient(path: server.path)
            let deadline = Clock.monotonic() + .seconds(60)
            while try other.call(VarlinkCall(method: "org.example.test.Count"))["closed"] != 1 {
                try #require(Clock.monotonic() < deadline)
            }
        }
    }

    @Test("takes no more connections than its limit")
    func connections() throws {
        var limits = VarlinkServer.Limits()
        limits.connections = 1
        try serving(limits) { server in
            // This test is root or the server's own user: 64 more.
            var clients: [RawClient] = []
            for _ in 0..<65 { clients.append(try RawClient(server.path)) }
            try clients[64].send(echo("in"))
            #expect(try clients[64].receive()?.parameters["text"] == "in")
            let late = try RawClient(server.path)
            try late.send(echo("out"))
            #expect(try late.receive() == nil)
            clients.removeLast(10)
        }
    }

    /// A server for which this test's user is one like others.
    private static func strict() -> VarlinkServer.Limits {
        var limits = VarlinkServer.Limits()
        limits.trustsNobody = true
        return limits
    }

    @Test("takes no more connections of one user than it may have")
    func connectionsOfUser() throws {
        var limits = Self.strict()
        limits.connectionsOfUser = 3
        try serving(limits) { server in
            var clients: [RawClient] = []
            for _ in 0..<3 { clients.append(try RawClient(server.path)) }
            try clients[2].send(echo("in"))
            #expect(try clients[2].receive()?.parameters["text"] == "in")
            let late = try RawClient(server.path)
            try late.send(echo("out"))
            #expect(try late.receive() == nil)
            clients.removeLast(2)
        }
    }

    @Test("ends a connection with which halves of a user's messages are too much, and no other")
    func halvesOfUser() throws {
        var limits = Self.strict()
        limits.inboundBytesOfUser = 100_000
        try serving(limits) { server in
            let (one, other) = (try RawClient(server.path), try RawClient(server.path))
            let text = String(repeating: "x", count: 80_000)
            try one.send(Array(echo(text).utf8.prefix(80_000)))
            // It is there: what the server says next of itself was asked later.
            let watcher = try RawClient(server.path)
            try watcher.send(echo("then"))
            #expect(try watcher.receive()?.parameters["text"] == "then")
            try other.send(Array(echo(text).utf8.prefix(80_000)))
            #expect(try other.receive() == nil)
            try one.send(Array(echo(text).utf8.dropFirst(80_000)))
            #expect(try one.receive()?.parameters["text"]?.stringValue == text)
        }
    }

    @Test(
        "answers all that a user asks who has had its share, in order, and others meanwhile",
        arguments: [false, true]
    )
    func overdrawn(countsTogether: Bool) throws {
        var limits = Self.strict()
        limits.burst = .microseconds(50)
        limits.countsTogether = countsTogether
        try serving(limits) { server in
            let clients = try (0..<4).map { _ in try RawClient(server.path) }
            for client in clients {
                for number in 0..<10 { try client.send(echo("\(number)")) }
            }
            for client in clients {
                for number in 0..<10 { #expect(try client.receive()?.parameters["text"] == .string("\(number)")) }
            }
        }
    }

    @Test("takes no descriptors: what lingers in one would hold the loop when it is let go of")
    func descriptors() throws {
        try serving { server in
            // SO_PASSRIGHTS, since Linux 6.16.
            var size = socklen_t(MemoryLayout<Int32>.size)
            var value: Int32 = 0
            let probe = try Sockets.connect(path: server.path)
            guard getsockopt(probe.raw, SOL_SOCKET, 83, &value, &size) == 0 else {
                return print("skipped: this kernel cannot refuse descriptors (SO_PASSRIGHTS, Linux 6.16)")
            }
            let pipe = try Descriptor.pipe()
            #expect(throws: Errno.self) {
                try Sockets.send(probe.raw, Array(echo("x").utf8), descriptors: [pipe.write.raw])
            }
            try Descriptor.writeAll(probe.raw, Array(echo("y").utf8))
            #expect(try Descriptor.wait(probe.raw, timeout: .seconds(60)))
        }
    }

    @Test("A server of a service with many sockets gets its handlers with its first client, and only once")
    func setUp() throws {
        let folder = NSTemporaryDirectory() + "/many-" + UUID().uuidString.prefix(8)
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let loop = try EventLoop()
        let service = VarlinkService(
            info: VarlinkServiceInfo(vendor: "", product: "", version: "", url: ""),
            interfaces: [VarlinkInterface(name: "org.example.test", description: TestServer.description)]
        )
        var served: [Int] = []
        let servers = try (0..<2).map { number in
            try VarlinkServer(loop: loop, path: SharedPath(folder, "\(number)"), service: service) { server in
                served.append(number)
                server.handler = { _, _, reply in reply.send(["number": .int(Int64(number))]) }
            }
        }
        // What is asked of a server before its first client needs no handlers either.
        #expect(servers.allSatisfy { $0.connectionCount == 0 && !$0.isConnected(1) })
        for server in servers { server.closeConnections() }
        #expect(served.isEmpty)
        for _ in 0..<2 {
            let client = try Sockets.connect(path: servers[1].path)
            try Descriptor.writeAll(client.raw, Array(echo("x").utf8))
            while try !Descriptor.wait(client.raw, timeout: .zero) {
                try #require(try loop.runOnce(timeout: .seconds(60)))
            }
            let text = try #require(try Descriptor.read(client.raw, maximum: 1 << 16))
            #expect(try JSON.parse(Array(text.dropLast()))["parameters"]?["number"] == .int(1))
        }
        #expect(served == [1], "the server without a client has none")
        for server in servers { server.close() }
    }

    @Test("replaces a socket that nobody answers on, and nothing else")
    func stale() throws {
        let folder = NSTemporaryDirectory() + "/stale-" + UUID().uuidString.prefix(8)
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let loop = try EventLoop()
        func serve(_ path: String) throws -> VarlinkServer {
            try VarlinkServer(
                loop: loop,
                path: path,
                info: VarlinkServiceInfo(vendor: "", product: "", version: "", url: ""),
                interfaces: []
            )
        }
        try Sockets.listen(path: folder + "/s", mode: 0o600).close()
        let server = try serve(folder + "/s")
        #expect(throws: VarlinkServerError.self) { try serve(folder + "/s") }
        server.close()
        #expect(!File.exists(folder + "/s"))
        try File.write(folder + "/file", "precious")
        #expect(throws: VarlinkServerError.self) { try serve(folder + "/file") }
        #expect(try File.readString(folder + "/file") == "precious")
        let long = folder + "/" + String(repeating: "n", count: 100)
        do {
            _ = try serve(long)
            Issue.record("it listens on a path of \(long.utf8.count) bytes")
        } catch let error as VarlinkServerError {
            #expect(error.description.contains("107"))
        }
    }

    @Test("What comes on the connection of a call that is still answered ends it with an error, where it is asked for")
    func strayCalls() throws {
        let attend = VarlinkCall(method: "org.example.test.Attend", more: true).json.description + "\0"
        let cases = [
            [attend, echo("x")], [attend + echo("x")], [attend, "not JSON"], [attend, "{\"method\":"],
        ]
        try serving { server in
            for (index, texts) in cases.enumerated() {
                let client = try Sockets.connect(path: server.path)
                var framer = MessageFramer()
                func reply() throws -> VarlinkResponse? {
                    while true {
                        if let message = try framer.next() { return try VarlinkResponse(json: JSON.parse(message)) }
                        guard try Descriptor.wait(client.raw, timeout: .seconds(30)) else { return nil }
                        let bytes = try? Descriptor.read(client.raw, maximum: 1 << 16)
                        guard let bytes, !bytes.isEmpty else { return nil }
                        framer.append(bytes)
                    }
                }
                try Descriptor.writeAll(client.raw, Array(texts[0].utf8))
                #expect(try reply()?.continues == true)
                if texts.count > 1 { try Descriptor.writeAll(client.raw, Array(texts[1].utf8)) }
                let last = try reply()
                #expect(last?.error == "org.example.test.Wrong")
                #expect(last?.parameters["message"]?.stringValue == (index == 0 ? "org.example.test.Echo" : "?"))
                #expect(try reply() == nil, "the connection has ended")
            }
        }
    }
}
