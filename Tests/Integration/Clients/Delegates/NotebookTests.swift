// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

/// Examples/swift-notes under a real supervisor.
struct NotebookTests {
    /// A configuration with the notebook, and how it is spoken to.
    private struct Notebook {
        let port: UInt16
        let toml: String

        init(_ keys: String = "", ready: String = "delegate") throws {
            let listener = try Sockets.listenTCP(address: "127.0.0.1", port: 0)
            port = try listener.withRaw { raw in try Sockets.port(raw) }
            toml = """
                [apps.notes]
                exec = ["\(Built.path("swift-notes"))", "\(port)"]
                launch = "on-demand"
                ready = "\(ready)"
                restart_backoff = { initial = "10ms" }
                \(keys)

                """
        }

        /// A connection with a line sent over it.
        func begin(_ line: String) throws -> Descriptor {
            let connection = try Sockets.connectTCP(address: "127.0.0.1", port: port)
            try Descriptor.setNonBlocking(connection.raw, false)
            _ = try Descriptor.wait(connection.raw, writable: true, timeout: .seconds(60))
            try Descriptor.writeAll(connection.raw, Array((line + "\n").utf8))
            return connection
        }

        /// What comes until it ends with `end`, or a line when there is none.
        func reply(_ connection: Descriptor, until end: String = "\n") throws -> String {
            var text = ""
            while !text.hasSuffix(end) {
                guard try Descriptor.wait(connection.raw, timeout: .seconds(60)),
                    let bytes = try Descriptor.read(connection.raw, maximum: 4096), !bytes.isEmpty
                else { throw Trouble("no reply but \(text)") }
                text += String(decoding: bytes, as: UTF8.self)
            }
            return String(text.dropLast())
        }

        func ask(_ line: String, until end: String = "\n") throws -> String {
            try reply(begin(line), until: end)
        }
    }

    @Test("is ready when its server listens, and has its notes again after a crash")
    func restored() throws {
        let notebook = try Notebook()
        try withDaemon(notebook.toml) { daemon in
            try daemon.done(.start, "notes")
            #expect(try notebook.ask("add buy milk") == "ok 1")
            #expect(try notebook.ask("add call home") == "ok 2")
            try daemon.done(.background, "notes")
            let first = try #require(try daemon.summary("notes").pid)
            kill(first, SIGKILL)
            try daemon.eventually("it is launched again and ready") {
                let summary = try daemon.summary("notes")
                return summary.pid != nil && summary.pid != first && summary.state == "background"
                    && summary.transition == nil
            }
            #expect(try notebook.ask("list", until: "end\n") == "buy milk\ncall home\nend")
        }
    }

    @Test("runs without a supervisor, and ends when it is told to")
    func alone() throws {
        let notebook = try Notebook()
        let folder = try Daemon.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let words = [Built.path("swift-notes"), "\(notebook.port)"]
        let pid = try Spawn.start(words, environment: [:], output: folder + "/out")
        var answer: String?
        let end = Clock.monotonic() + .seconds(60)
        while answer == nil, Clock.monotonic() < end {
            answer = try? notebook.ask("add buy milk")
            if answer == nil { usleep(5_000) }
        }
        #expect(answer == "ok 1")
        kill(pid, SIGTERM)
        var status: Int32 = 0
        while waitpid(pid, &status, WNOHANG) == 0, Clock.monotonic() < end { usleep(2_000) }
        if Clock.monotonic() >= end { kill(pid, SIGKILL) }
        #expect(status == 0)
        #expect(try File.readString(folder + "/out") == "ends (stopped) with 1 notes\n")
    }

    @Test("moves to another supervisor by a pipe, with its notes")
    func moved() throws {
        let (here, there) = (
            try Notebook("activities = [\"org.example.notes\"]"), try Notebook("activities = [\"org.example.notes\"]")
        )
        try withDaemon(here.toml) { first in
            try withDaemon(there.toml) { second in
                try first.done(.start, "notes")
                #expect(try here.ask("add buy milk") == "ok 1")
                #expect(try here.ask("add call home") == "ok 2")
                try first.done(.background, "notes")
                let torpor = Built.path("torpor")
                let (code, output) = try Spawn.run([
                    "/bin/sh", "-c",
                    "\(torpor) activity export notes --socket \(first.socket) "
                        + "| \(torpor) activity continue - --socket \(second.socket)",
                ])
                #expect(code == 0, "\(output)")
                #expect(try second.summary("notes").state == "active")
                #expect(try there.ask("list", until: "end\n") == "buy milk\ncall home\nend")
                #expect(try there.ask("add more") == "ok 3")
            }
        }
    }

    @Test("is launched also where its supervisor waits for less", arguments: ["exec", "notify"])
    func otherReadiness(ready: String) throws {
        let notebook = try Notebook(ready: ready)
        try withDaemon(notebook.toml) { daemon in
            try daemon.done(.start, "notes")
            var answer: String?
            try daemon.eventually("it answers") {
                answer = try? notebook.ask("add buy milk")
                return answer != nil
            }
            #expect(answer == "ok 1")
            try daemon.done(.background, "notes")
            #expect(try daemon.events("notes").contains { $0.text.contains("answered didEnterBackground") })
        }
    }

    @Test("forgets its notes when a person stops it")
    func stopped() throws {
        let notebook = try Notebook()
        try withDaemon(notebook.toml) { daemon in
            try daemon.done(.start, "notes")
            #expect(try notebook.ask("add buy milk") == "ok 1")
            try daemon.done(.background, "notes")
            try daemon.done(.stop, "notes")
            #expect(try daemon.summary("notes").lastExit?.reason == "stopped")
            try daemon.done(.start, "notes")
            #expect(try notebook.ask("count") == "0")
        }
    }

    @Test("comes to the end of an export in the background, also when torpord is killed meanwhile")
    func export() throws {
        let notebook = try Notebook()
        try withRecovery(notebook.toml) { daemon in
            try daemon.done(.start, "notes")
            let pid = try daemon.summary("notes").pid
            for number in 0..<200 { _ = try notebook.ask("add \(number)") }
            let connection = try notebook.begin("export \(daemon.directory)/out")
            try daemon.eventually("it is under way") { File.exists(daemon.directory + "/out.part") }
            try daemon.done(.background, "notes")
            // Something holds it.
            #expect(try !daemon.verb(.suspend, "notes").ok)
            try daemon.lose(.killed)
            #expect(try !daemon.verb(.suspend, "notes").ok)
            #expect(try notebook.reply(connection) == "ok 200")
            try daemon.eventually("nothing holds it any more") { try daemon.verb(.suspend, "notes").ok }
            #expect(try daemon.summary("notes").pid == pid)
        }
    }

    @Test("gives an export up when the time for tasks is nearly over, and lives")
    func overTime() throws {
        let notebook = try Notebook("task_time = \"2s\"\nexpiry_warning = \"1s\"")
        try withDaemon(notebook.toml) { daemon in
            try daemon.done(.start, "notes")
            let pid = try daemon.summary("notes").pid
            for number in 0..<500 { _ = try notebook.ask("add \(number)") }
            let connection = try notebook.begin("export \(daemon.directory)/out")
            try daemon.eventually("it is under way") { File.exists(daemon.directory + "/out.part") }
            try daemon.done(.background, "notes")
            #expect(try notebook.reply(connection).hasPrefix("error: CancellationError"))
            #expect(!File.exists(daemon.directory + "/out.part"))
            try daemon.eventually("nothing holds it any more") { try daemon.verb(.suspend, "notes").ok }
            #expect(try daemon.summary("notes").pid == pid)
            #expect(try daemon.reports("notes").isEmpty)
        }
    }
}
