// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import TestAddresses
import Testing
import TorporAPI

@Suite("Programs in PM2's cluster mode share a port") struct ClusterTests {
    private static let page = Sources.root + "/docs/howto/from-pm2.md"

    /// A program and its ecosystem file, which listens at a port, and is given a socket there.
    struct Program: CustomTestStringConvertible {
        var name: String
        var files: [String: String]
        var testDescription: String { name }
    }

    /// The files of the page, each with its port.
    private static func files(_ names: [String]) throws -> [String: String] {
        let text = try String(contentsOfFile: page, encoding: .utf8)
        var files: [String: String] = [:]
        for name in names {
            let head = name.hasSuffix(".json") ? "<!-- file: \(name) -->\n```json\n" : "```js\n// \(name)\n"
            let parts = text.components(separatedBy: head)
            try #require(parts.count == 2, "the page has no \(name)")
            files[name] = parts[1].components(separatedBy: "```")[0]
        }
        return files
    }

    /// Node and the page's own files where there is a node; and the same in Python.
    private static func programs() throws -> [Program] {
        var programs = [
            Program(
                name: "python",
                files: [
                    "cluster.json": """
                    {"apps": [{"name": "cluster", "script": "server.py", "instances": 2, "exec_mode": "cluster",
                               "env": {"PORT": 3000}}]}
                    """,
                    "server.py": """
                    import os, socket
                    names = os.environ["LISTEN_FDNAMES"].split(":")
                    assert os.environ["LISTEN_PID"] == str(os.getpid())
                    listener = socket.socket(fileno=3 + names.index(os.environ["PORT"]))
                    listener.setblocking(True)
                    while True:
                        connection, _ = listener.accept()
                        connection.recv(4096)
                        text = "instance %s\\n" % os.environ["NODE_APP_INSTANCE"]
                        connection.sendall(("HTTP/1.0 200 OK\\r\\n\\r\\n" + text).encode())
                        connection.close()
                    """,
                ]
            )
        ]
        if hasNode {
            programs.append(Program(name: "node", files: try files(["listen.cjs", "server.js", "cluster.json"])))
        }
        return programs
    }

    private static let hasNode = (try? Spawn.run(["/usr/bin/env", "node", "--version"]).code) == 0
    private static let needsNode: Comment = "node is needed: apt-get install nodejs"

    @Test("the page has the file that the package has")
    func file() throws {
        let file = try File.readString(Sources.root + "/Clients/node/listen.cjs")
        let shown = try Self.files(["listen.cjs"])["listen.cjs"] ?? ""
        #expect(file == "// SPDX-License-Identifier: Apache-2.0\n" + shown)
    }

    @Test("each instance answers at the one port, and a restart refuses nobody", arguments: try programs())
    func cluster(program: Program) throws {
        if !Self.hasNode { print("skipped: the recipe of docs/howto/from-pm2.md in Node: \(Self.needsNode)") }
        let folder = try Daemon.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let port = "\(try TestAddress.port())"
        for (name, text) in program.files {
            try File.write(folder + "/" + name, text.replacingOccurrences(of: "3000", with: port))
        }
        let target = folder + "/torpor.toml"
        let words = ["import", "--from", "pm2", folder + "/cluster.json", "--output", target]
        let (code, output) = try Spawn.run([Built.path("torpor")] + words)
        #expect(code == 0 && output.contains("EADDRINUSE"), "\(output)")
        let toml = try String(contentsOfFile: target, encoding: .utf8)
        #expect(toml.contains("reuse_port = true") && toml.contains("instance_first = 0"), "\(toml)")

        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        try withDaemon(toml, environment: ["PATH": path]) { daemon in
            for app in ["cluster@0", "cluster@1"] { try daemon.waitFor(app, "active") }
            var answers: Set<String> = []
            func ask() throws -> Bool {
                let client =
                    "import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=60).read().decode(), end='')"
                let (code, text) = try Spawn.run(["/usr/bin/python3", "-c", client, "http://127.0.0.1:\(port)/"])
                #expect(code == 0, "\(text)")
                answers.insert(text)
                return code == 0
            }
            // The kernel chooses by the client's port.
            try daemon.eventually("both answer") { try ask() && answers.count == 2 }
            #expect(answers == ["instance 0\n", "instance 1\n"])
            // Not one of them ended for a port that is taken.
            for app in ["cluster@0", "cluster@1"] { #expect(try daemon.summary(app).restarts == 0) }
            for app in ["cluster@0", "cluster@1"] {
                _ = try daemon.done(.restart, app)
                #expect(try ask())
            }
        }
    }

    @Test(
        "a program that asks for an address that its socket does not have is not started by listen.cjs",
        .enabled(if: hasNode, needsNode)
    )
    func exposed() throws {
        let helper = Sources.root + "/Clients/node/listen.cjs"
        let (open, own) = (try TestAddress.port(), try TestAddress.port())
        func app(_ name: String, _ stream: String, _ port: UInt16) -> String {
            """
            [apps.\(name)]
            exec = ["node", "--require", "\(helper)", "@D/server.js"]
            restart = "never"
            environment = { PORT = "\(port)" }
            sockets = [{ stream = "\(stream)", name = "\(port)", reuse_port = true }]

            """
        }
        let server = """
            require('node:http').createServer((_, response) => response.end('served'))
              .listen({ port: process.env.PORT, host: 'localhost' })
            """
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        let toml = app("open", "\(open)", UInt16(open)) + app("own", "127.0.0.1:\(own)", UInt16(own))
        try withDaemon(toml, files: ["server.js": server], environment: ["PATH": path]) { daemon in
            try daemon.waitForEvent("open", "exit-failure")
            let words = [Built.path("torpor"), "--socket", daemon.socket, "logs", "open"]
            let (_, output) = try Spawn.run(words)
            #expect(output.contains("the program listens at localhost:\(open), but its socket is at "), "\(output)")
            #expect(output.contains("write stream = \"127.0.0.1:\(open)\" in sockets of torpor.toml"), "\(output)")
            try daemon.waitFor("own", "active")
            let peer = try Peer(port: own)
            try peer.send("GET / HTTP/1.0\r\n\r\n")
            #expect(try peer.receive(until: "served").hasSuffix("served"))
        }
    }

    /// The keeper closes its own a moment after torpord: what connected to it meanwhile would be reset.
    private static func waitForListeners(_ count: Int, _ port: UInt16, _ daemon: Daemon) throws {
        let place = String(format: ":%04X 00000000:0000 0A", port)
        try daemon.eventually("\(count) listen") {
            // However long: others may have thousands.
            let table = try String(contentsOfFile: "/proc/net/tcp", encoding: .utf8)
            return table.components(separatedBy: place).count - 1 == count
        }
    }

    @Test("one that a person stops leaves all connections to the others; when all are stopped they wait")
    func stopped() throws {
        let server = #"""
            import os, socket, tp
            listener = socket.socket(fileno=3)
            tp.record("listens")
            while True:
                connection, _ = listener.accept()
                connection.sendall(os.environ["TORPOR_APP"].encode() + b" served")
                connection.close()
            """#
        let port = try TestAddress.port()
        let toml = """
            [apps.web]
            \(Scripts.python)"@D/web.py"]
            instances = 2
            launch = "on-demand"
            event_time = "200ms"
            sockets = [{ stream = "127.0.0.1:\(port)", reuse_port = true }]
            """
        try withDaemon(toml, files: ["web.py": server]) { daemon in
            for app in ["web@1", "web@2"] { try daemon.done(.start, app) }
            func expectOnly(_ app: String) throws {
                try Self.waitForListeners(1, port, daemon)
                for _ in 0..<20 { #expect(try Peer(port: port).receive(until: "served") == "\(app) served") }
            }
            try daemon.done(.stop, "web@1")
            try expectOnly("web@2")
            #expect(try daemon.status("web@1").sockets.first?.trouble?.contains("was stopped") == true)
            // One that sleeps is woken for them.
            try daemon.done(.suspend, "web@2")
            try expectOnly("web@2")
            try daemon.done(.start, "web@1")
            #expect(try daemon.status("web@1").sockets.first?.trouble == nil)
            try daemon.done(.kill, "web@2")
            try expectOnly("web@1")
            try daemon.done(.stop, "web@1")
            try Self.waitForListeners(2, port, daemon)
            let waiting = try (0..<10).map { _ in try Peer(port: port) }
            _ = try daemon.verbs(.start, ["web@1", "web@2"]) { $0.wait = false }
            for peer in waiting { #expect(try peer.receive(until: "served").hasSuffix(" served")) }
        }
    }

    @Test("one that ends again and again leaves all connections to the others, until they are gone too")
    func failing() throws {
        let server = #"""
            import os, socket, sys, tp
            if os.environ["TORPOR_APP"] == "web@1" and os.path.exists(tp.HERE + "/broken"):
                sys.exit(1)
            listener = socket.socket(fileno=3)
            while True:
                connection, _ = listener.accept()
                connection.sendall(os.environ["TORPOR_APP"].encode() + b" served")
                connection.close()
            """#
        let port = try TestAddress.port()
        let toml = """
            [apps.web]
            \(Scripts.python)"@D/web.py"]
            instances = 2
            restart = "always"
            restart_backoff = { initial = "300ms", factor = 100, cap = "1h", jitter = 0 }
            sockets = [{ stream = "127.0.0.1:\(port)", reuse_port = true }]
            """
        try withDaemon(toml, files: ["web.py": server]) { daemon in
            for app in ["web@1", "web@2"] { try daemon.waitFor(app, "active") }
            daemon.touch("broken")
            Foundation.kill(try daemon.process(of: "web@1"), SIGKILL)
            try daemon.eventually("web@1 waits for its second restart") {
                try daemon.status("web@1").sockets.first?.trouble?.contains("again and again") == true
            }
            try Self.waitForListeners(1, port, daemon)
            for _ in 0..<20 { #expect(try Peer(port: port).receive(until: "served") == "web@2 served") }
            // When no other takes connections, it listens again, so that they wait for its next launch.
            try daemon.done(.stop, "web@2")
            try daemon.eventually("web@1 listens again") { try daemon.status("web@1").sockets.first?.trouble == nil }
            try File.remove(daemon.directory + "/broken")
            try daemon.done(.restart, "web@1")
            try Self.waitForListeners(1, port, daemon)
            #expect(try Peer(port: port).receive(until: "served") == "web@1 served")
            try daemon.done(.start, "web@2")
            try Self.waitForListeners(2, port, daemon)
            let told = try daemon.events("web@1").filter { $0.text.contains("again and again, and others") }
            #expect(told.count == 1, "\(told)")
        }
    }

    @Test(
        "one that has failed to launch gets connections only once it is ready: a launch that fails again loses none",
        arguments: [false, true]
    )
    func isReady(underNextTorpord: Bool) throws {
        let server = #"""
            import os, socket, sys, time, tp
            there = lambda name: os.path.exists(tp.HERE + "/" + name)
            if os.environ["TORPOR_APP"] == "web@1" and there("broken"):
                if there("wait"): tp.record("waits")
                while there("wait"): time.sleep(0.02)
                sys.exit(1)
            tp.notify("READY=1")
            listener = socket.socket(fileno=3)
            while True:
                connection, _ = listener.accept()
                connection.sendall(os.environ["TORPOR_APP"].encode() + b" served")
                connection.close()
            """#
        let port = try TestAddress.port()
        let toml = """
            [apps.web]
            \(Scripts.python)"@D/web.py"]
            instances = 2
            ready = "notify"
            restart = "always"
            restart_backoff = { initial = "300ms", factor = 100, cap = "1h", jitter = 0 }
            sockets = [{ stream = "127.0.0.1:\(port)", reuse_port = true }]
            """
        try withDaemon(toml, files: ["web.py": server]) { daemon in
            for app in ["web@1", "web@2"] { try daemon.waitFor(app, "active") }
            daemon.touch("broken")
            Foundation.kill(try daemon.process(of: "web@1"), SIGKILL)
            try daemon.waitForEvent("web@1", "again and again, and others")
            daemon.touch("wait")
            _ = try daemon.verb(.start, "web@1") { $0.wait = false }
            try daemon.waitForRecord("web@1", "waits")
            try Self.waitForListeners(2, port, daemon)
            if underNextTorpord { try daemon.replaceTorpord() }
            // Those that the kernel gives to web@1 connect once its socket is closed, a second or more after they tried.
            let peers = try (0..<20).map { _ in Peer(try Sockets.connectTCP(address: "127.0.0.1", port: port)) }
            #expect(try daemon.status("web@1").sockets.first?.waiting == 0)
            try File.remove(daemon.directory + "/wait")
            for peer in peers { #expect(try peer.receive(until: "served") == "web@2 served") }
            try File.remove(daemon.directory + "/broken")
            try daemon.done(.start, "web@1")
            try daemon.eventually("it serves") {
                try Peer(port: port).receive(until: "served") == "web@1 served"
            }
        }
    }
}
