// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux

/// Connections to apps whose sockets a supervisor holds.
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
        try Interruption.check()
        let began = now()
        let socket = try Sockets.connect(path: path)
        try Sockets.setReceiveTimeout(socket.raw, .seconds(20))
        // HTTP servers need the whole line; the others use only its first byte.
        let request = Array("GET / HTTP/1.0\r\n\r\n".utf8)
        _ = request.withUnsafeBytes { Glibc.send(socket.raw, $0.baseAddress!, $0.count, Int32(MSG_NOSIGNAL)) }
        try act()
        var text = [UInt8](repeating: 0, count: 512)
        let count = recv(socket.raw, &text, text.count, 0)
        let took = now() - began
        guard count > 0 else { throw Trouble("no answer at \(path): \(String(cString: strerror(errno)))") }
        let answer = String(decoding: text[..<count], as: UTF8.self)
        let pid = pid_t(answer)
        if let expected, pid != expected { throw Trouble("\(answer) answered at \(path), not \(expected)") }
        if let pid { answered?(pid) }
        return took
    }
}
