// SPDX-License-Identifier: Apache-2.0

import Configuration
import Importing
import Lifecycle
import Testing

@Suite("Health checks of containers, and containers that know each other by name")
struct ComposeHealthTests {
    private func imported(_ text: String) throws -> Imported {
        try Imported("compose.yaml", in: tree(["compose.yaml": text], hasPrograms: false))
    }

    private func probe(_ app: AppSpecification) throws -> Probe.Kind {
        guard case .probe(let probe) = app.ready else { throw Missing() }
        return probe.kind
    }

    /// How a service with port 80 published as `port` is probed.
    private func probe(_ test: String, port: String) throws -> Probe.Kind {
        let text = "services: {web: {image: w, ports: [\"\(port)\"], healthcheck: {test: \(test)}}}\n"
        return try probe(imported(text)["web"])
    }

    @Test(
        "a plain request to a published port is made by Torpor itself",
        arguments: [
            #"[CMD, curl, -f, "http://localhost/up"]"#, #"[CMD, curl, --fail, --silent, "localhost/up"]"#,
            #""curl -f http://localhost/up || exit 1""#, #""curl -sSf http://127.0.0.1/up||exit 1;""#,
            #""curl -fsSLo /dev/null http://localhost:80/up || false""#,
            #""curl --fail --max-time 3 'http://localhost/up' >/dev/null 2>&1 || exit 1""#,
            #""wget -q --spider http://localhost/up""#, #""wget -qO- http://localhost/up >/dev/null || exit 1""#,
            #"[CMD-SHELL, "wget --no-verbose --tries=1 --spider http://localhost/up || exit 1"]"#,
            #"[CMD, wget, -nv, -t1, -T, "3", --spider, "http://[::1]:80/up"]"#,
        ]
    )
    func request(test: String) throws {
        #expect(try probe(test, port: "8080:80") == .http(host: "127.0.0.1", port: 8080, path: "/up"))
    }

    @Test(
        "what asks for more than that is run in the container",
        arguments: [
            #"[CMD, curl, "http://localhost/up"]"#, #""curl -f http://localhost/up || exit 0""#,
            #""curl -f http://localhost/up | grep ok""#, #""curl -f -H 'Host: x' http://localhost/up""#,
            #""curl -f http://localhost/up && other""#, #""curl -f http://localhost:81/up""#,
            #""curl -f https://localhost/up""#, #""curl -f http://localhost/up http://localhost/b""#,
            #""curl -f http://db/up""#, #""curl -f http://localhost/$$X""#, #""curl -f 'http://localhost/up ""#,
        ]
    )
    func more(test: String) throws {
        guard case .command(let words) = try probe(test, port: "8080:80") else { throw Missing() }
        #expect(words.prefix(3) == ["podman", "exec", "torpor-web"])
    }

    @Test(
        "the request goes to the address at which the port is published",
        arguments: [
            ("192.168.1.5:8080:80", "192.168.1.5", 8080), ("0.0.0.0:8080:80/tcp", "127.0.0.1", 8080),
            ("[::1]:8080:80", "::1", 8080), ("8000-8010:75-85", "127.0.0.1", 8005),
        ] as [(String, String, UInt16)]
    )
    func address(port: String, host: String, number: UInt16) throws {
        #expect(try probe("[CMD, curl, -f, localhost]", port: port) == .http(host: host, port: number, path: "/"))
    }

    @Test("a port of udp, and one that podman chooses, answer no request", arguments: ["8080:80/udp", "80"])
    func others(port: String) throws {
        guard case .command = try probe("[CMD, curl, -f, localhost]", port: port) else { throw Missing() }
    }

    @Test("services whose names become one are each probed in their own container")
    func oneName() throws {
        let found = try imported(
            """
            services:
              "my web": {image: a, healthcheck: {test: [CMD, first]}}
              "my/web": {image: b, healthcheck: {test: [CMD, second]}}
              job: {image: c, network_mode: "service:my/web"}
            """
        )
        #expect(try probe(found["my-web"]) == .command(["podman", "exec", "torpor-my-web", "first"]))
        #expect(try probe(found["my-web-2"]) == .command(["podman", "exec", "torpor-my-web-2", "second"]))
        #expect(try found["job"].container?.networks == ["container:torpor-my-web-2"])
        #expect(try found["job"].requires == ["my-web-2"])
    }

    @Test("the network of a service is that of its container, whatever that is called")
    func network() throws {
        let found = try imported(
            """
            services:
              web: {image: a, container_name: mine}
              bad: {image: a, container_name: "no name", healthcheck: {test: [CMD, x]}}
              a: {image: c, network_mode: "service:web"}
              b: {image: c, network_mode: "service:bad"}
              c: {image: c, network_mode: "service:many"}
              d: {image: c, network_mode: "service:none"}
              many: {image: c, scale: 2}
            """
        )
        #expect(try found["a"].container?.networks == ["container:mine"])
        #expect(try found["b"].container?.networks == ["container:torpor-bad"])
        #expect(try probe(found["bad"]) == .command(["podman", "exec", "torpor-bad", "x"]))
        #expect(found.apps["c"] == nil && found.apps["d"] == nil)
        #expect(found.remarks("c").contains { $0.contains("several containers") }, "\(found.remarks("c"))")
        #expect(found.remarks("d").contains { $0.contains("not translated") }, "\(found.remarks("d"))")
    }

    @Test("many services with more errors than the validation lists are left with what is valid")
    func manyErrors() throws {
        let wrong = (70_000..<70_004).map { "\"\($0):80\"" }.joined(separator: ", ")
        let services = (0..<600).map { number in
            "  s\(number): {image: w, ports: [\(wrong)], tmpfs: [x, y], depends_on: [s\((number + 1) % 600)], "
                + "network_mode: \"service:s\((number + 300) % 600)\"}\n"
        }
        let found = try imported("services:\n" + services.joined())
        #expect(found.apps.count == 600)
        #expect(found.apps.values.allSatisfy { $0.container?.ports == [] && $0.container?.temporary == [] })
        #expect(try found["s7"].container?.networks == ["container:torpor-s307"])
    }

    private struct Missing: Error {}
}
