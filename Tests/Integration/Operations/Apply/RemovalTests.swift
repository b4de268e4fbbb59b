// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import TestAddresses
import Testing
import TorporAPI
import Varlink

@Suite("Apps that leave the configuration") struct RemovalTests {
    static let files = [
        "app.py": """
        import tp
        def end():
            tp.await_file("go")
            tp.os._exit(0)
        tp.on("SIGTERM", end)
        print("up", flush=True)
        tp.record("up " + tp.sys.argv[1])
        tp.wait()
        """
    ]

    static func app(_ argument: String, _ keys: String = "") -> String {
        "[apps.app]\n\(Scripts.python)\"@D/app.py\", \"\(argument)\"]\ngrace = \"1min\"\n\(keys)\n"
    }

    private func open(_ daemon: Daemon) throws { try Daemon.write(["go": ""], in: daemon.directory) }

    @Test("What is lost with an app is said before it is removed, and then")
    func belongings() throws {
        let stays = Apps.sleeper("stays")
        let app = Apps.sleeper("shop", "launch = \"on-demand\"\ntopics = { \"*\" = { keep = true } }")
        try withDaemon(app + stays) { daemon throws in
            for topic in ["one", "two"] { try daemon.post(topic, to: "shop") }
            #expect(try daemon.apply(stays) { $0.diff = true }.lines == ["shop: would be removed, with its 2 messages"])
            #expect(try daemon.apply(stays).lines == ["shop: removed, with its 2 messages"])
        }
    }

    @Test("The saved state that is lost with an app is named, and the history says why it is gone")
    func savedState() throws {
        // It stays in the file, but as the template of scenes with processes of their own.
        let template = Self.app("one", "scenes = { max_live = 3 }")
        try withDaemon(Self.app("one"), files: Self.files) { daemon throws in
            try daemon.waitForRecord("app", "up one")
            try daemon.plant(String(repeating: "x", count: 34 << 10), of: "app")
            try self.open(daemon)
            let lost = "app: would be removed and terminated, with its saved state (34.0 KiB)"
            #expect(try daemon.apply(template) { $0.diff = true }.lines.contains(lost))
            let done = "app: removed, with its saved state (34.0 KiB), terminated"
            #expect(try daemon.apply(template).lines.contains(done))
            let why = "no longer has a saved state: the app was removed from the configuration"
            try daemon.eventually("the history says why") {
                try daemon.events("app").contains { $0.text.contains(why) }
            }
        }
    }

    @Test("An app that comes back while it is ending keeps its saved state")
    func stateOfReturn() throws {
        try withDaemon(Self.app("one"), files: Self.files) { daemon throws in
            try daemon.waitForRecord("app", "up one")
            try daemon.plant("kept", of: "app")
            try daemon.apply("") { $0.wait = false }
            try daemon.waitForRecord("app", "SIGTERM")
            _ = try daemon.apply(Self.app("two")) { $0.wait = false }
            try self.open(daemon)
            try daemon.waitForRecord("app", "up two")
            #expect(try String(contentsOfFile: daemon.archive(of: "app"), encoding: .utf8) == "kept")
        }
    }

    @Test("A suspended app gets its SIGTERM as from a person; its log stays, everything else of it goes")
    func suspended() throws {
        try withDaemon(Self.app("one") + Apps.sleeper("other"), files: Self.files) { daemon throws in
            try daemon.waitForRecord("app", "up one")
            try daemon.done(.suspend, "app")
            try self.open(daemon)
            let reply = try daemon.apply(Apps.sleeper("other"))
            #expect(reply.lines == ["app: removed, terminated"])
            #expect(daemon.records("app") == ["up one", "SIGTERM"])
            #expect(daemon.processes(of: "app").isEmpty)
            try daemon.eventually("it is forgotten") { try daemon.list().map(\.name) == ["other"] }
            #expect(!FileManager.default.fileExists(atPath: daemon.runtime + "/apps/app"))
            #expect(FileManager.default.fileExists(atPath: daemon.directory + "/l/app.log"))
            #expect(FileManager.default.fileExists(atPath: daemon.directory + "/s/apps/app"))
            #expect(try daemon.events("other").allSatisfy { $0.kind != "exit" })
            #expect(throws: (any Error).self) { try daemon.status("app") }
            // Who is new under an old name begins anew.
            try daemon.apply(Self.app("two") + Apps.sleeper("other"))
            try daemon.waitForRecord("app", "up two")
            #expect(try daemon.summary("app").incarnation == 1)
        }
    }

    @Test(
        "One that is renamed is launched when the old one has ended, with its socket and the clients that wait there",
        arguments: [false, true]
    )
    func renamed(underNextTorpord: Bool) throws {
        let server = """
            import os, socket, tp
            def runs(pid):
                try:
                    return open("/proc/%s/stat" % pid).read().rsplit(")", 1)[1].split()[0] != "Z"
                except FileNotFoundError:
                    return False
            listener = socket.socket(fileno=3)
            if os.environ["TORPOR_APP"] == "old":
                open(tp.HERE + "/pid", "w").write(str(os.getpid()))
            elif runs(open(tp.HERE + "/pid").read()):
                tp.record("too early")
            def end():
                tp.await_file("go")
                os._exit(0)
            tp.on("SIGTERM", end)
            tp.record("up")
            if os.environ["TORPOR_APP"] == "old":
                tp.wait()
            while True:
                connection, _ = listener.accept()
                connection.sendall(os.environ["TORPOR_APP"].encode() + b" served")
                connection.close()
            """
        let port = try TestAddress.port()
        func app(_ name: String) -> String {
            """
            [apps.\(name)]
            \(Scripts.python)"@D/server.py"]
            grace = "1min"
            restart_backoff = { initial = "1h", cap = "1h" }
            sockets = [{ stream = "127.0.0.1:\(port)" }]

            """
        }
        try withDaemon(app("old"), files: ["server.py": server]) { daemon throws in
            try daemon.waitForRecord("old", "up")
            let reply = try daemon.apply(app("new")) { $0.wait = false }
            #expect(reply.lines.sorted() == ["new: added, is being launched", "old: removed, is being terminated"])
            try daemon.waitForRecord("old", "SIGTERM")
            let waiting = try Peer(port: port)
            let held = try daemon.summary("new").heldBack
            #expect(held == "old is removed, and still ending")
            #expect(daemon.processes(of: "new").isEmpty)
            if underNextTorpord {
                try daemon.replaceTorpord()
                // The next torpord kills what is left of the old one after 5 s, which may have passed.
                let new = try daemon.summary("new")
                #expect(new.transition == "launching" || new.pid != nil || new.heldBack == held, "\(new)")
            }
            try self.open(daemon)
            #expect(try waiting.receive(until: "served") == "new served")
            #expect(daemon.records("new") == ["up"])
            let summary = try daemon.summary("new")
            #expect(summary.restarts == 0 && summary.incarnation == 1 && summary.socketTrouble == nil)
            #expect(try daemon.list().map(\.name) == ["new"])
            #expect(try daemon.events("new").allSatisfy { !$0.text.contains("cannot listen") })
        }
    }

    @Test("No command of it is started, also one whose program was still being looked up when it was removed")
    func command() throws {
        let disk = try HangingDisk("/far/", lookups: true)
        defer { disk.remove() }
        let app = """
            [apps.app]
            exec = ["/bin/sleep", "1000"]
            launch = "on-demand"
            environment = { PATH = "@D/far:/usr/bin:/bin" }
            before_start = [["sleep", "1000"]]

            """
        try withDaemon(app + Apps.sleeper("other"), environment: disk.environment) { daemon throws in
            try disk.hang()
            _ = try daemon.verb(.start, "app") { $0.wait = false }
            try daemon.eventually("the program is looked up") { disk.waits }
            try daemon.apply(Apps.sleeper("other"))
            try daemon.eventually("the app is forgotten") { try daemon.list().map(\.name) == ["other"] }
            try disk.answer()
            let tasks = "/proc/\(try daemon.torpord())/task"
            try daemon.eventually("the lookup is over") {
                try File.list(tasks).allSatisfy { (try? File.readString("\(tasks)/\($0)/comm")) != "launches\n" }
            }
            // The first answer may come before torpord has heard of the lookup's end.
            for _ in 0..<2 { #expect(try daemon.list().map(\.name) == ["other"]) }
            // torpor-closer closes them a moment later.
            try daemon.eventually("its sockets are closed") {
                try !File.readString("/proc/net/unix").contains(daemon.runtime + "/apps/app/")
            }
            let sockets = try File.readString("/proc/net/unix")
            #expect(sockets.contains(daemon.runtime), "the sockets of this torpord are not in the table")
            #expect(daemon.processes(of: "app").isEmpty)
        }
    }

    @Test("While it ends it is listed and can be killed, but nothing brings it back")
    func ending() throws {
        try withDaemon(Self.app("one", "topics = { \"*\" = \"all\" }"), files: Self.files) { daemon throws in
            try daemon.waitForRecord("app", "up one")
            let reply = try daemon.apply("") { $0.wait = false }
            #expect(reply.lines == ["app: removed, is being terminated"])
            try daemon.waitForRecord("app", "SIGTERM")
            #expect(try daemon.summary("app").transition == "terminating")
            for verb in [Verb.start, .restart, .foreground, .suspend] {
                let result = try daemon.verb(verb, "app")
                #expect(!result.ok && result.message?.contains("removed from the configuration") == true, "\(verb)")
            }
            // Its mailbox is removed with it.
            let refusal = try daemon.refusal("news", to: "app")
            #expect(refusal?.message.contains("removed from the configuration") == true, "\(refusal as Any)")
            var late = ApplyRequest()
            late.timeoutMilliseconds = 50
            #expect(try ApplyReply(json: daemon.call(.apply(late))).apps.isEmpty)
            try daemon.done(.kill, "app")
            try daemon.eventually("it is forgotten") { try daemon.list().isEmpty }
        }
    }

    @Test("One that comes back while it is ending is launched again, as it is said then, and never twice")
    func back() throws {
        try withDaemon(Self.app("one"), files: Self.files) { daemon throws in
            try daemon.waitForRecord("app", "up one")
            try daemon.apply("") { $0.wait = false }
            try daemon.waitForRecord("app", "SIGTERM")
            let reply = try daemon.apply(Self.app("two", "tags = [\"again\"]")) { $0.wait = false }
            #expect(reply.lines == ["app: added, is being launched"])
            #expect(daemon.processes(of: "app").count == 1)
            try self.open(daemon)
            try daemon.waitForRecord("app", "up two")
            #expect(daemon.records("app") == ["up one", "SIGTERM", "up two"])
            #expect(daemon.processes(of: "app").count == 1)
            #expect(try daemon.summary("app").incarnation == 2)
            #expect(try daemon.status("app").tags == ["again"])
        }
    }

    @Test("Apps that are removed together end in order of dependency, and new ones come in it")
    func order() throws {
        let tower =
            Apps.sleeper("db") + Apps.sleeper("api", "requires = [\"db\"]")
            + Apps.sleeper("web", "requires = [\"api\"]")
        try withDaemon(Apps.sleeper("stays")) { daemon throws in
            let apps = ["db", "api", "web"]
            var last = try daemon.lastEvent()
            let added = try daemon.apply(tower + Apps.sleeper("stays"))
            #expect(added.lines.sorted() == apps.sorted().map { "\($0): added, launched" })
            #expect(try daemon.story(apps, after: last) == ["db launch", "api launch", "web launch"])
            last = try daemon.lastEvent()
            try daemon.apply(Apps.sleeper("stays"))
            #expect(
                try daemon.story(apps, after: last) == ["web exit stopped", "api exit stopped", "db exit stopped"]
            )
        }
    }

    @Test("Fewer instances end the last ones, more add to them, another name is another app")
    func instances() throws {
        try withDaemon(Apps.sleeper("w", "instances = 3")) { daemon throws in
            for number in 1...3 { try daemon.waitFor("w@\(number)", "active") }
            let first = try daemon.process(of: "w@1")
            #expect(
                try daemon.apply(Apps.sleeper("w", "instances = 1")).lines.map { $0.prefix(4) } == ["w@2:", "w@3:"]
            )
            try daemon.apply(Apps.sleeper("w", "instances = 2"))
            #expect(try daemon.list().map(\.name) == ["w@1", "w@2"])
            #expect(try daemon.process(of: "w@1") == first)
            let renamed = try daemon.apply(Apps.sleeper("v", "instances = 2"))
            #expect(renamed.apps.map(\.kind) == ["added", "added", "removed", "removed"])
            try daemon.eventually("the old ones are gone") { try daemon.list().map(\.name) == ["v@1", "v@2"] }
        }
    }

    @Test("Who waits for a removed app, and who follows its log, is told that it is no more")
    func followers() throws {
        try withDaemon(Self.app("one"), files: Self.files) { daemon throws in
            try daemon.waitForRecord("app", "up one")
            try self.open(daemon)
            let waiting = try Client(daemon, "wait", "app", "--for", "background", "--json")
            let following = try Client(daemon, "logs", "-f", "app")
            try daemon.eventually("the log is followed") { following.output.contains("up") }
            try daemon.eventually("the other waits") { waiting.waitsForReply }
            try daemon.apply("")
            #expect(try waiting.finish(daemon) == 1)
            #expect(waiting.output.contains("removed from the configuration"), "\(waiting.output)")
            #expect(try following.finish(daemon) == 0)
        }
    }
}
