// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import TestAddresses
import Testing
import TorporAPI
import Varlink

/// The proxies of docs/scenes.md, as they are written there but for addresses: the first request to a name opens its scene.
@Suite("Scenes by name on the network") struct ProxyTests {
    private static let app = """
        import http.server, os, socket, tp
        tp.on("SIGTERM", lambda: os._exit(0))
        class Page(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            def do_GET(self):
                length = int(self.headers.get("Content-Length") or 0)
                body = ("%s %s %s" % (os.environ["TORPOR_SCENE"], self.path, self.rfile.read(length).decode())).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            do_POST = do_GET
            def address_string(self):
                return "-"
        class Server(http.server.ThreadingHTTPServer):
            address_family = socket.AF_UNIX
        tp.record("up")
        server = Server("/", Page, bind_and_activate=False)
        server.socket = socket.socket(fileno=3)
        server.serve_forever()
        """

    private static let configuration = """
        [apps.code]
        exec = ["/usr/bin/python3", "-S", "@D/app.py"]
        scenes = { max_live = 2, max_sessions = 4, opened_by = "posters" }
        background_time = "1min"
        event_time = "1min"

        [[apps.code.sockets]]
        stream = "@D/%s.sock"

        """

    /// The first block of that language, with the test's addresses.
    private static func block(
        _ language: String,
        _ daemon: Daemon,
        _ fixture: GatewayFixture,
        _ gateway: UInt16
    ) throws -> String {
        let page = try File.readString("docs/scenes.md")
        let start = try #require(page.range(of: "```\(language)\n"))
        let end = try #require(page.range(of: "\n```", range: start.upperBound..<page.endIndex))
        return page[start.upperBound..<end.lowerBound]
            .replacingOccurrences(of: "/run/code", with: daemon.directory)
            .replacingOccurrences(of: "127.0.0.1:8780", with: "127.0.0.1:\(gateway)")
            .replacingOccurrences(of: "TOKEN", with: GatewayFixture.token)
            .replacingOccurrences(of: "/var/cache/nginx", with: fixture.directory)
    }

    enum Proxy: String, CaseIterable {
        case nginx, caddy

        /// Its configuration, and how it is started.
        func start(_ daemon: Daemon, _ fixture: GatewayFixture, _ gateway: UInt16, _ port: UInt16) throws -> Bool {
            switch self {
            case .nginx:
                guard let program = GatewayFixture.program("nginx", package: "nginx-light") else { return false }
                let block = try ProxyTests.block("nginx", daemon, fixture, gateway)
                    .replacingOccurrences(of: "listen 80;", with: "listen 127.0.0.1:\(port);")
                let folders = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
                    .map { "\($0)_temp_path \(fixture.directory)/\($0);" }.joined(separator: "\n")
                let text = """
                    daemon off;
                    # One process, which ends when it is killed: workers would outlive their master.
                    master_process off;
                    pid \(fixture.directory)/nginx.pid;
                    error_log \(fixture.directory)/nginx.log;
                    \(Users.isRoot ? "user root;" : "")
                    events {}
                    http {
                    access_log off;
                    \(folders)
                    \(block)
                    }
                    """
                try File.write(fixture.directory + "/nginx.conf", text)
                try fixture.start(
                    [program, "-c", fixture.directory + "/nginx.conf", "-e", "stderr"],
                    output: "nginx.out"
                )
            case .caddy:
                guard let program = GatewayFixture.program("caddy", package: "caddy") else { return false }
                let block = try ProxyTests.block("caddyfile", daemon, fixture, gateway)
                    .replacingOccurrences(of: "http://*.code.example.org", with: "http://*.code.example.org:\(port)")
                let head = "{\nadmin off\nstorage file_system \(fixture.directory)/caddy\ndefault_bind 127.0.0.1\n}\n"
                try File.write(fixture.directory + "/Caddyfile", head + block + "\n")
                try fixture.start(
                    [program, "run", "--adapter", "caddyfile", "--config", fixture.directory + "/Caddyfile"],
                    output: "caddy.out"
                )
            }
            try fixture.eventually("\(rawValue) listens") { GatewayFixture.listens(port) }
            return true
        }
    }

    @Test("The first request to a name opens the scene and waits for it", arguments: Proxy.allCases)
    func byName(_ proxy: Proxy) throws {
        let fixture = try GatewayFixture()
        let (gateway, port) = (try TestAddress.port(), try TestAddress.port())
        try withDaemon(Self.configuration, files: ["app.py": Self.app]) { daemon in
            let tokens = "name = \"proxy\"\nsecret = \"ci\"\napps = []\nscenes = [\"code\"]\n"
            _ = try fixture.gateway(
                "[gateway.http]\nlisten = \"127.0.0.1:\(gateway)\"\n[[gateway.http.tokens]]\n" + tokens,
                socket: daemon.socket
            )
            guard try proxy.start(daemon, fixture, gateway, port) else { return }
            func get(
                _ name: String,
                _ path: String = "/a?b",
                _ more: [String] = []
            ) throws -> (status: Int, body: String) {
                try fixture.curl(
                    more + ["-H", "Host: \(name).code.example.org", "http://127.0.0.1:\(port)\(path)"],
                    token: nil
                )
            }
            for name in ["alice", "bob"] {
                #expect(try get(name) == (200, "\(name) /a?b "), "\(fixture.said)")
                #expect(try get(name, "/", ["-d", "some text"]) == (200, "\(name) / some text"))
                #expect(daemon.processes(of: "code@\(name)").count == 1)
                #expect(try daemon.summary("code@\(name)").state == "background")
            }
            // A third one has the place of the first; who comes back is not sent away.
            #expect(try get("carol") == (200, "carol /a?b "))
            try daemon.waitFor("code@alice", "not-running")
            #expect(try get("alice") == (200, "alice /a?b "))
            // One that sleeps is continued.
            try daemon.done(.suspend, "code@alice")
            #expect(try get("alice") == (200, "alice /a?b "))
            // There may be no fifth.
            #expect(try get("d").status == 200)
            let refused = try get("e")
            switch proxy {
            case .nginx: #expect(refused.status == 500)
            case .caddy: #expect(refused.status == 503 && refused.body.contains("may not have more"), "\(refused)")
            }
            #expect(try daemon.scenes().scenes.map(\.name) == ["alice", "bob", "carol", "d"])
        }
    }

    @Test("Browsers that see the holding page of more scenes than may run come to each, one after the other")
    func held() throws {
        let slow = Self.app.replacingOccurrences(of: "tp.record(\"up\")", with: "tp.time.sleep(1.5)")
        let toml = Self.configuration.replacingOccurrences(of: "max_live = 2", with: "max_live = 1")
            .replacingOccurrences(of: "%s.sock\"", with: "%s.sock\"\nholding = true\nholding_after = \"100ms\"")
        try withDaemon(toml, files: ["app.py": slow]) { daemon in
            for name in ["a", "b", "c"] { try daemon.openScene(name) { $0.remote = true } }
            let directory = daemon.directory
            let answers = Monitor<[String: String]>([:])
            DispatchQueue.concurrentPerform(iterations: 3) { index in
                let name = ["a", "b", "c"][index]
                let end = Clock.monotonic() + .seconds(120)
                // As the page does.
                while Clock.monotonic() < end {
                    let words = ["-sS", "--max-time", "60", "-H", "Accept: text/html"]
                    let request = ["--unix-socket", "\(directory)/\(name).sock", "http://x/"]
                    let answer = (try? Spawn.run(["/usr/bin/curl"] + words + request).output) ?? ""
                    answers.withLock { $0[name] = answer }
                    if answer == "\(name) / " { return }
                    ThisProcess.sleep(.seconds(2))
                }
            }
            #expect(answers.withLock { $0 } == ["a": "a / ", "b": "b / ", "c": "c / "])
        }
    }

    @Test("The gateway opens what its token is for, of templates that may be opened so, and nothing else")
    func rules() throws {
        let fixture = try GatewayFixture()
        let port = try TestAddress.port()
        let toml =
            Self.configuration + """

                [apps.plain]
                exec = ["/bin/sleep", "1000"]

                """
        try withDaemon(toml, files: ["app.py": Self.app]) { daemon in
            let tokens = "name = \"proxy\"\nsecret = \"ci\"\nscenes = [\"co*\", \"plain\"]\n"
            _ = try fixture.gateway(
                "[gateway.http]\nlisten = \"127.0.0.1:\(port)\"\n[[gateway.http.tokens]]\n" + tokens,
                socket: daemon.socket
            )
            func get(_ path: String, token: String? = GatewayFixture.token) throws -> (status: Int, body: String) {
                try fixture.curl(["http://127.0.0.1:\(port)\(path)"], token: token)
            }
            #expect(try get("/scenes/code/alice", token: nil).status == 401)
            #expect(try get("/scenes/other/alice").status == 403)
            #expect(try get("/scenes/cold/alice").status == 404)
            #expect(try get("/scenes/plain/alice").status == 503)
            for path in ["/scenes/code/", "/scenes/code/a%2Fb", "/scenes/code/..", "/scenes/code/a@b"] {
                #expect([400, 404].contains(try get(path).status), "\(path)")
            }
            #expect(try daemon.call(.scenes(template: nil))["scenes"] == [])
            // It is made, and launched by whoever connects.
            let answer = try get("/scenes/code/alice")
            #expect(answer.status == 200 && answer.body.contains("\"code@alice\""))
            #expect(try daemon.summary("code@alice").isUnattached)
            #expect(daemon.processes(of: "code@alice").isEmpty && daemon.records("code@alice").isEmpty)
            let socket = daemon.directory + "/alice.sock"
            #expect(try fixture.curl(["--unix-socket", socket, "http://x/"], token: nil).body == "alice / ")
            try daemon.waitFor("code@alice", "background")
            // Nobody outside brings back what a person has stopped.
            try daemon.done(.stop, "code@alice")
            let refused = try get("/scenes/code/alice")
            #expect(refused.status == 503 && refused.body.contains("was stopped"), "\(refused)")
            try daemon.done(.start, "code@alice")
            #expect(try get("/scenes/code/alice").status == 200)
        }
    }
}

extension GatewayFixture {
    /// What proxies said.
    var said: String {
        ["nginx.log", "nginx.out", "caddy.out", "gateway.log"]
            .map { (try? File.readString(directory + "/" + $0)) ?? "" }.joined(separator: "\n")
    }
}
