// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import TestAddresses
import Testing
import Varlink

/// A server of NATS that answers each client with the same hostile bytes, once it has asked for a PONG.
private final class HostileServer: @unchecked Sendable {
    private struct Held: @unchecked Sendable {
        let descriptor: Descriptor
    }

    private let lock = NSLock()
    private var count = 0
    private var isOver = false
    /// How many clients have got the bytes.
    var clients: Int { lock.withLock { count } }

    init(port: UInt16, _ bytes: [UInt8]) throws {
        let held = Held(descriptor: try Sockets.listenTCP(address: "127.0.0.1", port: port, backlog: 16))
        Thread.detachNewThread { [self] in
            while !lock.withLock({ isOver }) {
                guard (try? Descriptor.wait(held.descriptor.raw, timeout: .milliseconds(100))) == true,
                    let client = try? Sockets.accept(held.descriptor.raw)
                else { continue }
                serve(client, bytes)
            }
        }
    }

    func end() { lock.withLock { isOver = true } }

    private func serve(_ client: Descriptor, _ bytes: [UInt8]) {
        let info = "INFO {\"server_id\":\"x\",\"version\":\"2.9.10\",\"proto\":1,\"headers\":true}\r\n"
        guard (try? Sockets.send(client.raw, Array(info.utf8), wait: true)) != nil else { return }
        var text = ""
        while !text.contains("PING") {
            guard (try? Descriptor.wait(client.raw, timeout: .seconds(10))) == true,
                let more = try? Descriptor.read(client.raw, maximum: 1 << 16), !more.isEmpty
            else { return }
            text += String(decoding: more, as: UTF8.self)
        }
        guard (try? Sockets.send(client.raw, Array("PONG\r\n".utf8) + bytes, wait: true)) != nil else { return }
        lock.withLock { count += 1 }
        // Until the client is gone.
        while (try? Descriptor.wait(client.raw, timeout: .seconds(10))) == true,
            let more = try? Descriptor.read(client.raw, maximum: 1 << 16), !more.isEmpty
        {}
    }
}

@Suite("torpor-gateway with a broker that is hostile") struct HostileBrokerTests {
    let fixture: GatewayFixture
    let port: UInt16
    let web: UInt16
    let mqtt: UInt16

    init() throws {
        fixture = try GatewayFixture()
        (port, web, mqtt) = (try TestAddress.port(), try TestAddress.port(), try TestAddress.port())
    }

    private var configuration: String {
        HTTPTests.configuration(web) + "\n" + """
            [[gateway.nats]]
            name = "evil"
            url = "nats://127.0.0.1:\(port)"
            [[gateway.nats.subscriptions]]
            subject = "apps.*.>"
            app = "{1}"
            topic = "{2}"
            [[gateway.mqtt]]
            name = "home"
            url = "mqtt://127.0.0.1:\(mqtt)"
            client_id = "torpor-test"
            [[gateway.mqtt.subscriptions]]
            filter = "home/+/state"
            app = "{1}"
            topic = "state"
            """
    }

    /// The processes that one has started, each with the source that it serves.
    private func children(_ pid: Int32) -> [String: Int32] {
        var found: [String: Int32] = [:]
        for name in (try? File.list("/proc")) ?? [] {
            guard let child = Int32(name), let status = try? File.readString("/proc/\(child)/stat"),
                // The command, which may have spaces, ends with the last parenthesis.
                let rest = status.split(separator: ")").last?.split(separator: " "), rest.count > 1,
                rest[1] == "\(pid)", rest[0] != "Z",
                let line = try? File.readString("/proc/\(child)/cmdline")
            else { continue }
            let words = line.split(separator: "\0")
            if let option = words.firstIndex(of: "--source"), option + 1 < words.count {
                found[String(words[option + 1])] = child
            }
        }
        return found
    }

    private func post(_ app: String) throws -> Int {
        try fixture.curl(["-d", "{\"a\": 1}", "http://127.0.0.1:\(web)/apps/\(app)/news"]).status
    }

    @Test("loses only the process of that broker, again and again, and says which")
    func crashes() throws {
        guard let mosquitto = GatewayFixture.program("mosquitto", package: "mosquitto"),
            let publisher = GatewayFixture.program("mosquitto_pub", package: "mosquitto-clients")
        else { return }
        // libnats 3.4 adds the size to the position in its buffer, as an int, and reads from there.
        let server = try HostileServer(port: port, Array("MSG apps.a.b 1 2147483647\r\nx".utf8))
        defer { server.end() }
        _ = try fixture.mosquitto(mosquitto, port: mqtt)
        let pid = try fixture.gateway(configuration)
        try fixture.eventually("the other process") { children(pid)["mqtt:home"] != nil }
        let other = children(pid)["mqtt:home"]
        try fixture.eventually("three crashes") { fixture.occurrences(of: "was ended by SIGSEGV") >= 3 }
        #expect(server.clients >= 3)
        let told = fixture.log.split(separator: "\n").filter { $0.contains("was ended by") }
        #expect(told.allSatisfy { $0.contains("nats:evil: its process (") && $0.contains("and is started again in") })
        // Each pause is longer than the one before.
        let pauses = told.compactMap { $0.split(separator: " ").dropLast().last.flatMap { Int($0) } }
        #expect(pauses.prefix(3) == [1, 2, 4])
        #expect(try post("web") == 202)
        try fixture.eventually("a message of the other broker") {
            let words = ["-h", "127.0.0.1", "-p", "\(mqtt)", "-q", "1", "-t", "home/lamp/state", "-m", "ON"]
            let published = try Spawn.run([publisher] + words)
            #expect(published.code == 0, "\(published.output)")
            return !fixture.supervisor.posts("lamp").isEmpty
        }
        #expect(children(pid)["mqtt:home"] == other)
        #expect(try fixture.end(pid) == 0)
        #expect(children(pid).isEmpty && !File.exists("/proc/\(other ?? 0)/cmdline"))
    }

    @Test("works where /proc has only processes, as in its unit, and is known to the broker by the machine's name")
    func unit() throws {
        guard Users.isRoot, let mosquitto = GatewayFixture.program("mosquitto", package: "mosquitto") else { return }
        _ = try fixture.mosquitto(mosquitto, port: mqtt, "log_type all")
        let plain = configuration.replacingOccurrences(of: "client_id = \"torpor-test\"\n", with: "")
        try File.write(fixture.directory + "/gateway.toml", "[gateway]\nsocket = \"\(fixture.directory)/s\"\n" + plain)
        let command = "mount -t proc -o subset=pid proc /proc && exec \"$@\""
        try fixture.start(
            ["/usr/bin/unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", command, "sh"]
                + [Built.path("torpor-gateway"), "--config", fixture.directory + "/gateway.toml"],
            output: "gateway.log"
        )
        try fixture.eventually("the connection") { fixture.log.contains("mqtt:home: connected to") }
        let host = try File.readString("/proc/sys/kernel/hostname").trimmingCharacters(in: .whitespacesAndNewlines)
        let log = try File.readString(fixture.directory + "/mosquitto.log")
        #expect(log.contains(" as torpor-gateway-\(host)-home "), "\(log)")
    }

    @Test("keeps a process for each broker, none of which outlives the gateway or can read what others need")
    func processes() throws {
        let pid = try fixture.gateway(configuration)
        try fixture.eventually("both processes") { children(pid).count == 2 }
        let both = children(pid)
        #expect(Set(both.keys) == ["nats:evil", "mqtt:home"])
        for child in both.values {
            try fixture.eventually("a name") { try File.readString("/proc/\(child)/comm") == "torpor-gateway\n" }
            // Neither the socket of the endpoint nor a client's is theirs.
            let files = try File.list("/proc/\(child)/fd").compactMap { try? File.readLink("/proc/\(child)/fd/\($0)") }
            let listening = try File.list("/proc/\(pid)/fd").compactMap { try? File.readLink("/proc/\(pid)/fd/\($0)") }
            #expect(Set(files.filter { $0.hasPrefix("socket:") }).isDisjoint(with: listening))
            try fixture.eventually("a limit of memory") {
                let limits = try File.readString("/proc/\(child)/limits").split(separator: "\n")
                return limits.contains { $0.hasPrefix("Max data size") && !$0.contains("unlimited") }
            }
        }
        let victim = try #require(both["mqtt:home"])
        kill(victim, SIGKILL)
        try fixture.eventually("the sentence") { fixture.log.contains("mqtt:home: its process (\(victim)) was ended") }
        try fixture.eventually("another one") { children(pid)["mqtt:home"].map { $0 != victim } ?? false }
        #expect(children(pid)["nats:evil"] == both["nats:evil"])
        let all = children(pid).values
        try fixture.end(pid, SIGKILL)
        try fixture.eventually("that none is left") {
            all.allSatisfy { child in
                let status = try? File.readString("/proc/\(child)/stat")
                return status.map { $0.contains(") Z ") } ?? true
            }
        }
    }
}
