// SPDX-License-Identifier: Apache-2.0

import Configuration
import Testing

@Suite("Sockets on all addresses, and on one of them")
struct WildcardConflictTests {
    private static func warnings(_ first: String, _ second: String) throws -> [String] {
        let toml = """
            [apps.a]
            exec = ["/bin/a"]
            sockets = [{ stream = \(first) }]
            [apps.b]
            exec = ["/bin/b"]
            sockets = [{ stream = \(second) }]
            """
        return try load(toml).get().warnings.map(\.description)
    }

    @Test(
        "exclude each other at the same port",
        arguments: [
            ("\"0.0.0.0:8080\"", "\"127.0.0.1:8080\""), ("\"8080\"", "\"127.0.0.1:8080\""),
            ("\"[::]:8080\"", "\"127.0.0.1:8080\""), ("\"[::]:8080\"", "\"[::1]:8080\""),
            ("\"[::]:8080\"", "\"0.0.0.0:8080\""), ("\"8080\", reuse_port = true", "\"127.0.0.1:8080\""),
        ]
    )
    func conflicts(one: String, other: String) throws {
        for (first, second) in [(one, other), (other, one)] {
            let told = try Self.warnings(first, second)
            #expect(told.count == 1, "\(told)")
            #expect(told.first?.contains("apps.b.sockets: ") == true, "\(told)")
            #expect(told.first?.contains("of \"a\" exclude each other") == true, "\(told)")
        }
    }

    @Test(
        "go together where the kernel keeps them apart",
        arguments: [
            ("\"0.0.0.0:8080\"", "\"127.0.0.1:8081\""), ("\"127.0.0.1:8080\"", "\"127.0.0.2:8080\""),
            ("\"0.0.0.0:8080\"", "\"[::1]:8080\""),
            ("\"[::]:8080\", bind_ipv6_only = \"ipv6-only\"", "\"127.0.0.1:8080\""),
            ("\"8080\", reuse_port = true", "\"127.0.0.1:8080\", reuse_port = true"),
        ]
    )
    func others(one: String, other: String) throws {
        #expect(try Self.warnings(one, other) == [])
        #expect(try Self.warnings(other, one) == [])
    }
}
