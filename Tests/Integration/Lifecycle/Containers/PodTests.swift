// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

/// A pod as `torpor import` writes it: an app whose container keeps what the others share, and apps that join it.
@Suite(
    "Containers in a pod",
    .enabled(if: Podman.isThere, "podman, crun and gcc are needed"),
    .enabled(if: Users.isRoot, "cgroup v2 is mounted alone, which only root may")
)
struct PodTests {
    private static let toml = """
        [defaults]
        launch = "on-demand"
        launch_deadline = "1min"
        background_time = "1min"
        event_time = "1min"
        grace = "10s"
        wake_on_connect = true
        tags = ["shop"]
        [apps.pod]
        restart_backoff = { initial = "1ms", limit = 100 }
        [apps.pod.container]
        image = "localhost/small"
        entrypoint = ["/app"]
        ports = ["127.0.0.1:8080:80"]
        args = ["--ipc=shareable"]
        [apps.web]
        exec = ["80"]
        requires = ["pod"]
        restart = "never"
        [apps.web.container]
        image = "localhost/small"
        entrypoint = ["/app"]
        networks = ["container:torpor-pod"]
        args = ["--ipc=container:torpor-pod", "--uts=container:torpor-pod"]

        """

    private static func namespaces(_ pid: Int32) throws -> [String] {
        try ["net", "ipc", "uts"].map {
            try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(pid)/ns/\($0)")
        }
    }

    @Test("They share network, IPC and host name, a request to the pod's port wakes them, and they stop with it")
    func life() throws {
        try withPodman(Self.toml, hasNetwork: true) { daemon, podman throws in
            let started = try daemon.verbs(.start, ["tag:shop"])
            #expect(started.count == 2 && started.allSatisfy(\.ok), "\(started)")
            let (pod, web) = try (ContainerTests.inside(daemon, "pod"), ContainerTests.inside(daemon))
            #expect(try Self.namespaces(web) == Self.namespaces(pod))
            let namespace = try daemon.livingKeeper()
            #expect(try ContainerTests.get(8080, in: namespace, isFirst: true) == "request 1")
            for request in 2...3 {
                try ContainerTests.settle(daemon, web)
                for app in ["web", "pod"] { try daemon.done(.suspend, app) }
                #expect(try ProcFS.stat(pod).state == "T" && ProcFS.stat(web).state == "T")
                #expect(try ContainerTests.get(8080, in: namespace) == "request \(request)")
            }
            try daemon.done(.stop, "pod")
            #expect(try podman.containers(daemon).isEmpty)
        }
    }

    @Test(
        "If the pod's own container is killed, the others come back with it, though torpord is killed then",
        arguments: [[], ["web"], ["web", "pod"]],
        [false, true]
    )
    func killed(asleep: [String], isLost: Bool) throws {
        try withPodman(Self.toml, hasNetwork: true) { daemon, podman throws in
            try daemon.done(.start, "web")
            let (pod, web) = try (ContainerTests.inside(daemon, "pod"), ContainerTests.inside(daemon))
            let namespace = try daemon.livingKeeper()
            #expect(try ContainerTests.get(8080, in: namespace, isFirst: true) == "request 1")
            try ContainerTests.settle(daemon, web)
            for app in asleep { try daemon.done(.suspend, app) }
            kill(pod, SIGKILL)
            if isLost { try daemon.lose(.killed) }
            try daemon.eventually("both run again") {
                ["pod", "web"].allSatisfy { app in
                    guard let summary = try? daemon.summary(app) else { return false }
                    return (summary.incarnation ?? 0) > 1 && summary.transition == nil
                        && ["active", "background"].contains(summary.state)
                }
            }
            #expect(!Truth.isAlive(pod) && !Truth.isAlive(web))
            let events = try daemon.events("web").map(\.text)
            #expect(events.contains { $0.hasPrefix("lost its network with the container of pod, and ") }, "\(events)")
            #expect(try ContainerTests.get(8080, in: namespace, isFirst: true) == "request 1")
            #expect(try podman.containers(daemon).sorted() == ["torpor-pod", "torpor-web"])
            try daemon.done(.stop, "pod")
            #expect(try podman.containers(daemon).isEmpty)
        }
    }
}
