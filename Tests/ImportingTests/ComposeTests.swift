// SPDX-License-Identifier: Apache-2.0

import Configuration
import Importing
import Lifecycle
import Testing

@Suite("The commands of a compose file become apps")
struct ComposeTests {
    func app(
        _ keys: String,
        files: [String: String] = [:],
        variables: [String: String] = [:]
    ) throws -> AppSpecification {
        let text = "services:\n  web:\n    command: run\n" + keys.split(separator: "\n").map { "    \($0)\n" }.joined()
        var all = files
        all["compose.yaml"] = text
        return try Imported("compose.yaml", all, variables: variables)["web"]
    }

    @Test(
        "options of an image whose program is known are that program's",
        arguments: [
            ("mysql:5.6", "mysqld"), ("docker.io/library/redis@sha256:12", "redis-server"),
            ("quay.io/prometheus/node-exporter:latest", "node_exporter"), ("prom/prometheus", "prometheus"),
        ]
    )
    func knownImages(image: String, program: String) throws {
        let found = try Imported("compose.yaml", "services:\n  web: {image: \"\(image)\", command: [\"--a\", b]}\n")[
            "web"
        ]
        #expect(found.exec == [program, "--a", "b"])
    }

    @Test(
        "options of other images, or behind an entry point of their own, are not",
        arguments: ["me/mysql", "host:5000/redis", "", "@", "/:"]
    )
    func unknownImages(image: String) throws {
        let found = try Imported("compose.yaml", "services:\n  web: {image: \"\(image)\", command: [\"--a\"]}\n")
        #expect(found.result.toml.contains("is only arguments"))
    }

    @Test(
        "entrypoint and command are one command, and no shell reads them",
        arguments: [
            ("command: run 'a b' 2>&1", ["run", "a b", "2>&1"]),
            ("command: [\"run\", \"a b\"]", ["run", "a b"]),
            ("entrypoint: /entry -x\n    command: [a]", ["/entry", "-x", "a"]),
            ("entrypoint: [\"/entry\"]", ["/entry"]),
            ("command: sh -c 'echo $$HOME $${X:-1}'", ["sh", "-c", "echo $HOME ${X:-1}"]),
            ("command: run ${A:-b ${C:-d}} ${E-} ${F:+g}x", ["run", "b", "d", "x"]),
        ]
    )
    func commands(yaml: String, exec: [String]) throws {
        #expect(try Imported("compose.yaml", "services:\n  web:\n    \(yaml)\n")["web"].exec == exec)
    }

    @Test("what has no user runs as torpord does, which is told")
    func users() throws {
        let text = "services:\n  a: {command: a}\n  b: {command: b, user: \"33\"}\n  c: {command: c}\n  d: {image: d}\n"
        let remarks = try Imported("compose.yaml", text).result.remarks
        #expect(remarks.contains { $0.text.hasSuffix("Write user for a and c.") }, "\(remarks)")
    }

    @Test("a service of an image alone, or of arguments alone, is told with its name")
    func images() throws {
        let found = try Importer.read(
            "/srv/app/compose.yml",
            in: tree(["compose.yml": "services:\n  db: {image: postgres}\n  p: {image: x, command: [\"--a\"]}\n"])
        )
        #expect(found.translatedCount == 0 && found.toml.contains("# [apps.db]"))
        #expect(found.programs[0].remarks[0].text.contains("the image postgres"))
        #expect(found.programs[1].remarks[0].text.contains("only arguments"))
    }

    @Test("variables come as a list, as a table, from .env and from files")
    func environment() throws {
        let list = try app("environment:\n  - A=1\n  - B=x=y\n  - C\nenv_file: a.env", files: [".env": "C=c\n"])
        #expect(list.environment == ["A": "1", "B": "x=y", "C": "c"])
        #expect(list.environmentFiles.map(\.path) == ["/srv/app/a.env"])
        let table = try app(
            "environment: {A: 1, B: true, C: \"${D}\"}\nenv_file: [{path: b.env, required: false}]",
            variables: ["D": "d"]
        )
        #expect(table.environment == ["A": "1", "B": "true", "C": "d"])
        #expect(table.environmentFiles.map(\.isOptional) == [true])
    }

    @Test("anchors, merge keys and extends are followed")
    func anchors() throws {
        let text = """
            x-all: &all
              restart: always
              environment: &vars {A: "1"}
            services:
              base: {command: base, user: "33"}
              web:
                <<: *all
                extends: base
                command: web
                environment:
                  <<: *vars
                  B: "2"
            """
        let web = try Imported("compose.yaml", text)["web"]
        #expect(
            web.rules.restart == .always && web.environment == ["A": "1", "B": "2"] && web.user == "33"
                && web.exec == ["web"]
        )
    }

    @Test(
        "restart",
        arguments: [
            ("no", RestartPolicy.never, 10), ("always", .always, 10_000), ("unless-stopped", .always, 10_000),
            ("on-failure", .onFailure, 10_000), ("on-failure:3", .onFailure, 3),
        ]
    )
    func restart(text: String, policy: RestartPolicy, limit: Int) throws {
        let app = try app("restart: \"\(text)\"")
        #expect(app.rules.restart == policy && app.rules.backoff.limit == limit)
    }

    @Test("how it ends, what it may have, and how often it is there")
    func limits() throws {
        let app = try app(
            "stop_signal: SIGINT\nstop_grace_period: 1m30s\nmem_limit: 512m\nulimits: {nofile: {soft: 10, hard: 20}, nproc: 5}\nuser: \"33:33\"\nworking_dir: /srv\nprofiles: [p]\nlabels: {a: b}"
        )
        #expect(app.stopSignal == 2 && app.rules.grace == .seconds(90) && app.memoryLimit == 512 << 20)
        #expect(app.limits.map(\.soft) == [10, 5] && app.limits[0].hard == 20 && app.user == "33" && app.group == "33")
        #expect(
            app.directory == "/srv" && app.launch == .onDemand && app.tags == ["p", "a=b"] && app.killMode == .main
        )
        let many = try Imported(
            "compose.yaml",
            "services:\n  w:\n    command: w\n    deploy: {replicas: 2, resources: {limits: {memory: 1G}}}\n"
        )
        #expect(try many["w@2"].memoryLimit == 1 << 30)
    }

    @Test("depends_on is requires, and what must have ended well is a oneshot")
    func order() throws {
        let text =
            "services:\n  a: {command: a}\n  b: {command: b}\n  c:\n    command: c\n    depends_on:\n      a: {condition: service_completed_successfully}\n      b: {condition: service_started, required: false}\n      db: {condition: service_healthy}\n  db: {image: x}\n"
        let found = try Imported("compose.yaml", text)
        #expect(try found["c"].requires == ["a"] && found["c"].after == ["b"] && found["a"].rules.isOneshot)
        #expect(found.remarks("c").contains { $0.contains("\"db\"") })
    }

    @Test("a health check says when it is ready")
    func health() throws {
        let shell = try app("healthcheck: {test: \"a | b\", interval: 5s, timeout: 2s, retries: 2, start_period: 10s}")
            .ready
        guard case .probe(let probe) = shell, case .command(let words) = probe.kind else { throw Unexpected() }
        #expect(words == ["/bin/sh", "-c", "a | b"] && probe.timeout == .seconds(2))
        guard case .probe(let http) = try app("healthcheck: {test: [CMD, curl, -f, \"http://localhost:80/x\"]}").ready,
            case .http(let host, let port, let path) = http.kind
        else { throw Unexpected() }
        #expect(host == "localhost" && port == 80 && path == "/x")
        #expect(try app("healthcheck: {test: [NONE]}").ready == .exec)
        #expect(try app("healthcheck: {disable: true, test: x}").ready == .exec)
    }

    @Test(
        "what is no compose file is refused in a sentence",
        arguments: [
            "", "a", "- a", "services: 4", "services: [", "a: &a [*b]", "services:\n  a: &x {b: *y}", "\t", "{{{{",
        ]
    )
    func wrong(text: String) {
        #expect(refusal("compose.yaml", text)?.hasPrefix("/srv/app/compose.yaml") == true)
    }

    @Test("aliases that repeat themselves without measure are refused, and so is what is too deep")
    func bombs() {
        var text = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n"
        for level in 1...9 {
            text += "a\(level): &a\(level) [" + (0..<9).map { _ in "*a\(level - 1)" }.joined(separator: ",") + "]\n"
        }
        #expect(refusal("compose.yaml", text)?.contains("too many values") == true)
        #expect(refusal("compose.yaml", String(repeating: "[", count: 5000)) != nil)
    }

    struct Unexpected: Error {}
}
