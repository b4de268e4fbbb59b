// SPDX-License-Identifier: Apache-2.0

import Lifecycle
import Permissions
import Testing

@testable import Configuration

@Suite("Sandboxes and permissions in the configuration") struct SandboxKeysTests {
    private static func permissions(_ lines: String) -> String {
        "sandbox = true\n[apps.web.permissions]\n" + lines
    }

    @Test(
        "What is wrong is a sentence that says what to write",
        arguments: [
            ("camera = {}", "purpose is missing: write purpose = "),
            ("camera = { purpose = \"\" }", "purpose"),
            ("camera = { purpose = { de = \"Sieht\" } }", "purpose"),
            ("camera = { purpose = \"a\\nb\" }", "purpose"),
            ("camera = { purpose = \"Why\", ports = [1] }", "is only for network"),
            ("camera = { purpose = \"Why\", default = \"yes\" }", "default"),
            ("camera = { purpose = \"Why\", reason = \"b\" }", "reason"),
            ("camera = \"Why\"", "camera"),
            ("camra = { purpose = \"Why\" }", "did you mean \"camera\"?"),
            ("\"files:srv\" = { purpose = \"Why\" }", "names no absolute path"),
            ("\"files:/srv/../etc\" = { purpose = \"Why\" }", "\"..\" in its path"),
            ("network = { purpose = \"Why\", ports = [0] }", "ports"),
            ("network = { purpose = \"Why\", ports = [] }", "leave ports out for all"),
            ("\"files:/a\" = { purpose = \"Why\" }\n\"files:/a/.\" = { purpose = \"Why\" }", "two entries are named"),
        ]
    )
    func wrong(line: String, sentence: String) {
        let told = complaints(app: Self.permissions(line + "\n"))
        #expect(!told.isEmpty && told.contains { $0.contains(sentence) }, "\(told)")
    }

    @Test("An app has at most 64 permissions") func many() throws {
        func lines(_ count: Int) -> String {
            (0..<count).map { "\"files:/srv/\($0)\" = { purpose = \"Why\" }\n" }.joined()
        }
        #expect(complaints(app: Self.permissions(lines(64))) == [])
        #expect(complaints(app: Self.permissions(lines(65))).contains { $0.contains("at most 64 permissions") })
    }

    @Test(
        "What would do nothing, or fail, is a warning",
        arguments: [
            ("exec = [\"/usr/bin/sudo\", \"web\"]\nsandbox = true", "sudo gains no privileges in a sandbox"),
            ("exec = [\"su\", \"web\"]\nsandbox = \"agent\"", "su gains no privileges in a sandbox"),
            ("exec = [\"/a\"]\npermissions.camera = { purpose = \"Why\" }", "does nothing without sandbox = true"),
            ("exec = [\"/a\"]\non_denied = \"end\"", "does nothing without sandbox = true"),
        ]
    )
    func warnings(keys: String, sentence: String) throws {
        let configuration = try load("[apps.web]\n" + keys + "\n").get()
        #expect(configuration.warnings.contains { $0.message.contains(sentence) }, "\(configuration.warnings)")
    }

    @Test("A sandbox is true, false or \"agent\", and not that of a container")
    func modes() {
        for value in ["\"yes\"", "1", "\"Agent\"", "[]"] {
            #expect(complaints(app: "sandbox = \(value)\n").contains { $0.contains("must be true, false") }, "\(value)")
        }
        let told = complaints(load("[apps.web]\ncontainer = { image = \"x\" }\nsandbox = true\n"))
        #expect(told.contains { $0.contains("does not go with container") }, "\(told)")
    }

    @Test("Code of strangers has folders of its own and limits, unless the app sets its own")
    func agent() throws {
        func app(_ keys: String) throws -> AppSpecification {
            try #require(load("[apps.web]\nexec = [\"/a\"]\n\(keys)\n").get().apps.first)
        }
        let plain = try app("sandbox = true")
        #expect(plain.memoryLimit == nil && plain.limits.isEmpty && plain.umask == nil && !plain.data.isWanted)
        let agent = try app("sandbox = \"agent\"")
        #expect(agent.memoryLimit == 1 << 30 && agent.umask == 0o077 && agent.data.isWanted)
        #expect(agent.limits.map(\.name) == ["fsize", "nofile", "tasks"])
        #expect(agent.limits.map(\.soft) == [1 << 30, 1024, 256] && agent.limits.map(\.hard) == [1 << 30, 1024, 256])
        for state in [AppState.active, .inactive, .background] {
            #expect(agent.resources[state]?.cpuMaximum == 100_000, "\(state)")
        }
        let own = try app(
            """
            sandbox = "agent"
            data_folders = false
            umask = "0022"
            memory_limit = "none"
            limits = { nofile = "50:60", core = "0" }
            resources = { active = { cpu_max = "none" }, background = { cpu_max = "10%" } }
            """
        )
        #expect(own.memoryLimit == nil && own.umask == 0o022 && !own.data.isWanted)
        #expect(own.limits.map(\.name) == ["core", "fsize", "nofile", "tasks"])
        #expect(own.limits.first { $0.name == "nofile" }?.hard == 60)
        #expect(own.resources[.active]?.cpuMaximum == Int.max && own.resources[.background]?.cpuMaximum == 10_000)
        #expect(own.resources[.inactive]?.cpuMaximum == 100_000)
        // What is needed for a launch may be more.
        let needing = try app("sandbox = \"agent\"\nmemory_needed = \"2GiB\"")
        #expect(needing.memoryLimit == 2 << 30)
    }
}
