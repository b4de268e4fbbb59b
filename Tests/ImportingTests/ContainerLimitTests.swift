// SPDX-License-Identifier: Apache-2.0

import Configuration
import Importing
import Testing

@Suite("A container is imported with its limits or not at all")
struct ContainerLimitTests {
    private func imported(_ options: String) throws -> Imported {
        let text = "docker run --name web \(options) img\n"
        return try Imported("run.sh", in: tree(["run.sh": text]), kind: .dockerRun)
    }

    @Test("one wrong element of a list takes only itself out")
    func elements() throws {
        let found = try imported("-p 99999:80 -p 80:80 -p x -v a:b -v c:/d -v :/e --tmpfs x --tmpfs /t")
        let container = try #require(found["web"].container)
        #expect(container.ports == ["80:80"] && container.volumes == ["c:/d"] && container.temporary == ["/t"])
        #expect(found.remarks("web").contains { $0.hasPrefix("\"99999:80\" of container.ports is left out") })
    }

    @Test(
        "a limit that cannot be said is a reason not to translate",
        arguments: [
            "--security-opt no-new-privileges --security-opt ''", "--network 'in ternal'",
            "--network a --network 'b c'",
        ]
    )
    func limits(options: String) throws {
        let found = try imported(options)
        #expect(found.apps.isEmpty && found.result.toml.contains("# [apps.web]"), "\(found.result.toml)")
        #expect(found.remarks("web").contains { $0.hasPrefix("is not translated: container.") })
    }

    @Test("a network that compose creates without a way out is not replaced by podman's")
    func compose() throws {
        let text = """
            services: {web: {image: w, networks: [a]}}
            networks: {a: {name: "in ternal", internal: true}, b: {name: "--all", internal: true}}
            """
        let found = try Imported("compose.yaml", in: tree(["compose.yaml": text], hasPrograms: false))
        #expect(found.apps.isEmpty && found.remarks("web").contains { $0.contains("name of a network") })
        #expect(!found.result.remarks.contains { $0.text.contains("--all") })
    }

    @Test("truths of a mount are those of Go")
    func truths() throws {
        for text in ["readonly", "readonly=True", "ro=t", "ro=TRUE", "ro=1", "ro=T"] {
            let found = try imported("--mount type=bind,src=/a,dst=/b,\(text)")
            #expect(try found["web"].container?.volumes == ["/a:/b:ro"], "\(text)")
        }
        for text in ["readonly=false", "ro=f", "ro=0", "ro=FALSE"] {
            let found = try imported("--mount type=bind,src=/a,dst=/b,\(text)")
            #expect(try found["web"].container?.volumes == ["/a:/b"], "\(text)")
        }
        let temporary = try imported("--mount type=tmpfs,dst=/t,tmpfs-size=1m,ro")
        #expect(try temporary["web"].container?.temporary == ["/t:size=1m,ro"])
    }

    @Test("what compose says of volumes and networks and podman is not given is a remark, or no app")
    func lost() throws {
        let text = """
            services:
              web:
                image: w
                volumes:
                  - { type: bind, source: /a, target: /a, bind: { propagation: rshared } }
                  - { type: volume, source: v, target: /v, volume: { nocopy: true } }
                networks: { n: { mac_address: "02:00:00:00:00:01", priority: 1, gw_priority: 2, link_local_ips: [a], driver_opts: { a: b } } }
              part: { image: w, volumes: [{ type: volume, source: v, target: /v, volume: { subpath: x } }] }
              pid: { image: w, pid: host }
              open: { image: w, command: [open, "%u"] }
            networks: { n: {} }
            volumes: { v: {} }
            """
        let found = try Imported("compose.yaml", in: tree(["compose.yaml": text], hasPrograms: false))
        #expect(found.apps.keys.sorted() == ["web"])
        let keys = [
            "networks.priority", "networks.gw_priority", "networks.link_local_ips", "networks.driver_opts",
        ]
        for key in keys {
            #expect(found.remarks("web").contains { $0.hasPrefix("\(key) is left out") }, "\(key)")
        }
        #expect(found.remarks("part").contains { $0.contains("subpath") })
        #expect(found.remarks("pid").contains { $0.contains("pid namespace") })
        #expect(found.remarks("open").contains { $0.contains("the argument %u") })
    }

    // MARK: Quadlet

    private struct Unit {
        var isTranslated: Bool
        var remarks: [Remark]
        var toml: String
    }

    private func unit(_ path: String, _ text: String, _ variables: [String: String] = [:]) throws -> Unit {
        var tree = tree([:], variables: variables)
        tree.read = { $0 == path ? Array("[Container]\nImage=ghcr.io/w\n\(text)\n".utf8) : nil }
        var result = try Importer.read(path, in: tree)
        result.validate(at: "/srv/app/torpor.toml", system: machine())
        let program = try #require(result.programs.first)
        return Unit(isTranslated: program.isTranslated, remarks: program.remarks, toml: result.toml)
    }

    @Test("a user's unit is an app of that user, or none")
    func owner() throws {
        let here = ".config/containers/systemd/web.container"
        let me = try unit("/home/me/\(here)", "Volume=%h/x:/x", ["HOME": "/root", "USER": "root"])
        #expect(me.isTranslated && me.toml.contains("user = \"me\"") && me.toml.contains("/home/me/x:/x"))
        let sudo = try unit("/home/me/\(here)", "", ["HOME": "/home/me", "USER": "root"])
        #expect(sudo.toml.contains("user = \"me\""))
        let own = try unit("/home/me/\(here)", "", ["HOME": "/home/me", "USER": "me"])
        #expect(own.isTranslated && !own.toml.contains("user ="))
        let id = try unit("/etc/containers/systemd/users/1000/web.container", "Environment=A=%h", ["HOME": "/root"])
        #expect(id.isTranslated && id.toml.contains("user = \"1000\""))
        #expect(id.remarks.contains { $0.text.contains("%h of Environment is not translated") })
        #expect(try !unit("/etc/containers/systemd/users/web.container", "").isTranslated)
        #expect(try !unit("/data/me/\(here)", "").isTranslated)
    }

    @Test("variables of a command line of systemd")
    func dollars() throws {
        let found = try unit("/srv/app/web.container", "Exec=a $$x b$y $${z}\nEnvironment=A=$$1 B=b$c\nPull=sometimes")
        #expect(found.isTranslated)
        #expect(found.toml.contains("exec = [\"a\", \"$x\", \"b$y\", \"${z}\"]"), "\(found.toml)")
        #expect(found.toml.contains("A = \"$1\", B = \"b$c\""), "\(found.toml)")
        #expect(found.remarks.contains { $0.text.contains("Pull=sometimes is not known") })
        let check = try unit("/srv/app/web.container", "HealthCmd=test $$X = $Y")
        #expect(check.toml.contains("test $X = $Y"), "\(check.toml)")
        let filled = try unit(
            "/srv/app/web.container",
            "Exec=a $X -${X} $$X ${E}\nEnvironment=A=${X}\n[Service]\nEnvironment=\"X=b c\" E="
        )
        #expect(filled.toml.contains("exec = [\"a\", \"b\", \"c\", \"-b c\", \"$X\", \"\"]"), "\(filled.toml)")
        #expect(filled.toml.contains("A = \"b c\""), "\(filled.toml)")
        let file = "Exec=a ${X}\n[Service]\nEnvironment=X=b\nEnvironmentFile=/etc/x"
        #expect(try !unit("/srv/app/web.container", file).isTranslated)
        for text in ["HealthCmd=test ${X}", "Exec=a $X", "Exec=a -${X}", "Environment=A=${X}"] {
            #expect(try !unit("/srv/app/web.container", text).isTranslated, "\(text)")
        }
    }
}
