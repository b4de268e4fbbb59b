// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A container with a systemd that was really booted: scripts/systemd-container. It ends when nobody has it any more, at
/// the latest with the process of the tests.
package final class Container: Machine {
    /// The tree from which containers are booted, where `make test-systemd` made one.
    package static var tree: String? { ProcessInfo.processInfo.environment["TORPOR_SYSTEMD_ROOT"] }

    package let slowness = 1
    private let script: Program
    /// The container's PID 1, as this machine counts.
    private var systemd: pid_t = 0
    private var boots = 0

    package init() throws {
        guard let tree = Container.tree else { throw Trouble("TORPOR_SYSTEMD_ROOT is not set") }
        script = try Program([Sources.path("scripts/systemd-container"), "run", tree])
        try waitForBoot()
    }

    deinit { end() }

    /// Powers it off and waits until nothing of it is left.
    package func end() {
        script.closeInput()
        let limit = Date() + 60
        while script.ended() == nil, Date() < limit { usleep(10_000) }
    }

    package var console: String { "" }

    /// Reboots it in good order, and waits until it has booted.
    package func reboot(within seconds: Double = 90) throws {
        _ = try? run("systemctl --no-block reboot")
        try waitForBoot(within: seconds)
    }

    private func waitForBoot(within seconds: Double = 90) throws {
        let limit = Date() + seconds
        while true {
            // Only whole lines.
            let lines = script.text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
            let ready = lines.filter { $0.hasPrefix("ready ") }
            if ready.count > boots, let line = ready.last {
                boots = ready.count
                guard let pid = pid_t(line.split(separator: " ")[1]) else { throw Trouble("what is \(line)?") }
                systemd = pid
                return
            }
            if let status = script.ended() { throw Trouble("the container ended with \(status): \(script.text)") }
            guard Date() < limit else { throw Trouble("the container did not boot in \(seconds) s: \(script.text)") }
            usleep(10_000)
        }
    }

    package func run(_ script: String, within seconds: Int) throws -> Answer {
        try Program.run(
            ["nsenter", "-t", "\(systemd)", "-a", "env", "-i"] + Shell.environment + ["/bin/sh", "-c", script],
            within: seconds
        )
    }

    /// Puts a file of this machine into it.
    package func put(_ file: String, _ path: String) throws {
        let copy = try Program.run(["cp", file, "/proc/\(systemd)/root\(path)"], within: 30)
        guard copy.ok else { throw Trouble("\(file) cannot be copied: \(copy.output)") }
    }
}

/// What a script has in its environment.
enum Shell {
    static let environment = [
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8",
        "DEBIAN_FRONTEND=noninteractive", "SYSTEMD_PAGER=", "SYSTEMD_COLORS=0",
    ]
}

/// The folder of the sources, from which `make` runs tests.
package enum Sources {
    package static func path(_ name: String) -> String {
        let folder = ProcessInfo.processInfo.environment["TORPOR_SOURCES"] ?? FileManager.default.currentDirectoryPath
        return folder + "/" + name
    }
}
