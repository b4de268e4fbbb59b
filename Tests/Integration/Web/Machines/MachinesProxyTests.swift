// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

/// Whether there can be networks for tests, and why not.
enum ApartNetworks {
    static let obstacle: Comment? = {
        guard Users.isRoot else { return "only root can make networks" }
        guard File.exists("/usr/sbin/ip") else { return "iproute2 is needed: make test installs it" }
        let pair = ["/usr/bin/unshare", "-n", "/usr/sbin/ip", "link", "add", "type", "veth"]
        guard (try? Spawn.run(pair))?.code == 0 else { return "the kernel joins no networks here (veth)" }
        return nil
    }()
}

/// The proxies of docs/howto/several-machines.md, as they are written there but for addresses. The proxy and each of
/// the two machines have a network of their own, so that one of them can fall silent.
@Suite(
    "A proxy in front of several machines",
    .enabled(if: ApartNetworks.obstacle == nil, ApartNetworks.obstacle ?? "")
)
struct MachinesProxyTests {
    private static let apart = [
        "/usr/bin/unshare", "-n", "/bin/sh", "-ec", "/usr/sbin/ip link set lo up; exec \"$@\"", "sh",
    ]

    enum Proxy: String, CaseIterable {
        case haproxy, caddy

        var file: String { self == .haproxy ? "haproxy.cfg" : "machines.caddyfile" }
        var url: String { "http://127.0.0.1:\(self == .haproxy ? 8080 : 8081)" }

        func words(_ path: String) -> [String] {
            switch self {
            case .haproxy: ["-f", path, "-db", "-q"]
            case .caddy: ["run", "--adapter", "caddyfile", "--config", path]
            }
        }
    }

    /// A block of the page, by the comment with which it begins.
    private static func block(_ name: String) throws -> String {
        let page = try File.readString(Sources.root + "/docs/howto/several-machines.md")
        let start = try #require(page.range(of: "\n# \(name)\n"))
        let end = try #require(page.range(of: "\n```", range: start.upperBound..<page.endIndex))
        return String(page[start.upperBound..<end.lowerBound]) + "\n"
    }

    private static func toml(_ name: String) -> String {
        """
        [defaults]
        launch = "on-demand"
        background_time = "1min"
        event_time = "1min"

        [apps.shop]
        exec = ["/usr/bin/python3", "-S", "@D/shop.py", "the shop on \(name)"]
        sockets = [{ stream = "0.0.0.0:8000" }]

        [apps.report]
        exec = ["/usr/bin/python3", "-S", "@D/shop.py", "the report", "2.5"]
        sockets = [{ stream = "0.0.0.0:8001", holding = true, holding_after = "300ms" }]

        """
    }

    /// The networks, and what runs in that of the proxy.
    private final class Scene {
        struct Machine {
            let name: String
            let daemon: Daemon
            /// Of TEST-NET-1 and 2, which no network uses.
            let address: String
        }

        let fixture: GatewayFixture
        let machines: [Machine]
        private let proxy: Int32
        private var requests = 0

        init() throws {
            fixture = try GatewayFixture()
            machines = try [("north", "192.0.2.2"), ("south", "198.51.100.2")].map { name, address in
                let files = ["shop.py": try MachinesProxyTests.block("shop.py")]
                let daemon = try Daemon(MachinesProxyTests.toml(name), files: files, wrapper: MachinesProxyTests.apart)
                try daemon.waitUntilItAnswers()
                return Machine(name: name, daemon: daemon, address: address)
            }
            let ready = fixture.directory + "/networks"
            let links = machines.map { machine in
                let first = machine.address.dropLast() + "1"
                return """
                    ip link add \(machine.name) type veth peer name link0 netns \(machine.daemon.pid)
                    ip address add \(first)/30 dev \(machine.name)
                    ip link set \(machine.name) up

                    """
            }
            let first = "PATH=/usr/sbin:/usr/bin:/bin\nip link set lo up\n"
            let last = "touch \(ready)\nexec sleep 1000\n"
            let words = ["/usr/bin/unshare", "-n", "/bin/sh", "-ec", first + links.joined() + last]
            proxy = try fixture.start(words, output: "networks.log")
            try fixture.eventually("the networks") { File.exists(ready) }
            for machine in machines {
                try ip("address add \(machine.address)/30 dev link0", machine)
                try ip("link set link0 up", machine)
            }
        }

        private func ip(_ words: String, _ machine: Machine) throws {
            let command = ["/usr/bin/nsenter", "-t", "\(machine.daemon.pid)", "-n", "/usr/sbin/ip"]
            let (code, output) = try Spawn.run(command + words.split(separator: " ").map(String.init))
            #expect(code == 0, "ip \(words): \(output)")
        }

        /// From now on nothing answers at the machine's address, as if it were off.
        func silence(_ machine: Machine) throws { try ip("address flush dev link0", machine) }

        var inside: [String] { ["/usr/bin/nsenter", "-t", "\(proxy)", "-n"] }

        func start(_ proxy: Proxy, _ program: String) throws {
            var text = try MachinesProxyTests.block(proxy.file)
            for (old, machine) in zip(["127.0.0.2", "127.0.0.3"], machines) {
                #expect(text.contains(old))
                text = text.replacingOccurrences(of: old, with: machine.address)
            }
            if proxy == .caddy {
                text = text.replacingOccurrences(
                    of: "admin off",
                    with: "admin off\n\tstorage file_system \(fixture.directory)/caddy"
                )
            }
            let path = fixture.directory + "/" + proxy.file
            try File.write(path, text)
            try fixture.start(inside + [program] + proxy.words(path), output: "proxy.log")
            let said = { (try? File.readString(self.fixture.directory + "/proxy.log")) ?? "" }
            try fixture.eventually("\(proxy.rawValue) listens: \(said())") {
                try get(proxy.url + "/").status == 200
            }
        }

        func get(_ words: String...) throws -> (status: Int, head: String, body: String) {
            let (code, output) = try Spawn.run(inside + ["/usr/bin/curl", "-s", "-i", "--max-time", "60"] + words)
            let parts = output.components(separatedBy: "\r\n\r\n")
            guard code == 0, parts.count > 1, let status = Int(output.dropFirst(9).prefix(3)) else {
                return (0, output, "")
            }
            return (status, parts[0].lowercased(), parts[1].trimmingCharacters(in: .newlines))
        }

        func end() throws {
            fixture.endAll()
            for machine in machines { try machine.daemon.stop() }
        }
    }

    @Test(
        "keeps a visitor at one machine, wakes the app there, and goes elsewhere when it is silent",
        arguments: Proxy.allCases
    )
    func proxied(_ proxy: Proxy) throws {
        guard let program = GatewayFixture.program(proxy.rawValue, package: proxy.rawValue) else { return }
        let scene = try Scene()
        try scene.start(proxy, program)
        let jar = scene.fixture.directory + "/jar"
        func visit() throws -> (status: Int, head: String, body: String) {
            try scene.get("-c", jar, "-b", jar, proxy.url + "/")
        }
        let first = try visit()
        #expect(first.status == 200 && first.head.contains("set-cookie: machine="), "\(first)")
        for _ in 0..<3 { #expect(try visit().body == first.body) }
        let own = try #require(scene.machines.first { first.body == "the shop on \($0.name)" })
        let other = try #require(scene.machines.first { $0.name != own.name })
        // The app sleeps, and its visitor wakes it there.
        try own.daemon.done(.suspend, "shop")
        try own.daemon.waitFor("shop", "suspended")
        #expect(try visit().body == first.body)
        #expect(try own.daemon.summary("shop").state == "background")
        if proxy == .haproxy {
            // It wakes cold: no request waits for that.
            let early = try scene.get(proxy.url + "/report")
            #expect(early.status == 503 && early.head.contains("retry-after: "), "\(early)")
            try scene.fixture.eventually("the report") {
                let found = try scene.get(proxy.url + "/report")
                return found.status == 200 && found.body == "the report"
            }
        }
        try scene.silence(own)
        let moved = try visit()
        #expect(moved.status == 200 && moved.body == "the shop on \(other.name)", "\(moved)")
        try scene.end()
    }
}
