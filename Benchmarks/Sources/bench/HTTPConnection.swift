// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The subset of HTTP/1.1 on a Unix socket that supervisord's XML-RPC and podman's API need. The connection is kept alive if
/// possible.
final class HTTPConnection {
    private let path: String
    private var socket: Int32 = -1

    init(path: String) throws {
        self.path = path
        try connect()
    }

    deinit { if socket >= 0 { close(socket) } }

    private func connect() throws {
        if socket >= 0 { close(socket) }
        socket = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        guard bytes.count < MemoryLayout.size(ofValue: address.sun_path) else {
            throw Trouble("\(path) is too long for a socket")
        }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        let size = socklen_t(MemoryLayout<sockaddr_un>.size)
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { Glibc.connect(socket, $0, size) }
        }
        guard result == 0 else { throw Trouble("no server answers at \(path): \(String(cString: strerror(errno)))") }
        var limit = timeval(tv_sec: 30, tv_usec: 0)
        setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    }

    /// Returns the response's body.
    func post(_ target: String, _ body: String) throws -> String {
        let request =
            "POST \(target) HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive\r\nContent-Type: text/xml\r\n"
            + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
        if !send(request) {
            try connect()
            guard send(request) else { throw Trouble("\(path) takes no request") }
        }
        var answer: [UInt8] = []
        var bytes = [UInt8](repeating: 0, count: 1 << 16)
        var length: Int?
        var start = 0
        while length.map({ answer.count < start + $0 }) ?? true {
            let count = recv(socket, &bytes, bytes.count, 0)
            guard count > 0 else { throw Trouble("\(path) ended the connection before its answer was whole") }
            answer += bytes[..<count]
            guard length == nil else { continue }
            let head = String(decoding: answer.prefix(4_096), as: UTF8.self)
            guard let end = head.range(of: "\r\n\r\n") else { continue }
            start = head[..<end.upperBound].utf8.count
            let status = head.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
            guard status < 400 else { throw Trouble("\(path) refused \(target): \(head.prefix(500))") }
            if status == 204 || status == 304 { return "" }
            for line in head[..<end.lowerBound].split(separator: "\r\n")
            where line.lowercased().hasPrefix("content-length:") {
                length = Int(line.split(separator: ":")[1].trimmingCharacters(in: .whitespaces))
            }
            guard length != nil else { throw Trouble("\(path) answered without a length: \(head.prefix(200))") }
        }
        return String(decoding: answer[start...], as: UTF8.self)
    }

    private func send(_ text: String) -> Bool {
        text.withCString { Glibc.send(socket, $0, strlen($0), Int32(MSG_NOSIGNAL)) } == text.utf8.count
    }
}
