// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import TestAddresses
import Testing
import TorporAPI
import Varlink

/// A web server that gives a file of a mebibyte under any name, with ranges, and writes down what it was asked: an app of the
/// same supervisor. What a name begins with says what is odd about it.
enum TransferServer {
    /// `slow…`: the first half, then nothing until there is a file `go`; of an upload, nothing is read until then. `busy…`: 503 the first time. `login…`: Basic, tulip.
    /// `cut…`: the connection ends somewhere, again and again. `gone…`: 404.
    static let program = #"""
        import base64, http.server, os, random, socketserver, sys, threading, time
        HERE, HOST, PORT = "@D", sys.argv[1], int(sys.argv[2])
        DATA = bytes((i * 7 + i // 256) % 256 for i in range(1 << 20))
        ETAG = '"v1"'
        seen = set()

        class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
            daemon_threads = True
            allow_reuse_address = True
            request_queue_size = 128

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 60

            def log_message(self, *_):
                pass

            def note(self):
                fd = os.open(HERE + "/requests", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
                os.write(fd, ("%s %s %s\n" % (self.command, self.path, self.headers.get("Range", "-"))).encode())
                os.close(fd)

            def say(self, status, headers=(), body=b""):
                self.send_response(status)
                for name, value in headers:
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self):
                self.note()
                name = self.path[1:]
                if name.startswith("gone"):
                    return self.say(404)
                if name.startswith("busy") and name not in seen:
                    seen.add(name)
                    return self.say(503, [("Retry-After", "0")])
                if name.startswith("login"):
                    want = "Basic " + base64.b64encode(b"me:tulip").decode()
                    if self.headers.get("Authorization") != want:
                        return self.say(401, [("WWW-Authenticate", 'Basic realm="the garden"')])
                start = 0
                wanted = self.headers.get("Range", "")
                if wanted.startswith("bytes=") and self.headers.get("If-Range", ETAG) == ETAG:
                    start = int(wanted[6:].split("-")[0])
                self.send_response(206 if wanted else 200)
                if wanted:
                    self.send_header("Content-Range", "bytes %d-%d/%d" % (start, len(DATA) - 1, len(DATA)))
                self.send_header("ETag", ETAG)
                self.send_header("Content-Length", str(len(DATA) - start))
                self.end_headers()
                if name.startswith("cut") and random.random() < 0.6:
                    self.wfile.write(DATA[start:start + random.randrange(len(DATA) - start)])
                    self.wfile.flush()
                    self.close_connection = True
                    return
                if name.startswith("slow") and start < len(DATA) // 2:
                    self.wfile.write(DATA[start:len(DATA) // 2])
                    self.wfile.flush()
                    start = len(DATA) // 2
                    while not os.path.exists(HERE + "/go"):
                        time.sleep(0.005)
                self.wfile.write(DATA[start:])

            def do_POST(self):
                self.do_PUT()

            def do_PUT(self):
                slow = self.path.startswith("/slow")
                if slow:
                    self.note()
                    while not os.path.exists(HERE + "/go"):
                        time.sleep(0.005)
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if not slow:
                    self.note()
                with open(HERE + "/put" + self.path.replace("/", "."), "wb") as file:
                    file.write(body)
                self.say(201)

        Server((HOST, PORT), Handler).serve_forever()
        """#

    /// What every file of it is.
    static let data = Data((0..<(1 << 20)).map { UInt8(truncatingIfNeeded: ($0 * 7 + $0 / 256) % 256) })
}

/// A daemon with an app that has transfers, and a server for them.
struct TransferScene {
    let daemon: Daemon
    let base: String

    static func run(
        app: String = "",
        supervisor: String = "",
        losing: Bool = false,
        at location: SourceLocation = #_sourceLocation,
        _ body: (TransferScene) throws -> Void
    ) throws {
        let port = try TestAddress.port()
        let host = TestAddress.host
        let toml = """
            [supervisor.transfers]
            min_free = "none"
            \(supervisor)
            [apps.server]
            exec = ["/usr/bin/python3", "-S", "@D/server.py", "\(host)", "\(port)"]
            ready = { tcp = "\(host):\(port)" }
            restart = "never"
            \(Delegates.head)
            \(app)
            """
        var files = Delegates.files()
        files["server.py"] = TransferServer.program
        let scene = { (daemon: Daemon) in
            try daemon.waitFor("server", "active", at: location)
            try body(TransferScene(daemon: daemon, base: "http://\(host):\(port)/"))
        }
        if losing {
            try withRecovery(toml, files: files, at: location, scene)
        } else {
            try withDaemon(toml, files: files, at: location, scene)
        }
    }

    var state: String { daemon.directory + "/s/apps/web" }

    /// Has the app download a file of the server under its own name.
    @discardableResult
    func get(_ name: String, _ more: String = "", at location: SourceLocation = #_sourceLocation) throws -> Int64 {
        let reply = try daemon.ask(
            "d.call('StartTransfer', direction='download', url='\(base)\(name)', file='\(name)'\(more))",
            at: location
        )
        return try #require(reply["id"]?.intValue, sourceLocation: location)
    }

    /// Lets the server go on.
    func go() throws { try File.write(daemon.directory + "/go", "") }

    /// What the server was asked, as `GET /name bytes=7-`.
    var requests: [String] {
        ((try? File.readString(daemon.directory + "/requests")) ?? "").split(separator: "\n").map(String.init)
    }

    /// What a message about transfers said, in the order in which they were told.
    func told(_ name: String = "transferDidFinish") throws -> [JSON] {
        try daemon.heard().filter { $0.what == "message" && $0.name == name }.map(\.parameters)
    }

    /// Waits until the app was told that a file is there, and looks whether it is.
    func expectDone(_ name: String, at location: SourceLocation = #_sourceLocation) throws {
        var end: JSON?
        do {
            try daemon.eventually("\(name) is told", at: location) {
                end = try told().first { $0["path"]?.stringValue == state + "/" + name }
                return end != nil
            }
        } catch {
            // What is known of it instead.
            let requests = requests.filter { $0.contains("/\(name) ") }
            Issue.record("\(try infos) by \(helpers); \(parts); \(requests)", sourceLocation: location)
            throw error
        }
        #expect(end?["error"]?.isNull == true, "\(end as Any)", sourceLocation: location)
        #expect(end?["bytes"]?.intValue == 1 << 20, sourceLocation: location)
        #expect(end?["sha256"]?.stringValue?.utf8.count == 64, sourceLocation: location)
        let file = try Data(contentsOf: URL(fileURLWithPath: state + "/" + name))
        #expect(file == TransferServer.data, "it is not what the server has", sourceLocation: location)
    }

    /// What operators see.
    var infos: [TransferInfo] {
        get throws {
            let reply = try daemon.call(.transfers(TransfersRequest()))
            return try Fields(reply).list("transfers") { json throws(FieldError) in try TransferInfo(json: json) }
        }
    }

    /// The processes that transfer, by /proc.
    var helpers: [Int32] {
        Truth.processes(marked: daemon.directory).filter { pid in
            let words = (try? File.read("/proc/\(pid)/cmdline", limit: 4096)) ?? []
            return words.split(separator: 0).first.map { $0.elementsEqual("torpor-transfer".utf8) } ?? false
        }
    }

    /// What is left of transfers that are not over.
    var parts: [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: daemon.directory + "/s/transfers/web")) ?? []).sorted()
    }

    /// Waits until the half that the server gives is on the disk.
    func waitForHalf(_ id: Int64, at location: SourceLocation = #_sourceLocation) throws {
        let part = daemon.directory + "/s/transfers/web/\(id).part"
        try daemon.eventually("half of \(id) is there", at: location) {
            (try? File.status(part).size) ?? 0 >= 1 << 19
        }
    }
}
