// SPDX-License-Identifier: Apache-2.0

import Configuration
import Testing

@Suite("Checks of a port that torpord itself holds")
struct HeldPortTests {
    private static func warnings(_ keys: String) throws -> [String] {
        try load("[apps.web]\nexec = [\"/bin/web\"]\n" + keys).get().warnings.map(\.description)
    }

    @Test(
        "A connection to it says nothing of the program",
        arguments: [
            ("8080", "127.0.0.1"), ("8080", "[::1]"), ("8080", "localhost"), ("127.0.0.1:8080", "127.0.0.1"),
            ("127.0.0.1:8080", "localhost"), ("0.0.0.0:8080", "127.0.0.1"), ("[::]:8080", "127.0.0.1"),
            ("[::1]:8080", "localhost"),
        ]
    )
    func tcp(address: String, host: String) throws {
        let sockets = "sockets = [{ stream = \"\(address)\" }]\n"
        let told = try Self.warnings(sockets + "ready = { tcp = \"\(host):8080\" }")
        let sentence =
            ": warning: apps.web.ready: torpord itself listens at \(address) (sockets), so tcp succeeds before the program "
            + "listens: write ready = \"notify\", and have the program send READY=1"
        #expect(told.count == 1 && told[0].hasPrefix("torpor.toml:4:") && told[0].hasSuffix(sentence), "\(told)")
        let health = try Self.warnings(sockets + "health = { tcp = \"\(host):8080\" }")
        #expect(health.count == 1 && health[0].contains("apps.web.health: torpord itself listens"), "\(health)")
        // Only the program answers a request.
        #expect(try Self.warnings(sockets + "ready = { http = \"http://\(host):8080/\" }") == [])
    }

    @Test(
        "Other ports, addresses and kinds of sockets are none of its own",
        arguments: [
            "stream = \"8081\"", "stream = \"127.0.0.2:8080\"", "datagram = \"8080\"", "stream = \"/run/web.sock\"",
        ]
    )
    func others(socket: String) throws {
        #expect(try Self.warnings("sockets = [{ \(socket) }]\nready = { tcp = \"127.0.0.1:8080\" }") == [])
    }

    @Test("Another instance at the same port may answer a request")
    func instances() throws {
        func keys(_ more: String) -> String {
            "sockets = [{ stream = \"8080\", reuse_port = true }]\nready = { http = \"http://127.0.0.1:8080/\" }\n"
                + more
        }
        #expect(try Self.warnings(keys("")) == [])
        let told = try Self.warnings(keys("instances = 2"))
        #expect(told.count == 1 && told[0].contains("another instance may answer at 8080"), "\(told)")
    }
}
