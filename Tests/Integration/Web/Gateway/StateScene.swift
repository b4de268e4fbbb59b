// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import TestAddresses
import Testing
import TorporAPI
import Varlink

/// Two machines, which are two supervisors with a gateway each, and a server of NATS that both reach.
final class StateScene {
    struct Node {
        let name: String
        let daemon: Daemon
        var configuration: String { daemon.directory + "/gateway.toml" }
        var tokens: String { daemon.directory + "/tokens" }
        var log: String { (try? File.readString(daemon.directory + "/gateway.log")) ?? "" }
    }

    let fixture: GatewayFixture
    let port: UInt16
    let north: Node
    let south: Node
    private let program: String
    private var server: Int32 = 0

    /// Gets its state back, and saves what files in its folder say, at its end too.
    private static let app = """
        import base64, glob, json
        from tp import *
        def save(text):
            with socket.socket(socket.AF_UNIX) as s:
                s.connect(os.environ["TORPOR_APP_SOCKET"])
                call = {"method": "io.torpor.App.SaveState", "parameters": {"data": base64.b64encode(text.encode()).decode()}}
                s.sendall(json.dumps(call).encode() + b"\\0")
                answer = b""
                while not answer.endswith(b"\\0"):
                    answer += s.recv(65536)
            record("saved " + text[:20] + ("" if b"bytes" in answer else repr(answer)))
        def end():
            if os.path.exists(HERE + "/last"):
                save(open(HERE + "/last").read())
            os._exit(0)
        on("SIGTERM", end)
        path = json.loads(os.environ["TORPOR_LAUNCH_OPTIONS"])["restored_state"]
        record("got " + (open(path).read(20) if path else "nothing"))
        done = set(glob.glob(HERE + "/save.*"))
        notify("READY=1")
        while True:
            for name in sorted(glob.glob(HERE + "/save.*")):
                if name not in done and not name.endswith(".tmp"):
                    done.add(name)
                    save(open(name).read())
            time.sleep(0.003)
        """

    private static let toml = """
        [apps.shop]
        exec = ["/usr/bin/python3", "-S", "@D/app.py"]
        ready = "notify"
        owner = "external"
        launch = "foreground"
        state_limit = "4MiB"
        topics = { "*" = "all" }

        """

    /// What both gateways have besides the stream of states; `@P` is the port of the server, `@N` the machine's name.
    static func with(sources: String = "", maxPayload: Int = 1 << 20, _ body: (StateScene) throws -> Void) throws {
        guard let program = GatewayFixture.program("nats-server", package: "nats-server") else { return }
        try withDaemon(toml, files: ["app.py": app]) { north in
            try withDaemon(toml, files: ["app.py": app]) { south in
                let scene = try StateScene(program, north, south, sources, maxPayload)
                try body(scene)
                scene.end()
            }
        }
    }

    private init(_ program: String, _ north: Daemon, _ south: Daemon, _ sources: String, _ maxPayload: Int) throws {
        self.program = program
        fixture = try GatewayFixture()
        port = try TestAddress.port()
        self.north = Node(name: "north", daemon: north)
        self.south = Node(name: "south", daemon: south)
        let text = "max_payload: \(maxPayload)\njetstream { store_dir: \"\(fixture.directory)/jetstream\" }\n"
        try File.write(fixture.directory + "/nats.conf", text)
        try startServer()
        for node in [self.north, self.south] {
            let toml = """
                [gateway]
                socket = "\(node.daemon.socket)"
                log_level = "debug"
                secrets = "\(fixture.directory)/gateway-secrets"
                [gateway.state]
                url = "nats://\(TestAddress.host):\(port)"
                create = true
                node = "\(node.name)"
                tokens = "\(node.tokens)"

                """
            let more = sources.replacingOccurrences(of: "@P", with: "\(TestAddress.host):\(port)")
                .replacingOccurrences(of: "@N", with: node.name)
            try File.write(node.configuration, toml + more)
        }
    }

    func startServer() throws {
        let words = [program, "-a", TestAddress.host, "-p", "\(port)", "-c", fixture.directory + "/nats.conf"]
        server = try fixture.start(words, output: "nats.log")
        try fixture.eventually("the server of NATS") { (try? client()) != nil }
    }

    func stopServer() throws { try fixture.end(server) }

    func client() throws -> NATSClient { try NATSClient(port: port, host: TestAddress.host) }

    /// Ends what is left, since it must be gone before the supervisors are.
    private func end() { fixture.endAll() }

    /// Starts the gateway of a machine.
    @discardableResult
    func gateway(_ node: Node) throws -> Int32 {
        let words = [Built.path("torpor-gateway"), "--config", node.configuration]
        let count = node.log.components(separatedBy: ": started").count
        let pid = try Spawn.start(
            words,
            environment: ["TPTEST": fixture.directory],
            output: node.daemon.directory + "/gateway.log"
        )
        fixture.adopt(pid)
        try fixture.eventually("the gateway of \(node.name)") {
            node.log.components(separatedBy: ": started").count > count
        }
        return pid
    }

    /// `torpor-gateway state` on a machine.
    @discardableResult
    func state(_ node: Node, _ words: String...) throws -> (code: Int32, output: String) {
        try Spawn.run([Built.path("torpor-gateway"), "state"] + words + ["--config", node.configuration])
    }

    /// Claims and owns the app there.
    func takeOver(_ node: Node, at location: SourceLocation = #_sourceLocation) throws {
        let (code, output) = try state(node, "claim", "shop")
        #expect(code == 0, "\(output)", sourceLocation: location)
        try node.daemon.done(.own, "shop")
        try node.daemon.waitFor("shop", "active")
    }

    /// Has the app save a state, and waits until it has.
    func save(_ node: Node, _ text: String) throws {
        let count = node.daemon.records("shop").count
        let path = node.daemon.directory + "/save.\(count)"
        try File.write(path + ".tmp", text)
        try File.rename(path + ".tmp", path)
        try node.daemon.eventually("it is saved") {
            node.daemon.records("shop").dropFirst(count).contains("saved \(text.prefix(20))")
        }
    }

    /// The row of the app in `state list`.
    func row(_ node: Node) throws -> JSON {
        let (code, output) = try state(node, "list", "shop", "--json")
        guard code == 0, let row = try JSON.parse(Array(output.utf8)[...]).arrayValue?.first else {
            throw Trouble("state list: \(code) \(output)")
        }
        return row
    }

    /// Waits until the server has what the app saved last on this machine.
    func waitUntilPushed(_ node: Node, at location: SourceLocation = #_sourceLocation) throws {
        try fixture.eventually("the push of \(node.name): \(node.log)", at: location) {
            let row = try row(node)
            return row["ours"] == true && row["current"] == true
        }
    }

    func occurrences(_ node: Node, _ sentence: String) -> Int { node.log.components(separatedBy: sentence).count - 1 }
}
