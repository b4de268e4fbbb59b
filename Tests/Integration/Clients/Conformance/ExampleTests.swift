// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

/// The examples do what their pages say.
@Suite("The examples in C and Python")
struct ExampleTests {
    private static let examples = Language.sources + "/Examples"

    @Test("the counter goes on counting after an eviction")
    func counter() throws {
        let folder = try Daemon.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let library = Language.sources + "/Clients/c"
        let (code, output) = try Spawn.run([
            "/usr/bin/cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-I\(library)",
            "\(Self.examples)/c-counter/counter.c", "\(library)/torpor_app.c", "-o", "\(folder)/counter", "-pthread",
        ])
        #expect(code == 0, "\(output)")
        // Its port is that of its process: no other test takes it.
        let port = 20_000 + Int(ThisProcess.pid) % 10_000
        try withDaemon(
            """
            [apps.web]
            exec = ["\(folder)/counter", "\(port)"]
            launch = "on-demand"
            ready = "delegate"
            launch_deadline = "20s"
            """
        ) { daemon in
            try daemon.done(.start, "web")
            #expect(try Self.visit(port) == "1\n")
            #expect(try Self.visit(port) == "2\n")
            #expect(try Self.visit(port, "health") == "active\n")
            try daemon.done(.suspend, "web")
            for pid in daemon.processes(of: "web") { kill(pid, SIGKILL) }
            try daemon.eventually("web is evicted") { try daemon.summary("web").lastExit?.reason == "evicted" }
            try daemon.done(.start, "web")
            #expect(try Self.visit(port) == "3\n")
            try daemon.done(.stop, "web")
        }
    }

    private static let hasNode = (try? Spawn.run(["/usr/bin/env", "node", "--version"]).code) == 0

    @Test("the notes in Node are there again after a crash, and over a torpord that is killed", .enabled(if: hasNode))
    func node() throws {
        // Below the ports that the kernel gives to connections.
        let port = 10_000 + Int(ThisProcess.pid) % 10_000
        let toml = """
            [apps.web]
            exec = ["node", "\(Self.examples)/node-notes/notes.js", "\(port)"]
            launch = "on-demand"
            ready = "delegate"
            launch_deadline = "20s"
            restart_backoff = { initial = "10ms" }
            topics = { jobs = {} }
            """
        try withRecovery(toml) { daemon in
            try daemon.done(.start, "web")
            #expect(try Self.visit(port, "", "milk") == "milk\n")
            // It has no method for what is posted, and says so.
            try daemon.post("jobs", "seven")
            try daemon.waitForEvent("web", "answered didReceiveEvent: it does not handle it")
            try daemon.lose(.killed)
            try daemon.done(.background, "web")
            let first = try #require(daemon.processes(of: "web").first)
            kill(first, SIGKILL)
            try daemon.eventually("it has its notes again") {
                try daemon.processes(of: "web").first.map { $0 != first } == true && Self.visit(port) == "milk\n"
            }
            // In the foreground, an end is told by willTerminate alone.
            try daemon.done(.foreground, "web")
            #expect(try Self.visit(port, "", "tea") == "milk\ntea\n")
            try daemon.done(.restart, "web") { $0.keepState = true }
            #expect(try Self.visit(port) == "milk\ntea\n")
            try daemon.done(.stop, "web")
        }
    }

    private static func visit(_ port: Int, _ page: String = "", _ body: String? = nil) throws -> String {
        let data = body.map { ["-d", $0] } ?? []
        return try Spawn.run(["/usr/bin/curl", "-s", "--max-time", "60"] + data + ["http://127.0.0.1:\(port)/\(page)"])
            .output
    }

    @Test("the uploader sends what is there, in a background task")
    func uploader() throws {
        let server = """
            import http.server, sys
            class Receiver(http.server.BaseHTTPRequestHandler):
                def do_PUT(self):
                    data = self.rfile.read(int(self.headers["Content-Length"]))
                    open("@D/in" + self.path, "wb").write(data)
                    self.send_response(201)
                    self.end_headers()
                def log_message(self, *words): pass
            server = http.server.HTTPServer(("127.0.0.1", 0), Receiver)
            open("@D/port.new", "w").write(str(server.server_port))
            import os
            os.rename("@D/port.new", "@D/port")
            server.serve_forever()
            """
        let start = """
            #!/bin/sh
            while [ ! -e @D/port ]; do sleep 0.01; done
            exec /usr/bin/python3 -S \(Self.examples)/python-uploader/uploader.py @D/out http://127.0.0.1:$(cat @D/port)
            """
        try withDaemon(
            """
            [apps.receiver]
            exec = ["/usr/bin/python3", "-S", "@D/server.py"]

            [apps.uploader]
            exec = ["@D/start.sh"]
            environment = { PYTHONDONTWRITEBYTECODE = "1" }
            ready = "delegate"
            launch_deadline = "20s"
            launch = "on-demand"
            """,
            files: ["server.py": server, "start.sh": start]
        ) { daemon in
            for folder in ["in", "out"] { try File.makeDirectory(daemon.directory + "/" + folder) }
            for number in 1...5 { try File.write(daemon.directory + "/out/\(number)", "file \(number)") }
            try daemon.done(.start, "uploader")
            try daemon.eventually("all files have arrived") {
                try File.list(daemon.directory + "/in").count == 5 && File.list(daemon.directory + "/out").isEmpty
            }
            #expect(try File.readString(daemon.directory + "/in/3") == "file 3")
            #expect(try daemon.events("uploader").contains { $0.text == "began the task upload" })
            try daemon.done(.background, "uploader")
            try daemon.done(.stop, "uploader")
        }
    }
}
