// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import KernelFiles
import Linux
import MockLogind
import TestAddresses
import Testing
import TorporAPI
import Varlink

/// What transfers make of the machine's network.
@Suite("Transfers wait for the network") struct NetworkTests {
    /// In a network of its own, in which nothing is up.
    private static let apart = ["/usr/bin/unshare", "-n", "/bin/sh", "-ec", "exec \"$@\"", "sh"]

    private static var obstacle: Comment? {
        guard Users.isRoot else { return "only root can make a network" }
        return File.exists("/usr/sbin/ip") ? nil : "iproute2 is needed"
    }

    private static func infos(_ daemon: Daemon) throws -> [TransferInfo] {
        try Fields(daemon.call(.transfers(TransfersRequest()))).list("transfers") { json throws(FieldError) in
            try TransferInfo(json: json)
        }
    }

    private static func isWaiting(_ cause: String, _ daemon: Daemon) throws -> Bool {
        try infos(daemon).contains { $0.state == "waiting" && $0.cause == cause }
    }

    /// Runs `ip` in the network of a daemon.
    private static func ip(_ words: String, _ daemon: Daemon) throws {
        let command = ["/usr/bin/nsenter", "-t", "\(daemon.pid)", "-n", "/usr/sbin/ip"]
        let (code, output) = try Spawn.run(command + words.split(separator: " ").map(String.init))
        guard code == 0 else { throw Trouble("ip \(words): \(output)") }
    }

    /// Whether anybody in the network of a daemon is told of routes (rtnetlink with groups), by /proc.
    private static func followsRoutes(_ daemon: Daemon) throws -> Bool {
        try File.readString("/proc/\(daemon.pid)/net/netlink").split(separator: "\n").contains { line in
            let words = line.split(separator: " ")
            return words.count > 3 && words[1] == "0" && words[3].contains { $0 != "0" }
        }
    }

    @Test(
        "What has no way to its server is tried again as soon as there is one, not when its time has come",
        .enabled(if: obstacle == nil, obstacle ?? "")
    )
    func way() throws {
        let toml = """
            [supervisor.transfers]
            min_free = "none"
            [apps.server]
            exec = ["/usr/bin/python3", "-S", "@D/server.py", "0.0.0.0", "8080"]
            restart = "never"
            \(Delegates.head)
            """
        var files = Delegates.files()
        files["server.py"] = TransferServer.program
        let daemon = try Daemon(toml, files: files, wrapper: Self.apart)
        try daemon.waitUntilItAnswers()
        try daemon.done(.start, "web")
        _ = try daemon.ask("d.call('StartTransfer', direction='download', url='http://10.77.0.1:8080/one', file='one')")
        try daemon.eventually("it waits for the network") { try Self.isWaiting("network", daemon) }
        let trouble = try Self.infos(daemon).first
        #expect(trouble?.reason == "unreachable", "\(trouble as Any)")
        try daemon.stop()
        // It has failed so often that it is not tried again before nine minutes are over.
        _ = try Sqlite.ask(daemon, "UPDATE transfers SET json = json_set(json, '$.failures', 13)")
        try daemon.startAgain()
        try daemon.waitUntilItAnswers()
        try daemon.eventually("it waits for the network again") {
            guard let info = try Self.infos(daemon).first, info.cause == "network" else { return false }
            return (info.retryAt ?? 0) > Clock.realtimeMicroseconds() + 300_000_000
        }
        let server = try #require(try daemon.summary("server").pid)
        try daemon.eventually("the server listens") {
            // 8080, in the network of the daemon.
            try File.readString("/proc/\(server)/net/tcp").contains("00000000:1F90 00000000:0000 0A")
        }
        #expect(try Self.followsRoutes(daemon))
        // Addresses of the machine itself are no way to another one.
        try Self.ip("link set lo up", daemon)
        try Self.ip("addr add 10.77.0.1/32 dev lo", daemon)
        try daemon.done(.start, "web")
        #expect(try Self.isWaiting("network", daemon))
        try Self.ip("route add unicast 10.78.0.0/24 dev lo", daemon)
        try daemon.eventually("it is there") {
            (try? Data(contentsOf: URL(fileURLWithPath: daemon.directory + "/s/apps/web/one"))) == TransferServer.data
        }
        try daemon.eventually("nobody wants to know of routes") { try !Self.followsRoutes(daemon) }
        try daemon.stop()
    }

    private static let manager = """
        NM = 'org.freedesktop.NetworkManager'
        def start_manager(metered):
            global link
            link = mockobject.DBusMockObject(connection, '/org/freedesktop/NetworkManager', NM, {}, logfile=os.devnull)
            link.AddProperty(NM, 'Metered', dbus.UInt32(metered))
            connection.request_name(NM)
        def metered(value):
            link.UpdateProperties(NM, {'Metered': dbus.UInt32(value)})

        """

    @Test(
        "Discretionary ones wait until the network costs nothing, and are paused while it does",
        .enabled(if: MockLogind.obstacle == nil, "python3-dbusmock and dbus are needed: make deps")
    )
    func metered() throws {
        let mock = try MockLogind { body in try Spawn.lock.withLock { try body() } }
        try mock.run(Self.manager + "start_manager(1)\n")
        let (host, port) = (TestAddress.host, try TestAddress.port())
        let toml = """
            [supervisor.transfers]
            min_free = "none"
            [apps.server]
            exec = ["/usr/bin/python3", "-S", "@D/server.py", "\(host)", "\(port)"]
            ready = { tcp = "\(host):\(port)" }
            restart = "never"
            \(Delegates.head)
            """
        var files = Delegates.files()
        files["server.py"] = TransferServer.program
        // On a machine that is calm, whatever else runs on this one.
        let kernel = try KernelFiles()
        let daemon = try Daemon(
            toml,
            files: files,
            environment: ["DBUS_SYSTEM_BUS_ADDRESS": mock.address, "TORPOR_KERNEL_FILES": kernel.root]
        )
        try withExtendedLifetime(kernel) {
            try daemon.waitUntilItAnswers()
            try daemon.waitFor("server", "active")
            try daemon.done(.start, "web")
            func get(_ name: String, _ more: String = "") throws {
                let url = "http://\(host):\(port)/\(name)"
                _ = try daemon.ask("d.call('StartTransfer', direction='download', url='\(url)', file='\(name)'\(more))")
            }
            func isThere(_ name: String) -> Bool {
                let url = URL(fileURLWithPath: daemon.directory + "/s/apps/web/" + name)
                return (try? Data(contentsOf: url)) == TransferServer.data
            }
            var requests: [String] {
                ((try? File.readString(daemon.directory + "/requests")) ?? "").split(separator: "\n").map(String.init)
            }
            try get("slow", ", discretionary=True")
            try daemon.eventually("it waits") { try Self.isWaiting("metered", daemon) }
            // What somebody waits for does not wait.
            try get("now")
            try daemon.eventually("now is there") { isThere("now") }
            #expect(requests == ["GET /now -"])
            try mock.run("metered(4)")
            try daemon.eventually("half of it came") {
                try Self.infos(daemon).contains { $0.state == "running" && $0.bytes == 1 << 19 }
            }
            try mock.run("metered(3)")
            try daemon.eventually("it is paused") { try Self.isWaiting("metered", daemon) }
            try File.write(daemon.directory + "/go", "")
            try mock.run("metered(2)")
            try daemon.eventually("all of it came") { isThere("slow") }
            #expect(requests == ["GET /now -", "GET /slow -", "GET /slow bytes=\(1 << 19)-"])
            // With `metered = true` it does not matter.
            try mock.run("metered(1)")
            _ = try daemon.apply(toml + "\ntransfers.metered = true\n")
            try get("anyway", ", discretionary=True")
            try daemon.eventually("it came all the same") { isThere("anyway") }
        }
        try daemon.stop()
    }
}
