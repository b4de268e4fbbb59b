// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

/// A launch of a container that is cut off at any moment leaves nothing of it, in podman's records or outside of them.
@Suite(
    "Containers whose launch is cut off",
    .enabled(if: Podman.isThere, "podman, crun and gcc are needed"),
    .enabled(if: Users.isRoot, "cgroup v2 is mounted alone, which only root may")
)
struct PodmanLossTests {
    enum Victim: String, CaseIterable { case app, container, podman, torpord }

    private static let toml = """
        [apps.web]
        exec = ["80"]
        launch = "on-demand"
        launch_deadline = "1min"
        grace = "5s"
        restart = "never"
        [apps.web.container]
        image = "localhost/small"
        entrypoint = ["/app"]
        ports = ["127.0.0.1:8080:80"]

        """
    private static let rounds = 3

    @Test("Whoever is killed in the middle of ‘podman run’, nothing is left of it", arguments: Victim.allCases)
    func cutOff(_ victim: Victim) throws {
        try withPodman(Self.toml, hasNetwork: true) { daemon, podman throws in
            let begin = ContinuousClock.now
            try daemon.done(.start, "web")
            let launch = begin.duration(to: .now)
            try daemon.done(.stop, "web")
            var random = Rounds(seed: 28)
            for round in 0..<Self.rounds {
                _ = try daemon.verb(.start, "web") { $0.wait = false }
                // Any moment of a launch is right, and which one it is does not matter.
                let moment = launch * Double.random(in: 0.1...1.1, using: &random)
                usleep(UInt32(moment / .microseconds(1)))
                try Self.strike(victim, daemon)
                try daemon.eventually("it has come to rest") {
                    guard let summary = try? daemon.summary("web") else { return false }
                    return summary.transition == nil
                }
                if try daemon.summary("web").state != "not-running" { try daemon.done(.stop, "web") }
                let left = try Self.left(daemon, podman)
                #expect(left.isEmpty, "round \(round), \(moment) after the start: \(left)")
            }
            // What was left of a published port would lead to a container that is no more.
            try daemon.done(.start, "web")
            let request = ["/usr/bin/curl"] + ContainerTests.patience + ["http://127.0.0.1:8080/"]
            #expect(try Self.run(request, beside: daemon) == "request 1")
            try daemon.done(.stop, "web")
            #expect(try Self.left(daemon, podman).isEmpty)
        }
    }

    @Test("A container whose removal was cut off is removed, though its bundle is gone already")
    func halfRemoved() throws {
        let folder = try Daemon.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let podman = try Podman(folder)
        let place = folder + "/web/container"
        try File.makeDirectories(place)
        try File.write(place + "/bundle", "/nowhere/bundle\n")
        let script = """
            podman create --name=torpor-web --cidfile='\(place)/id' localhost/small /app >/dev/null
            export TORPOR_EXIT_STATUS=SIGKILL
            '\(Built.path("torpor-container"))' remove '\(place)' >/dev/null
            podman ps --all --format '{{.Names}}'
            """
        #expect(try podman.run(Podman.wrapper(hasNetwork: false) + ["/bin/sh", "-ec", script]) == "")
    }

    /// What netavark (since 1.10) makes of the ports 8080 and 8081 of one container, and 9090 of another.
    private static let table = """
        table inet netavark {
            chain NETAVARK-HOSTPORT-SETMARK { meta mark set meta mark | 0x00002000; }
            chain nv_2f259bab_10_88_0_0_nm16_dnat {
                ip saddr 10.88.0.0/16 ip daddr 127.0.0.1 tcp dport 8080 jump NETAVARK-HOSTPORT-SETMARK
                ip saddr 127.0.0.1 ip daddr 127.0.0.1 tcp dport 8080 jump NETAVARK-HOSTPORT-SETMARK
                ip daddr 127.0.0.1 tcp dport 8080 dnat ip to 10.88.0.9:80
                ip saddr 10.88.0.0/16 tcp dport 8081 jump NETAVARK-HOSTPORT-SETMARK
                tcp dport 8081 dnat ip to 10.88.0.9:81
                ip saddr 10.88.0.0/16 tcp dport 9090 jump NETAVARK-HOSTPORT-SETMARK
                tcp dport 9090 dnat ip to 10.88.0.90:80
            }
            chain NETAVARK-HOSTPORT-DNAT {
                ip daddr 127.0.0.1 tcp dport 8080 jump nv_2f259bab_10_88_0_0_nm16_dnat
                tcp dport 8081 jump nv_2f259bab_10_88_0_0_nm16_dnat
                tcp dport 9090 jump nv_2f259bab_10_88_0_0_nm16_dnat
            }
        }

        """

    @Test(
        "The rules of nftables that a killed podman left go with its namespace, and no others",
        .enabled(if: File.isExecutable("/usr/sbin/nft"), "nft is needed")
    )
    func nftables() throws {
        let folder = try Daemon.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let podman = try Podman(folder)
        try File.makeDirectories(folder + "/web/container")
        try File.write(folder + "/web/container/begun", "torpor-web\n")
        try File.write(folder + "/web/container/namespaces", "")
        try File.write(folder + "/table", Self.table)
        let script = """
            ip netns add netns-left
            ip link add left type veth peer name eth0 netns netns-left
            ip -n netns-left address add 10.88.0.9/16 dev eth0
            nft -f '\(folder)/table'
            '\(Built.path("torpor-container"))' remove '\(folder)/web/container'
            ls /run/netns
            nft list table inet netavark
            """
        let output = try podman.run(Podman.wrapper(hasNetwork: true) + ["/bin/sh", "-ec", script])
        let lines = output.split(separator: "\n").map { $0.drop { " \t".contains($0) } }
        #expect(!lines.contains("netns-left"), "\(output)")
        #expect(
            lines.filter { $0.contains("dport") } == [
                "ip saddr 10.88.0.0/16 tcp dport 9090 jump NETAVARK-HOSTPORT-SETMARK",
                "tcp dport 9090 dnat ip to 10.88.0.90:80",
                "tcp dport 9090 jump nv_2f259bab_10_88_0_0_nm16_dnat",
            ],
            "\(output)"
        )
    }

    private static func strike(_ victim: Victim, _ daemon: Daemon) throws {
        let main = try daemon.summary("web").pid
        switch victim {
        case .app: _ = try daemon.verb(.kill, "web")
        case .container: if let main { kill(main, SIGKILL) }
        case .podman:
            for pid in main.flatMap({ try? ProcFS.children($0) }) ?? []
            where (try? ProcFS.stat(pid).comm) == "podman" {
                kill(pid, SIGKILL)
            }
        case .torpord: try daemon.lose(.killed)
        }
    }

    /// What is there of containers and their networks.
    private static func left(_ daemon: Daemon, _ podman: Podman) throws -> [String] {
        let namespace = try daemon.livingKeeper()
        let known = try podman.podman(["ps", "--all", "--external", "--format={{.Names}} {{.Status}}"], in: namespace)
        let names = try run(["/usr/bin/ls", "/run/netns"], beside: daemon)
        // netavark uses one of the two, as it was built or told.
        let rules = try run(
            ["/bin/sh", "-c", "/usr/sbin/iptables -t nat -S; /usr/sbin/nft list table inet netavark 2>/dev/null || :"],
            beside: daemon
        )
        let mounts = try File.readString("/proc/\(namespace)/mounts")
        let processes = try ProcFS.allPids().filter { pid in
            guard Truth.isAlive(pid), let words = try? ProcFS.cmdline(pid) else { return false }
            // Containers of other tests run the same program beside these, each in a root of its own.
            return words == ["/app", "80"]
                && (try? File.readString("/proc/\(pid)/mountinfo"))?.contains(podman.folder) == true
                || words.first?.hasSuffix("conmon") == true
                    && words.contains {
                        $0.contains(podman.folder)
                    }
        }
        return known.split(separator: "\n").map(String.init) + names.split(separator: "\n").map { "netns \($0)" }
            + rules.split(separator: "\n").filter { $0.contains("8080") && $0.uppercased().contains("DNAT") }
            .map(String.init)
            + mounts.split(separator: "\n").filter { $0.contains(podman.folder + "/graph/overlay-containers/") }
            .map(String.init)
            + processes.map { "process \($0)" }
    }

    private static func run(_ words: [String], beside daemon: Daemon) throws -> String {
        let enter = ["/usr/bin/nsenter", "--target", "\(try daemon.livingKeeper())", "--mount", "--net"]
        let (code, output) = try Spawn.run(enter + words)
        guard code == 0 else { throw Trouble("\(words) ended with \(code): \(output)") }
        return output
    }
}

/// The same numbers in each run.
private struct Rounds: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var z = state
        z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
        z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
        return z ^ (z >> 31)
    }
}
