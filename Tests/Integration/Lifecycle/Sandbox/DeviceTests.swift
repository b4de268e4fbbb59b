// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Linux
import Testing
import TorporAPI

/// The permissions for devices, in a /dev of the test's own: what is there on a machine differs, and a sandbox goes by
/// paths, so that files can stand for devices.
@Suite(
    "Devices and sandboxes",
    .enabled(if: Confinement.isAvailable() && Users.isRoot, "needs root, and a kernel with Landlock")
) struct DeviceTests {
    /// The nodes that each permission opens. The last ones are opened by none.
    private static let nodes: [(permission: String, names: [String])] = [
        ("camera", ["video0", "video12", "media0", "v4l/by-id/camera"]),
        ("microphone", ["snd/controlC0", "snd/pcmC0D0c"]),
        ("gpu", ["dri/card0", "dri/renderD128", "nvidia0", "nvidiactl", "nvidia-uvm", "kfd"]),
        ("serial", ["ttyS0", "ttyUSB0", "ttyACM0", "ttyAMA0", "serial/by-id/modem"]),
        ("usb", ["bus/usb/001/001", "hidraw0"]),
        ("input", ["input/event0", "input/by-id/keyboard", "uinput"]),
        ("tty", ["tty", "tty1", "console", "ptmx", "pts/0"]),
        ("none", ["sda", "mem", "kmsg", "kvm", "fuse", "loop0", "net/tun", "vhost-net", "shm/other", "ttyx", "vide"]),
    ]

    private static var words: [String] {
        nodes.flatMap(\.names).flatMap { ["read:/dev/\($0)", "write:/dev/\($0)"] }
    }

    private static func app(_ name: String, _ permission: String?) -> String {
        let permissions = permission.map { "\"\($0)\" = { purpose = \"Why\", default = \"allow\" }" } ?? ""
        let keys = "launch = \"on-demand\"\nsandbox = true\n[apps.\(name).permissions]\n\(permissions)"
        return SandboxTests.app(name, words, keys)
    }

    /// Runs the words that follow in a mount namespace whose /dev has these files, and the few devices that are always
    /// open.
    private static var script: String {
        let folders = "snd dri serial/by-id v4l/by-id bus/usb/001 input/by-id pts net shm"
        return """
            mkdir -p @D/dev; mount -t tmpfs -o mode=755 none @D/dev; cd @D/dev
            mkdir -p \(folders); touch \(nodes.flatMap(\.names).joined(separator: " "))
            for name in null zero full random urandom; do touch $name; mount --bind /dev/$name $name; done
            cd /; mount --rbind @D/dev /dev; exec "$@"
            """
    }

    @Test("Each permission opens its devices and no others, with the first version of Landlock too", arguments: [1, 7])
    func table(_ version: Int) throws {
        guard version <= Confinement.version() else {
            return print("skipped: this kernel has Landlock \(Confinement.version()), not \(version)")
        }
        let permissions = Self.nodes.map(\.permission)
        var apps = permissions.map { Self.app($0, $0 == "none" ? nil : $0) }
        apps += [Self.app("reading", "files:/dev:ro"), Self.app("all", "files:/dev")]
        let daemon = try Daemon(
            apps.joined(),
            environment: ["TORPOR_TEST_LANDLOCK": "\(version)"],
            wrapper: ["/usr/bin/unshare", "-m", "/bin/sh", "-ec", Self.script, "sh"]
        )
        try daemon.waitUntilItAnswers()
        for app in permissions + ["reading", "all"] {
            try daemon.done(.start, app)
            let results = try SandboxTests.results(daemon, app)
            #expect(results.count == Self.words.count)
            for (permission, names) in Self.nodes {
                for name in names {
                    let isOpen = app == "all" || (app == permission && permission != "none")
                    #expect(results["read:/dev/\(name)"] == (isOpen || app == "reading" ? 0 : 13), "\(app) \(name)")
                    #expect(results["write:/dev/\(name)"] == (isOpen ? 0 : 13), "\(app) \(name)")
                }
            }
            try daemon.done(.stop, app)
        }
        try daemon.stop()
    }
}
