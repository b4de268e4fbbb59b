// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

/// A delegate that saves in didEnterBackground, as the documentation says, loses nothing that an event made it change.
@Suite("Saving again") struct SavingAgainTests {
    /// Counts what it gets, and saves the count when it enters the background.
    private static let answers = """
        didReceiveEvent=lambda m: (count.append(m), "done")[1], \
        didEnterBackground=lambda m: (d.save(str(len(count)).encode()), "done")[1], \(Delegates.restoring)
        """
    private static let toml =
        Delegates.head + "topics = { \"*\" = \"all\" }\nevent_time = \"200ms\"\n"

    @Test("What it changed after an event woke it is there after its eviction")
    func eviction() throws {
        try withDaemon(Self.toml, files: Delegates.files(Self.answers, before: "count = []")) { daemon in
            try daemon.done(.start, "web")
            try daemon.done(.suspend, "web")
            #expect(try String(contentsOfFile: daemon.archive(), encoding: .utf8) == "0")
            try daemon.post("orders") { $0.urgent = true }
            try daemon.waitForMessage("didEnterBackground", count: 2)
            try daemon.waitFor("web", "suspended")
            #expect(try daemon.messages().suffix(3) == ["resumed", "didReceiveEvent", "didEnterBackground"])
            #expect(try String(contentsOfFile: daemon.archive(), encoding: .utf8) == "1")
            // It was prepared: its eviction is without notice.
            kill(try #require(try daemon.summary("web").pid), SIGKILL)
            try daemon.waitFor("web", "not-running")
            #expect(try daemon.summary("web").lastExit?.reason == "evicted")
            try daemon.done(.start, "web")
            try daemon.waitForRecord("web", "restored 1")
        }
    }

    /// Counts its clients, on a thread of its own.
    private static let serving = """
        import socket
        count = []
        server = socket.create_server(("127.0.0.1", 0))
        def serve():
            while True:
                client, _ = server.accept()
                count.append(client.recv(1))
                client.sendall(b"1")
                client.close()
        threading.Thread(target=serve, daemon=True).start()
        record("port %d" % server.getsockname()[1])
        """

    @Test("So is what it changed for a client in the background; where nothing has happened it is told once")
    func served() throws {
        try withDaemon(Self.toml, files: Delegates.files(Self.answers, before: Self.serving)) { daemon in
            func told() throws -> Int { try daemon.messages().count { $0 == "didEnterBackground" } }
            try daemon.done(.start, "web")
            let port = try daemon.port(of: "web")
            try daemon.done(.background, "web")
            try daemon.done(.suspend, "web")
            #expect(try told() == 1)
            try daemon.done(.foreground, "web")
            try daemon.done(.background, "web")
            #expect(try told() == 2)
            let client = try Peer(port: port)
            try client.send("x")
            _ = try client.receive(until: "1")
            client.close()
            try daemon.done(.suspend, "web")
            #expect(try told() == 3)
            #expect(try String(contentsOfFile: daemon.archive(), encoding: .utf8) == "1")
            kill(try #require(try daemon.summary("web").pid), SIGKILL)
            try daemon.waitFor("web", "not-running")
            try daemon.done(.start, "web")
            try daemon.waitForRecord("web", "restored 1")
        }
    }

    @Test("An event that launches it comes after didEnterBackground, and is saved as well")
    func launch() throws {
        try withDaemon(Self.toml, files: Delegates.files(Self.answers, before: "count = []")) { daemon in
            try daemon.post("orders") { $0.urgent = true }
            try daemon.waitForMessage("didReceiveEvent")
            try daemon.done(.suspend, "web")
            #expect(
                try daemon.messages().suffix(3) == ["didEnterBackground", "didReceiveEvent", "didEnterBackground"]
            )
            #expect(try String(contentsOfFile: daemon.archive(), encoding: .utf8) == "1")
        }
    }

    @Test("An app without a delegate hears its signal again")
    func signal() throws {
        let program = """
            from tp import *
            on("SIGUSR1")
            record("ready")
            wait()
            """
        let toml = """
            [apps.web]
            exec = ["/usr/bin/python3", "-S", "@D/app.py"]
            launch = "on-demand"
            signals = { didEnterBackground = "SIGUSR1" }

            """
        try withDaemon(toml, files: ["app.py": program]) { daemon in
            try daemon.done(.start, "web")
            try daemon.waitForRecord("web", "ready")
            for times in 1...2 {
                try daemon.done(.suspend, "web")
                try daemon.done(.resume, "web")
                try daemon.eventually("it hears it") {
                    daemon.records("web").filter { $0 == "SIGUSR1" }.count == times
                }
            }
        }
    }

    @Test("A call on the connection of Attach is refused, with a sentence for the app and one in the events")
    func wrongConnection() throws {
        let before = """
            def wrong(m):
                d.stream.send("Answer", id=m["id"], result="done")
            """
        try withDaemon(Delegates.head, files: Delegates.files("didBecomeActive=wrong", before: before)) { daemon in
            _ = try daemon.verb(.start, "web")
            try daemon.waitForRecord("web", "Attach WrongConnection")
            let refused = try #require(try daemon.heard().first { $0.error == "WrongConnection" })
            let sentence = "called Answer on the connection of Attach"
            #expect(refused.reply["message"]?.stringValue?.contains(sentence) == true)
            #expect(refused.reply["method"] == "io.torpor.App.Answer")
            try daemon.eventually("an event says so") {
                try daemon.events("web").contains { $0.text.contains(sentence) }
            }
            try daemon.waitFor("web", "active")
        }
    }
}
