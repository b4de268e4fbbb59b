// SPDX-License-Identifier: Apache-2.0

import Configuration
import Importing
import Lifecycle
import Testing

@Suite("The services of a compose file become apps in containers")
struct ComposeContainerTests {
    func imported(_ text: String, files: [String: String] = [:], variables: [String: String] = [:]) throws -> Imported {
        var all = files
        all["compose.yaml"] = text
        return try Imported("compose.yaml", in: tree(all, variables: variables, hasPrograms: false))
    }

    /// The container of a service `web` with these keys.
    func container(_ keys: String, beside: String = "", files: [String: String] = [:]) throws -> ContainerSpecification
    {
        let indented = keys.split(separator: "\n").map { "    \($0)\n" }.joined()
        let found = try imported("services:\n  web:\n    image: me/web\n" + indented + beside, files: files)
        return try #require(found["web"].container, "\(found.result.toml)")
    }

    @Test(
        "an image has the registry that docker would ask",
        arguments: [
            ("nginx", "docker.io/library/nginx"), ("nginx:1.27", "docker.io/library/nginx:1.27"),
            ("me/web@sha256:12", "docker.io/me/web@sha256:12"), ("ghcr.io/me/web", "ghcr.io/me/web"),
            ("localhost/web", "localhost/web"), ("box:5000/web:1", "box:5000/web:1"),
        ]
    )
    func images(image: String, expected: String) throws {
        let found = try imported("services: {web: {image: \"\(image)\"}}\n")
        #expect(try found["web"].container?.image == expected)
        #expect(try found["web"].exec.isEmpty && found["web"].wakeOnConnect == .background)
    }

    @Test("a whole file: what each service is, its network, its volumes, what it waits for")
    func whole() throws {
        let found = try imported(
            """
            name: Shop!
            services:
              db:
                image: postgres:16
                volumes: ["data:/var/lib/postgresql/data", "./init:/docker-entrypoint-initdb.d:ro,cached"]
                environment: { POSTGRES_PASSWORD: "${PASSWORD:-s3cret}" }
                healthcheck: { test: ["CMD-SHELL", "pg_isready -U postgres"], interval: 5s }
                secrets: [key]
              web:
                build: { context: web, dockerfile: Containerfile, args: { A: "b c" } }
                command: ["serve", "--port", "80"]
                entrypoint: /entry -x
                ports: ["127.0.0.1:8080:80", { target: 53, published: 5353, protocol: udp }]
                depends_on: { db: { condition: service_healthy } }
                networks: { front: { aliases: [shop] }, default: {} }
                healthcheck: { test: ["CMD", "curl", "-f", "http://localhost/up"] }
                user: "1000:1000"
                working_dir: /srv
                restart: unless-stopped
                labels: ["a=b"]
              job:
                image: me/job
                network_mode: "service:web"
                profiles: [tools]
            volumes: { data: }
            networks: { front: { name: public } }
            secrets: { key: { file: ./key.txt } }
            """
        )
        let db = try found["db"]
        let store = try #require(db.container)
        #expect(store.image == "docker.io/library/postgres:16")
        #expect(store.networks == ["shop"])
        #expect(
            store.volumes == [
                "shop_data:/var/lib/postgresql/data", "/srv/app/init:/docker-entrypoint-initdb.d:ro",
                "/srv/app/key.txt:/run/secrets/key:ro",
            ]
        )
        #expect(db.environment == ["POSTGRES_PASSWORD": "s3cret"])
        guard case .probe(let probe) = db.ready else { throw Missing() }
        #expect(probe.kind == .command(["podman", "exec", "torpor-db", "/bin/sh", "-c", "pg_isready -U postgres"]))
        let web = try found["web"]
        let front = try #require(web.container)
        #expect(front.image == "localhost/shop_web" && front.pull == .never)
        #expect(front.entrypoint == ["/entry", "-x"] && web.exec == ["serve", "--port", "80"])
        #expect(front.ports == ["127.0.0.1:8080:80", "5353:53/udp"])
        #expect(front.networks == ["public:alias=web,alias=shop", "shop"])
        #expect(front.user == "1000:1000" && front.directory == "/srv" && front.labels == ["a": "b"])
        #expect(web.requires == ["db"] && web.rules.restart == .always && web.user == nil)
        guard case .probe(let up) = web.ready else { throw Missing() }
        #expect(up.kind == .http(host: "127.0.0.1", port: 8080, path: "/up"))
        let command =
            "podman build -t localhost/shop_web -f /srv/app/web/Containerfile --build-arg 'A=b c' -- /srv/app/web"
        #expect(found.remarks("web").contains { $0.contains("‘\(command)’") }, "\(found.remarks("web"))")
        let job = try found["job"]
        #expect(job.container?.networks == ["container:torpor-web"] && job.requires == ["web"])
        #expect(job.launch == .onDemand && job.tags == ["tools"])
    }

    @Test("lists and flags of a service")
    func lists() throws {
        let found = try container(
            """
            hostname: box
            container_name: mine
            cap_add: [NET_ADMIN]
            cap_drop: [all]
            devices: ["/dev/dri:/dev/dri"]
            tmpfs: /run
            read_only: true
            privileged: true
            init: true
            shm_size: 64m
            dns: 1.1.1.1
            extra_hosts: ["host.docker.internal:host-gateway"]
            sysctls: { net.core.somaxconn: 1024 }
            security_opt: ["no-new-privileges:true", "seccomp:./s.json", "label:disable"]
            group_add: [video]
            pid: private
            volumes:
              - { type: bind, source: ./a, target: /a, read_only: true }
              - { type: tmpfs, target: /t, tmpfs: { size: 1m } }
              - /anonymous
              - ~/x:/x
            """
        )
        #expect(found.hostname == "box" && found.name == "mine")
        #expect(found.addedCapabilities == ["NET_ADMIN"] && found.droppedCapabilities == ["all"])
        #expect(found.devices == ["/dev/dri:/dev/dri"] && found.temporary == ["/t:size=1m", "/run"])
        #expect(found.isReadOnly && found.sharedMemory == 64 << 20)
        #expect(found.security == ["no-new-privileges", "seccomp=/srv/app/s.json", "label=disable"])
        #expect(
            found.arguments == [
                "--privileged", "--group-add=video", "--init", "--dns=1.1.1.1", "--pid=private",
                "--add-host=host.docker.internal:host-gateway", "--sysctl=net.core.somaxconn=1024",
            ]
        )
        #expect(found.volumes == ["/srv/app/a:/a:ro", "/anonymous"])
    }

    @Test("an entry point that is taken away leaves the command; a service that is built alone is never pulled")
    func entry() throws {
        let bare = try imported("services: {web: {image: x, entrypoint: [], command: [a, b]}}\n")["web"]
        #expect(bare.container?.entrypoint == ["a"] && bare.exec == ["b"])
        let nothing = try imported("services: {web: {command: a}, db: {image: x}}\n")
        #expect(nothing.apps.keys.sorted() == ["db"])
        #expect(nothing.remarks("web").contains { $0.contains("neither image nor build") })
    }

    @Test("a service that loses its container is no program of this machine")
    func refused() throws {
        let found = try imported(
            "services: {web: {image: \"my app:1\", command: touch /x}, db: {image: d, ports: [\"99999:80\"]}}\n"
        )
        #expect(found.apps.keys.sorted() == ["db"] && found.result.toml.contains("# [apps.web]"))
        #expect(found.remarks("web").contains { $0.contains("not the name of an image") })
        #expect(try found["db"].container?.ports == [])
    }

    @Test(
        "odd values are a remark or nothing, and never the end of the import",
        arguments: [
            "healthcheck: {test: [CMD, /bin/sh, /check.sh]}", "healthcheck: {test: [CMD, /bin/sh]}", "cpus: inf",
            "cpus: 1e30", "build: {args: {A: \"x'\u{301}; touch y; echo '\u{301}\"}}",
        ]
    )
    func odd(yaml: String) throws {
        let found = try imported("services:\n  web:\n    image: w\n    \(yaml)\n")
        #expect(try found["web"].container?.image == "docker.io/library/w")
        let builds = found.remarks("web").filter { $0.contains("podman build") }
        #expect(builds.allSatisfy { $0.unicodeScalars.count { $0 == "'" } == 8 }, "\(builds)")
    }

    @Test("a file that includes itself is read once")
    func circular() throws {
        let lines = String(repeating: "  - compose.yaml\n  - a.yaml\n", count: 20)
        let text = "include:\n" + lines + "services: {web: {image: w}}\n"
        #expect(
            try imported(text, files: ["a.yaml": text.replacing("web", with: "db")]).apps.keys.sorted() == [
                "db", "web",
            ]
        )
    }

    @Test("networks with options are to be created first, as the command says")
    func networks() throws {
        let networks = "networks: {back: {internal: true, ipam: {config: [{subnet: 10.5.0.0/24}]}}}\n"
        let found = try imported("name: p\n" + networks + "services: {web: {image: w, networks: [back]}}\n")
        let command = "‘podman network create --internal --subnet 10.5.0.0/24 -- p_back’"
        #expect(found.result.remarks.contains { $0.text.contains(command) }, "\(found.result.remarks)")
    }

    @Test("what is lost of links, variables, builds, networks, volumes and mounts is said")
    func lost() throws {
        let found = try imported(
            """
            name: p
            services:
              web:
                build: { context: ., cache_from: [a], network: host, labels: { x: "y" }, ssh: [default] }
                links: ["db:base", cache]
                environment: [A, B=1, C]
                volumes: ["./here:/h", "./gone:/g", "/var/run/docker.sock:/s", "far:/f"]
              db: { image: d }
              cache: { image: c }
            volumes: { far: { driver: nfs } }
            networks: { default: { driver_opts: { a: b } } }
            """,
            files: ["here/x": ""]
        )
        #expect(try found["web"].requires == ["db", "cache"] && found["web"].environment == ["B": "1"])
        #expect(try found["db"].container?.networks == ["p_default:alias=db,alias=base"])
        #expect(try found["cache"].container?.networks == ["p_default"])
        let web = found.remarks("web")
        for sentence in [
            "--network host --cache-from a --label x=y -- /srv/app’", "build.ssh is left out",
            "A and C of environment have no value here", "docker's socket", "podman volume create --driver",
        ] {
            #expect(web.contains { $0.contains(sentence) }, "\(sentence): \(web)")
        }
        let all = found.result.remarks.map(\.text)
        #expect(all.contains { $0.contains("driver_opts of it is left out") })
        #expect(all.contains { $0.hasPrefix("Mounted, and not here: /srv/app/gone. ") }, "\(all)")
    }

    @Test("included files are read, each from its own folder, and one that is not there is told")
    func included() throws {
        let other = "services: {db: {image: d, volumes: [\"./x:/x\"]}}\n"
        let found = try imported(
            "include: [sub/compose.yaml, none.yaml]\nservices: {web: {image: w, depends_on: [db]}}\n",
            files: ["sub/compose.yaml": other]
        )
        #expect(try found["web"].requires == ["db"])
        #expect(try found["db"].container?.volumes == ["/srv/app/sub/x:/x"])
        #expect(found.result.remarks.contains { $0.text.contains("none.yaml") })
    }

    @Test("a link into no common network is told; volumes of another service are mounted by its container's name")
    func shared() throws {
        let found = try imported(
            """
            name: p
            services:
              web: { image: w, links: ["db:base", "db:base"], networks: [front], volumes_from: ["db:ro", "container:old"] }
              db: { image: d, networks: [back], volumes: ["x:/x"] }
              one: { image: w, volumes_from: [db, web] }
            """
        )
        #expect(found.remarks("web").contains { $0.contains("\"base\" is no name of \"db\" here") })
        #expect(found.remarks("web").contains { $0.contains("\"old\" must exist already") })
        let web = try found["web"]
        #expect(web.container?.arguments == ["--volumes-from=old", "--volumes-from=torpor-db:ro"])
        #expect(web.requires == ["db"])
        #expect(
            try found["one"].container?.arguments == ["--volumes-from=torpor-db", "--volumes-from=torpor-web"]
        )
    }

    @Test("a worker in a server's image is not woken by connections; what anything names, or has a port, is")
    func workers() throws {
        let found = try imported(
            """
            services:
              web: { build: ., ports: ["80:80"], environment: { OTHER: "http://named:1/" } }
              jobs: { build: ., command: [work] }
              named: { build: ., command: [serve] }
              exposed: { build: ., command: [serve], expose: [5] }
              usual: { build: . }
              other: { image: redis, command: [redis-server] }
              alone: { image: x, network_mode: none }
            """
        )
        for (name, wakes) in [
            ("web", true), ("jobs", false), ("named", true), ("exposed", true), ("usual", true), ("other", true),
            ("alone", false),
        ] {
            #expect(try (found[name].wakeOnConnect != .none) == wakes, "\(name)")
            #expect(found.remarks(name).contains { $0.contains("listen nowhere") } == !wakes, "\(name)")
        }
    }

    private struct Missing: Error {}
}
