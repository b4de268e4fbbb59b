// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

/// Apps of a template: made when they are opened, ended when others need their place, kept until somebody discards them.
@Suite("Scenes") struct SceneTests {
    static let head = """
        [apps.code]
        exec = ["/usr/bin/python3", "-S", "@D/app.py", "%s"]
        ready = "notify"
        data_folders = true
        tags = ["all"]
        topics.news = { wake = "background" }

        """
    static let sockets = """

        [[apps.code.sockets]]
        stream = "@D/%s.sock"

        """

    /// Counts in its data whom it answers, and says who it is.
    static let program = """
        import json, os, socket, sys
        from tp import *
        options = json.loads(os.environ["TORPOR_LAUNCH_OPTIONS"])
        record("options %s %s" % (options["scene"], json.dumps(options["session"])))
        record("variables %s %s" % (os.environ["TORPOR_SCENE"], os.environ.get("TORPOR_SESSION")))
        record("argument " + sys.argv[1])
        place = os.environ["TORPOR_LIBRARY"] + "/count"
        count = int(open(place).read()) if os.path.exists(place) else 0
        on("SIGTERM", lambda: os._exit(0))
        notify("READY=1")
        if "LISTEN_FDS" not in os.environ:
            wait()
        listening = socket.socket(fileno=3)
        while True:
            connection, _ = listening.accept()
            count += 1
            open(place, "w").write(str(count))
            try:
                connection.sendall(b"%s %d" % (os.environ["TORPOR_SCENE"].encode(), count))
            except OSError:
                pass
            connection.close()
        """

    static func with(
        _ scenes: String = "{}",
        keys: String = sockets,
        supervisor: String = "",
        _ body: (Daemon) throws -> Void
    ) throws {
        let toml = supervisor + head + "scenes = \(scenes)\n" + keys
        try withRecovery(toml, files: ["app.py": program], body)
    }

    static func toml(_ scenes: String, keys: String = sockets) -> String { head + "scenes = \(scenes)\n" + keys }

    @Test("A scene is made when it is opened, as the template says, and is told what it was opened with")
    func opened() throws {
        try Self.with { daemon throws in
            #expect(try daemon.list().isEmpty)
            try daemon.openScene("alice") { $0.session = ["project": "one"] }
            try daemon.openScene("bob")
            for name in ["alice", "bob"] {
                let summary = try daemon.summary("code@\(name)")
                #expect(summary.state == "active" && summary.template == "code" && summary.scene == name)
                #expect(daemon.processes(of: "code@\(name)") == [try #require(summary.pid)])
                #expect(daemon.records("code@\(name)").last == "argument \(name)")
                #expect(try daemon.answer(of: name) == "\(name) 1")
            }
            #expect(daemon.records("code@alice").first == #"options alice {"project": "one"}"#)
            #expect(daemon.records("code@alice").contains(#"variables alice {"project":"one"}"#))
            #expect(daemon.records("code@bob").first == "options bob null")
            #expect(daemon.records("code@bob").contains("variables bob None"))
            // It is an app like any other, and the template stands for all of them.
            #expect(Set(try daemon.verbs(.background, ["code"]).map(\.app)) == ["code@alice", "code@bob"])
            try daemon.done(.suspend, "code@bob")
            let pid = try #require(try daemon.summary("code@bob").pid)
            #expect(try ProcFS.stat(pid).state == "T")
            #expect(try daemon.verbs(.foreground, ["tag:all"]).count == 2)
            // Opened again it is brought to the foreground, and is no other.
            try daemon.done(.background, "code@alice")
            try daemon.openScene("alice")
            #expect(try daemon.summary("code@alice").state == "active")
            let list = try daemon.scenes()
            #expect(list.scenes.map(\.app) == ["code@alice", "code@bob"])
            #expect(list.templates.first.map { [$0.sessions, $0.live] } == [2, 2])
            #expect(list.scenes.first?.session == ["project": "one"])
        }
    }

    @Test("A scene that is disconnected has no process; a connection, mail or a person brings it back with what it was")
    func disconnected() throws {
        try Self.with { daemon throws in
            try daemon.openScene("alice") { $0.session = ["n": 7] }
            #expect(try daemon.answer(of: "alice") == "alice 1")
            let refused = try daemon.verb(.disconnect, "code@alice")
            #expect(!refused.ok && refused.message?.contains("is in the foreground") == true)
            for back in ["connection", "mail", "person"] {
                try daemon.done(.background, "code@alice")
                try daemon.done(.disconnect, "code@alice")
                #expect(daemon.processes(of: "code@alice").isEmpty)
                #expect(try daemon.scenes().scenes.first?.state == SceneInfo.unattached)
                switch back {
                case "connection": break
                case "mail":
                    var request = PostRequest(app: "code@alice", topic: "news")
                    request.urgent = true
                    try daemon.call(.post(request))
                    try daemon.waitFor("code@alice", "background")
                default: try daemon.openScene("alice")
                }
                #expect(try daemon.answer(of: "alice").hasPrefix("alice "))
                #expect(daemon.records("code@alice").last { $0.hasPrefix("options") } == #"options alice {"n": 7}"#)
            }
            #expect(try daemon.answer(of: "alice") == "alice 5")
        }
    }

    @Test("No more run than may: the one that was used longest ago goes, never one in the foreground")
    func bounded() throws {
        try Self.with("{ max_live = 2, max_sessions = 4 }") { daemon throws in
            try daemon.openScene("a")
            try daemon.openScene("b")
            // Both are in the foreground.
            #expect(throws: (any Error).self) { try daemon.openScene("c") }
            #expect(try daemon.scenes().scenes.map(\.name) == ["a", "b"])
            try daemon.done(.background, "code@a")
            try daemon.done(.background, "code@b")
            try daemon.openScene("c")
            #expect(daemon.processes(of: "code@a").isEmpty && !daemon.processes(of: "code@b").isEmpty)
            // A connection has no person: it waits until there is a place.
            try daemon.openScene("b")
            let waiting = try daemon.connectTo("a")
            try daemon.eventually("a waits") { try daemon.summary("code@a").heldBack != nil }
            #expect(daemon.processes(of: "code@a").isEmpty)
            try daemon.done(.background, "code@c")
            #expect(try waiting.receive(until: "the end") == "a 1")
            #expect(daemon.processes(of: "code@c").isEmpty)
            try daemon.waitForEvent("code@c", "is disconnected to make room for code@a: only 2 may run")
            try daemon.done(.background, "code@a")
            try daemon.openScene("d")
            try daemon.done(.background, "code@d")
            do {
                try daemon.openScene("e")
                Issue.record("a fifth session")
            } catch {
                #expect("\(error)".contains("has 4 sessions, and may not have more"))
            }
        }
    }

    @Test("All scenes at once are as many as may run, and the rest is refused; fewer may run after an edit")
    func all() throws {
        try Self.with("{ max_live = 2 }") { daemon throws in
            for name in ["a", "b", "c"] {
                try daemon.openScene(name)
                try daemon.done(.stop, "code@\(name)")
            }
            let reply = try daemon.call(.verb(VerbRequest(verb: .start, apps: ["code"])))
            let results = try (reply["results"]?.arrayValue ?? []).map { try VerbResult(json: $0) }
            #expect(results.map(\.ok) == [true, true, false])
            #expect(results.last?.message?.contains("2 scenes of code run") == true)
            try daemon.done(.background, "code@a")
            try daemon.done(.background, "code@b")
            try daemon.apply(Self.toml("{ max_live = 1 }"))
            try daemon.eventually("one is left") {
                try daemon.list().filter { $0.pid != nil }.map(\.name) == ["code@b"]
            }
        }
    }

    @Test("Everybody is answered where more want a scene at once than may run, one after the other")
    func contended() throws {
        try Self.with("{ max_live = 1 }") { daemon throws in
            let names = (1...3).map { "s\($0)" }
            for name in names { try daemon.openScene(name) { ($0.background, $0.wait) = (true, false) } }
            let clients = try names.map { try daemon.connectTo($0) }
            for (name, client) in zip(names, clients) {
                #expect(try client.receive(until: "the end") == "\(name) 1")
            }
            // A launch for each, and not one for each time that somebody was sent away.
            for name in names { #expect(try (daemon.summary("code@\(name)").incarnation ?? 0) <= 3) }
        }
    }

    @Test("A scene that is restarted, or restarts, keeps its place among those that run")
    func restarted() throws {
        try Self.with(
            "{ max_live = 1 }",
            keys: "restart = \"on-failure\"\nrestart_backoff = { initial = \"0s\" }\n" + Self.sockets
        ) {
            daemon throws in
            try daemon.openScene("a")
            try daemon.done(.background, "code@a")
            try daemon.openScene("b")
            let waiting = try daemon.connectTo("a")
            try daemon.eventually("a waits") { try daemon.summary("code@a").heldBack != nil }
            try daemon.done(.restart, "code@b")
            #expect(try daemon.summary("code@b").incarnation == 2)
            kill(try #require(try daemon.summary("code@b").pid), SIGKILL)
            try daemon.eventually("b is there again") { try daemon.summary("code@b").incarnation == 3 }
            try daemon.waitFor("code@b", "active")
            #expect(daemon.processes(of: "code@a").isEmpty)
            try daemon.done(.background, "code@b")
            #expect(try waiting.receive(until: "the end") == "a 1")
        }
    }

    @Test("What is discarded leaves nothing, and another of that name begins anew")
    func discarded() throws {
        try Self.with { daemon throws in
            try daemon.openScene("alice") { $0.session = ["n": 7] }
            #expect(try daemon.answer(of: "alice") == "alice 1")
            try daemon.done(.background, "code@alice")
            try daemon.done(.disconnect, "code@alice")
            try daemon.openScene("alice")
            try daemon.openScene("bob")
            #expect(!daemon.traces(of: "code@alice").isEmpty)
            try daemon.done(.discard, "code@alice")
            #expect(daemon.processes(of: "code@alice").isEmpty)
            #expect(daemon.traces(of: "code@alice").isEmpty)
            #expect(try daemon.scenes().scenes.map(\.name) == ["bob"])
            #expect(throws: (any Error).self) { try daemon.connectTo("alice") }
            try daemon.openScene("alice")
            #expect(try daemon.answer(of: "alice") == "alice 1")
            #expect(try daemon.scenes().scenes.first?.session == .null)
            // One without a process, and one that nobody discards.
            try daemon.done(.background, "code@alice")
            try daemon.done(.disconnect, "code@alice")
            try daemon.done(.discard, "code@alice")
            #expect(daemon.traces(of: "code@alice").isEmpty)
            #expect(!daemon.traces(of: "code@bob").isEmpty)
        }
    }

    @Test(
        "Sessions outlive torpord, its keeper, and a supervisor that ends; who was sent away stays so",
        arguments: [
            Loss.killed, .keeper, .both, .upgraded,
        ]
    )
    func outlives(_ loss: Loss) throws {
        try Self.with { daemon throws in
            for name in ["front", "back", "away"] { try daemon.openScene(name) { $0.session = ["is": .string(name)] } }
            try daemon.done(.background, "code@back")
            try daemon.done(.background, "code@away")
            try daemon.done(.disconnect, "code@away")
            #expect(try daemon.answer(of: "front") == "front 1")
            let before = try daemon.scenes().scenes
            try daemon.lose(loss)
            let after = try daemon.scenes().scenes
            #expect(after.map(\.app) == before.map(\.app) && after.map(\.session) == before.map(\.session))
            #expect(after.map(\.openedAt) == before.map(\.openedAt))
            #expect(daemon.processes(of: "code@away").isEmpty)
            try daemon.waitFor("code@front", "active")
            try daemon.waitFor("code@back", "background")
            #expect(try daemon.answer(of: "front") == "front 2")
            #expect(try daemon.answer(of: "away") == "away 1")
        }
    }

    @Test("A supervisor's start goes on with each session where it was")
    func startedAgain() throws {
        let daemon = try Daemon(Self.toml("{ max_live = 2 }"), files: ["app.py": Self.program])
        try daemon.waitUntilItAnswers()
        for name in ["front", "away", "back"] {
            try daemon.openScene(name)
            if name != "front" { try daemon.done(.background, "code@\(name)") }
        }
        #expect(try daemon.answer(of: "front") == "front 1")
        #expect(daemon.processes(of: "code@away").isEmpty)
        try daemon.stop()
        try daemon.startAgain()
        try daemon.waitUntilItAnswers()
        try daemon.waitFor("code@front", "active")
        try daemon.waitFor("code@back", "background")
        #expect(daemon.processes(of: "code@away").isEmpty)
        #expect(try daemon.answer(of: "front") == "front 2")
        try daemon.stop()
    }

    @Test("A template that changes, leaves and comes back takes its scenes along, and discards none")
    func template() throws {
        try Self.with { daemon throws in
            try daemon.openScene("alice") { $0.session = ["n": 7] }
            try daemon.openScene("bob")
            #expect(try daemon.answer(of: "alice") == "alice 1")
            try daemon.done(.background, "code@bob")
            try daemon.done(.disconnect, "code@bob")
            // A live scene goes by it from its next launch on.
            let changed = Self.toml("{}").replacingOccurrences(of: "\"%s\"]", with: "\"new-%s\"]")
            let reply = try daemon.apply(changed)
            #expect(reply.apps.map(\.app) == ["code@alice", "code@bob"])
            try daemon.openScene("bob")
            #expect(daemon.records("code@bob").last == "argument new-bob")
            #expect(daemon.records("code@alice").last == "argument alice")
            let gone = try daemon.apply("[apps.other]\nexec = [\"/bin/true\"]\nlaunch = \"on-demand\"\n")
            #expect(gone.apps.contains { $0.app == "code" && $0.kind == "removed" })
            #expect(daemon.processes(of: "code@alice").isEmpty && daemon.processes(of: "code@bob").isEmpty)
            let orphans = try daemon.scenes().scenes
            #expect(orphans.map(\.lacksTemplate) == [true, true])
            let days = (orphans[0].discardedAt ?? 0) - Clock.realtimeMicroseconds()
            #expect((29 * 86_400_000_000...30 * 86_400_000_000).contains(days))
            let refused = try daemon.verb(.start, "code@alice")
            #expect(!refused.ok && refused.message?.contains("is not in the configuration any more") == true)
            #expect(throws: (any Error).self) { try daemon.openScene("alice") }
            try daemon.lose(.killed)
            #expect(try daemon.scenes().scenes.count == 2)
            try daemon.apply(changed)
            #expect(try daemon.answer(of: "alice") == "alice 2")
            #expect(daemon.records("code@alice").last == "argument new-alice")
            #expect(daemon.records("code@alice").last { $0.hasPrefix("options") } == #"options alice {"n": 7}"#)
        }
    }

    @Test("Two who open one scene at once get the same; one who opens it while it ends gets it back")
    func atOnce() throws {
        try Self.with { daemon throws in
            let path = daemon.socket
            let results = Monitor<[String]>([])
            DispatchQueue.concurrentPerform(iterations: 8) { _ in
                let call = ManagerRequest.openScene(OpenSceneRequest(template: "code", name: "alice")).call
                let reply = try? VarlinkClient(path: path).call(call, timeoutMilliseconds: 20_000)
                let result = try? VerbResult(json: reply?["results"]?.arrayValue?.first ?? .null)
                results.withLock { $0.append("\(result?.app ?? "-") \(result?.ok ?? false) \(result?.message ?? "")") }
            }
            #expect(results.withLock { $0 } == Array(repeating: "code@alice true code@alice is active", count: 8))
            #expect(daemon.processes(of: "code@alice").count == 1)
            #expect(try daemon.summary("code@alice").incarnation == 1)
            try daemon.done(.background, "code@alice")
            _ = try daemon.verb(.disconnect, "code@alice") { $0.wait = false }
            try daemon.openScene("alice")
            #expect(daemon.processes(of: "code@alice").count == 1)
            #expect(try daemon.answer(of: "alice") == "alice 1")
        }
    }

    @Test("A session that nobody uses for discard_after goes by itself")
    func unused() throws {
        try Self.with("{ discard_after = \"1s\" }") { daemon throws in
            try daemon.openScene("kept")
            try daemon.openScene("left")
            try daemon.done(.background, "code@left")
            try daemon.done(.disconnect, "code@left")
            try daemon.waitForEvent("code@left", "is discarded: it was unused for too long")
            try daemon.eventually("nothing is left") { daemon.traces(of: "code@left").isEmpty }
            #expect(try daemon.scenes().scenes.map(\.name) == ["kept"])
            #expect(!daemon.processes(of: "code@kept").isEmpty)
        }
    }

    @Test(
        "Bad input is a sentence, and makes nothing",
        arguments: [
            ("code", "a/b", "is not a valid scene name"), ("code", "", "has from 1 to"),
            ("code", "a@b", "must not contain @"),
            ("code", "..", "must not begin with"), ("cod", "x", "UnknownApp"),
            ("other", "x", "is not a template of scenes"),
            ("code", String(repeating: "x", count: 59), "has from 1 to 58 characters"),
        ]
    )
    func bad(_ template: String, _ name: String, _ sentence: String) throws {
        try Self.with(supervisor: "[apps.other]\nexec = [\"/bin/sleep\", \"100\"]\n") { daemon throws in
            do {
                try daemon.openScene(name, of: template)
                Issue.record("\(template)@\(name) was opened")
            } catch {
                #expect("\(error)".contains(sentence), "\(error)")
            }
            #expect(try daemon.scenes().scenes.isEmpty)
            for verb in [Verb.disconnect, .discard] {
                let result = try daemon.verb(verb, "other")
                #expect(!result.ok && result.message == "other is not a scene")
            }
            #expect(throws: (any Error).self) { try daemon.verb(.start, "code") }
        }
    }
}

extension Daemon {
    func connectTo(_ scene: String) throws -> Peer {
        Peer(try Sockets.connect(path: directory + "/\(scene).sock"))
    }

    /// All that the scene's program sends to one connection.
    func answer(of scene: String) throws -> String { try connectTo(scene).receive(until: "the end") }

    /// What there is on the disk of an app.
    func traces(of app: String) -> [String] {
        let places = ["s/apps/", "s/data/", "s/archives/", "s/snapshots/", "s/scenes/", "r/apps/"].map { $0 + app }
        return (places + ["l/\(app).log"]).filter { File.exists(directory + "/" + $0) }
    }
}
