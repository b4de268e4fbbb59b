// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

/// Scenes that an app shows in its own process: what its delegate hears, and what becomes of them when something ends.
@Suite("Scenes inside an app") struct InnerSceneTests {
    /// Records what it hears. A scene named `slow…` is answered for when the file `go` is there.
    static let program = """
        import os, signal, subprocess, sys, time
        sys.path.insert(0, "\(Sources.root)/Clients/python")
        import torpor
        from tp import record
        def wait():
            while not os.path.exists("@D/go"):
                time.sleep(0.005)
        class Desk(torpor.Delegate):
            def note(self, what, message):
                record(what + " " + message.scene)
                if message.scene.startswith("slow-" + what):
                    wait()
            def will_finish_launching(self, message):
                record("launch")
            def scene_will_connect(self, message):
                state = message.read_state().decode() if message.path else "-"
                record("connect %s %s %s" % (message.scene, "front" if message.options["foreground"] else "back", state))
                if message.options["cgroup"]:
                    worker = subprocess.Popen(["/bin/sleep", "1000"])
                    with open(message.options["cgroup"] + "/cgroup.procs", "w") as file:
                        file.write(str(worker.pid))
                if message.scene.startswith("slow-connect"):
                    wait()
                if state == "fatal":
                    # What it leaves takes its time: its end is not told at once.
                    if os.fork() == 0:
                        signal.signal(signal.SIGTERM, signal.SIG_IGN)
                        time.sleep(0.3)
                        os._exit(0)
                    os._exit(3)
                if message.scene.startswith("deadly") or os.path.exists("@D/deadly-" + message.scene):
                    os._exit(4)
                if message.scene == "nobody":
                    raise Exception("there is no nobody")
            def scene_did_become_active(self, message):
                self.note("active", message)
            def scene_will_resign_active(self, message):
                self.note("resign", message)
            def scene_did_enter_background(self, message):
                text = "fatal" if message.scene == "fatal" else "state of " + message.scene
                message.app.save_state(text.encode(), scene=message.scene)
                message.app.save_snapshot(("picture of " + message.scene).encode(), scene=message.scene)
                self.note("background", message)
            def scene_will_enter_foreground(self, message):
                self.note("foreground", message)
            def scene_did_disconnect(self, message):
                self.note("disconnect", message)
            def did_discard_scenes(self, message):
                record("discard " + ",".join(message.discarded))
            def will_terminate(self, message):
                record("terminate")
        with torpor.App(Desk()) as app:
            while True:
                time.sleep(3600)
        """

    static func with(
        _ scenes: String = "",
        keys: String = "",
        _ body: (Daemon) throws -> Void
    ) throws {
        try withRecovery(toml(scenes, keys: keys), files: ["app.py": program], body)
    }

    static func toml(_ scenes: String = "", keys: String = "") -> String {
        """
        [apps.desk]
        exec = ["/usr/bin/python3", "-S", "@D/app.py"]
        ready = "delegate"
        launch_deadline = "60s"
        \(keys)
        scenes = { inside = true\(scenes.isEmpty ? "" : ", ")\(scenes) }

        """
    }

    static func states(_ daemon: Daemon) throws -> [String: String] {
        Dictionary(try daemon.scenes().scenes.map { ($0.name, $0.state) }, uniquingKeysWith: { $1 })
    }

    static func open(_ daemon: Daemon, _ names: String..., background: Bool = false) throws {
        for name in names { try daemon.openScene(name, of: "desk") { $0.background = background } }
    }

    /// The beginning of what an apply says of one app.
    private static func applied(_ daemon: Daemon, _ toml: String, _ app: String) throws -> String? {
        let message = try daemon.apply(toml).apps.first { $0.app == app }?.message ?? ""
        return message.range(of: " from now on, and keeps its session").map { String(message[..<$0.lowerBound]) }
    }

    private static func wait(_ daemon: Daemon, _ wanted: [String: String]) throws {
        try daemon.eventually("scenes are \(wanted)") { try states(daemon) == wanted }
    }

    @Test("One process shows them all; it is in the foreground while one of them is, and stopped with all of them")
    func follows() throws {
        try Self.with { daemon throws in
            #expect(daemon.processes(of: "desk").isEmpty)
            try Self.open(daemon, "ann", "bob")
            let pid = try #require(try daemon.summary("desk").pid)
            #expect(daemon.processes(of: "desk") == [pid])
            #expect(try daemon.summary("desk").scenesInside == SceneCount(sessions: 2, live: 2))
            try daemon.done(.background, "desk@ann")
            #expect(try daemon.summary("desk").state == "active")
            try daemon.done(.background, "desk@bob")
            try daemon.waitFor("desk", "background")
            try daemon.done(.suspend, "desk")
            #expect(Truth.isStopped(pid))
            #expect(try Self.states(daemon) == ["ann": "suspended", "bob": "suspended"])
            // Those that were in the foreground last come back, and only they.
            try daemon.done(.foreground, "desk@bob")
            #expect(!Truth.isStopped(pid))
            #expect(try Self.states(daemon) == ["ann": "background", "bob": "active"])
            #expect(
                daemon.records("desk") == [
                    "launch", "connect ann front -", "active ann", "connect bob front -", "active bob", "resign ann",
                    "background ann", "resign bob", "background bob", "foreground bob", "active bob",
                ]
            )
            #expect(try daemon.snapshotText("desk@ann") == "picture of ann")
        }
    }

    @Test("Verbs for the app act on its scenes, and a foreground without any is refused in a sentence")
    func verbs() throws {
        try Self.with { daemon throws in
            let none = try daemon.verb(.foreground, "desk")
            #expect(!none.ok && none.message?.contains("has no scenes to show: ‘torpor scene open desk@NAME’") == true)
            let started = try daemon.verb(.start, "desk")
            #expect(
                started.message
                    == "desk is background, since none of its scenes is connected: ‘torpor scene open desk@NAME’ shows one"
            )
            #expect(try daemon.summary("desk").state == "background")
            try Self.open(daemon, "ann")
            try daemon.done(.background, "desk")
            #expect(try Self.states(daemon) == ["ann": "background"])
            try daemon.done(.foreground, "desk")
            #expect(try Self.states(daemon) == ["ann": "active"])
            try daemon.done(.stop, "desk")
            #expect(try Self.states(daemon) == ["ann": SceneInfo.unattached])
            // The one that was used last, with what it had saved.
            try daemon.done(.foreground, "desk")
            #expect(
                daemon.records("desk") == [
                    "launch", "connect ann front -", "active ann", "resign ann", "background ann", "foreground ann",
                    "active ann", "terminate", "launch", "connect ann front state of ann", "active ann",
                ]
            )
        }
    }

    @Test("A refused scene is not there; who sees to it that many are connected disconnects the one used longest ago")
    func limits() throws {
        try Self.with("max_live = 2, max_sessions = 3") { daemon throws in
            #expect(throws: (any Error).self) { try Self.open(daemon, "nobody") }
            try Self.wait(daemon, [:])
            try Self.open(daemon, "ann", "bob")
            do {
                try Self.open(daemon, "cid")
                Issue.record("three in the foreground of two")
            } catch {
                #expect("\(error)".contains("2 scenes of desk are connected (scenes.max_live)"), "\(error)")
            }
            try daemon.done(.background, "desk@ann")
            try Self.open(daemon, "cid")
            try Self.wait(daemon, ["ann": SceneInfo.unattached, "bob": "active", "cid": "active"])
            do {
                try Self.open(daemon, "dora")
                Issue.record("four sessions of three")
            } catch {
                #expect("\(error)".contains("desk has 3 sessions"), "\(error)")
            }
            let refused = try daemon.verb(.disconnect, "desk@bob")
            #expect(!refused.ok && refused.message?.contains("is in the foreground") == true)
            try daemon.done(.discard, "desk@bob")
            try daemon.waitForRecord("desk", "discard bob")
            #expect(!File.exists(daemon.archive(of: "desk@bob")))
            #expect(File.exists(daemon.archive(of: "desk@ann")))
        }
    }

    @Test("An app that crashes comes back with its scenes, each with what it had saved")
    func crash() throws {
        try Self.with(keys: "restart_backoff = { initial = \"10ms\" }") { daemon throws in
            try Self.open(daemon, "ann", "bob")
            try daemon.done(.background, "desk@ann")
            let pid = try #require(try daemon.summary("desk").pid)
            kill(pid, SIGKILL)
            try daemon.eventually("it runs again") {
                let summary = try daemon.summary("desk")
                return summary.incarnation == 2 && summary.state == "active"
            }
            try Self.wait(daemon, ["ann": "background", "bob": "active"])
            #expect(
                Set(daemon.records("desk").suffix(4)) == [
                    "launch", "connect ann back state of ann", "connect bob front -", "active bob",
                ]
            )
        }
    }

    @Test("A state that ends the app is offered once")
    func fatal() throws {
        try Self.with(keys: "restart_backoff = { initial = \"10ms\" }") { daemon throws in
            try Self.open(daemon, "fatal")
            try daemon.done(.background, "desk@fatal")
            try daemon.done(.disconnect, "desk@fatal")
            try? Self.open(daemon, "fatal")
            try daemon.eventually("it is connected without its state") {
                daemon.records("desk").last == "active fatal"
            }
            #expect(daemon.records("desk").filter { $0 == "connect fatal front fatal" }.count == 1)
            #expect(daemon.records("desk").contains("connect fatal front -"))
            #expect(File.exists(daemon.archive("set-aside", of: "desk@fatal")))
        }
    }

    @Test("A scene that ends the app each time is not connected for ever: the others stay")
    func deadly() throws {
        try Self.with(keys: "restart_backoff = { initial = \"10ms\" }") { daemon throws in
            try Self.open(daemon, "ann", "bob")
            // One that was never connected is gone after the first time.
            #expect(throws: (any Error).self) { try Self.open(daemon, "deadly") }
            try Self.wait(daemon, ["ann": "active", "bob": "active"])
            #expect(daemon.records("desk").filter { $0.hasPrefix("connect deadly") }.count == 1)
            try daemon.waitForEvent("desk", "ended while it connected its scene desk@deadly, which was new")
            // One that was connected has another chance.
            try Daemon.write(["deadly-bob": ""], in: daemon.directory)
            let before = daemon.records("desk").filter { $0.hasPrefix("connect bob") }.count
            kill(try #require(try daemon.summary("desk").pid), SIGKILL)
            try daemon.waitForEvent("desk", "‘torpor scene discard desk@bob’ removes it")
            try Self.wait(daemon, ["ann": "active", "bob": "unattached"])
            try daemon.waitFor("desk", "active")
            #expect(daemon.records("desk").filter { $0.hasPrefix("connect bob") }.count == before + 2)
            #expect(try daemon.summary("desk").state == "active")
            try File.remove(daemon.directory + "/deadly-bob")
            try daemon.done(.foreground, "desk@bob")
            try Self.wait(daemon, ["ann": "active", "bob": "active"])
        }
    }

    @Test("A missed sceneDidEnterBackground ends the app; a missed sceneWillConnect only the scene")
    func deadlines() throws {
        try Self.with(keys: "background_deadline = \"300ms\"\nrestart = \"never\"") { daemon throws in
            try Self.open(daemon, "ann", "slow-background")
            let result = try daemon.verb(.background, "desk@slow-background")
            #expect(!result.ok)
            try daemon.waitFor("desk", "not-running")
            #expect(try daemon.summary("desk").lastExit?.reason == "background-deadline")
            #expect(try Self.states(daemon) == ["ann": SceneInfo.unattached, "slow-background": SceneInfo.unattached])
        }
        try Self.with { daemon throws in
            try Self.open(daemon, "ann")
            try daemon.apply(
                Self.toml(keys: "").replacing("launch_deadline = \"60s\"", with: "launch_deadline = \"300ms\"")
            )
            do {
                try Self.open(daemon, "slow-connect")
                Issue.record("it was connected without an answer")
            } catch {
                #expect("\(error)".contains("did not answer sceneWillConnect in time"), "\(error)")
            }
            try File.write(daemon.directory + "/go", "")
            // It hears that it is gone again, and the others go on.
            try daemon.waitForRecord("desk", "disconnect slow-connect")
            #expect(try Self.states(daemon)["ann"] == "active")
        }
    }

    @Test(
        "Killed at any instant, torpord and keeper tell nothing twice and lose no scene",
        arguments: [Loss.killed, .keeper]
    )
    func losses(_ loss: Loss) throws {
        try Self.with(keys: "transition_deadline = \"60s\"") { daemon throws in
            try Self.open(daemon, "ann", "slow-resign")
            // It is asked, and has not answered.
            _ = try daemon.call(.verb(Self.later(.background, "desk@slow-resign")))
            try daemon.waitForRecord("desk", "resign slow-resign")
            try daemon.lose(loss)
            try File.write(daemon.directory + "/go", "")
            try Self.wait(daemon, ["ann": "active", "slow-resign": "background"])
            try daemon.done(.background, "desk")
            try daemon.lose(loss)
            try daemon.done(.foreground, "desk")
            try Self.wait(daemon, ["ann": "active", "slow-resign": "background"])
            #expect(
                daemon.records("desk") == [
                    "launch", "connect ann front -", "active ann", "connect slow-resign front -", "active slow-resign",
                    "resign slow-resign", "background slow-resign", "resign ann", "background ann", "foreground ann",
                    "active ann",
                ]
            )
        }
    }

    private static func later(_ verb: Verb, _ name: String) -> VerbRequest {
        var request = VerbRequest(verb: verb, apps: [name])
        request.wait = false
        return request
    }

    @Test(
        "The next start of the supervisor goes on where the last one ended, and an eviction leaves sessions and states"
    )
    func nextStart() throws {
        try withDaemon(Self.toml(), files: ["app.py": Self.program]) { daemon throws in
            try Self.open(daemon, "ann", "bob")
            try Self.open(daemon, "cid", background: true)
            try daemon.done(.background, "desk@ann")
            try daemon.done(.disconnect, "desk@ann")
            try daemon.stop()
            try daemon.startAgain()
            try daemon.waitUntilItAnswers()
            try Self.wait(daemon, ["ann": SceneInfo.unattached, "bob": "active", "cid": "background"])
            try daemon.done(.suspend, "desk")
            let pid = try #require(try daemon.summary("desk").pid)
            // An eviction by the kernel.
            kill(pid, SIGKILL)
            try daemon.waitFor("desk", "not-running")
            #expect(try daemon.summary("desk").lastExit?.reason == "evicted")
            try Self.wait(
                daemon,
                ["ann": SceneInfo.unattached, "bob": SceneInfo.unattached, "cid": SceneInfo.unattached]
            )
            try Self.open(daemon, "bob")
            #expect(daemon.records("desk").suffix(2) == ["connect bob front state of bob", "active bob"])
        }
    }

    @Test("A verb for several scenes of one app is carried out for each")
    func several() throws {
        try Self.with { daemon throws in
            try Self.open(daemon, "ann", "bob", "cid")
            var request = VerbRequest(verb: .background, apps: ["desk@ann", "desk@c*"])
            request.token = RequestToken.random()
            let reply = try daemon.call(.verb(request))
            #expect(reply["results"]?.arrayValue?.count == 2)
            #expect(try Self.states(daemon) == ["ann": "background", "bob": "active", "cid": "background"])
            #expect(try daemon.verbs(.disconnect, ["desk"]).map(\.ok) == [true, false, true])
            #expect(try daemon.verbs(.discard, ["desk"]).map(\.ok) == [true, true, true])
            try Self.wait(daemon, [:])
            try daemon.waitForRecord("desk", "disconnect bob")
            #expect(try daemon.summary("desk").scenesInside == SceneCount(sessions: 0, live: 0))
        }
    }

    @Test("A scene that is discarded while it connects hears the end of it, and so does its app")
    func discardedWhileConnecting() throws {
        try Self.with { daemon throws in
            try Self.open(daemon, "ann")
            var request = OpenSceneRequest(template: "desk", name: "slow-connect")
            request.wait = false
            try daemon.call(.openScene(request))
            try daemon.waitForRecord("desk", "connect slow-connect front -")
            _ = try daemon.call(.verb(Self.later(.discard, "desk@slow-connect")))
            try File.write(daemon.directory + "/go", "")
            try daemon.waitForRecord("desk", "disconnect slow-connect")
            try daemon.waitForRecord("desk", "discard slow-connect")
            try Self.wait(daemon, ["ann": "active"])
        }
    }

    @Test("An edit keeps sessions and states: fewer places, a template instead, and gone for a while")
    func edits() throws {
        try Self.with { daemon throws in
            try Self.open(daemon, "ann", "bob", "cid")
            for name in ["ann", "bob"] { try daemon.done(.background, "desk@" + name) }
            try daemon.apply(Self.toml("max_live = 1"))
            try Self.wait(daemon, ["ann": SceneInfo.unattached, "bob": SceneInfo.unattached, "cid": "active"])
            #expect(throws: (any Error).self) { try Self.open(daemon, "bob") }
            #expect(throws: (any Error).self) { try Self.open(daemon, "dora") }
            #expect(try Self.states(daemon)["dora"] == nil, "a refused open leaves no session")
            // One that is there already needs no place.
            try Self.open(daemon, "cid")
            try daemon.apply("")
            try daemon.eventually("it is gone") { daemon.processes(of: "desk").isEmpty }
            #expect(File.exists(daemon.archive(of: "desk@ann")))
            try daemon.apply(Self.toml())
            try Self.open(daemon, "ann")
            #expect(daemon.records("desk").suffix(2) == ["connect ann front state of ann", "active ann"])
            // As a template, whose scenes are apps, and back.
            let template = "[apps.desk]\nexec = [\"/bin/sh\", \"-c\", \"exec sleep 1000\", \"%s\"]\nscenes = {}\n"
            #expect(try Self.applied(daemon, template, "desk@bob") == "is a scene with processes of its own")
            try daemon.eventually("its scenes are apps") { try daemon.list().map(\.name).contains("desk@bob") }
            try daemon.done(.start, "desk@bob")
            let pid = try #require(daemon.processes(of: "desk@bob").first)
            #expect(try Self.applied(daemon, Self.toml(), "desk@bob") == "is a scene inside its app")
            try daemon.eventually("its own process is gone") { !Truth.isAlive(pid) }
            try Self.open(daemon, "bob")
            #expect(daemon.records("desk").last == "active bob")
            #expect(daemon.records("desk").contains("connect bob front state of bob"))
        }
    }

    @Test(
        "A stop and a foreground or start bring back those that were in the foreground last",
        arguments: [Verb.foreground, .start]
    )
    func comeBack(by verb: Verb) throws {
        try Self.with { daemon throws in
            try Self.open(daemon, "ann", "bob", "cid")
            try daemon.done(.background, "desk@bob")
            try daemon.done(.stop, "desk")
            if verb == .start {
                // Into the background nothing comes back, and what was in the foreground is remembered all the same.
                try daemon.done(.start, "desk") { $0.background = true }
                #expect(try Self.states(daemon).values.allSatisfy { $0 == SceneInfo.unattached })
                try daemon.done(.stop, "desk")
            }
            try daemon.done(verb, "desk")
            try Self.wait(daemon, ["ann": "active", "bob": SceneInfo.unattached, "cid": "active"])
            // Its app ends while it saves: that is told.
            try daemon.done(.background, "desk")
            let refused = try daemon.verb(.disconnect, "desk@bob")
            #expect(refused.ok)
        }
    }

    @Test("An app that comes to the foreground shows a connected scene, and not the one that was just disconnected")
    func showsConnected() throws {
        try Self.with { daemon throws in
            try Self.open(daemon, "ann", "bob", background: true)
            try daemon.done(.disconnect, "desk@bob")
            try daemon.done(.foreground, "desk")
            try Self.wait(daemon, ["ann": "active", "bob": SceneInfo.unattached])
        }
    }

    @Test("What is asked of scenes that are none is refused in a sentence, and a changed kind of scenes keeps sessions")
    func badInput() throws {
        try Self.with { daemon throws in
            func trouble(_ body: () throws -> Void) -> String {
                do {
                    try body()
                    return "nothing"
                } catch { return "\(error)" }
            }
            #expect(trouble { try Self.open(daemon, "a b") }.contains("is not a valid scene name"))
            #expect(trouble { try daemon.done(.background, "desk@ann") }.contains("there is no scene desk@ann"))
            try Self.open(daemon, "ann")
            for verb in [Verb.suspend, .restart, .hold] {
                #expect(trouble { try daemon.done(verb, "desk@ann") }.contains("it has no process of its own"))
            }
            #expect(trouble { try daemon.done(.stop, "desk@ann") }.contains("‘torpor scene discard’ end scenes"))
            #expect(
                trouble { _ = try daemon.verbs(.background, ["desk@ann", "desk"]) }.contains(
                    "name them in separate requests"
                )
            )
            #expect(
                trouble { try daemon.openScene("ann", of: "desk") { $0.session = ["n": 1] } }.contains(
                    "was opened with another session"
                )
            )
            // No app, no template: the sessions wait for it.
            try daemon.apply("")
            try daemon.eventually("it is gone") { try daemon.list().allSatisfy { $0.name != "desk" } }
            try daemon.apply(Self.toml())
            try Self.wait(daemon, ["ann": SceneInfo.unattached])
            try Self.open(daemon, "ann")
        }
    }
}
