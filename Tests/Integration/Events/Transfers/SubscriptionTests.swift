// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import KernelFiles
import Linux
import TestAddresses
import Testing
import TorporAPI
import Varlink

/// A server gives `content` below the daemon's directory under any name, and says 304 where nothing has changed; under a name
/// that begins with `same` without saying what it is by, under one that begins with `gone` never.
@Suite("Subscriptions are looked at while the app sleeps") struct SubscriptionTests {
    private static let server = #"""
        import hashlib, http.server, os, sys
        HERE = "@D"

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                with open(HERE + "/content", "rb") as file:
                    body = file.read()
                tag = '"%s"' % hashlib.sha256(body).hexdigest()[:8]
                wanted = self.headers.get("If-None-Match", "-")
                status = 404 if self.path.startswith("/gone") else 304 if wanted == tag else 200
                fd = os.open(HERE + "/requests", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
                os.write(fd, ("%s %s %d\n" % (self.path, wanted, status)).encode())
                os.close(fd)
                self.send_response(status)
                if not self.path.startswith("/same"):
                    self.send_header("ETag", tag)
                if status == 200:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if status == 200:
                    self.wfile.write(body)

        http.server.ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
        """#

    private struct Scene {
        let daemon: Daemon
        /// The configuration without the subscription.
        let others: String
        /// The configuration with one of another name at the server.
        let toml: (String) -> String

        /// What the server was asked, as `/news "tag" 304`.
        var requests: [String] {
            ((try? File.readString(daemon.directory + "/requests")) ?? "").split(separator: "\n").map(String.init)
        }

        /// The server has something else, from one moment to the next.
        func become(_ content: String) throws {
            try content.write(toFile: daemon.directory + "/content", atomically: true, encoding: .utf8)
        }

        func told() throws -> [JSON] {
            try daemon.heard().filter { $0.what == "message" && $0.name == "didReceiveEvent" }.map(\.parameters)
        }

        func waitForRequests(_ count: Int, like suffix: String, at location: SourceLocation = #_sourceLocation) throws {
            try daemon.eventually("\(count) requests like \(suffix)", at: location) {
                requests.count { $0.hasSuffix(suffix) } >= count
            }
        }
    }

    private static func run(_ name: String, losing: Bool = false, _ body: (Scene) throws -> Void) throws {
        let (host, port) = (TestAddress.host, try TestAddress.port())
        let others = """
            [apps.server]
            exec = ["/usr/bin/python3", "-S", "@D/server.py", "\(host)", "\(port)"]
            ready = { tcp = "\(host):\(port)" }
            restart = "never"
            \(Delegates.head)
            """
        func toml(_ name: String) -> String {
            """
            \(others)
            subscriptions = [{ name = "news", url = "http://\(host):\(port)/\(name)", every = "1s" }]
            """
        }
        var files = Delegates.files()
        files["server.py"] = server
        files["content"] = "one"
        func scene(_ daemon: Daemon) throws { try body(Scene(daemon: daemon, others: others, toml: toml)) }
        // On a machine that is calm, whatever else runs on this one.
        let kernel = try KernelFiles()
        let environment = ["TORPOR_KERNEL_FILES": kernel.root]
        try withExtendedLifetime(kernel) {
            if losing {
                try withRecovery(toml(name), files: files, environment: environment, scene)
            } else {
                try withDaemon(toml(name), files: files, environment: environment, scene)
            }
        }
    }

    private static func infos(_ daemon: Daemon) throws -> [TransferInfo] {
        try Fields(daemon.call(.transfers(TransfersRequest()))).list("transfers") { json throws(FieldError) in
            try TransferInfo(json: json)
        }
    }

    @Test("Only what is new wakes, and launches, its app", arguments: ["news", "same"])
    func new(name: String) throws {
        try Self.run(name) { scene in
            let daemon = scene.daemon
            // The first content is new.
            try daemon.eventually("it is told of the first") { try scene.told().count == 1 }
            let path = daemon.directory + "/s/feeds/web/news"
            let first = try scene.told()[0]
            #expect(first["topic"] == "torpor.feed:news", "\(first)")
            #expect(first["payload"]?["path"]?.stringValue == path, "\(first)")
            #expect(try File.readString(path) == "one")
            try daemon.done(.suspend, "web")
            let before = scene.requests.count
            try daemon.eventually("it is looked at twice more") { scene.requests.count >= before + 2 }
            #expect(try daemon.status("web").summary.state == "suspended")
            if name == "news" { #expect(scene.requests.last?.hasSuffix(" 304") == true, "\(scene.requests)") }
            try scene.become("two")
            try daemon.eventually("it is told of the second") { try scene.told().count == 2 }
            #expect(try File.readString(path) == "two")
            _ = try daemon.apply(scene.toml("moved"))
            try daemon.eventually("what is at another place is new") { try scene.told().count == 3 }
            #expect(try scene.told()[2]["payload"]?["url"]?.stringValue?.hasSuffix("/moved") == true)
        }
    }

    @Test("What was found is known after torpord, its keeper or both are lost", arguments: [Loss.killed, .both])
    func lost(loss: Loss) throws {
        try Self.run("news", losing: true) { scene in
            let daemon = scene.daemon
            try daemon.eventually("it is told of the first") { try scene.told().count == 1 }
            try scene.waitForRequests(1, like: " 304")
            try daemon.lose(loss)
            let before = scene.requests.count
            try daemon.eventually("it is looked at again") { scene.requests.count > before }
            try scene.become("two")
            try daemon.eventually("it is told of the second") { try scene.told().count == 2 }
            #expect(scene.requests.count { $0.hasSuffix(" 200") } == 2, "\(scene.requests)")
        }
    }

    @Test("Nothing is looked at for an app that was stopped, or that has no subscription any more") func stopped()
        throws
    {
        try Self.run("gone") { scene in
            let daemon = scene.daemon
            try scene.waitForRequests(2, like: " 404")
            var info: TransferInfo?
            try daemon.eventually("it waits for its interval") {
                info = try Self.infos(daemon).first
                return info?.cause == "interval"
            }
            #expect(info?.session == "torpor.feed:news" && info?.state == "waiting" && info?.reason == "http-status")
            let events = try daemon.events().filter { $0.text.contains("cannot be checked") }
            #expect(events.count == 1, "\(events)")
            // One that does not fail is looked at more often.
            _ = try daemon.apply(scene.toml("same"))
            try daemon.eventually("it is told of the first") { try scene.told().count == 1 }
            try daemon.done(.start, "web")
            let list = try daemon.ask("d.call('Transfers')")
            #expect(list["transfers"] == .array([]), "its app has nothing to do with it")
            try daemon.done(.stop, "web")
            // It was time, and nobody looked.
            try daemon.eventually("it is held back") { try Self.infos(daemon).first?.state == "queued" }
            let settled = scene.requests.count
            try daemon.done(.start, "web")
            try daemon.eventually("it is looked at again, and again") { scene.requests.count >= settled + 2 }
            _ = try daemon.apply(scene.others)
            try daemon.eventually("it is gone") { try Self.infos(daemon).isEmpty }
        }
    }
}
