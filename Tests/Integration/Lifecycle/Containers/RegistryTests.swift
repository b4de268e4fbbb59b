// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import TestAddresses
import Testing
import TorporAPI

/// Debian's docker-registry at a port of this machine, without TLS.
private struct Registry {
    static let program = "/usr/bin/docker-registry"
    private let pid: Int32

    init(_ port: UInt16, _ podman: Podman) throws {
        let folder = podman.folder
        let config = """
            version: 0.1
            log: { level: error }
            storage: { filesystem: { rootdirectory: \(folder)/registry } }
            http: { addr: "127.0.0.1:\(port)" }

            """
        try File.write(folder + "/registry.yml", config)
        try File.write(
            folder + "/registries.conf",
            "[[registry]]\nlocation = \"127.0.0.1:\(port)\"\ninsecure = true\n"
        )
        pid = try Spawn.start(
            [Self.program, "serve", folder + "/registry.yml"],
            environment: [:],
            output: folder + "/registry.log"
        )
    }

    func end() {
        kill(pid, SIGKILL)
        waitpid(pid, nil, 0)
    }
}

@Suite(
    "Images from a registry",
    .enabled(if: Podman.isThere, "podman, crun and gcc are needed"),
    .enabled(if: Users.isRoot, "cgroup v2 is mounted alone, which only root may"),
    .enabled(if: File.isExecutable(Registry.program), "docker-registry is needed")
)
struct RegistryTests {
    private static func toml(_ image: String) -> String {
        """
        [apps.web]
        launch = "on-demand"
        launch_deadline = "1min"
        restart = "never"
        [apps.web.container]
        image = "\(image)"
        entrypoint = ["/app"]
        networks = ["none"]

        """
    }

    private static func start(_ daemon: Daemon) throws -> (code: Int32, output: String) {
        try Spawn.run([Built.path("torpor"), "start", "web"], environment: ["TORPOR_MANAGER_SOCKET": daemon.socket])
    }

    @Test("An image that is not here is pulled, which start and an event say; what fails is a sentence")
    func pulls() throws {
        let port = try TestAddress.port()
        let image = "127.0.0.1:\(port)/small"
        try withPodman(Self.toml(image + ":1")) { daemon, podman throws in
            let registry = try Registry(port, podman)
            defer { registry.end() }
            try podman.run(["/usr/bin/curl"] + ContainerTests.patience + ["http://127.0.0.1:\(port)/v2/"])
            let namespace = try daemon.livingKeeper()
            try podman.podman(["push", "localhost/small", image + ":1"], in: namespace)
            let (code, output) = try Self.start(daemon)
            #expect(code == 0 && output.contains("web is launching: pulling \(image):1"), "\(output)")
            #expect(try daemon.status("web").container?.digest?.hasPrefix("sha256:") == true)
            #expect(try daemon.events("web").map(\.text).contains("is pulling \(image):1"))
            try daemon.done(.stop, "web")

            try daemon.apply(Self.toml(image + ":2"))
            let unknown = try Self.start(daemon).output
            #expect(unknown.contains("could not pull \(image):2: "), "\(unknown)")
            #expect(unknown.contains("manifest unknown"), "\(unknown)")

            // A disk that is full. podman copies no layer that another image has.
            try podman.podman(["rmi", "--all", "--force"], in: namespace)
            let temporary = podman.folder + "/temporary"
            let enter = ["/usr/bin/nsenter", "--target", "\(namespace)", "--mount"]
            try podman.run(enter + ["/bin/mount", "-t", "tmpfs", "-o", "size=16k", "none", temporary])
            try daemon.apply(Self.toml(image + ":1"))
            let full = try Self.start(daemon).output
            #expect(full.contains("could not pull \(image):1: ") && full.contains("no space left on device"), "\(full)")
            #expect(try podman.run(enter + ["/bin/ls", temporary]) == "")
            #expect(try podman.containers(daemon).isEmpty)
            try podman.run(enter + ["/bin/umount", temporary])
        }
    }
}
