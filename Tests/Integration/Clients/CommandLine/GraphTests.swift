// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Testing
import TorporAPI
import Varlink

@Suite("torpor graph") struct GraphTests {
    private static let toml = """
        [defaults]
        exec = ["/bin/sleep", "1000"]
        [apps.web]
        requires = ["db"]
        after = ["cache"]
        [apps.mail]
        requires = ["db"]
        [apps.db]
        requires = ["disk"]
        [apps.cache]
        [apps.disk]
        [apps.alone]
        launch = "on-demand"
        """

    private func graph(_ daemon: Daemon, _ words: String...) throws -> (code: Int32, output: String) {
        try Spawn.run([Built.path("torpor"), "graph", "--socket", daemon.socket] + words)
    }

    @Test("A tree shows what each needs, once, and its state")
    func tree() throws {
        try withDaemon(Self.toml) { daemon in
            for app in ["web", "mail", "cache"] { try daemon.waitFor(app, "active") }
            #expect(
                try graph(daemon).output == """
                    alone not-running
                    mail active
                    └─ requires db active
                       └─ requires disk active
                    web active
                    ├─ requires db active (as above)
                    └─ after cache active

                    """
            )
            #expect(try graph(daemon, "cache").output == "web active\n└─ after cache active\n")
            #expect(try graph(daemon, "nobody").code == 4)
        }
    }

    @Test("DOT and JSON have the same edges")
    func edges() throws {
        try withDaemon(Self.toml) { daemon in
            let dot = try graph(daemon, "--dot").output.split(separator: "\n").filter { $0.contains("->") }
            #expect(
                dot == [
                    #"  "db" -> "disk""#, #"  "mail" -> "db""#, #"  "web" -> "db""#,
                    #"  "web" -> "cache" [style=dashed]"#,
                ]
            )
            let json = try JSON.parse(Array(try graph(daemon, "--json").output.utf8)).arrayValue ?? []
            let nodes = try json.map { try GraphNode(json: $0) }
            #expect(nodes.map(\.app) == ["alone", "cache", "db", "disk", "mail", "web"])
            #expect(nodes.last?.requires == ["db"] && nodes.last?.after == ["cache"])
            #expect(try graph(daemon, "--json", "--dot").code == 2)
        }
    }
}
