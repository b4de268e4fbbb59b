// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import TestAddresses
import Testing
import TorporAPI
import Varlink

/// Transfers that the app in each language begins itself, and what it is told of them.
@Suite("Transfers in all languages", .serialized)
struct ConformanceTransferTests {
    /// All that the app records, but for `resumed`: it may sleep in between, or not.
    static let told = [
        // It begins a download while it is in use, what it begins in the background may have to wait; it sleeps until that
        // is over.
        "willFinishLaunching foreground", "didFinishLaunching", "didBecomeActive", "didReceiveEvent fetch slow",
        "willResignActive", "didEnterBackground", "handleEventsForBackgroundTransfer files",
        "transferDidFinish slow done",
        // While it is in use, one after the other.
        "willEnterForeground", "didBecomeActive", "didReceiveEvent fetch login", "transferNeedsLogin the garden",
        "transferDidFinish login done", "didReceiveEvent fetch gone", "transferDidFinish gone failed",
        "willTerminate stopped",
    ]

    /// `slow`: its end comes when there is a file `go`. `login`: Basic, me and tulip. `gone`: 404.
    private static let server = """
        import base64, http.server, os, sys, time

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                login = "Basic " + base64.b64encode(b"me:tulip").decode()
                status, fields = 200, {}
                if self.path == "/gone":
                    status = 404
                if self.path == "/login" and self.headers.get("Authorization") != login:
                    status, fields = 401, {"WWW-Authenticate": 'Basic realm="the garden"'}
                self.send_response(status)
                for name, value in fields.items():
                    self.send_header(name, value)
                body = self.path.encode() if status == 200 else b""
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                while self.path == "/slow" and not os.path.exists("@D/go"):
                    time.sleep(0.01)
                self.wfile.write(body)

        http.server.ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
        """

    @Test("a download that wakes the app, a login, one that fails", arguments: Language.allCases)
    func transfers(_ language: Language) throws {
        let folder = try Daemon.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let program = try language.program(in: folder)
        let words = program.exec.map { "\"\($0)\"" }.joined(separator: ", ")
        let variables = program.environment.map { "\($0) = \"\($1)\", " }.sorted().joined()
        let host = TestAddress.host
        let port = try TestAddress.port()
        try withDaemon(
            """
            [supervisor.transfers]
            min_free = "none"

            [apps.server]
            exec = ["/usr/bin/python3", "-S", "@D/server.py", "\(host)", "\(port)"]
            ready = { tcp = "\(host):\(port)" }
            restart = "never"

            [apps.web]
            exec = [\(words)]
            environment = { \(variables)CONFORMANCE = "@D", CONFORMANCE_SERVER = "http://\(host):\(port)/" }
            topics = { fetch = {} }
            launch = "on-demand"
            ready = "delegate"
            restart = "never"
            evict = "never"
            launch_deadline = "20s"
            transition_deadline = "20s"
            background_deadline = "20s"
            """,
            files: ["server.py": Self.server]
        ) { daemon in
            try daemon.waitFor("server", "active")
            try daemon.done(.start, "web")
            _ = try daemon.post("fetch", "slow")
            try daemon.waitForRecord("web", "didReceiveEvent fetch slow")
            try daemon.eventually("it is answered") { try daemon.mailbox().mail.isEmpty }
            try daemon.done(.suspend, "web")
            try File.write(daemon.directory + "/go", "")
            try daemon.waitForRecord("web", "transferDidFinish slow done")
            #expect(try File.readString(daemon.directory + "/s/apps/web/slow") == "/slow")
            try daemon.done(.foreground, "web")
            _ = try daemon.post("fetch", "login")
            try daemon.waitForRecord("web", "transferDidFinish login done")
            #expect(try File.readString(daemon.directory + "/s/apps/web/login") == "/login")
            _ = try daemon.post("fetch", "gone")
            try daemon.waitForRecord("web", "transferDidFinish gone failed")
            #expect(!File.exists(daemon.directory + "/s/apps/web/gone"))
            try daemon.done(.stop, "web")
            #expect(daemon.records("web").filter { !$0.hasPrefix("resumed") } == Self.told)
        }
    }
}
