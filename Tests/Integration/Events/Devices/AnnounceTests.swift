// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import MockLogind
import TestAddresses
import Testing
import TorporAPI

/// Apps that others find: by the real avahi-daemon and avahi-browse, on a bus of their own and in a network of their own.
@Suite(
    "Services of apps on the local network",
    .enabled(if: AvahiTools.obstacle == nil, "needs root, avahi-daemon, avahi-utils and python3-dbusmock")
)
struct AnnounceTests {
    /// avahi-daemon, until this is released.
    private final class Avahi {
        private let pid: Int32
        private let address: String

        init(_ folder: String, _ address: String) throws {
            self.address = address
            try File.write(
                folder + "/avahi.conf",
                """
                [server]
                host-name=tester
                use-ipv6=no
                [publish]
                publish-workstation=no
                [rlimits]

                """
            )
            // The folder is for its pid file, of which a machine has one. Its network has only a loopback device.
            let script =
                "ip link set lo up; mkdir -p /run/avahi-daemon; mount -t tmpfs none /run/avahi-daemon; exec "
                + "/usr/sbin/avahi-daemon --no-drop-root --no-chroot --no-rlimits --no-proc-title -f \(folder)/avahi.conf"
            pid = try Spawn.start(
                ["/usr/bin/unshare", "-n", "-m", "/bin/sh", "-c", script],
                environment: ["DBUS_SYSTEM_BUS_ADDRESS": address],
                output: folder + "/avahi.log"
            )
        }

        deinit {
            kill(pid, SIGKILL)
            waitpid(pid, nil, 0)
        }

        /// What is announced of this type, as `name port text`.
        func found(_ type: String = "_http._tcp") throws -> [String] {
            let words = ["/usr/bin/timeout", "10", "/usr/bin/avahi-browse", "-rtpk", type]
            let output = try Spawn.run(words, environment: ["DBUS_SYSTEM_BUS_ADDRESS": address]).output
            return output.split(separator: "\n").filter { $0.hasPrefix("=") }.map { line in
                let fields = line.split(separator: ";", omittingEmptySubsequences: false).map(String.init)
                guard fields.count > 9 else { return String(line) }
                return "\(fields[3]) \(fields[8]) \(fields[9])"
            }
        }
    }

    private static func toml(_ port: UInt16) -> String {
        Delegates.head + """
            sockets = [{ name = "http", stream = "\(TestAddress.host):\(port)" }]
            announce = [
                { type = "_http._tcp", socket = "http", name = "always", txt = { path = "/" }, while = "always" },
                { type = "_http._tcp", socket = "http", name = "awake", while = "awake" },
                { type = "_http._tcp", port = 7, name = "running" },
            ]

            """
    }

    /// A daemon and avahi-daemon on one bus.
    private func with(_ body: (Daemon, MockLogind, UInt16, String, inout Avahi?) throws -> Void) throws {
        let mock = try MockLogind { body in try Spawn.lock.withLock { try body() } }
        let folder = try Daemon.makeFolder()
        defer { try? File.removeTree(folder) }
        let port = try TestAddress.port()
        var avahi: Avahi? = try Avahi(folder, mock.address)
        try withRecovery(
            Self.toml(port),
            files: Delegates.files(),
            environment: ["DBUS_SYSTEM_BUS_ADDRESS": mock.address]
        ) { daemon in try body(daemon, mock, port, folder, &avahi) }
        avahi = nil
        withExtendedLifetime(mock) {}
    }

    private func wait(
        _ daemon: Daemon,
        _ avahi: Avahi?,
        _ names: String...,
        what: String,
        at location: SourceLocation = #_sourceLocation
    ) throws {
        try daemon.eventually(what, at: location) {
            try avahi?.found().map { $0.split(separator: " ").first.map(String.init) ?? "" }.sorted() == names
        }
    }

    @Test("are announced while the app's state says so, and a connection wakes one that sleeps")
    func states() throws {
        try with { daemon, _, port, _, avahi in
            try wait(daemon, avahi, "always", what: "an app that does not run is found")
            #expect(try avahi?.found() == ["always \(port) \"path=/\""])
            let info = try daemon.status("web").announcements
            #expect(info.map(\.name) == ["always", nil, nil] && info.allSatisfy { $0.trouble == nil }, "\(info)")
            try daemon.done(.start, "web", { $0.background = true })
            try wait(daemon, avahi, "always", "awake", "running", what: "all services of an app that runs are found")
            try daemon.done(.suspend, "web")
            try wait(daemon, avahi, "always", "running", what: "those of a suspended app are found")
            let client = try Sockets.connectTCP(address: TestAddress.host, port: port)
            try daemon.eventually("the connection wakes it") { try daemon.summary("web").state == "background" }
            try wait(daemon, avahi, "always", "awake", "running", what: "it is awake")
            withExtendedLifetime(client) {}
            try daemon.done(.stop, "web")
            try wait(daemon, avahi, what: "nothing of an app is found that a user has stopped")
        }
    }

    @Test("are announced again by another avahi-daemon and another torpord, and withdrawn if torpord is dead")
    func survives() throws {
        try with { daemon, mock, _, folder, avahi in
            try daemon.done(.start, "web", { $0.background = true })
            try wait(daemon, avahi, "always", "awake", "running", what: "all are found")
            avahi = nil
            try daemon.eventually("the status says why nothing is announced") {
                try daemon.status("web").announcements.allSatisfy { $0.trouble == "avahi-daemon does not run" }
            }
            avahi = try Avahi(folder, mock.address)
            try wait(daemon, avahi, "always", "awake", "running", what: "another avahi-daemon announces them")
            try daemon.lose(.killed) {
                try wait(daemon, avahi, what: "Avahi has withdrawn those of a torpord that is dead")
            }
            try wait(daemon, avahi, "always", "awake", "running", what: "the next torpord announces them")
        }
    }

    @Test("get another name if theirs is taken, and leave with the configuration")
    func names() throws {
        try with { daemon, mock, port, folder, avahi in
            try wait(daemon, avahi, "always", what: "it has the name")
            let toml = Self.toml(port)
            func apply(_ change: (String) -> String) throws { try daemon.apply(change(toml)) }
            try apply { $0.replacingOccurrences(of: "name = \"always\"", with: "name = \"other\"") }
            try wait(daemon, avahi, "other", what: "the new name counts at once")
            let program = try Spawn.start(
                ["/usr/bin/avahi-publish", "-s", "always", "_http._tcp", "9"],
                environment: ["DBUS_SYSTEM_BUS_ADDRESS": mock.address],
                output: folder + "/other.log"
            )
            defer {
                kill(program, SIGKILL)
                waitpid(program, nil, 0)
            }
            try wait(daemon, avahi, "always", "other", what: "another program has the old name")
            try apply { $0 }
            try daemon.eventually("it gets another name") {
                try daemon.status("web").announcements.first?.name == "always #2"
            }
            try daemon.eventually("both are found") {
                let found = try avahi?.found() ?? []
                return found.count == 2 && found.contains { $0.hasPrefix("always\\032") && $0.contains(" \(port) ") }
            }
            try apply { $0.replacingOccurrences(of: "[apps.web]", with: "[apps.shop]") }
            try daemon.eventually("an app with another name has the service") {
                try daemon.status("shop").announcements.first?.name == "always #2"
            }
            try apply { _ in "" }
            try wait(daemon, avahi, "always", what: "that of an app that was removed is gone")
        }
    }
}

/// What these tests need.
private enum AvahiTools {
    static let obstacle: String? = {
        guard Users.isRoot else { return "needs root" }
        for program in ["/usr/sbin/avahi-daemon", "/usr/bin/avahi-browse", "/usr/bin/avahi-publish"]
        where !File.isExecutable(program) {
            return program + " is missing"
        }
        return MockLogind.obstacle
    }()
}
