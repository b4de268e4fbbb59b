// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import TestAddresses
import Testing
import TorporAPI

@Suite("Sockets of each family") struct SocketFamilyTests {
    /// What is written in the configuration, and where a client finds it; `@P` becomes a port.
    struct Family: CustomTestStringConvertible {
        var kind: String
        var address: String
        var client: String
        var testDescription: String { kind + " " + address }

        init(_ kind: String, _ address: String, _ client: String? = nil) {
            (self.kind, self.address, self.client) = (kind, address, client ?? address)
        }
    }

    static let families = [
        Family("stream", "@P", "127.0.0.1:@P"), Family("stream", "127.0.0.1:@P"), Family("stream", "[::1]:@P"),
        Family("stream", "@D/run/deep/web.sock"), Family("stream", "@torpor-test-@P"),
        Family("datagram", "@P", "127.0.0.1:@P"), Family("datagram", "[::1]:@P"), Family("datagram", "@D/d.sock"),
        Family("datagram", "@torpor-test-d-@P"), Family("seqpacket", "@D/q.sock"),
        Family("stream", "vsock::@P", "vsock:1:@P"),
    ]

    private static func isMissing(_ family: Family) -> Bool {
        if family.address.hasPrefix("vsock") {
            let text = "import socket; s = socket.socket(socket.AF_VSOCK); s.bind((1, 4294967295)); s.listen()"
            return (try? Spawn.run(["/usr/bin/python3", "-S", "-c", text]).code) != 0
        }
        return family.address.hasPrefix("[") && !File.exists("/proc/net/if_inet6")
    }

    @Test("wake an app that was never started, that is suspended, and that was evicted", arguments: families)
    func wakes(_ family: Family) throws {
        if Self.isMissing(family) {
            return print("skipped: \(family.testDescription): this machine has no such sockets, or no loopback of them")
        }
        let port = "\(try TestAddress.port())"
        let toml = """
            [apps.web]
            \(SocketServer.exec)
            launch = "on-demand"
            restart = "never"
            event_time = "none"

            [[apps.web.sockets]]
            name = "front"
            \(family.kind) = "\(family.address)"
            """.replacingOccurrences(of: "@P", with: port)
        try withDaemon(toml, files: SocketServer.files) { daemon in
            let address = family.client.replacingOccurrences(of: "@P", with: port).replacingOccurrences(
                of: "@D",
                with: daemon.directory
            )
            #expect(try daemon.summary("web").state == "not-running")
            let first = try daemon.ask(family.kind, address, "one")
            #expect((first.name, first.text) == ("front", "one"))
            #expect(daemon.processes(of: "web") == [first.pid])
            try daemon.waitForEvent(
                "web",
                "woken by a \(family.kind == "datagram" ? "datagram" : "connection") at front"
            )
            try daemon.waitFor("web", "background")

            try daemon.done(.suspend, "web")
            #expect(
                try daemon.ask(family.kind, address, "two") == SocketAnswer(pid: first.pid, name: "front", text: "two")
            )
            try daemon.waitFor("web", "background")

            try daemon.done(.suspend, "web")
            try daemon.evict("web")
            let third = try daemon.ask(family.kind, address, "three")
            #expect(third.pid != first.pid && third.text == "three")
            let woken = try daemon.events("web").filter { $0.kind == "wake" }
            #expect(woken.count == 3, "\(woken.map(\.text))")
            #expect(woken.allSatisfy { $0.reason == "socket" && $0.text.contains(" ms") })
        }
    }
}
