// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Linux
import Testing
import TorporAPI

@Suite("The file of a Unix socket") struct SocketFileTests {
    private static let toml =
        """
        [apps.web]
        \(SocketServer.exec)
        launch = "on-demand"
        sockets = [{ stream = "@D/far/web.sock" }]

        """ + Apps.sleeper("near", "launch = \"on-demand\"\nsockets = [{ stream = \"@D/other/near.sock\" }]")

    private static func path(_ daemon: Daemon) -> String { daemon.directory + "/far/web.sock" }

    private func expectServed(_ daemon: Daemon) throws {
        let peer = Peer(try Sockets.connect(path: Self.path(daemon)))
        try peer.send("hello")
        #expect(try peer.receive(until: "hello").hasSuffix("hello"))
    }

    @Test("On a disk that hangs it is looked up beside the loop, at an apply and at a launch") func hung() throws {
        let disk = try HangingDisk("/far/", lookups: true)
        defer { disk.remove() }
        try withDaemon(Self.toml, files: SocketServer.files, environment: disk.environment) { daemon in
            try daemon.eventually("it is bound") { File.exists(Self.path(daemon)) }
            try disk.hang()
            try daemon.apply(Self.toml)
            try daemon.eventually("a lookup waits") { disk.waits }
            try daemon.done(.start, "near")
            _ = try daemon.verb(.start, "web") { $0.wait = false }
            try daemon.eventually("its launch waits") { try daemon.summary("web").transition == "launching" }
            try daemon.done(.stop, "near")
            #expect(try daemon.summary("web").pid == nil)
            try disk.answer()
            try daemon.waitFor("web", "active")
            try expectServed(daemon)
        }
    }

    @Test("If it is removed while the app is suspended, health and status say so, and a restart binds the socket again")
    func asleep() throws {
        try withDaemon(Self.toml, files: SocketServer.files) { daemon in
            func health() throws -> (code: Int32, output: String) {
                try Spawn.run([Built.path("torpor"), "health", "--socket", daemon.socket])
            }
            try daemon.done(.start, "web")
            try daemon.done(.suspend, "web")
            // torpord carries out verbs before its start is over, and health says that it is still starting.
            try daemon.eventually("all is well") { try health().code == 0 }
            try File.remove(Self.path(daemon))
            try daemon.eventually("it is missed") {
                let (code, output) = try health()
                return code == 1 && output.contains("web is not reached by clients at \(Self.path(daemon))")
            }
            let status = try daemon.status("web")
            #expect(status.notWokenBy == ["connections to \(Self.path(daemon)) (its file is gone)"])
            try daemon.done(.restart, "web")
            #expect(try health().code == 0)
            try expectServed(daemon)
        }
    }

    @Test("If it is removed while torpord is away, the socket is bound again", arguments: [false, true])
    func away(runs: Bool) throws {
        try withDaemon(Self.toml, files: SocketServer.files) { daemon in
            try daemon.eventually("it is bound") { File.exists(Self.path(daemon)) }
            if runs { try daemon.done(.start, "web") }
            try daemon.lose(.killed) { try File.remove(Self.path(daemon)) }
            try daemon.waitUntilItAnswers()
            if runs {
                // The app may have removed it for a reason of its own: its next launch needs it.
                try daemon.done(.restart, "web")
            } else {
                try daemon.eventually("it is bound again") { File.exists(Self.path(daemon)) }
            }
            try expectServed(daemon)
        }
    }
}
