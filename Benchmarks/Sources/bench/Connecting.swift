// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux

/// Connections to apps, one request each.
enum Connecting {
    static func requireStopped(_ pid: pid_t) throws {
        guard try waitUntil(10, { Processes.state(pid) == "T" }) else { throw Trouble("process \(pid) is not stopped") }
    }

    /// Connects, sends a request and reads the answer. Returns the seconds from before the connection to the first
    /// byte.
    static func ask(
        _ path: String,
        expecting expected: pid_t? = nil,
        answered: ((pid_t) -> Void)? = nil,
        meanwhile act: () throws -> Void = {}
    ) throws -> Double {
        let (took, answer) = try exchange(path, { try Sockets.connect(path: path) }, act)
        let pid = pid_t(answer)
        if let expected, pid != expected { throw Trouble("\(answer) answered at \(path), not \(expected)") }
        if let pid { answered?(pid) }
        return took
    }

    /// The same by TCP on this machine, to a server that answers by HTTP how many requests it has had.
    static func get(_ port: UInt16, meanwhile act: () throws -> Void = {}) throws -> (seconds: Double, requests: Int) {
        let (took, answer) = try exchange(
            "port \(port)",
            {
                let socket = try Sockets.connectTCP(address: "127.0.0.1", port: port)
                var poll = pollfd(fd: socket.raw, events: Int16(POLLOUT), revents: 0)
                _ = Glibc.poll(&poll, 1, 20_000)
                if let error = Sockets.pendingError(socket.raw) { throw error }
                try Descriptor.setNonBlocking(socket.raw, false)
                return socket
            },
            act
        )
        guard let requests = answer.range(of: "\r\n\r\n").flatMap({ Int(answer[$0.upperBound...]) }) else {
            throw Trouble("port \(port) answered \(answer)")
        }
        return (took, requests)
    }

    /// Returns the seconds from before the connection to the first bytes of the answer, and those.
    private static func exchange(
        _ place: String,
        _ connect: () throws -> Descriptor,
        _ act: () throws -> Void
    ) throws -> (Double, String) {
        try Interruption.check()
        let began = now()
        let socket = try connect()
        try Sockets.setReceiveTimeout(socket.raw, .seconds(20))
        // HTTP servers need the whole line; the others use only its first byte.
        let request = Array("GET / HTTP/1.0\r\n\r\n".utf8)
        _ = request.withUnsafeBytes { Glibc.send(socket.raw, $0.baseAddress!, $0.count, Int32(MSG_NOSIGNAL)) }
        try act()
        var text = [UInt8](repeating: 0, count: 512)
        let count = recv(socket.raw, &text, text.count, 0)
        let took = now() - began
        guard count > 0 else { throw Trouble("no answer at \(place): \(String(cString: strerror(errno)))") }
        return (took, String(decoding: text[..<count], as: UTF8.self))
    }
}
