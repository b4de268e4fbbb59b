// SPDX-License-Identifier: Apache-2.0

import Linux
import Testing

@testable import Configuration

@Suite("Sockets in a configuration")
struct SocketTests {
    @Test(
        "addresses are written as for systemd",
        arguments: [
            ("8080", SocketAddress.port(8080)), ("127.0.0.1:80", .ipv4("127.0.0.1", 80)),
            ("[::1]:65535", .ipv6("::1", 65535, interface: nil)),
            ("[fe80::1%eth0]:80", .ipv6("fe80::1", 80, interface: "eth0")), ("/run/a/../b", .path("/run/b")),
            ("./b", .path("/etc/torpor/b")), ("@name", .abstract("name")), ("vsock:2:1024", .vsock(cid: 2, port: 1024)),
            ("vsock::7", .vsock(cid: SocketAddress.anyContext, port: 7)),
        ]
    )
    func addresses(_ text: String, _ address: SocketAddress) {
        #expect(AddressReader.address(text, folder: "/etc/torpor") == address)
    }

    @Test(
        "what is no address is refused",
        arguments: [
            "", "0", "65536", "-1", "+80", "web", "localhost:80", "127.0.0.1", "127.0.0.1:0", "127.0.0.256:80",
            "1.2.3:80",
            "01.2.3.4:80", "::1:80", "[::1]", "[::1]80", "[::g]:80", "[::1%]:80", "[127.0.0.1]:80", "@", "vsock:2",
            "vsock:x:1",
            "vsock:1:", "sock", "../sock",
        ]
    )
    func noAddresses(_ text: String) {
        #expect(AddressReader.address(text, folder: "/etc/torpor") == nil)
    }

    private static func complaints(_ sockets: String, more: String = "") -> [String] {
        ConfigurationTests.complaints(load("[apps.a]\nexec = [\"a\"]\nsockets = \(sockets)\n" + more))
    }

    @Test(
        "what makes no sense is refused with a sentence",
        arguments: [
            ("[{ name = \"x\" }]", "needs exactly one of stream, datagram and seqpacket"),
            ("[{ stream = \"1\", datagram = \"1\" }]", "needs exactly one of"), ("[{ stream = 80 }]", "write \"80\""),
            ("[{ stream = \"localhost:80\" }]", "is not an address: write a port like \"8080\""),
            ("[{ seqpacket = \"80\" }]", "seqpacket sockets have a path"),
            ("[{ stream = \"80\", mode = \"0600\" }]", "is only for sockets with a path"),
            ("[{ stream = \"/s\", no_delay = true }]", "is only for TCP sockets"),
            ("[{ datagram = \"80\", backlog = 3 }]", "is only for stream and seqpacket sockets"),
            ("[{ datagram = \"80\", user = true }]", "is only for TCP sockets: on others"),
            ("[{ stream = \"127.0.0.1:80\", bind_ipv6_only = \"both\" }]", "is only for sockets on all addresses"),
            ("[{ stream = \"80\", defer_accept = \"1500ms\" }]", "must be whole seconds"),
            ("[{ stream = \"80\", name = \"a:b\" }]", "a name has up to 64"),
            ("[{ stream = \"80\", naem = \"a\" }]", "did you mean \"name\"?"),
            (
                "[{ stream = \"80\", name = \"x\" }, { stream = \"81\", name = \"x\" }]",
                "another socket is already named \"x\""
            ),
            ("[{ stream = \"80\" }, { stream = \"80\" }]", "is already an address of \"a\""),
            ("[{ stream = \"80\" }]\ninstances = 2", "put %i into it, or write reuse_port = true"),
            (
                "[{ stream = \"80\" }]\n[apps.b]\nexec = [\"b\"]\nsockets = [{ stream = \"80\" }]",
                "only sockets with reuse_port"
            ),
            ("[\"80\"]", "expected a table, found a string: write { stream = \"80\" }"),
            ("[{ listen = \"80\" }]", "there is no such key: write stream = \"127.0.0.1:8000\""),
            ("{ stream = \"80\" }", "expected tables, each under [[apps.NAME.sockets]]"),
            ("[{ stream = \"/s\", owner = \"nobody-here\" }]", "there is no user \"nobody-here\""),
        ]
    )
    func mistakes(_ sockets: String, _ sentence: String) {
        let found = Self.complaints(sockets)
        #expect(found.contains { $0.contains(sentence) }, "\(found)")
    }

    @Test("instances have addresses of their own, or share a port")
    func instances() throws {
        let many = try load("[apps.a]\nexec = [\"a\"]\ninstances = 2\nsockets = [{ stream = \"/run/a%i\" }]").get()
        #expect(many.apps.map(\.sockets.first?.plan.address) == [.path("/run/a1"), .path("/run/a2")])
        #expect(Self.complaints("[{ stream = \"80\", reuse_port = true }]\ninstances = 2") == [])
        #expect(Self.complaints("[{ stream = \"80\" }, { datagram = \"80\" }]") == [])
    }

    @Test("a change of what an app was given counts at a restart, any other at once")
    func effects() throws {
        func effect(_ old: String, _ new: String) throws -> KeyEffect? {
            func configuration(_ sockets: String) throws -> TorporConfiguration {
                try load("[apps.a]\nexec = [\"a\"]\nsockets = \(sockets)\n").get()
            }
            let diff = try ConfigurationDiff(configuration(old), configuration(new))
            return diff.apps.first?.changes.first?.effect
        }
        let one = "[{ stream = \"80\", name = \"x\" }]"
        #expect(try effect(one, "[{ stream = \"80\", name = \"x\", backlog = 3, wake = \"none\" }]") == .live)
        #expect(try effect("[{ stream = \"/s\" }]", "[{ stream = \"/s\", mode = \"0600\" }]") == .live)
        #expect(try effect(one, "[{ stream = \"81\", name = \"x\" }]") == .restart)
        #expect(try effect(one, "[{ stream = \"80\", name = \"y\" }]") == .restart)
        #expect(try effect(one, "[{ stream = \"80\", name = \"x\" }, { stream = \"81\" }]") == .restart)
        #expect(try effect(one, "[]") == .restart)
    }
}
