// SPDX-License-Identifier: Apache-2.0

import Foundation
package import Linux
package import Testing
import TorporAPI

/// One end of a connection, in the test.
package final class Peer {
    package let socket: Descriptor

    package init(_ socket: Descriptor) { self.socket = socket }

    /// Connects; the kernel does so whether anybody accepts or not.
    package convenience init(port: UInt16) throws {
        self.init(try Sockets.connectTCP(address: "127.0.0.1", port: port))
        guard try Descriptor.wait(socket.raw, writable: true, timeout: Daemon.bound),
            Sockets.pendingError(socket.raw) == nil
        else { throw Trouble("no connection to port \(port)") }
    }

    package func send(_ text: String) throws { try Descriptor.writeAll(socket.raw, Array(text.utf8)) }

    /// Reads until the text has come, or the end; what came by then.
    package func receive(until text: String, within bound: Duration = Daemon.bound) throws -> String {
        var all = ""
        let end = Clock.monotonic() + bound
        while !all.contains(text) {
            guard try Descriptor.wait(socket.raw, timeout: max(.zero, end - Clock.monotonic())) else {
                throw Trouble("waited in vain for \(text), there is only \(all)")
            }
            guard let bytes = try Descriptor.read(socket.raw, maximum: 65_536) else { continue }
            if bytes.isEmpty { break }
            all += String(decoding: bytes, as: UTF8.self)
        }
        return all
    }

    /// A request on this connection, and its answer.
    package func get(_ path: String = "/") throws -> String {
        try send("GET \(path) HTTP/1.1\r\nHost: x\r\n\r\n")
        return try receive(until: "served")
    }

    package func close() { socket.close() }
}

/// Programs that listen for themselves.
package enum Servers {
    /// Python's own server of HTTP, which keeps connections open and answers `served by PID`; `/slow` piece by piece, until
    /// there is a file `enough`; `/late` nothing at all until then.
    package static let web = #"""
        import http.server, os, tp, time
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            def do_GET(self):
                body = b"served by %d\n" % os.getpid()
                if self.path == "/late":
                    tp.record("asked")
                    tp.await_file("enough")
                self.send_response(200)
                if self.path == "/slow":
                    self.send_header("Connection", "close")
                    self.end_headers()
                    while not os.path.exists(tp.HERE + "/enough"):
                        self.wfile.write(b".")
                        self.wfile.flush()
                        time.sleep(0.02)
                else:
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                self.wfile.write(body)
            def log_message(self, *args):
                pass
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        tp.record("port %d" % server.server_address[1])
        server.serve_forever()
        """#

    /// The same at the socket that it is given.
    package static let given = web.replacingOccurrences(
        of: #"server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)"#,
        with: #"""
            import socket
            server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler, bind_and_activate=False)
            server.socket.close()
            server.socket = socket.socket(fileno=3)
            server.server_address = server.socket.getsockname()
            """#
    )

    /// A filter of system calls that has pidfd_getfd (438) fail with EPERM, as a container's does, around a program.
    package static let forbid = #"""
        import ctypes, os, struct, sys
        code = [(0x20, 0, 0, 0), (0x15, 0, 1, 438), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7fff0000)]
        filter = b"".join(struct.pack("HBBI", *one) for one in code)
        buffer = ctypes.create_string_buffer(filter)
        program = struct.pack("HxxxxxxP", len(code), ctypes.addressof(buffer))
        libc = ctypes.CDLL(None)
        libc.prctl(38, 1, 0, 0, 0)
        if libc.prctl(22, 2, ctypes.create_string_buffer(program), 0, 0):
            sys.exit("no filter")
        os.execv(sys.argv[1], sys.argv[1:])
        """#

    /// Connects to the port in the file `port`, says hello and echoes what comes; where `keeps`, it never closes.
    package static let client = #"""
        import socket, tp, time
        tp.await_file("port")
        s = socket.create_connection(("127.0.0.1", int(open(tp.HERE + "/port").read())))
        s.sendall(b"hello\n")
        tp.record("connected")
        while True:
            data = s.recv(4096)
            if not data:
                break
            s.sendall(data)
        tp.record("ended")
        time.sleep(1000)
        """#
}

extension Daemon {
    /// The port that an app recorded.
    package func port(of app: String) throws -> UInt16 {
        var port: UInt16?
        try eventually("\(app) has a port") {
            port = records(app).last { $0.hasPrefix("port ") }.flatMap { UInt16($0.dropFirst(5)) }
            return port != nil
        }
        return try #require(port)
    }

    /// Waits until torpord has copies of the sockets of an app that sleeps, as /proc shows them.
    package func waitUntilWatched(_ app: String, at location: SourceLocation = #_sourceLocation) throws {
        func sockets(_ pid: Int32) throws -> Set<UInt32> {
            let reading = try SocketReading(pid)
            _ = reading.read()
            return Set(reading.sockets)
        }
        try eventually("the sockets of \(app) are watched", at: location) {
            let own = try processes(of: app).reduce(into: Set<UInt32>()) { $0.formUnion(try sockets($1)) }
            let watched = try sockets(livingTorpord())
            return !own.isEmpty && own.isSubset(of: watched)
        }
    }

    /// How often it was woken, as events tell.
    package func wakes(_ app: String) throws -> [String] {
        try events(app).map(\.text).filter { $0.hasPrefix("woken by ") }
    }
}
