// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import TestAddresses
import Testing
import TorporAPI

/// Browsers that wait for an app are told so, by a process without rights; the app has every connection that it accepts.
@Suite("Holding pages") struct HoldingTests {
    /// Comes up when it is told, and answers with its number.
    private static let program = """
        import http.server, os, socket
        from tp import *
        class Page(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = b"the app %d" % os.getpid()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            def address_string(self):
                return "-"
        on("SIGTERM", lambda: os._exit(0))
        record("up")
        await_file("enough")
        server = http.server.ThreadingHTTPServer(("", 0), Page, bind_and_activate=False)
        server.socket = socket.socket(fileno=3)
        notify("READY=1")
        server.serve_forever()
        """

    private static func toml(_ port: UInt16, holding: String = "true", ready: String = "notify") -> String {
        """
        [apps.web]
        exec = ["/usr/bin/python3", "-S", "@D/app.py"]
        title = "Shop & <more>"
        launch = "on-demand"
        ready = "\(ready)"
        launch_deadline = "none"
        background_time = "1min"
        event_time = "1min"
        sockets = [{ stream = "127.0.0.1:\(port)", holding = \(holding), holding_after = "300ms" }]

        """
    }

    private static func get(_ port: UInt16, _ words: [String] = ["-H", "Accept: text/html,*/*;q=0.8"]) throws -> String
    {
        let (code, output) = try Spawn.run(
            ["/usr/bin/curl", "-sS", "-i", "--max-time", "30"] + words + ["http://127.0.0.1:\(port)/a?b"]
        )
        guard code == 0 else { throw Trouble("curl ended with \(code): \(output)") }
        return output
    }

    private static func helper(_ daemon: Daemon) throws -> Int32? {
        try ProcFS.children(daemon.livingKeeper()).first {
            (try? ProcFS.cmdline($0).first)?.contains("torpor-holding") ?? false
        }
    }

    @Test(
        "A browser gets a page that goes on by itself, others a 503, until the app answers",
        arguments: ["notify", "exec"]
    )
    func page(_ ready: String) throws {
        let port = try TestAddress.port()
        try withDaemon(Self.toml(port, ready: ready), files: ["app.py": Self.program]) { daemon in
            let page = try Self.get(port)
            for part in [
                "HTTP/1.1 503 ", "Retry-After: 2\r\n", "Refresh: 2\r\n", "Cache-Control: no-store\r\n",
                "Content-Security-Policy: default-src 'none'", "<title>Shop &amp; &lt;more&gt; is starting</title>",
            ] { #expect(page.contains(part), "\(part) in \(page)") }
            #expect(!page.contains("@SECONDS@") && !page.contains("<img"))
            let other = try Self.get(port, ["-d", "text"])
            #expect(
                other.hasPrefix("HTTP/1.1 503 ") && other.contains("Content-Length: 0\r\n")
                    && !other.contains("Refresh")
            )
            try File.write(daemon.directory + "/enough", "")
            try daemon.eventually("the app answers") { try Self.get(port).contains("the app ") }
            // Until it has seen the app accept one, torpor-holding answers what waits longer on a busy machine.
            try daemon.eventually("torpor-holding ends") {
                _ = try Self.get(port)
                return try Self.helper(daemon) == nil
            }
            for _ in 0..<20 { #expect(try Self.get(port).contains("HTTP/1.0 200 ")) }
        }
    }

    @Test("Its process has no rights, and is nobody's where the supervisor is root")
    func confined() throws {
        let port = try TestAddress.port()
        try withDaemon(Self.toml(port), files: ["app.py": Self.program]) { daemon in
            _ = try Self.get(port)
            let pid = try #require(try Self.helper(daemon), "\(daemon.log)")
            let status = try File.readString("/proc/\(pid)/status")
            #expect(status.contains("Seccomp:\t2"))
            #expect(status.contains("NoNewPrivs:\t1"))
            if Users.isRoot { #expect(status.contains("Uid:\t65534\t65534\t65534\t65534")) }
            // A supervisor that dies takes it along, and the next one begins another.
            try daemon.killTorpord()
            try daemon.waitUntilItAnswers()
            try daemon.eventually("it is gone") { !File.exists("/proc/\(pid)") || (try? ProcFS.stat(pid).state) == "Z" }
            #expect(try Self.get(port).contains("503"))
            try daemon.done(.stop, "web")
            try daemon.eventually("it ends with the launch") { try Self.helper(daemon) == nil }
        }
    }

    /// Answers one connection after the other, the first when it is told.
    private static let busy = """
        import os, socket
        from tp import *
        on("SIGTERM", lambda: os._exit(0))
        listening = socket.socket(fileno=3)
        for number in range(9):
            client, _ = listening.accept()
            record("accepted")
            if number == 0:
                await_file("go")
            client.recv(4096)
            client.sendall(b"HTTP/1.1 200 OK\\r\\nConnection: close\\r\\nContent-Length: 2\\r\\n\\r\\nok")
            client.close()
        """

    @Test("An app that has accepted a connection and is busy with it is not spoken for", arguments: ["tcp", "unix"])
    func busyApp(_ family: String) throws {
        let port = try TestAddress.port()
        var toml = Self.toml(port, ready: "exec")
        if family == "unix" {
            toml = toml.replacingOccurrences(of: "127.0.0.1:\(port)", with: "@D/web.sock")
        }
        try withDaemon(toml, files: ["app.py": Self.busy]) { daemon in
            let words = family == "unix" ? ["--unix-socket", daemon.directory + "/web.sock"] : []
            let answers = Monitor<[String]>([])
            func ask() {
                Thread.detachNewThread {
                    let answer = (try? Self.get(port, words + ["-H", "Accept: text/html"])) ?? "none"
                    answers.withLock { $0.append(answer) }
                }
            }
            var asked = 0
            // Where the app takes its time, torpor-holding answers, and another one has to come.
            try daemon.eventually("the app has one") {
                if answers.withLock({ $0.count }) == asked {
                    ask()
                    asked += 1
                }
                return daemon.records("web").contains("accepted")
            }
            answers.withLock { $0 = [] }
            ask()
            ask()
            // Five times as long as torpor-holding would let them wait: on a machine where it comes later still, the fault
            // is not seen, and nothing fails for it.
            ThisProcess.sleep(.milliseconds(1_500))
            #expect(answers.withLock { $0 } == [])
            try File.write(daemon.directory + "/go", "")
            try daemon.eventually("all are answered") { answers.withLock { $0.count } == 3 }
            for answer in answers.withLock({ $0 }) { #expect(answer.hasPrefix("HTTP/1.1 200 "), "\(answer)") }
        }
    }

    @Test("What the app showed last is behind it, where that is wanted")
    func snapshot() throws {
        let port = try TestAddress.port()
        let toml = Self.toml(port, holding: "\"snapshot\"")
            .replacingOccurrences(
                of: "launch_deadline",
                with: "snapshot = { file = \"@D/shot.png\" }\nicon = \"@D/i.svg\"\nlaunch_deadline"
            )
        let png: [UInt8] = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a] + Array(repeating: 7, count: 3_000)
        try withDaemon(toml, files: ["app.py": Self.program, "enough": ""]) { daemon in
            try File.replace(daemon.directory + "/shot.png", png)
            try File.write(daemon.directory + "/i.svg", "<svg/>")
            try daemon.done(.start, "web")
            try daemon.done(.background, "web")
            try daemon.eventually("its snapshot is there") { try daemon.status("web").snapshot != nil }
            try daemon.done(.restart, "web")
            try daemon.done(.background, "web")
            kill(try #require(try daemon.summary("web").pid), SIGTERM)
            try daemon.waitFor("web", "not-running")
            try File.remove(daemon.directory + "/enough")
            let page = try Self.get(port)
            #expect(
                page.contains("<img class=\"last\" src=\"data:image/png;base64,iVBORw0KGgoHBwcH"),
                "\(page.prefix(2_000))"
            )
            #expect(page.contains("<img class=\"icon\" src=\"data:image/svg+xml;base64,PHN2Zy8+"))
        }
    }

    @Test("No request is lost or answered twice when the app comes up while they wait")
    func none() throws {
        let port = try TestAddress.port()
        try withDaemon(Self.toml(port), files: ["app.py": Self.program]) { daemon in
            for round in 0..<10 {
                try? File.remove(daemon.directory + "/enough")
                let path = daemon.directory
                let answers = Monitor<[String]>([])
                let delay = UInt32(round * 60_000)
                DispatchQueue.concurrentPerform(iterations: 9) { index in
                    if index == 0 {
                        usleep(delay)
                        try? File.write(path + "/enough", "")
                    } else {
                        let answer = (try? Self.get(port)) ?? "none"
                        answers.withLock { $0.append(answer) }
                    }
                }
                for answer in answers.withLock({ $0 }) {
                    #expect(
                        answer.hasPrefix("HTTP/1.1 503 ") || answer.contains("the app "),
                        "round \(round): \(answer)"
                    )
                }
                try daemon.eventually("the app answers") { try Self.get(port).contains("the app ") }
                kill(try #require(try daemon.summary("web").pid), SIGTERM)
                try daemon.waitFor("web", "not-running")
            }
        }
    }
}
