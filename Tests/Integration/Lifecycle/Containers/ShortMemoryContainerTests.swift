// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import KernelFiles
import Linux
import Testing
import TorporAPI

@Suite(
    "Containers when memory is short",
    .enabled(if: Podman.isThere, "podman, crun and gcc are needed"),
    .enabled(if: Users.isRoot, "cgroup v2 is mounted alone, which only root may")
)
struct ShortMemoryContainerTests {
    private static let toml = """
        [defaults]
        background_time = "1min"
        event_time = "1min"
        grace = "1min"
        launch = "on-demand"
        launch_deadline = "1min"
        restart = "never"
        [apps.asleep.container]
        image = "localhost/small"
        entrypoint = ["/app"]
        networks = ["none"]
        [apps.awake.container]
        image = "localhost/small"
        entrypoint = ["/app"]
        networks = ["none"]

        """

    @Test("The one that sleeps is evicted, and nothing of it is left; the one that is awake runs on")
    func evicted() throws {
        let kernel = try KernelFiles()
        try withPodman(Self.toml, environment: ["TORPOR_KERNEL_FILES": kernel.root]) { daemon, podman throws in
            for app in ["asleep", "awake"] { try daemon.done(.start, app) }
            let first = try ContainerTests.inside(daemon, "asleep")
            let other = try ContainerTests.inside(daemon, "awake")
            try daemon.done(.suspend, "asleep")
            kernel.setAvailable(0.03)
            try daemon.eventually("it is evicted") {
                let summary = try daemon.summary("asleep")
                return summary.state == "not-running" && summary.transition == nil
            }
            kernel.setAvailable(0.5)
            #expect(try daemon.summary("asleep").lastExit?.reason == "evicted")
            #expect(!Truth.isAlive(first))
            #expect(try podman.containers(daemon) == ["torpor-awake"])
            #expect(try ContainerTests.inside(daemon, "awake") == other)
            #expect(try daemon.summary("awake").state == "active")
            try daemon.done(.stop, "awake")
            let mounts = try File.readString("/proc/\(daemon.livingKeeper())/mounts")
            #expect(!mounts.contains(podman.folder + "/graph/overlay/"), "\(mounts)")
        }
    }
}
