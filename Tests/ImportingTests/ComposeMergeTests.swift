// SPDX-License-Identifier: Apache-2.0

import Configuration
import Importing
import Lifecycle
import Testing

@Suite("Several compose files are one")
struct ComposeMergeTests {
    private func imported(
        _ texts: [String],
        files: [String: String] = [:],
        variables: [String: String] = [:],
        profiles: [String] = []
    ) throws -> Imported {
        var all = files
        let names = texts.indices.map { $0 == 0 ? "a.yml" : "a\($0).yml" }
        for (name, text) in zip(names, texts) { all[name] = text }
        var tree = tree(all, variables: variables, hasPrograms: false)
        tree.profiles = profiles
        return try Imported(names, in: tree, kind: .compose)
    }

    @Test("a later file replaces, merges and adds, as each key has it")
    func rules() throws {
        let found = try imported([
            """
            name: p
            services:
              web:
                image: web:1
                command: [a, b]
                entrypoint: /first
                environment: [A=1, "B=1"]
                labels: { x: "1" }
                ports: ["8080:80", "53:53/udp"]
                volumes: ["./a:/a", "data:/data"]
                devices: ["/dev/a:/dev/x"]
                dns: 1.1.1.1
                cap_add: [NET_ADMIN]
                networks: [front]
                healthcheck: { test: [CMD, old, words], timeout: 3s }
                build: ./web
            volumes: { data: {} }
            networks: { front: {} }
            """,
            """
            services:
              web:
                image: web:2
                command: [c]
                environment: { B: "2", C: "3" }
                labels: [y=2]
                ports: ["9090:90", { target: 80, published: 8080 }]
                volumes: ["./b:/a"]
                devices: ["/dev/b:/dev/x"]
                dns: [8.8.8.8]
                cap_add: [SYS_TIME, NET_ADMIN]
                networks: { back: { aliases: [w] } }
                healthcheck: { test: [CMD, new] }
                build: { args: { X: y } }
              db: { image: db }
            networks: { front: { name: public }, back: { external: true } }
            """,
        ])
        let web = try found["web"]
        let container = try #require(web.container)
        #expect(container.image == "docker.io/library/web:2" && web.exec == ["c"])
        #expect(container.entrypoint == ["/first"])
        #expect(web.environment == ["A": "1", "B": "2", "C": "3"] && container.labels == ["x": "1", "y": "2"])
        #expect(container.ports == ["8080:80", "53:53/udp", "9090:90"])
        #expect(container.volumes == ["/srv/app/b:/a", "p_data:/data"] && container.devices == ["/dev/b:/dev/x"])
        #expect(container.arguments == ["--dns=1.1.1.1", "--dns=8.8.8.8"])
        #expect(container.addedCapabilities == ["NET_ADMIN", "SYS_TIME"])
        #expect(container.networks == ["public", "back:alias=web,alias=w"])
        guard case .probe(let probe) = web.ready else { throw Missing() }
        #expect(probe.kind == .command(["podman", "exec", "torpor-web", "new"]) && probe.timeout == .seconds(3))
        #expect(found.remarks("web").contains { $0.contains("--build-arg X=y -- /srv/app/web") })
        #expect(found.apps["db"] != nil && found.result.toml.contains("a.yml and /srv/app/a1.yml"))
    }

    @Test("!reset takes away, !override replaces, and a third file may add again")
    func tags() throws {
        let found = try imported([
            "services: {web: {image: w, ports: [\"1:1\"], dns: [a], user: \"1\", environment: {A: b, C: d}}, db: {image: d}}\n",
            "services: {web: {ports: !override [\"2:2\"], dns: !reset [], user: !reset null, environment: {A: !reset x}}, db: !reset {}}\n",
            "services: {web: {dns: [c]}}\n",
        ])
        let web = try found["web"]
        #expect(web.container?.ports == ["2:2"] && web.container?.arguments == ["--dns=c"])
        #expect(web.container?.user == nil && web.environment == ["C": "d"] && found.apps.count == 1)
    }

    @Test("a line of a remark is one of its own file")
    func places() throws {
        let found = try imported(["services:\n  web: {image: w}\n", "services:\n  web:\n    tty: true\n    bad: 1\n"])
        let remark = found.result.programs[0].remarks.first { $0.text.contains("bad") }
        #expect(remark?.file == "a1.yml" && remark?.line == 4)
    }

    @Test(
        "a file beside compose.yaml that overrides it is read, and that is said",
        arguments: ["compose", "docker-compose"]
    )
    func override(stem: String) throws {
        let files = [
            "\(stem).yml": "services: {web: {image: w}}\n",
            "\(stem).override.yml": "services: {web: {user: \"7\"}}\n",
        ]
        let found = try Imported("\(stem).yml", in: tree(files, hasPrograms: false))
        #expect(try found["web"].container?.user == "7")
        #expect(found.result.remarks.contains { $0.text.hasPrefix("\(stem).override.yml beside it is merged") })
        let named = try Imported(["\(stem).yml", "\(stem).yml"], in: tree(files, hasPrograms: false))
        #expect(try named["web"].container?.user == nil)
    }

    @Test("COMPOSE_FILE and COMPOSE_PROJECT_NAME of .env count as for compose")
    func listed() throws {
        let files = [
            "compose.yml": "services: {web: {image: w}}\n", "b.yml": "services: {web: {user: \"7\"}}\n",
            "compose.override.yml": "services: {web: {user: \"8\"}}\n",
            ".env": "COMPOSE_FILE=compose.yml:b.yml:none.yml\nCOMPOSE_PROJECT_NAME=shop\n",
        ]
        let found = try Imported("compose.yml", in: tree(files, hasPrograms: false))
        #expect(try found["web"].container?.user == "7" && found["web"].container?.networks == ["shop"])
        #expect(found.result.remarks.contains { $0.text.contains("none.yml, which COMPOSE_FILE names") })
        let other = files.merging([".env": "COMPOSE_FILE=b.yml\n"]) { $1 }
        let alone = try Imported("compose.yml", in: tree(other, hasPrograms: false))
        #expect(alone.result.remarks.contains { $0.text.hasPrefix("COMPOSE_FILE names other files") })
    }

    @Test("services of profiles that are named are launched with the others")
    func profiles() throws {
        let text = "services: {web: {image: w}, a: {image: a, profiles: [x, y]}, b: {image: b, profiles: [z]}}\n"
        func launched(_ profiles: [String], _ variables: [String: String] = [:]) throws -> [String] {
            try imported([text], variables: variables, profiles: profiles).apps.values
                .filter { $0.launch != .onDemand }.map(\.name).sorted()
        }
        #expect(try launched([]) == ["web"])
        #expect(try launched(["y"]) == ["a", "web"])
        #expect(try launched(["*"]) == ["a", "b", "web"])
        #expect(try launched([], ["COMPOSE_PROFILES": "z, none"]) == ["b", "web"])
        #expect(try launched(["y"], ["COMPOSE_PROFILES": "z"]) == ["a", "web"])
        let unknown = try imported([text], profiles: ["no"])
        #expect(unknown.result.remarks.contains { $0.text.contains("\"no\"") })
    }

    @Test("what cannot be read together is refused in a sentence")
    func refused() throws {
        let files = ["compose.yml": "services: {web: {image: w}}\n", "Procfile": "web: run\n", "bad.yml": "- a\n"]
        for (names, kind, sentence) in [
            (["compose.yml", "Procfile"], nil, "import them one by one"),
            (["compose.yml", "none.yml"], nil, "name existing files"),
            (["Procfile", "Procfile"], nil, "by itself"),
            (["compose.yml", "bad.yml"], .compose, "/srv/app/bad.yml: a compose file is a table"),
        ] as [([String], SourceKind?, String)] {
            let error = #expect(throws: ImportError.self) { try Imported(names, in: tree(files), kind: kind) }
            #expect(error?.description.contains(sentence) == true, "\(String(describing: error))")
        }
    }

    private struct Missing: Error {}
}
