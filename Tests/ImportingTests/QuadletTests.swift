// SPDX-License-Identifier: Apache-2.0

import Configuration
import Importing
import Lifecycle
import Testing

@Suite("Units of Quadlet become apps in containers")
struct QuadletTests {
    private func imported(_ files: [String: String], _ names: [String] = [""]) throws -> Imported {
        try Imported(names, in: tree(files, variables: ["HOME": "/home/me"]))
    }

    private func container(_ keys: String, _ more: [String: String] = [:]) throws -> Imported {
        var files = more
        files["web.container"] = "[Container]\nImage=ghcr.io/me/web\n" + keys
        return try imported(files, ["web.container"])
    }

    @Test("the example of the page")
    func page() throws {
        let (source, toml) = try documented("Quadlet")
        let files = ["web.container": source, "data.volume": "[Volume]\n", "shop.network": "[Network]\n"]
        #expect(try plain(imported(files, ["web.container"]).result.toml) == toml)
    }

    @Test("a whole container: what runs, and what systemd does around it")
    func whole() throws {
        let found = try container(
            """
            Exec=serve "daemon off;" --port 80
            Entrypoint=["/entry", "-x"]
            Environment=A=b "C=d e"
            EnvironmentFile=web.env
            PublishPort=127.0.0.1:8080:80
            Volume=./site:/srv:ro
            User=1000
            Group=1001
            AddCapability=NET_ADMIN net_raw
            DropCapability=all
            NoNewPrivileges=true
            SecurityLabelType=spc_t
            ReadOnly=yes
            Tmpfs=/run
            Mount=type=bind,source=./a,target=/a,readonly
            Ulimit=nofile=10:20
            PidsLimit=100
            Memory=512m
            StopSignal=SIGINT
            StopTimeout=20
            HealthCmd=curl -f http://localhost/up || exit 1
            Sysctl=a=1 b=2
            PodmanArgs=--cpus 2 -lx=y "--annotation=a=b c" --rm
            [Service]
            Restart=on-failure
            RestartSec=3
            ExecStartPre=/bin/true
            [Unit]
            Description=Web server
            [Install]
            WantedBy=multi-user.target
            """
        )
        let web = try found["web"]
        let container = try #require(web.container)
        #expect(web.exec == ["serve", "daemon off;", "--port", "80"] && container.entrypoint == ["/entry", "-x"])
        #expect(web.environment == ["A": "b", "C": "d e"] && container.environmentFiles == ["/srv/app/web.env"])
        #expect(container.ports == ["127.0.0.1:8080:80"] && container.user == "1000:1001")
        #expect(container.volumes == ["/srv/app/site:/srv:ro", "/srv/app/a:/a:ro"])
        #expect(container.addedCapabilities == ["NET_ADMIN", "NET_RAW"] && container.droppedCapabilities == ["ALL"])
        #expect(container.security == ["no-new-privileges", "label=type:spc_t"] && container.isReadOnly)
        #expect(container.arguments == ["--sysctl=a=1", "--sysctl=b=2", "--annotation=a=b c"])
        #expect(container.labels == ["x": "y"] && container.temporary == ["/run"])
        #expect(found.result.toml.contains("title = \"Web server\""))
        #expect(web.rules.restart == .onFailure && web.launch != .onDemand)
        #expect(found.result.toml.contains("grace = \"20s\"") && found.result.toml.contains("stop_signal = \"SIGINT\""))
        #expect(found.result.toml.contains("before_start = [{ command = [\"/bin/true\"]"))
        guard case .probe(let probe) = web.ready else { throw Missing() }
        #expect(probe.kind == .http(host: "127.0.0.1", port: 8080, path: "/up"))
    }

    @Test("a folder: names of networks, volumes and other containers, and what has to be made first")
    func folder() throws {
        let found = try imported([
            "web.container": """
            [Unit]
            Requires=db.container
            After=db.service shop-network.service
            [Container]
            Image=localhost/web
            Network=shop.network:alias=w
            Volume=data.volume:/data:Z
            Volume=gone.volume:/gone
            """,
            "db.container": "[Container]\nImage=me.build\nNetwork=web.container\n[Install]\nWantedBy=x.target\n",
            "shop.network": "[Network]\nSubnet=10.0.0.0/24\nInternal=true\n",
            "data.volume": "[Volume]\nVolumeName=it's\nDevice=/dev/x\nOptions=noatime\nUser=5\n",
            "me.build": "[Build]\nImageTag=localhost/me\nFile=./Containerfile\n",
            "old.kube": "[Kube]\nYaml=old.yml\n", "other.volume": "[Volume]\n",
        ])
        let web = try found["web"]
        #expect(web.container?.networks == ["systemd-shop:alias=w,alias=systemd-web"] && web.requires == ["db"])
        #expect(found.result.programs.first { $0.name == "web" }?.isTranslated == true)
        #expect(
            try found["db"].container?.networks == ["container:torpor-web"] && found["db"].container?.pull == .never
        )
        #expect(found.remarks("web").contains { $0.contains("gone.volume is not here") })
        #expect(!found.remarks("web").contains { $0.contains("shop-network") })
        #expect(
            found.remarks("db").contains {
                $0.contains("‘podman build -t localhost/me -f /srv/app/Containerfile -- /srv/app’")
            }
        )
        #expect(found.remarks("old").contains { $0.contains("podman kube play") } && found.apps["old"] == nil)
        let all = found.result.remarks.map(\.text)
        #expect(all.contains { $0.contains("‘podman network create --subnet 10.0.0.0/24 --internal -- systemd-shop’") })
        let volume = "‘podman volume create --opt device=/dev/x --opt o=noatime,uid=5 -- 'it'\\''s'’"
        #expect(all.contains { $0.contains(volume) }, "\(all)")
        #expect(all.contains { $0.contains("Other.volume is left out") }, "\(all)")
    }

    @Test("the containers of a pod share network, IPC and host name of an app, and are started and stopped by a tag")
    func pod() throws {
        let files = [
            "shop.pod": "[Pod]\nPublishPort=8080:80\nVolume=all.volume:/all\nPodmanArgs=--infra-image=me/pause\n"
                + "[Install]\nWantedBy=x.target\n",
            "web.container": "[Container]\nImage=me/web\nPod=shop.pod\nPublishPort=1:1\nHealthCmd=curl -f localhost\n",
            "db.container": "[Container]\nImage=me/db\nPod=shop.pod\nStartWithPod=false\nNetwork=host\n",
            "lost.container": "[Container]\nImage=me/db\nPod=none.pod\n",
        ]
        let found = try imported(files)
        let pod = try found["shop-pod"]
        #expect(pod.container?.ports == ["8080:80"] && pod.launch != .onDemand && pod.rules.restart == .onFailure)
        let web = try found["web"]
        #expect(web.container?.networks == ["container:torpor-shop-pod"] && web.requires == ["shop-pod"])
        #expect(web.container?.ports == [] && web.launch != .onDemand)
        #expect(pod.container?.image == "me/pause" && pod.container?.arguments == ["--ipc=shareable"])
        #expect(
            web.container?.arguments == ["--ipc=container:torpor-shop-pod", "--uts=container:torpor-shop-pod"],
            "\(found.result.toml)"
        )
        #expect(pod.tags == ["shop"] && web.tags == ["shop"])
        #expect(found.result.toml.split(separator: "\n").count { $0 == "evict = \"never\"" } == 2)
        #expect(web.container?.volumes == ["systemd-all:/all"])
        #expect(found.remarks("web").contains { $0.contains("PublishPort is left out") })
        #expect(try found["db"].launch == .onDemand)
        #expect(found.apps["lost"] == nil)
        let alone = try imported(files, ["web.container"])
        #expect(alone.apps.keys.sorted() == ["shop-pod", "web"])
        #expect(try imported(files, ["shop.pod"]).apps.keys.sorted() == ["db", "shop-pod", "web"])
        let apart = try imported(files.merging(["shop.pod": "[Pod]\nUserNS=auto\n"]) { $1 }, ["web.container"])
        #expect(apart.remarks("web").contains { $0.contains("user namespace") })
    }

    @Test("several files, a template, a oneshot and a program that says when it is ready")
    func others() throws {
        let found = try imported(
            [
                "a@.container": "[Container]\nImage=me/a\nContainerName=a-%i\n",
                "b.container": "[Container]\nImage=me/b\n[Service]\nType=oneshot\n",
                "c.container": "[Container]\nImage=me/c\nNotify=true\nHealthCmd=x\n",
            ],
            ["a@.container", "b.container", "c.container"]
        )
        #expect(found.apps["a@1"]?.container?.name == "a-1", "\(found.result.toml)")
        #expect(try found["c"].ready == .notify && found.result.toml.contains("type = \"oneshot\""))
        #expect(found.remarks("c").contains { $0.contains("HealthCmd is left out") })
    }

    @Test(
        "what is no app is refused in a sentence",
        arguments: [
            ("x.build", "[Build]\nImageTag=localhost/x\n", "run ‘podman build -t localhost/x -- /srv/app’"),
            ("x.network", "[Network]\n", "no container names it"), ("x.container", "", "it has no Image"),
            ("x.container", "[Container]\nRootfs=/r\n", "root file system"),
            ("x.container", "[Container]\nImage=y.image\n", "y.image, which is not here"),
            ("x.kube", "[Kube]\n", "podman kube play"),
        ]
    )
    func refused(name: String, text: String, sentence: String) throws {
        do throws(ImportError) {
            let result = try Importer.read("/srv/app/" + name, in: tree([name: text]))
            #expect(result.programs[0].obstacle?.contains(sentence) == true, "\(result.programs)")
        } catch {
            #expect(error.description.contains(sentence), "\(error)")
        }
    }

    @Test("hostile text is read in time, and ends in a valid file or a sentence")
    func hostile() throws {
        let head = "[Container]\nImage=ghcr.io/w\n"
        let texts = [
            head + "Exec=a '\u{301}b c'\u{301} \"\u{301}\"\n", head + "Exec=" + String(repeating: "'", count: 100_001),
            head + String(repeating: "Label=a\u{301}=\u{301}b\n", count: 10_000),
            head + "Volume=\u{0}a:/b\nUser=\u{0}\n",
            head + "PodmanArgs=" + String(repeating: "-e A=b --cpus 2 ", count: 10_000) + "\n",
            head + "Network=web.container\nPod=web.container\n", head + "Network=web.container\n",
            head + String(repeating: "Mount=type=bind,", count: 5_000) + "\n", "[Container]\nImage=web.image\n",
            head + "Ulimit==\nSysctl==\nMount=,\nVolume=:\nPublishPort=:\nAddDevice=-\nSecret=,\nNetwork=:\n",
        ]
        for text in texts {
            _ = try imported(["web.container": text, "web.image": "[Image]\nImage=web.image\n"])
        }
        let own = try imported(["web.container": head + "Network=web.container\n"])
        #expect(own.remarks("web").contains { $0.contains("its own network") })
        let marks = try imported(["web.container": texts[0]])
        #expect(try marks["web"].exec == ["a", "\u{301}b c\u{301}", "\u{301}"])
    }

    private struct Missing: Error {}
}
