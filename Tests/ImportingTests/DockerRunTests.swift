// SPDX-License-Identifier: Apache-2.0

import Configuration
import Importing
import Lifecycle
import Testing

@Suite("Command lines of docker run become apps in containers")
struct DockerRunTests {
    private func imported(_ text: String) throws -> Imported {
        try Imported("run.sh", in: tree(["run.sh": text], variables: ["HOME": "/home/me", "TAG": "1.27"]))
    }

    private func container(_ options: String) throws -> (app: AppSpecification, container: ContainerSpecification) {
        let found = try imported("docker run --name web \(options)\n")
        let app = try found["web"]
        return (app, try #require(app.container))
    }

    @Test("the example of the page")
    func page() throws {
        let (source, toml) = try documented("docker run")
        #expect(try plain(imported(source).result.toml) == toml)
    }

    @Test("a command line by itself begins in the caller's folder")
    func line() throws {
        let command = "docker run -d --name web -p 8080:80 -v ./site:/usr/share/nginx/html:ro nginx:1.27"
        for words in [[command], command.split(separator: " ").map(String.init)] {
            var result = try Importer.read(command: words, in: "/srv/app", tree([:]))
            result.validate(at: "/srv/app/torpor.toml", system: machine())
            #expect(result.kind == .dockerRun && result.translatedCount == 1)
            #expect(result.toml.contains("volumes = [\"/srv/app/site:/usr/share/nginx/html:ro\"]"), "\(result.toml)")
            #expect(result.toml.contains("image = \"docker.io/library/nginx:1.27\""))
        }
    }

    @Test(
        "the image is what follows the options, however they are written",
        arguments: [
            "-dit -p8080:80 -eA=b img cmd -x", "-it -p=8080:80 --env=A=b img cmd -x",
            "--rm -p 8080:80 -e A=b img cmd -x",
            "--publish=8080:80 --env A=b -- img cmd -x", "-diteA=b -p 8080:80 --init=false --rm=true img cmd -x",
            "-p 8080:80 \\\n  -e A=b \\\n  img cmd -x # -p 1:1",
            "-p '8080':\"80\" -e A\"=\"b img cmd -x > /dev/null 2>&1",
        ]
    )
    func order(options: String) throws {
        let (app, container) = try container(options)
        #expect(container.image == "docker.io/library/img" && app.exec == ["cmd", "-x"], "\(container)")
        #expect(container.ports == ["8080:80"] && app.environment == ["A": "b"])
    }

    @Test("options have their keys, and the others go to podman")
    func options() throws {
        let (app, container) = try container(
            """
            --restart unless-stopped -m 512m --cpus 1.5 --pids-limit 50 --ulimit nofile=10:20 -u 1:2 -w /w -h box \
            --stop-timeout 7 --stop-signal=SIGINT --read-only --tmpfs /run --shm-size 1g --cap-add NET_ADMIN \
            --cap-drop ALL --security-opt no-new-privileges:true --device /dev/x -l a=b --env-file ./e \
            --mount type=bind,src=./s,dst=/s,readonly --mount type=volume,source=v,target=/v \
            --mount type=image,source=x,target=/i --net shop --network-alias w --pull always --gpus all \
            --entrypoint /e --add-host a:1.2.3.4 --privileged --health-cmd 'curl -f localhost || exit 1' \
            --health-retries=2 -p 192.168.1.5:80:80 -v data:/data:cached img one
            """
        )
        #expect(app.rules.restart == .always)
        #expect(container.user == "1:2" && container.directory == "/w" && container.hostname == "box")
        #expect(container.isReadOnly && container.temporary == ["/run"] && container.sharedMemory == 1 << 30)
        #expect(container.addedCapabilities == ["NET_ADMIN"] && container.droppedCapabilities == ["ALL"])
        #expect(container.security == ["no-new-privileges"] && container.labels == ["a": "b"])
        #expect(container.devices == ["/dev/x", "nvidia.com/gpu=all"] && container.environmentFiles == ["/srv/app/e"])
        #expect(container.volumes == ["/srv/app/s:/s:ro", "v:/v", "data:/data"] && container.pull == .always)
        #expect(container.networks == ["shop:alias=web,alias=w"] && container.entrypoint == ["/e"])
        #expect(
            container.arguments == ["--mount=type=image,source=x,target=/i", "--add-host=a:1.2.3.4", "--privileged"]
        )
        guard case .probe(let probe) = app.ready else { throw Missing() }
        #expect(probe.kind == .http(host: "192.168.1.5", port: 80, path: "/"))
    }

    @Test("shares of the machine, reservations and the quota have their keys")
    func shares() throws {
        let (app, container) = try container(
            """
            --cpu-shares 512 --memory-reservation 64m --oom-score-adj -7 --blkio-weight 1000 --cpu-period 50000 \
            --cpu-quota 25000 --gpus 2 --gpus '"device=GPU-1,3"' -m 1g img
            """
        )
        for state in [AppState.active, .inactive, .background] {
            let profile = try #require(app.resources[state])
            #expect(profile.cpuWeight == 50 && profile.ioWeight == 200 && profile.cpuMaximum == 50_000)
            #expect(profile.memoryLow == 64 << 20 && profile.oomScoreAdjust == -7)
        }
        #expect(app.resources[.suspended]?.cpuWeight == nil && app.memoryLimit == 1 << 30)
        #expect(container.devices == ["0", "1", "GPU-1", "3"].map { "nvidia.com/gpu=" + $0 })
        let none = try self.container("--cpu-shares 0 --cpu-quota -1 --memory-reservation 0 img").app
        #expect(none.resources.isEmpty)
        let found = try imported(
            "docker run --name web --cpuset-cpus 0-1 --cpu-period 9 --cpu-shares x --cpu-quota y img"
        )
        for text in ["--cpuset-cpus is left out: Torpor has no key", "--cpu-shares = \"x\"", "--cpu-quota = \"y\""] {
            #expect(found.remarks("web").contains { $0.contains(text) }, "\(text): \(found.remarks("web"))")
        }
    }

    @Test(
        "ports are podman's: IPv6 in brackets, the first of a range for one port, none with ranges that differ",
        arguments: [
            ("::1:8080:80", "[::1]:8080:80", ""), ("[::1]:8080:80/udp", "[::1]:8080:80/udp", ""),
            ("fd00::2::80", "[fd00::2]::80", ""), ("8000-8002:80-82", "8000-8002:80-82", ""),
            ("8000-8002:80", "8000:80", "podman takes no free one of a range"),
            ("127.0.0.1:8000-8009:80/tcp", "127.0.0.1:8000:80/tcp", "podman takes no free one of a range"),
            ("8000-8002:80-81", "", "ranges of different lengths"), ("8000:80-81", "", "ranges of different lengths"),
        ]
    )
    func ports(given: String, port: String, remark: String) throws {
        let found = try imported("docker run --name web -p '\(given)' -p 1:1 img\n")
        #expect(try found["web"].container?.ports == [port, "1:1"].filter { !$0.isEmpty })
        let isSaid = found.remarks("web").contains { !remark.isEmpty && $0.contains(remark) }
        #expect(isSaid == !remark.isEmpty, "\(found.remarks("web"))")
    }

    @Test("a health check that ends the container becomes health, inside or by HTTP")
    func onFailure() throws {
        let (inside, container) = try container(
            "--health-cmd '/check it' --health-on-failure kill --health-interval 7s --health-retries 2 img"
        )
        #expect(container.health?.probe.kind == .inside(["/bin/sh", "-c", "/check it"]))
        #expect(container.health?.probe.interval == .seconds(7) && container.health?.failures == 2)
        #expect(inside.health == nil && inside.readiness.text.contains("/check it"))
        #expect(inside.rules.launchDeadline == .seconds(74))
        let (outside, _) = try self.container(
            "-p 80:80 --health-cmd 'curl -f localhost' --health-on-failure restart --health-timeout 2s img"
        )
        #expect(outside.health?.probe.kind == .http(host: "127.0.0.1", port: 80, path: "/"))
        #expect(outside.health?.probe.timeout == .seconds(2) && outside.health?.failures == 3)
        #expect(try self.container("--health-cmd x --health-on-failure none img").0.check == nil)
    }

    @Test("a file with several commands, variables and what is no docker run")
    func file() throws {
        let found = try imported(
            """
            #!/bin/sh
            set -e
            DATA="$HOME/my data"
            docker network create shop
            sudo docker run -d --name db \\
              -v "$DATA/db:/db" -v $(pwd)/x:/x -e 'X=$DATA' postgres:${TAG:-16}
            # docker run not this
            docker run --network container:db --volumes-from db --link db:d worker && docker rm x; podman run --name p ghcr.io/p
            docker run $(id) img
            """
        )
        let store = try #require(found["db"].container)
        #expect(
            store.volumes == ["/home/me/my data/db:/db", "/srv/app/x:/x"] && store.image.hasSuffix("postgres:1.27")
        )
        #expect(try found["db"].environment == ["X": "$DATA"])
        let worker = try found["worker"]
        #expect(worker.container?.networks == ["container:db"] && worker.requires == ["db"])
        #expect(worker.container?.arguments == ["--volumes-from=db"])
        #expect(found.remarks("p").contains { $0.contains("‘podman rm --force -- p’") })
        #expect(found.remarks("app").contains { $0.contains("command of a shell") })
        let all = found.result.remarks.map(\.text)
        #expect(
            all.contains { $0.contains("docker network create shop") } && all.contains { $0.contains("docker rm x") }
        )
        #expect(found.apps.count == 3)
    }

    @Test("of several containers of one name, the first is the one that others name")
    func copiedLines() throws {
        let lines = "docker run pg\ndocker run --link pg nginx\n"
        let found = try imported(String(repeating: lines, count: 20))
        #expect(found.apps.count == 40)
        #expect(try found["nginx-20"].requires == ["pg"])
    }

    @Test("a pod and its containers")
    func pod() throws {
        let found = try imported(
            """
            podman pod create --name shop -p 8080:80 --infra-image me/pause --share net
            podman run -d --pod shop --name web -v ./d:/d nginx
            podman run -d --pod=shop --restart=always db
            podman pod create -n other --nmae x
            podman run --pod other img1
            podman run --pod new:it img2
            """
        )
        let shop = try found["shop"]
        #expect(shop.container?.ports == ["8080:80"] && shop.container?.image == "me/pause" && shop.tags == ["shop"])
        #expect(shop.container?.arguments == ["--ipc=shareable"] && shop.rules.restart == .onFailure)
        for name in ["web", "db"] {
            let app = try found[name]
            #expect(app.container?.networks == ["container:torpor-shop"] && app.requires == ["shop"])
            #expect(
                app.container?.arguments == ["--ipc=container:torpor-shop", "--uts=container:torpor-shop"]
                    && app.tags == ["shop"]
            )
        }
        #expect(found.remarks("shop").contains { $0.contains("--share is left out") }, "\(found.remarks("shop"))")
        #expect(found.remarks("shop").contains { $0.contains("‘podman pod rm --force -- shop’") })
        #expect(found.remarks("app").contains { $0.contains("is no option of podman pod create") })
        #expect(found.remarks("img1").contains { $0.contains("\"other\", that no ‘podman pod create’ here makes") })
        #expect(found.remarks("img2").contains { $0.contains("it makes a pod (--pod)") })
    }

    @Test(
        "an option that is none is refused with its column",
        arguments: [
            ("docker run --nmae x img", "did you mean --name? (column 12)"),
            ("docker run -dZ img", "\"-Z\" is no option"),
            ("docker run -d", "it names no image"), ("docker run -p", "--publish has no value"),
            ("docker run --pod x img", "it is in a pod"), ("docker run -e 'A img", "a quote is not closed"),
            ("docker run --read-only=maybe img", "neither true nor false"),
            ("docker run --mount type=bind,src=/a,dst=/b,ro=yes img", "neither true nor false"),
            ("docker run --pid=host img", "pid namespace"), ("docker run --pid host img", "pid namespace"),
            ("podman run --name=--all img", "begins with “-”"), ("docker run img open %u", "the argument %u"),
            ("docker run img %f", "the argument %f"),
        ]
    )
    func refused(text: String, sentence: String) throws {
        let found = try Importer.read("/srv/app/run.sh", as: .dockerRun, in: tree(["run.sh": text]))
        #expect(found.programs[0].obstacle?.contains(sentence) == true, "\(found.programs)")
    }

    @Test(
        "paths begin in the folder that the script has changed to",
        arguments: [
            ("cd sub && docker run --name web -v ./d:/d img", "/srv/app/sub/d:/d"),
            ("cd /data/x\ndocker run --name web -v $(pwd)/d:/d img", "/data/x/d:/d"),
            ("cd \"$(dirname \"$0\")\"; cd sub/..; docker run --name web -v ./d:/d img", "/srv/app/d:/d"),
            ("(cd sub; docker run img)\ndocker run --name web -v ./d:/d img", "/srv/app/d:/d"),
            ("cd sub && mkdir -p x && docker run --name web -v $PWD/d:/d img", "/srv/app/sub/d:/d"),
            ("cd; docker run --name web -v ./d:/d img", "/home/me/d:/d"),
        ]
    )
    func folders(text: String, volume: String) throws {
        #expect(try imported(text)["web"].container?.volumes == [volume])
    }

    @Test(
        "a folder that is not known is told if a path begins in it",
        arguments: ["cd $UNKNOWN_X", "cd -", "a || cd sub"]
    )
    func unknownFolder(text: String) throws {
        let found = try imported(text + "\ndocker run --name web -v ./d:/d img\ndocker run --name db -v /d:/d img")
        #expect(found.apps["web"] == nil && found.apps["db"] != nil)
    }

    @Test("variables of a file that the script sources are known, and exported by set -a")
    func sourced() throws {
        let files = [
            "run.sh": """
            set -a
            source .env
            set +a
            . ./sub/more.sh
            source none.env
            docker run --name web -e PORT -e SECRET -p $PORT:$INNER img:$TAG
            """, ".env": "PORT=81\nTAG=\"2\" # latest\n", "sub/more.sh": "INNER=80\nSECRET=x\nsource sub/more.sh\n",
        ]
        let found = try Imported("run.sh", in: tree(files, variables: ["TAG": "1"]))
        let web = try found["web"]
        #expect(web.container?.image == "docker.io/library/img:2" && web.container?.ports == ["81:80"])
        #expect(web.environment == ["PORT": "81"])
        #expect(found.result.remarks.contains { $0.text.contains("none.env") })
    }

    @Test("hostile text is read in time, and ends in a valid file or a sentence")
    func hostile() throws {
        let many = String(repeating: "-e A\u{301}=\"b\"\u{301} --label 'x'\u{301}=1 -it ", count: 10_000)
        let braces = String(repeating: "${", count: 50_000)
        let quotes = String(repeating: "\"", count: 100_001)
        let texts = [
            "docker run \(many) img", "docker run -v \(String(repeating: "a:", count: 100_000)) img",
            "docker run --name \u{0}x img\u{0} c\u{0}", "docker run \(braces) img",
            "docker run \(quotes) img", "docker run -e 'a\u{301}'\u{301} 'im\u{301}g'",
            String(repeating: "docker run img;", count: 1_000), "docker run \\", "docker run -", "docker run -- ", "$(",
        ]
        for text in texts {
            do throws(ImportError) {
                var result = try Importer.read("/srv/app/run.sh", as: .dockerRun, in: tree(["run.sh": text]))
                result.validate(at: "/srv/app/torpor.toml", system: machine())
                var system = machine()
                let toml = Array(result.toml.utf8)
                system.read = { _ in .success(toml) }
                let read = ConfigurationLoader.load(path: "/srv/app/torpor.toml", environment: [:], system: system)
                #expect(throws: Never.self) { try read.get() }
            } catch {
                #expect(!error.description.isEmpty)
            }
        }
    }

    private struct Missing: Error {}
}
