// SPDX-License-Identifier: Apache-2.0

@preconcurrency import Dispatch
import Glibc

/// A TCP server on the loopback interface that answers lines, those of a connection one after the other. It ends with its
/// last reference.
final class LineServer: Sendable {
    struct Failed: Error, CustomStringConvertible { let description: String }

    typealias Answer = @Sendable (String) async -> String

    private let source: any DispatchSourceRead

    init(port: UInt16, answer: @escaping Answer) throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var yes: Int32 = 1
        setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        let bound = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard bound == 0, listen(listener, 64) == 0 else {
            let problem = String(cString: strerror(errno))
            close(listener)
            throw Failed(description: "it cannot listen on port \(port): \(problem)")
        }
        source = DispatchSource.makeReadSource(fileDescriptor: listener, queue: .global())
        source.setEventHandler {
            let connection = accept(listener, nil, nil)
            if connection >= 0 { Self.serve(connection, answer) }
        }
        source.setCancelHandler { close(listener) }
        source.activate()
    }

    deinit { source.cancel() }

    private static func serve(_ connection: Int32, _ answer: @escaping Answer) {
        let (lines, feed) = AsyncStream.makeStream(of: String.self)
        let source = DispatchSource.makeReadSource(fileDescriptor: connection, queue: DispatchQueue(label: "lines"))
        let rest = Rest()
        source.setEventHandler {
            var buffer = [UInt8](repeating: 0, count: 4096)
            let count = read(connection, &buffer, buffer.count)
            guard count > 0, rest.bytes.count < 1 << 16 else {
                feed.finish()
                return
            }
            rest.bytes += buffer[..<count]
            while let end = rest.bytes.firstIndex(of: 0x0a) {
                feed.yield(String(decoding: rest.bytes[..<end], as: UTF8.self))
                rest.bytes.removeFirst(end + 1)
            }
        }
        source.setCancelHandler { close(connection) }
        source.activate()
        Task {
            for await line in lines {
                let reply = Array((await answer(line.filter { $0 != "\r" }) + "\n").utf8)
                _ = send(connection, reply, reply.count, Int32(MSG_NOSIGNAL))
            }
            source.cancel()
        }
    }

    /// What came of a line that is not whole; only the connection's queue uses it.
    private final class Rest: @unchecked Sendable { var bytes: [UInt8] = [] }
}
