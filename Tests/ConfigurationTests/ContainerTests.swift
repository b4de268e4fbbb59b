// SPDX-License-Identifier: Apache-2.0

import Configuration
import Testing

@Suite("Containers in a configuration")
struct ContainerConfigurationTests {
    private static func app(_ name: String, _ container: String, keys: String = "") -> String {
        "[apps.\(name)]\n\(keys)\ncontainer = { image = \"i\", \(container) }\n"
    }

    private static func warnings(_ text: String) throws -> [String] {
        try load(text).get().warnings.map(\.description)
    }

    @Test(
        "a wrong value, or a key in the wrong place",
        arguments: [
            (
                "container = { image = \"i\", environment = { A = \"b\" } }",
                "apps.web.container.environment: there is no such key; environment is a key of the app: write it above the "
                    + "table container"
            ),
            (
                "container = { image = \"i\", command = [\"a\"] }",
                "apps.web.container.command: there is no such key; write exec of the app, above the table container"
            ),
            (
                "image = \"nginx\"",
                "apps.web.image: there is no such key; it is a key of container: write container = { image = \"IMAGE\", "
                    + "image = … }, or [apps.NAME.container]"
            ),
            (
                "container = { image = \"i\", health = { command = [\"a\"], retries = 1 } }",
                "apps.web.container.health.retries: there is no such key"
            ),
            ("container = { image = \"-i\" }", "apps.web.container.image: \"-i\" is not the name of an image"),
            ("container = { image = \"i\", ports = [\"80:0\"] }", "is not a port to publish"),
            ("container = { image = \"i\", volumes = [\"./a:/b\"] }", "begins with a relative path"),
            ("container = { image = \"i\", args = [\"--rm\"] }", "\"--rm\" cannot be used here"),
            ("health = { http = \"http://a\", failures = 0 }", "apps.web.health.failures: "),
            ("health = { interval = \"1s\" }", "apps.web.health: needs exactly one of tcp, http, command and file"),
            ("health = true", "apps.web.health: expected a table with tcp, http, command or file, found a boolean"),
        ]
    )
    func wrong(key: String, complaint: String) {
        let all = complaints(app: key)
        #expect(all.contains { $0.contains(complaint) }, "\(all)")
    }

    @Test("Two containers of one name are refused, whoever gave it")
    func names() throws {
        let same = Self.app("a", "name = \"torpor-b\"") + Self.app("b", "ports = []")
        #expect(
            complaints(load(same)).contains {
                $0.contains("the name \"torpor-b\" is already that of the container of \"a\": write another name")
            }
        )
        #expect(complaints(load(Self.app("a", "name = \"x\"") + Self.app("b", "name = \"y\""))).isEmpty)
        // An instance's name has a dot for the @.
        let instances = Self.app("a", "ports = []", keys: "instances = 2") + Self.app("c", "name = \"torpor-a.1\"")
        #expect(complaints(load(instances)).contains { $0.contains("\"torpor-a.1\" is already that of") })
    }

    @Test(
        "A port that two containers publish is told; other addresses, protocols and ports are not",
        arguments: [
            ("8080:80", "8080:81", true), ("8080:80", "127.0.0.1:8080:80", true), ("[::]:80:80", "0.0.0.0:80:1", true),
            ("8080-8090:1-11", "8085:80", true), ("8080:80", "8081:80", false), ("8080:80", "8080:80/udp", false),
            ("127.0.0.1:80:80", "127.0.0.2:80:80", false), ("80", "80", false), ("[::1]:80:80", "[::2]:80:80", false),
        ]
    )
    func ports(one: String, two: String, isTold: Bool) throws {
        let text = Self.app("a", "ports = [\"\(one)\"]") + Self.app("b", "ports = [\"\(two)\"]")
        let told = try Self.warnings(text).filter { $0.contains("so only one of them can run at a time") }
        #expect(told.count == (isTold ? 1 : 0), "\(told)")
    }

    @Test(
        "Whoever joins a container's network is told to require its app",
        arguments: [("", true), ("requires = [\"a\"]", false)]
    )
    func joins(requires: String, isTold: Bool) throws {
        let text =
            Self.app("a", "name = \"mine\"")
            + Self.app("b", "networks = [\"container:mine\"]", keys: requires)
            + Self.app("c", "networks = [\"container:other\"]")
        let told = try Self.warnings(text).filter { $0.contains("write requires = [\"a\"]") }
        #expect(told.count == (isTold ? 1 : 0), "\(told)")
    }

    @Test("A container's health decides when it is ready, unless ready is written")
    func ready() throws {
        func app(_ keys: String, _ health: String) throws -> AppSpecification {
            try load(Self.app("a", "health = \(health)", keys: keys)).get().apps[0]
        }
        let plain = try app("", "[\"/h\", \"x\"]")
        #expect(
            plain.readiness.text == "command in the container: /h x" && plain.check?.text.hasSuffix("every 30s") == true
        )
        guard case .probe(let probe) = plain.readiness else { return }
        #expect(probe.interval == .seconds(1))
        #expect(try app("ready = \"exec\"", "[\"/h\"]").readiness == .exec)
        #expect(try app("ready = \"notify\"", "[\"/h\"]").readiness == .notify)
        let own = try app("health = { tcp = \"a:1\" }", "{ command = [\"/h\"], interval = \"10ms\" }")
        #expect(own.check?.probe.kind == .tcp(host: "a", port: 1))
        #expect(own.readiness.text == "command in the container: /h")
    }
}
