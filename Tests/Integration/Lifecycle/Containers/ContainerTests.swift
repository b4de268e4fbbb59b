// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import PolicyLibraries
import TestAddresses
import Testing
import TorporAPI

/// Apps that podman runs in containers have the life that every app has, and podman's records are right at each end.
@Suite(
    "Apps in containers",
    .enabled(if: Podman.isThere, "podman, crun and gcc are needed"),
    .enabled(if: Users.isRoot, "cgroup v2 is mounted alone, which only root may")
)
struct ContainerTests {
    private static func toml(
        _ container: String = "networks = [\"none\"]",
        keys: String = "",
        image: String = "localhost/small"
    ) -> String {
        """
        [apps.web]
        environment = { GREETING = "hi  there", PATH = "/nowhere", STORAGE_KEY = "se'cret # x" }
        background_time = "1min"
        event_time = "1min"
        grace = "1min"
        launch = "on-demand"
        \(keys)
        [apps.web.container]
        image = "\(image)"
        args = ["--env=TPTEST"]
        entrypoint = ["/app"]
        \(container)

        """
    }

    /// The first process inside, by /proc.
    static func inside(_ daemon: Daemon, _ app: String = "web") throws -> Int32 {
        try #require(ProcFS.children(conmon(daemon, app)).first)
    }

    private static func conmon(_ daemon: Daemon, _ app: String = "web") throws -> Int32 {
        let main = try #require(daemon.summary(app).pid)
        #expect(try ProcFS.cmdline(main).prefix(3) == ["torpor-container", "follow", "torpor-\(app)"])
        let children = try ProcFS.children(main)
        #expect(try children.count == 1 && ProcFS.stat(children[0]).comm == "conmon")
        return try #require(children.first)
    }

    private static func sockets(_ pid: Int32) throws -> Set<UInt32> {
        let reading = try SocketReading(pid)
        while !reading.read() {}
        return Set(reading.sockets)
    }

    private static func log(_ daemon: Daemon) -> String {
        (try? String(contentsOfFile: daemon.directory + "/l/web.log", encoding: .utf8)) ?? ""
    }

    /// Waits until the program has closed its connection: suspended before that, it is woken to do it.
    static func settle(_ daemon: Daemon, _ first: Int32) throws {
        try daemon.eventually("it waits for connections") { try sockets(first).count == 1 }
    }

    /// Options with which curl asks until somebody listens.
    static let patience = [
        "-s", "--max-time", "60", "--retry", "600", "--retry-connrefused", "--retry-delay", "1", "--retry-max-time",
        "60",
    ]

    /// - Parameter isFirst: nothing says when the program in the container listens after its start: it is asked until then.
    static func get(_ port: UInt16, in namespace: Int32? = nil, isFirst: Bool = false) throws -> String {
        let enter = namespace.map { ["/usr/bin/nsenter", "--target", "\($0)", "--net"] } ?? []
        let patience = isFirst ? patience : ["-sS", "--max-time", "60"]
        let (code, output) = try Spawn.run(enter + ["/usr/bin/curl"] + patience + ["http://127.0.0.1:\(port)/"])
        guard code == 0 else { throw Trouble("curl ended with \(code): \(output)") }
        return output
    }

    @Test("It starts, sleeps with all its processes, answers with what it had in memory, and ends in its own way")
    func life() throws {
        let port = try TestAddress.port()
        let toml = Self.toml("networks = [\"host\"]", keys: "exec = [\"\(port)\"]\nwake_on_connect = true")
        try withPodman(toml) { daemon, podman throws in
            try daemon.done(.start, "web")
            #expect(try podman.containers(daemon) == ["torpor-web"])
            let first = try Self.inside(daemon)
            #expect(try ProcFS.statusField(first, "NSpid")?.hasSuffix("\t1") == true)
            #expect(try Self.get(port, isFirst: true) == "request 1")
            for request in 2...4 {
                try Self.settle(daemon, first)
                try daemon.done(.suspend, "web")
                let all = try daemon.status("web").processes.map(\.pid)
                #expect(all.count == 4, "torpor-container, conmon, the program and its child: \(all)")
                let outside = try [Self.conmon(daemon), #require(daemon.summary("web").pid)]
                for pid in all {
                    let stat = try ProcFS.stat(pid)
                    #expect((stat.state == "T") == !outside.contains(pid), "\(stat)")
                }
                // A request wakes it.
                #expect(try Self.get(port) == "request \(request)")
                #expect(try Self.inside(daemon) == first)
            }
            try daemon.done(.suspend, "web")
            let result = try daemon.done(.stop, "web")
            #expect(result.message?.contains("status 7") == true, "\(result)")
            try daemon.eventually("its log is there") { Self.log(daemon).contains("got TERM") }
            let text = Self.log(daemon)
            #expect(text.contains("greeting hi  there, pid 1, PATH /nowhere, key se'cret # x\n"))
            #expect(text.components(separatedBy: "got TERM").count == 2, "the first process alone hears of it: \(text)")
            #expect(try podman.containers(daemon).isEmpty)
        }
    }

    @Test("It ends by the signal that its image names, or that the configuration does", arguments: [false, true])
    func stopSignal(isWritten: Bool) throws {
        let toml = Self.toml(keys: isWritten ? "stop_signal = \"SIGTERM\"" : "", image: "localhost/quits")
        try withPodman(toml) { daemon, podman throws in
            try daemon.done(.start, "web")
            // Also by a torpord that has not started it.
            try daemon.lose(.killed)
            let result = try daemon.done(.stop, "web")
            #expect(result.message?.contains(isWritten ? "status 7" : "status 0") == true, "\(result)")
            #expect(Self.log(daemon).contains(isWritten ? "got TERM" : "got QUIT"))
            #expect(try podman.containers(daemon).isEmpty)
        }
    }

    @Test("What does not end in time is killed, and podman forgets it; the next launch finds nothing in its way")
    func killed() throws {
        let toml = Self.toml()
            .replacingOccurrences(of: "GREETING", with: "STUBBORN = \"1\", GREETING")
            .replacingOccurrences(of: "grace = \"1min\"", with: "grace = \"10ms\"")
        try withPodman(toml) { daemon, podman throws in
            for _ in 0..<2 {
                try daemon.done(.start, "web")
                let first = try Self.inside(daemon)
                try daemon.done(.stop, "web")
                #expect(!Truth.isAlive(first))
                #expect(try podman.containers(daemon).isEmpty)
                let mounts = try File.readString("/proc/\(daemon.livingKeeper())/mounts")
                #expect(!mounts.contains(podman.folder + "/graph/overlay/"), "\(mounts)")
            }
        }
    }

    @Test(
        "torpord is upgraded, or it, its keeper or both are killed: the container goes on",
        arguments: [Loss.killed, .keeper, .both, .upgraded]
    )
    func lost(_ loss: Loss) throws {
        let port = try TestAddress.port()
        let toml = Self.toml("networks = [\"host\"]", keys: "exec = [\"\(port)\"]\nwake_on_connect = true")
        try withPodman(toml) { daemon, podman throws in
            try daemon.done(.start, "web")
            let first = try Self.inside(daemon)
            #expect(try Self.get(port, isFirst: true) == "request 1")
            try Self.settle(daemon, first)
            try daemon.done(.suspend, "web")
            try daemon.lose(loss)
            #expect(try ProcFS.stat(first).state == "T")
            #expect(try Self.get(port) == "request 2")
            #expect(try Self.inside(daemon) == first)
            #expect(try podman.containers(daemon) == ["torpor-web"])
        }
    }

    @Test("A container that somebody kills is launched again, and one whose conmon dies too")
    func crashed() throws {
        let toml = Self.toml(keys: "restart = \"always\"\nrestart_backoff = { initial = \"1ms\", limit = 100 }")
        try withPodman(toml) { daemon, podman throws in
            try daemon.done(.start, "web")
            for round in 0..<3 {
                let first = try Self.inside(daemon)
                let main = try #require(daemon.summary("web").pid)
                switch round {
                case 0: kill(first, SIGKILL)
                case 1: try podman.podman(["kill", "torpor-web"], in: daemon.livingKeeper())
                default: kill(try Self.conmon(daemon), SIGKILL)
                }
                try daemon.eventually("another one runs") {
                    let summary = try daemon.summary("web")
                    return summary.state == "active" && summary.transition == nil && summary.pid != main
                }
                #expect(!Truth.isAlive(first), "round \(round)")
                #expect(try podman.containers(daemon) == ["torpor-web"])
            }
            try daemon.done(.stop, "web")
        }
    }

    @Test("Killed in its sleep it is evicted: its published port stays, and a connection brings it back")
    func evicted() throws {
        let keys = "exec = [\"80\"]\nwake_on_connect = true\nrestart = \"never\""
        try withPodman(Self.toml("ports = [\"127.0.0.1:8080:80\"]", keys: keys), hasNetwork: true) { daemon, podman in
            try daemon.done(.start, "web")
            let namespace = try daemon.livingKeeper()
            #expect(try Self.get(8080, in: namespace, isFirst: true) == "request 1")
            for round in 0..<3 {
                let first = try Self.inside(daemon)
                try Self.settle(daemon, first)
                try daemon.done(.suspend, "web")
                if round == 2 { try daemon.lose(.killed) }
                let reserved = try Self.sockets(Self.conmon(daemon))
                try daemon.eventually("torpord holds the port, too") {
                    try ProcFS.children(daemon.livingKeeper()).contains {
                        try ProcFS.stat($0).comm == "torpord" && !Self.sockets($0).isDisjoint(with: reserved)
                    }
                }
                if round == 0 {
                    try podman.podman(["kill", "torpor-web"], in: daemon.livingKeeper())
                } else {
                    kill(first, SIGKILL)
                }
                try daemon.eventually("it is gone") {
                    let summary = try daemon.summary("web")
                    return summary.state == "not-running" && summary.transition == nil
                }
                #expect(try daemon.summary("web").lastExit?.reason == "evicted")
                #expect(try podman.containers(daemon).isEmpty)
                // The connection itself is reset when the launch needs the port.
                _ = try? Self.get(8080, in: namespace)
                try daemon.waitFor("web", "background")
                #expect(try Self.get(8080, in: namespace, isFirst: true) == "request 1")
            }
        }
    }

    @Test(
        "When it ends in its sleep, podman cleans up with the share of an active app, under any torpord",
        arguments: [false, true]
    )
    func cleansUp(isLost: Bool) throws {
        try withPodman(Self.toml(keys: "restart = \"never\"")) { daemon, podman throws in
            try daemon.done(.start, "web")
            let (first, conmon) = try (Self.inside(daemon), Self.conmon(daemon))
            guard ProcFS.autogroupObstacle(conmon) == nil else { return print("skipped: no autogroups here") }
            try daemon.done(.suspend, "web")
            try daemon.eventually("it has a sleeping app's share") { try ProcFS.autogroupNice(conmon) == 19 }
            // conmon starts podman in its own session, which has the share.
            kill(conmon, SIGSTOP)
            kill(first, SIGKILL)
            if isLost { try daemon.lose(.killed) }
            try daemon.eventually("it has an active app's share") { try ProcFS.autogroupNice(conmon) == 0 }
            kill(conmon, SIGCONT)
            try daemon.eventually("it is gone") { try daemon.summary("web").state == "not-running" }
            #expect(try daemon.summary("web").lastExit?.reason == "evicted")
            #expect(try podman.containers(daemon).isEmpty)
        }
    }

    @Test(
        "A first process that does not handle the stop signal costs no time: the others get it, and then it is killed"
    )
    func deaf() throws {
        for hasOthers in [false, true] {
            let toml = Self.toml().replacingOccurrences(
                of: "GREETING",
                with: "DEAF = \"\(hasOthers ? 2 : 1)\", GREETING"
            )
            try withPodman(toml) { daemon, podman throws in
                try daemon.done(.start, "web")
                try daemon.eventually("it runs") { Self.log(daemon).contains("greeting") }
                let result = try daemon.done(.stop, "web")
                #expect(result.message?.contains("after its grace") != true, "\(result)")
                #expect(Self.log(daemon).contains("got TERM") == hasOthers)
                let events = try daemon.events().map(\.text)
                #expect(events.contains { $0.hasPrefix("killed the first process inside") } == !hasOthers, "\(events)")
                #expect(try podman.containers(daemon).isEmpty)
            }
        }
    }

    @Test("What ends at once is known by its exit status; a MAINPID from inside means nothing")
    func brief() throws {
        let toml = Self.toml(keys: "restart = \"never\"\ntype = \"oneshot\"")
            .replacingOccurrences(of: "GREETING", with: "ENDS = \"3\", GREETING")
        try withPodman(toml) { daemon, podman throws in
            for _ in 0..<3 {
                let result = try daemon.verb(.start, "web")
                #expect(!result.ok && result.message?.contains("status 3") == true, "\(result)")
                #expect(try podman.containers(daemon).isEmpty)
            }
            #expect(try !daemon.events().contains { $0.text.contains("as its main process") })
        }
    }

    @Test("It is asked for its health by a command inside: ready by it, and ended when it fails too often")
    func health() throws {
        let toml = Self.toml(
            "networks = [\"none\"]\nhealth = { command = [\"/app\", \"check\"], interval = \"20ms\", timeout = \"1min\", failures = 2 }",
            keys: "restart = \"always\"\nrestart_backoff = { initial = \"1ms\", limit = 100 }"
        )
        // The first process of a container ignores signals that it does not handle, such as the watchdog's.
        .replacingOccurrences(of: "grace = \"1min\"", with: "grace = \"10ms\"")
        try withPodman(toml) { daemon, podman throws in
            try daemon.done(.start, "web")
            let status = try daemon.status("web")
            #expect(status.health?.check == "command in the container: /app check, every 20ms")
            #expect(status.container?.name == "torpor-web")
            #expect(status.container?.digest?.utf8.count == 71)
            let digest = try podman.podman(["image", "inspect", "--format={{.Digest}}", "localhost/small"])
            #expect(digest == (status.container?.digest ?? "") + "\n")
            let first = try Self.inside(daemon)
            kill(first, SIGHUP)
            try daemon.eventually("another one runs") {
                let summary = try daemon.summary("web")
                return summary.state == "active" && summary.transition == nil && summary.incarnation == 2
            }
            #expect(!Truth.isAlive(first))
            #expect(try daemon.events().contains { $0.text.contains("failed its health check 2 times in a row") })
        }
    }

    @Test("A check inside that hangs is ended with all that it started, before the next one")
    func hanging() throws {
        let mark = UUID().uuidString
        let toml = Self.toml(
            "networks = [\"none\"]\nhealth = { command = [\"/app\", \"hang\", \"\(mark)\"], interval = \"10ms\", "
                + "timeout = \"4s\", failures = 1000 }",
            keys: "ready = \"exec\""
        )
        func left() -> [Int32] {
            ((try? ProcFS.allPids()) ?? []).filter {
                (try? ProcFS.cmdline($0)) == ["/app", "hang", mark] && Truth.isAlive($0)
            }
        }
        try withPodman(toml) { daemon, _ in
            try daemon.done(.start, "web")
            try daemon.eventually("a check hangs") { left().count == 2 }
            let those = left()
            try daemon.eventually("it is ended") { those.allSatisfy { !Truth.isAlive($0) } }
            try daemon.eventually("another one hangs") { left().count == 2 }
            try daemon.done(.stop, "web")
            try daemon.eventually("nothing is left") { left().isEmpty }
        }
    }

    @Test("What podman refuses fails the launch with podman's sentence")
    func refused() throws {
        let toml = Self.toml("networks = [\"none\"]\nvolumes = [\"/nowhere/at/all:/x\"]", keys: "restart = \"never\"")
        try withPodman(toml) { daemon, podman throws in
            let result = try daemon.verb(.start, "web")
            #expect(
                !result.ok && result.message?.contains("could not be started by podman: ") == true
                    && result.message?.contains("/nowhere/at/all") == true,
                "\(result)"
            )
            #expect(try podman.containers(daemon).isEmpty)
        }
    }

    @Test("A stop during a pull ends it, and leaves none of its files")
    func stopsPull() throws {
        let port = try TestAddress.port()
        let listener = try Sockets.listenTCP(address: "127.0.0.1", port: port)
        let toml = Self.toml(keys: "restart = \"never\"", image: "127.0.0.1:\(port)/missing:latest")
        try withPodman(toml) { daemon, podman throws in
            for isKilled in [false, true] {
                _ = try daemon.verb(.start, "web") { $0.wait = false }
                try daemon.eventually("it pulls") { try daemon.summary("web").status?.hasPrefix("pulling") == true }
                if isKilled { kill(try #require(daemon.summary("web").pid), SIGKILL) }
                try daemon.done(.stop, "web")
                #expect(try FileManager.default.contentsOfDirectory(atPath: podman.folder + "/temporary").isEmpty)
            }
        }
        withExtendedLifetime(listener) {}
    }

    @Test("Its sockets are given to it, a connection launches it, and READY=1 from inside counts")
    func passed() throws {
        let port = try TestAddress.port()
        let keys = "ready = \"notify\"\nsockets = [{ stream = \"127.0.0.1:\(port)\", name = \"web\" }]\n"
        let toml = Self.toml(keys: keys).replacingOccurrences(of: "GREETING", with: "READY = \"1\", GREETING")
        try withPodman(toml) { daemon, _ throws in
            #expect(try Self.get(port, isFirst: true) == "request 1")
            try daemon.waitFor("web", "background")
            #expect(try daemon.summary("web").status == "inside")
            try daemon.done(.suspend, "web")
            #expect(try Self.get(port) == "request 2")
        }
    }

    @Test(
        "A request to a published port wakes it, though its network is another, and where sockets cannot be copied",
        arguments: [true, false]
    )
    func published(mayCopySockets: Bool) throws {
        let toml = Self.toml(
            "ports = [\"127.0.0.1:8080:80\"]",
            keys: "exec = [\"80\"]\nwake_on_connect = true"
        )
        try withPodman(toml, hasNetwork: true, mayCopySockets: mayCopySockets) { daemon, _ throws in
            try daemon.done(.start, "web")
            let first = try Self.inside(daemon)
            let namespace = try daemon.livingKeeper()
            #expect(try Self.get(8080, in: namespace, isFirst: true) == "request 1")
            for request in 2...3 {
                try Self.settle(daemon, first)
                try daemon.done(.suspend, "web")
                #expect(try ProcFS.stat(first).state == "T")
                #expect(try Self.get(8080, in: namespace) == "request \(request)")
            }
            #expect(daemon.log.contains("polled twice a second") == !mayCopySockets)
        }
    }

    @Test("The Server policy sends it to sleep when its own network has no connection, and not before")
    func idle() throws {
        let folder = try Libraries.makeFolder("shipped")
        try copyProgram(Built.path("libServerPolicy.so"), to: folder + "/libServerPolicy.so")
        let app =
            Self.toml("ports = [\"127.0.0.1:8080:80\"]", keys: "exec = [\"80\"]\nwake_on_connect = true")
            .replacingOccurrences(of: "background_time = \"1min\"", with: "background_time = \"10ms\"")
            .replacingOccurrences(of: "event_time = \"1min\"", with: "event_time = \"10ms\"")
        let options = "options = { idle_after = \"1s\", idle_cpu = \"100%\" }"
        let policy = "path = \"\(folder)/libServerPolicy.so\"\ndeadline = \"5s\"\n\(options)"
        try withPodman(Governed.toml([("server", policy)], apps: app), hasNetwork: true) { daemon, _ throws in
            try daemon.done(.start, "web")
            let namespace = try daemon.livingKeeper()
            #expect(try Self.get(8080, in: namespace, isFirst: true) == "request 1")
            let first = try Self.inside(daemon)
            try daemon.eventually("it sleeps") { try ProcFS.stat(first).state == "T" }
            #expect(try Self.get(8080, in: namespace) == "request 2")
            try daemon.eventually("it sleeps again") { try ProcFS.stat(first).state == "T" }
        }
    }

    @Test(
        "An image that is not there, cannot be pulled, or comes too slowly: a sentence, and no launch deadline counts"
    )
    func pulls() throws {
        let port = try TestAddress.port()
        let listener = try Sockets.listenTCP(address: "127.0.0.1", port: port)
        func toml(_ image: String, _ keys: String, deadline: String = "1min") -> String {
            Self.toml(keys, keys: "launch_deadline = \"\(deadline)\"\nrestart = \"never\"", image: image)
        }
        try withPodman(toml("localhost/missing", "pull = \"never\"\nnetworks = [\"none\"]")) { daemon, podman throws in
            func refused(_ sentence: String) throws {
                let result = try daemon.verb(.start, "web")
                #expect(!result.ok && result.message?.contains(sentence) == true, "\(result)")
                #expect(try podman.containers(daemon).isEmpty)
            }
            try refused("web has no image localhost/missing here, and pull = \"never\"")
            let closed = "127.0.0.1:1/missing:latest"
            try daemon.apply(toml(closed, ""))
            try refused("web could not pull \(closed): ")
            // Nobody accepts there: the pull takes longer than a launch may.
            let slow = "127.0.0.1:\(port)/missing:latest"
            try daemon.apply(toml(slow, "pull_timeout = \"8s\"\nnetworks = [\"none\"]", deadline: "5s"))
            try refused("web could not pull \(slow) within 8 s (container.pull_timeout)")
            try daemon.apply(toml("localhost/small", "pull = \"newer\"\nnetworks = [\"none\"]"))
            try daemon.done(.start, "web")
        }
        withExtendedLifetime(listener) {}
    }

    @Test("Without cgroups no container is started, in a sentence")
    func withoutCgroups() throws {
        try withRecovery(Self.toml(), environment: ["TPNOCGROUPS": "1"]) { daemon throws in
            let result = try daemon.verb(.start, "web")
            #expect(!result.ok && result.message?.contains("needs a cgroup of its own") == true, "\(result)")
        }
    }

    @Test("Another's container of the same name is left alone; one's own of before is replaced")
    func names() throws {
        try withPodman(Self.toml("name = \"mine\"\nnetworks = [\"none\"]", keys: "restart = \"never\"")) {
            daemon,
            podman throws in
            let namespace = try daemon.livingKeeper()
            try podman.podman(["create", "--name=mine", "localhost/small", "/app"], in: namespace)
            let result = try daemon.verb(.start, "web")
            #expect(
                !result.ok && result.message?.contains("web cannot be named mine, as another container is") == true,
                "\(result)"
            )
            #expect(try podman.containers(daemon) == ["mine"])
            try podman.podman(["rm", "mine"], in: namespace)
            // As a crash of the machine leaves it.
            let label = "--label=io.torpor.app=\(daemon.directory)/r/apps/web"
            try podman.podman(["create", "--name=mine", label, "localhost/small", "/app"], in: namespace)
            try daemon.done(.start, "web")
            #expect(try podman.containers(daemon) == ["mine"])
        }
    }
}
