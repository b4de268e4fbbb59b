// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import TestAddresses
import Testing
import TorporAPI

@Suite("Sockets outlive torpord") struct SocketRecoveryTests {
    private static func toml(_ port: UInt16, _ other: UInt16) -> String {
        """
        [apps.web]
        \(SocketServer.exec)
        launch = "on-demand"
        event_time = "none"
        sockets = [{ stream = "127.0.0.1:\(port)" }]
        [apps.never]
        \(SocketServer.exec)
        launch = "on-demand"
        sockets = [{ stream = "127.0.0.1:\(other)" }]
        """
    }

    @Test("a connection that comes while nobody watches is answered", arguments: Loss.allCases.filter { $0 != .both })
    func loss(_ loss: Loss) throws {
        let (port, other) = (try TestAddress.port(), try TestAddress.port())
        try withRecovery(Self.toml(port, other), files: SocketServer.files, loss: loss) { daemon in
            try daemon.done(.start, "web")
            try daemon.done(.suspend, "web")
            let process = try #require(try daemon.summary("web").pid)
            var waiting: [Descriptor] = []
            try daemon.lose(loss) {
                waiting = [try daemon.connection(port, sending: "a"), try daemon.connection(other, sending: "b")]
            }
            #expect(try daemon.answer(waiting[0]) == SocketAnswer(pid: process, name: "0", text: "a"))
            #expect(try daemon.answer(waiting[1])?.text == "b")
            // And it goes on like that.
            try daemon.done(.suspend, "web")
            #expect(try daemon.answer(daemon.connection(port, sending: "c"))?.pid == process)
        }
    }

    @Test("when the keeper is lost with torpord, the next one takes sockets back from the apps that have them")
    func both() throws {
        let (port, other) = (try TestAddress.port(), try TestAddress.port())
        let toml = Self.toml(port, other).replacingOccurrences(
            of: "127.0.0.1:\(port)\" }",
            with: "127.0.0.1:\(port)\" }, { stream = \"@D/web.sock\" }"
        )
        try withRecovery(toml, files: SocketServer.files, loss: .both) { daemon in
            try daemon.done(.start, "web")
            try daemon.done(.suspend, "web")
            let process = try #require(try daemon.summary("web").pid)
            var waiting: [Descriptor] = []
            try daemon.lose(.both) { waiting = [try daemon.connection(port, sending: "a")] }
            #expect(try daemon.answer(waiting[0])?.pid == process)
            try daemon.done(.suspend, "web")
            #expect(try daemon.ask("stream", daemon.directory + "/web.sock").pid == process)
            // The socket of one that does not run is bound anew.
            #expect(try daemon.answer(daemon.connection(other, sending: "b"))?.text == "b")
            #expect(try !daemon.events().contains { $0.text.contains("cannot listen") })
        }
    }
}
