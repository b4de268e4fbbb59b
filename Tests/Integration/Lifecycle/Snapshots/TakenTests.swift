// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import TestAddresses
import Testing
import TorporAPI
import Varlink

@Suite("Snapshots that the supervisor takes") struct TakenTests {
    @Test("A command's output, taken before the app is stopped, as its user and in its folder")
    func command() throws {
        let script =
            "touch began; until [ -e go ]; do sleep 0.02; done; "
            + "echo $TORPOR_APP $(pwd) $(cut -d' ' -f3 /proc/$(cat pid)/stat)"
        let toml = Pictured.head + "directory = \"@D\"\n" + Pictured.shell(script)
        try withDaemon(toml) { daemon in
            try daemon.waitFor("web", "active")
            let pid = try #require(try daemon.summary("web").pid)
            try File.write(daemon.directory + "/pid", "\(pid)")
            try daemon.done(.suspend, "web") { $0.wait = false }
            try daemon.eventually("the command runs") { File.exists(daemon.directory + "/began") }
            // It has entered the background, and waits there.
            #expect(try daemon.summary("web").state == "background" && !Truth.isStopped(pid))
            #expect(try daemon.status("web").snapshot == nil)
            try File.write(daemon.directory + "/go", "")
            try daemon.waitFor("web", "suspended")
            #expect(Truth.isStopped(pid))
            try daemon.waitForSnapshot("web \(daemon.directory) S\n")
            let status = try #require(try daemon.status("web").snapshot)
            #expect(status.kind == .text && status.incarnation == 1)
            #expect(abs(status.at - Clock.realtimeMicroseconds()) < 60_000_000)
            #expect(daemon.snapshotFiles() == ["1.text"])
            let log = try Spawn.run([Built.path("torpor"), "logs", "web", "--socket", daemon.socket]).output
            #expect(!log.contains("web \(daemon.directory)"), "its output is no output of the app")
        }
    }

    @Test("Another one takes its place, and a failure leaves what there was")
    func again() throws {
        let script = "n=$(cat n); case $n in f*) echo oops >&2; exit 3;; e) ;; *) echo \"shows $n\";; esac"
        try withDaemon(Pictured.head + "directory = \"@D\"\n" + Pictured.shell(script)) { daemon in
            func show(_ what: String) throws {
                try File.write(daemon.directory + "/n", what)
                try daemon.done(.foreground, "web")
                try daemon.done(.suspend, "web")
            }
            try daemon.waitFor("web", "active")
            for text in ["1", "2"] {
                try show(text)
                try daemon.waitForSnapshot("shows \(text)\n")
            }
            try show("f")
            try show("e")
            try daemon.eventually("both are told") { try daemon.refusedSnapshots().count == 2 }
            #expect(try daemon.refusedSnapshots() == ["command /bin/sh failed with exit status 3", "it is empty"])
            #expect(try daemon.snapshotText() == "shows 2\n")
            let log = try Spawn.run([Built.path("torpor"), "logs", "web", "--socket", daemon.socket]).output
            #expect(log.contains("oops"), "what it complained of is in the app's log")
            // Nor does one that cannot be run cost anything.
            try daemon.apply(Pictured.head + "snapshot = [\"/no/such/program\"]\n")
            try daemon.done(.foreground, "web")
            try daemon.done(.suspend, "web")
            try daemon.eventually("it is told") {
                try daemon.refusedSnapshots().last?.contains("/no/such/program") ?? false
            }
        }
    }

    @Test("One that hangs is ended at its deadline, with all that it started, and the app is suspended")
    func hangs() throws {
        let toml = Pictured.head + Pictured.shell("sleep 1000 & sleep 1000; echo never", deadline: "300ms")
        try withDaemon(toml) { daemon in
            try daemon.waitFor("web", "active")
            let began = Clock.monotonic()
            try daemon.done(.suspend, "web")
            let took = Clock.monotonic() - began
            #expect(took >= .milliseconds(300), "\(took)")
            #expect(try daemon.refusedSnapshots() == ["it was not ready within its deadline of 300ms"])
            #expect(try daemon.snapshot() == nil)
            let main = try #require(try daemon.summary("web").pid)
            try daemon.eventually("nothing of it is left") { daemon.processes(of: "web") == [main] }
        }
    }

    @Test("One that floods is ended at 4 MiB, and one just below is kept, a picture or a text", arguments: [0, 1])
    func floods(more: Int) throws {
        let script = more == 1 ? "yes" : "head -c 4194304 /dev/zero | tr '\\0' x"
        try withDaemon(Pictured.head + Pictured.shell(script)) { daemon in
            try daemon.waitFor("web", "active")
            try daemon.done(.suspend, "web")
            if more == 1 {
                let refusal = "/bin/sh gives more than 4 MiB"
                try daemon.eventually("it is told") { try daemon.refusedSnapshots() == [refusal] }
                #expect(try daemon.snapshot() == nil)
            } else {
                try daemon.eventually("it is kept") { try daemon.status("web").snapshot?.bytes == 4 << 20 }
                let data = try #require(try daemon.snapshot()?.data)
                #expect(data.count == 4 << 20 && data.allSatisfy { $0 == UInt8(ascii: "x") })
            }
        }
    }

    @Test("Pictures are known by their first bytes, and what is neither picture nor text is not kept")
    func kinds() throws {
        try withDaemon(Pictured.head + "directory = \"@D\"\n" + Pictured.shell("cat shown")) { daemon in
            try daemon.waitFor("web", "active")
            let refused = "it is neither PNG, JPEG, GIF or WebP nor text in UTF-8"
            let contents: [([UInt8], SnapshotKind?)] = [
                (Pictured.png, .png), ([0xff, 0xd8, 0xff, 0xe0, 0, 1], .jpeg), (Array("GIF89a\u{1}".utf8), .gif),
                (Array("RIFF\u{4}\u{0}\u{0}\u{0}WEBPVP8 ".utf8), .webp), (Array("grüße\n".utf8), .text),
                ([0x66, 0xff, 0x66], nil), ([0x66, 0, 0x66], nil), (Array("RIFF\u{4}\u{0}\u{0}\u{0}WAVE".utf8), nil),
                (Array("<svg xmlns='http://www.w3.org/2000/svg'/>".utf8), .text),
            ]
            var refusals = 0
            for (content, kind) in contents {
                try File.replace(daemon.directory + "/shown", content)
                try daemon.done(.foreground, "web")
                try daemon.done(.suspend, "web")
                if let kind {
                    try daemon.eventually("\(kind) is kept") { try daemon.snapshot()?.data == content }
                    #expect(try daemon.status("web").snapshot?.kind == kind)
                    try daemon.eventually("the one before is gone") {
                        daemon.snapshotFiles() == ["1.\(kind.rawValue)"]
                    }
                } else {
                    refusals += 1
                    try daemon.eventually("it is refused") { try daemon.refusedSnapshots().count == refusals }
                    #expect(try daemon.refusedSnapshots().last == refused)
                }
            }
        }
    }

    @Test("One that has closed its output and goes on counts when it ends")
    func closes() throws {
        let script = "echo all there is; exec >&-; touch closed; until [ -e go ]; do sleep 0.05; done"
        try withDaemon(Pictured.head + "directory = \"@D\"\n" + Pictured.shell(script)) { daemon in
            try daemon.waitFor("web", "active")
            try daemon.done(.suspend, "web") { $0.wait = false }
            try daemon.eventually("it has closed its output") { File.exists(daemon.directory + "/closed") }
            #expect(try daemon.summary("web").state == "background")
            try File.write(daemon.directory + "/go", "")
            try daemon.waitFor("web", "suspended")
            try daemon.waitForSnapshot("all there is\n")
        }
    }

    @Test("A page of a server, and a file of the app; another user's file and a link are not taken")
    func sources() throws {
        let server = """
            import http.server, os, time
            class Pages(http.server.BaseHTTPRequestHandler):
                def do_GET(self):
                    if self.path == "/kept":
                        # It says how much it is, and keeps the connection.
                        self.wfile.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 4\\r\\n\\r\\nkept")
                        time.sleep(1000)
                    if self.path == "/torn":
                        return self.wfile.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 400\\r\\n\\r\\ntorn")
                    self.send_response(200 if self.path == "/last?x=1" else 404)
                    self.end_headers()
                    self.wfile.write(b"served " + self.path.encode())
                def log_message(self, *words): pass
            http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Pages).serve_forever()
            """
        let port = try TestAddress.port()
        func toml(_ page: String, _ file: String) -> String {
            """
            [apps.web]
            exec = ["/usr/bin/python3", "@D/server.py"]
            environment = { PORT = "\(port)" }
            ready = { tcp = "127.0.0.1:\(port)" }
            snapshot = { http = "http://localhost:\(port)\(page)" }
            [apps.filed]
            exec = ["/bin/sleep", "1000"]
            snapshot = { file = "\(file)" }

            """
        }
        try withDaemon(toml("/last?x=1", "shown"), files: ["server.py": server, "shown": "a file"]) { daemon in
            for app in ["web", "filed"] {
                try daemon.waitFor(app, "active")
                try daemon.done(.suspend, app)
            }
            try daemon.waitForSnapshot("served /last?x=1")
            try daemon.waitForSnapshot("a file", of: "filed")
            try File.link(daemon.directory + "/link", to: daemon.directory + "/shown")
            try daemon.apply(toml("/nothing", "link"))
            for app in ["web", "filed"] {
                try daemon.done(.foreground, app)
                try daemon.done(.suspend, app)
            }
            try daemon.eventually("it is told") { try !daemon.refusedSnapshots().isEmpty }
            #expect(try daemon.refusedSnapshots() == ["http://localhost:\(port)/nothing answered 404"])
            try daemon.eventually("it is told") { try !daemon.refusedSnapshots("filed").isEmpty }
            #expect(try daemon.refusedSnapshots("filed").last?.contains("links are not followed") == true)
            #expect(try daemon.snapshotText() == "served /last?x=1")
            try daemon.apply(toml("/torn", "shown"))
            try daemon.done(.foreground, "web")
            try daemon.done(.suspend, "web")
            try daemon.eventually("it is told") { try daemon.refusedSnapshots().count == 2 }
            #expect(
                try daemon.refusedSnapshots().last
                    == "http://localhost:\(port)/torn closed the connection before the end of its answer"
            )
            #expect(try daemon.snapshotText() == "served /last?x=1")
            try daemon.apply(toml("/kept", "shown"))
            try daemon.done(.foreground, "web")
            try daemon.done(.suspend, "web")
            try daemon.waitForSnapshot("kept")
        }
    }

    @Test(
        "Another user's app: its command runs as that user, who names no file of others and reads no snapshot",
        .enabled(if: geteuid() == 0)
    )
    func users() throws {
        let toml = """
            [defaults]
            exec = ["/bin/sleep", "1000"]
            user = "nobody"
            [apps.web]
            snapshot = ["/usr/bin/id", "-un"]
            [apps.filed]
            snapshot = { file = "@D/secret" }

            """
        try withDaemon(toml, files: ["secret": "of root"]) { daemon in
            for app in ["web", "filed"] {
                try daemon.waitFor(app, "active")
                try daemon.done(.suspend, app)
            }
            try daemon.waitForSnapshot("nobody\n")
            let kept = try File.status(daemon.directory + "/s/snapshots/web/1.text")
            #expect(kept.uid == 0 && kept.mode == 0o400)
            try daemon.eventually("it is told") { try !daemon.refusedSnapshots("filed").isEmpty }
            #expect(try daemon.refusedSnapshots("filed").last?.contains("is not owned by the app's user") == true)
            #expect(try daemon.snapshot("filed") == nil)
        }
    }

    @Test("An app that is wanted in the foreground does not wait for it, nor does one that is stopped")
    func overtaken() throws {
        try withDaemon(Pictured.head + Pictured.shell("sleep 1000", deadline: "1min")) { daemon in
            try daemon.waitFor("web", "active")
            let main = try #require(try daemon.summary("web").pid)
            for _ in 0..<2 {
                try daemon.done(.suspend, "web") { $0.wait = false }
                try daemon.eventually("the command runs") { daemon.processes(of: "web").count > 1 }
                try daemon.done(.foreground, "web")
                try daemon.eventually("the command is gone") { daemon.processes(of: "web") == [main] }
            }
            try daemon.done(.background, "web")
            try daemon.eventually("the command runs") { daemon.processes(of: "web").count > 1 }
            try daemon.done(.stop, "web")
            try daemon.eventually("nothing is left") { daemon.processes(of: "web").isEmpty }
            #expect(try daemon.refusedSnapshots().isEmpty)
        }
    }

    @Test("Of many that are due at once some are taken at a time, and every app has its own in the end")
    func many() throws {
        let script = "n=$(ls @D/now | wc -l); touch @D/now/%i; echo $n >>@D/counts; sleep 0.05; rm @D/now/%i; echo %i"
        let toml = """
            [apps.web]
            exec = ["/bin/sleep", "1000"]
            instances = 60

            """
        try withDaemon(toml + Pictured.shell(script, deadline: "1min")) { daemon in
            try File.makeDirectory(daemon.directory + "/now")
            try daemon.eventually("all are active") { try daemon.list().allSatisfy { $0.state == "active" } }
            _ = try daemon.verbs(.suspend, ["web@*"])
            #expect(try daemon.list().allSatisfy { $0.state == "suspended" })
            for number in 1...60 { try daemon.waitForSnapshot("\(number)\n", of: "web@\(number)") }
            let counts = try File.readString(daemon.directory + "/counts").split(separator: "\n").compactMap { Int($0) }
            #expect(counts.count == 60 && counts.allSatisfy { $0 < 16 }, "\(counts)")
        }
    }

    @Test("Each instance has its own, by its number; what leaves the configuration leaves none")
    func instances() throws {
        let toml = "[apps.web]\nexec = [\"/bin/sleep\", \"1000\"]\ninstances = 2\n"
        let snapshot = "snapshot = [\"/bin/echo\", \"I am %i\"]\n"
        try withDaemon(toml + snapshot) { daemon in
            for app in ["web@1", "web@2"] { try daemon.waitFor(app, "active") }
            _ = try daemon.verbs(.suspend, ["web@*"])
            for number in 1...2 { try daemon.waitForSnapshot("I am \(number)\n", of: "web@\(number)") }
            try daemon.apply("[apps.web]\nexec = [\"/bin/sleep\", \"1000\"]\ninstances = 1\n" + snapshot)
            try daemon.eventually("it is gone") { !File.exists(daemon.directory + "/s/snapshots/web@2") }
            #expect(try daemon.snapshotText("web@1") == "I am 1\n")
        }
    }
}
