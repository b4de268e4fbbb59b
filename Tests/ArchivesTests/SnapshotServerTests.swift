// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EngineHarness
import EventLoop
import Lifecycle
import Linux
import Testing
import WireText

@testable import Archives

@Suite("Snapshots that a server gives") struct SnapshotServerTests {
    /// What a server sends to whoever asks, by the loop of those who ask.
    private final class Server {
        private(set) var requests: [String] = []
        let port: UInt16
        private let listener: Descriptor
        private var source: IOSource?
        private var asked: IOSource?
        private var client: Descriptor?

        /// - Parameter closes: it closes the connection behind that.
        init(_ loop: EventLoop, sends parts: [String], closes: Bool) throws {
            listener = try Sockets.listenTCP(address: "127.0.0.1", port: 0)
            port = try Sockets.port(listener.raw)
            let accepted: (IOEvents) -> Void = { [weak self] _ in
                guard let self, let client = try? Sockets.accept(listener.raw) else { return }
                self.client = client
                asked = try? loop.watch(client.raw, .readable) { [weak self] _ in
                    // Once: that it is closed is not to be read again and again.
                    self?.asked?.cancel()
                    guard let self, let bytes = try? Descriptor.read(client.raw, maximum: 4096), !bytes.isEmpty else {
                        return
                    }
                    requests.append(String(wire: bytes))
                    for part in parts { _ = try? Descriptor.write(client.raw, Array(part.utf8)) }
                    if closes { try? Sockets.shutdownWriting(client.raw) }
                }
            }
            source = try loop.watch(listener.raw, .readable, accepted)
        }
    }

    struct Answer: Sendable, CustomTestStringConvertible {
        let parts: [String]
        var closes = true
        /// What is kept, or why nothing is.
        let comes: String
        var testDescription: String { parts.joined().debugDescription }
    }

    @Test(
        "What a server answers is taken where it is whole and a success",
        arguments: [
            Answer(parts: ["HTTP/1.0 200 OK\r\n\r\nhello"], comes: "hello"),
            Answer(parts: ["HTTP/1.1 204 No\r\ncontent-LENGTH:\t 5\r\n\r\nhello and more"], comes: "hello"),
            Answer(
                parts: ["HTTP/1.1 200 OK\r\nContent-Length: 5\r", "\n\r", "\nhel", "lo"],
                closes: false,
                comes: "hello"
            ),
            Answer(
                parts: ["HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello"],
                comes: "closed the connection before the end of its answer"
            ),
            Answer(parts: ["HTTP/1.1 404 Not Found\r\n\r\nhello"], comes: "answered 404"),
            Answer(parts: ["HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n"], comes: "answered 302"),
            Answer(parts: ["SSH-2.0-OpenSSH\r\n\r\n"], comes: "does not answer in HTTP"),
            Answer(parts: ["HTTP/1.1 200 OK\r\n"], comes: "does not answer in HTTP"),
            Answer(parts: [], comes: "does not answer in HTTP"),
            Answer(parts: [String(repeating: "x", count: 66 << 10)], closes: false, comes: "does not answer in HTTP"),
            Answer(
                parts: ["HTTP/1.1 200 OK\r\nContent-Length: 5000000\r\n\r\nhello"],
                closes: false,
                comes: "gives more than 4 MiB"
            ),
            Answer(
                parts: ["HTTP/1.1 200 OK\r\nContent-Length: \(Int.max)\r\n\r\nhello"],
                comes: "hello"
            ),
            Answer(parts: ["HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello"], comes: "hello"),
        ]
    )
    func answers(_ answer: Answer) throws {
        // The server first: the configuration has its port.
        let holder = try EventLoopHolder(answer)
        let archives = holder.archives
        try archives.shell.request(.start(background: true), "web")
        try archives.turn { !holder.server.requests.isEmpty || !archives.told("snapshot").isEmpty }
        // What was sent is read; the server that does not close is given its time to.
        try archives.turn {
            if answer.closes == false { try archives.shell.pass(.milliseconds(1)) }
            return !archives.told("snapshot").isEmpty
        }
        #expect(holder.server.requests.first?.hasPrefix("GET /shot?now HTTP/1.0\r\nHost: 127.0.0.1:") == true)
        try archives.rest()
        if let kept = archives.snapshot() {
            #expect(kept == answer.comes)
        } else {
            #expect(
                archives.told("gave no snapshot").first?.contains(answer.comes) == true,
                "\(archives.told("snapshot"))"
            )
        }
    }

    /// A server, and an app whose snapshot it gives.
    private struct EventLoopHolder {
        let archives: FakeArchives
        let server: Server

        init(_ answer: Answer) throws {
            archives = try FakeArchives(["web": "snapshot = { http = \"http://127.0.0.1:1/shot?now\" }"])
            server = try Server(archives.shell.engine.loop, sends: answer.parts, closes: answer.closes)
            archives.shell.app("web").specification.snapshot?.source = .http(
                host: "127.0.0.1",
                port: server.port,
                path: "/shot?now"
            )
        }
    }

    @Test("Where nobody listens it is told, and the app sleeps") func refused() throws {
        let archives = try FakeArchives(["web": "snapshot = { http = \"http://127.0.0.1:1/\" }"])
        try archives.shell.request(.start(background: true), "web")
        try archives.shell.suspend("web")
        try archives.turn { archives.shell.state("web") == .suspended }
        #expect(archives.told("gave no snapshot: http://127.0.0.1:1/: ").count == 1)
    }
}
