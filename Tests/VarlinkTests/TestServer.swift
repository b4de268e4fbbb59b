// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Foundation
import Linux
import Varlink
import VarlinkServer

/// A server with an example interface, on a loop in a thread of its own, in a folder of its own.
final class TestServer: Sendable {
    static let description = """
        interface org.example.test

        method Echo(text: string) -> (text: string)
        method Later(text: string) -> (text: string)
        method Stream(count: int, size: int) -> (number: int, text: string)
        method Count() -> (connections: int, closed: int)
        method Who() -> (pid: int, uid: int)
        method Open() -> ()
        method Attend() -> (method: ?string)
        method Quit() -> ()
        error Wrong (message: string)
        """

    let folder: String
    let path: String
    private let ended = DispatchSemaphore(value: 0)

    init(limits: VarlinkServer.Limits = VarlinkServer.Limits()) throws {
        folder = NSTemporaryDirectory() + "/varlink-" + UUID().uuidString.prefix(8)
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let path = folder + "/run/socket"
        self.path = path
        let started = DispatchSemaphore(value: 0)
        let ended = ended
        Thread.detachNewThread {
            do { try Self.serve(path, limits) { started.signal() } } catch { print("the test server failed: \(error)") }
            started.signal()
            ended.signal()
        }
        started.wait()
    }

    /// Stops the thread and waits for its end.
    func stop() {
        if let client = try? VarlinkClient(path: path) {
            _ = try? client.call(VarlinkCall(method: "org.example.test.Quit", oneway: true))
        }
        _ = ended.wait(timeout: .now() + 60)
        try? FileManager.default.removeItem(atPath: folder)
    }

    private static func serve(_ path: String, _ limits: VarlinkServer.Limits, started: () -> Void) throws {
        let loop = try EventLoop()
        let server = try VarlinkServer(
            loop: loop,
            path: path,
            info: VarlinkServiceInfo(vendor: "V", product: "P", version: "1", url: "https://example.org"),
            interfaces: [VarlinkInterface(name: "org.example.test", description: description)],
            limits: limits
        )
        var closed: Int64 = 0
        var open: [Reply] = []
        server.handler = { [unowned server] call, peer, reply in
            switch call.member {
            case "Echo": reply.send(["text": call.parameters["text"] ?? .null])
            case "Later": loop.later { reply.send(["text": call.parameters["text"] ?? .null]) }
            case "Count":
                reply.send(["connections": .int(Int64(server.connectionCount)), "closed": .int(closed)])
            case "Who": reply.send(["pid": .int(Int64(peer.pid)), "uid": .int(Int64(peer.uid))])
            case "Open":
                reply.onClosed = { closed += 1 }
                open.append(reply)
            case "Attend":
                open.append(reply)
                reply.send(continues: true)
                server.refuseCalls(on: reply.connection)
            case "Stream":
                let count = call.parameters["count"]?.intValue ?? 0
                let text = String(repeating: "x", count: Int(call.parameters["size"]?.intValue ?? 0))
                reply.onClosed = { closed += 1 }
                for number in 0..<count {
                    reply.send(["number": .int(number), "text": .string(text)], continues: number + 1 < count)
                }
            case "Quit":
                reply.send()
                loop.stop()
            default: reply.fail("org.example.test.Wrong", ["message": "unreachable"])
            }
        }
        server.strayCall = { _, method in
            VarlinkServer.Refusal(error: "org.example.test.Wrong", parameters: ["message": .string(method ?? "?")])
        }
        started()
        try loop.run()
        server.close()
    }
}

/// A connection without manners.
final class RawClient {
    private let socket: Descriptor
    private var framer = MessageFramer()

    init(_ path: String) throws { socket = try Sockets.connect(path: path) }

    /// False when the server took no more.
    @discardableResult
    func send(_ bytes: [UInt8]) throws -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            do throws(Errno) {
                guard let count = try Sockets.send(socket.raw, Array(rest), wait: true) else { return false }
                rest = rest.dropFirst(count)
            } catch {
                if error == .brokenPipe || error == .connectionReset { return false }
                throw error
            }
        }
        return true
    }

    func send(_ text: String) throws { try send(Array(text.utf8)) }

    /// The next reply, nil at the end of the connection.
    func receive() throws -> VarlinkResponse? {
        while true {
            if let message = try framer.next() { return try VarlinkResponse(json: JSON.parse(message)) }
            guard try Descriptor.wait(socket.raw, timeout: .seconds(60)) else { throw VarlinkClientError.timedOut }
            do throws(Errno) {
                let bytes = try Descriptor.read(socket.raw, maximum: 1 << 16)
                guard let bytes, !bytes.isEmpty else { return nil }
                framer.append(bytes[...])
            } catch {
                if error == .connectionReset { return nil }
                throw error
            }
        }
    }

    func finishSending() throws { try Sockets.shutdownWriting(socket.raw) }
}
