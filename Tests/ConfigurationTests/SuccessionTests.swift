// SPDX-License-Identifier: Apache-2.0

import Configuration
import Testing

@Suite("An app that takes the place of a removed one") struct SuccessionTests {
    /// Whether the second of two apps takes the place of the first one.
    private static func takesPlace(_ old: String, _ new: String) throws -> Bool {
        func app(_ name: String, _ keys: String) throws -> AppSpecification {
            let command = keys.contains("exec") ? "" : "exec = [\"/bin/worker\"]\n"
            return try load("[apps.\(name)]\n\(command)\(keys)\n").get().apps[0]
        }
        return try app("new", new).takesPlace(of: app("old", old))
    }

    @Test(
        "is one that runs the same program in the same way",
        arguments: ["", "directory = \"/srv\"", "user = \"root\""]
    )
    func renamed(keys: String) throws {
        #expect(try Self.takesPlace(keys, keys))
        #expect(try Self.takesPlace(keys, keys + "\ngrace = \"9s\""))
    }

    @Test(
        "is not another worker, of which only the command is the same",
        arguments: [
            "exec = [\"/bin/worker\", \"mail\"]", "directory = \"/srv/mail\"", "environment = { QUEUE = \"mail\" }",
            "environment_file = [\"-/etc/mail.env\"]", "user = \"root\"",
        ]
    )
    func worker(keys: String) throws { #expect(try !Self.takesPlace("", keys)) }

    @Test(
        "is one that needs the same port or path",
        arguments: [
            "sockets = [{ stream = \"127.0.0.1:8080\" }]", "sockets = [{ datagram = \"/run/a.sock\" }]",
            "sockets = [{ stream = \"@a\" }]", "ready = { tcp = \"127.0.0.1:8080\" }",
        ]
    )
    func address(keys: String) throws {
        let other = "exec = [\"/bin/other\"]\n"
        #expect(try Self.takesPlace(keys, other + keys))
        #expect(try !Self.takesPlace(keys, other))
        let shared = keys.replacing("\" }]", with: "\", reuse_port = true }]")
        if keys.contains("8080\" }]") { #expect(try !Self.takesPlace(shared, other + shared)) }
    }
}
