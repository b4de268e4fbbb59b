// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

/// Processes that work for one scene inside an app, in a cgroup of its own.
@Suite("Cgroups of scenes inside an app") struct SceneCgroupTests {
    /// Starts a worker for each scene, and records whether that is frozen when its scene is told something.
    private static let workers = """
        groups = {}
        def work(scene):
            signal.signal(signal.SIGTERM, lambda *_: (record("term " + scene), os._exit(0)))
            while True:
                signal.pause()
        def start(message):
            scene, group = message["parameters"]["scene"], message["parameters"]["options"]["cgroup"]
            if group is None:
                record("none " + scene)
                return "done"
            worker = os.fork()
            if worker == 0:
                work(scene)
            with open(group + "/cgroup.procs", "w") as file:
                file.write(str(worker))
            groups[scene] = group
            record("worker %s %d %s" % (scene, worker, group))
            return "failed" if scene == "nobody" else "done"
        def seen(message):
            scene = message["parameters"]["scene"]
            with open(groups[scene] + "/cgroup.events") as file:
                record("%s %s %s" % (message["name"], scene, "frozen" if "frozen 1" in file.read() else "awake"))
            return None if os.path.exists(HERE + "/hold") else "done"
        """

    private static let files = Delegates.files(
        "sceneWillConnect=start, sceneWillEnterForeground=seen, sceneDidDisconnect=seen",
        before: workers
    )

    private static func toml(_ scenes: String = "cgroups = true", _ keys: String = "") -> String {
        """
        [apps.desk]
        exec = ["/usr/bin/python3", "-S", "@D/app.py"]
        ready = "delegate"
        background_time = "100ms"
        launch_deadline = "60s"
        transition_deadline = "60s"
        \(keys)
        scenes = { inside = true, \(scenes) }

        """
    }

    private struct Worker {
        let pid: Int32
        let group: String

        var isFrozen: Bool { (try? Cgroup.events(group).frozen) == true }
        var isIn: Bool { (try? Cgroup.procs(group)) == [pid] }
    }

    private static func with(_ keys: String = "", _ body: (Daemon) throws -> Void) throws {
        try withRecovery(toml("cgroups = true", keys), files: files) { daemon throws in
            guard !Truth.cgroups(of: daemon.runtime).isEmpty else { return print("skipped: no cgroups here") }
            try File.setMode(daemon.directory, 0o777)
            try body(daemon)
        }
    }

    /// Opens a scene; the worker that it has.
    private static func open(_ name: String, _ daemon: Daemon) throws -> Worker {
        try daemon.openScene(name, of: "desk")
        return try worker(of: name, daemon)
    }

    private static func worker(of name: String, _ daemon: Daemon) throws -> Worker {
        let line = daemon.records("desk").last { $0.hasPrefix("worker \(name) ") }
        let words = try #require(line).split(separator: " ").map(String.init)
        return Worker(pid: try #require(Int32(words[2])), group: words[3])
    }

    private static func info(_ scene: String, _ daemon: Daemon) throws -> SceneInfo? {
        try daemon.scenes().scenes.first { $0.name == scene }
    }

    /// Sends a scene to the background, and waits until its worker is frozen.
    private static func rest(_ scene: String, _ worker: Worker, _ daemon: Daemon) throws {
        try daemon.done(.background, "desk@" + scene)
        try daemon.eventually("the worker of \(scene) is frozen") { worker.isFrozen }
    }

    @Test("A worker is frozen while its scene is out of use, and goes with it")
    func follows() throws {
        try Self.with { daemon throws in
            let (ann, bob) = (try Self.open("ann", daemon), try Self.open("bob", daemon))
            #expect(ann.isIn && bob.isIn && ann.group.hasSuffix("/desk/@ann"))
            try Self.rest("ann", ann, daemon)
            #expect(!bob.isFrozen)
            var listed = try #require(try Self.info("ann", daemon))
            #expect(listed.processes == 1 && listed.isFrozen == true)
            listed = try #require(try Self.info("bob", daemon))
            #expect(listed.processes == 1 && listed.isFrozen == false)
            // It is awake before its scene is told that it comes back, and before it goes.
            try daemon.done(.foreground, "desk@ann")
            #expect(!ann.isFrozen)
            try Self.rest("ann", ann, daemon)
            try daemon.done(.disconnect, "desk@ann")
            let told = daemon.records("desk").filter { $0.hasPrefix("scene") }
            #expect(told == ["sceneWillEnterForeground ann awake", "sceneDidDisconnect ann awake"])
            try daemon.eventually("it is gone") { !Truth.isAlive(ann.pid) && !File.exists(ann.group) }
            #expect(try Self.info("ann", daemon)?.processes == nil)
            // It comes with another one, and what the app leaves goes with the app.
            let again = try Self.open("ann", daemon)
            #expect(again.isIn && again.pid != ann.pid)
            try daemon.done(.stop, "desk")
            #expect(!Truth.isAlive(again.pid) && !Truth.isAlive(bob.pid) && !File.exists(bob.group))
        }
    }

    @Test("What works for a background task is not frozen")
    func task() throws {
        try Self.with { daemon throws in
            let (ann, _) = (try Self.open("ann", daemon), try Self.open("bob", daemon))
            try Self.rest("ann", ann, daemon)
            try daemon.ask("groups.update(token=d.begin('index'))", app: "desk")
            try daemon.eventually("it is awake") { !ann.isFrozen }
            try daemon.ask("d.end(groups['token'])", app: "desk")
            try daemon.eventually("it is frozen again") { ann.isFrozen }
        }
    }

    @Test(
        "An app with a frozen worker is suspended and resumed, whoever is away meanwhile, and the worker stays frozen",
        arguments: ["signal", "freezer"],
        [Loss.killed, .both]
    )
    func suspended(with: String, loss: Loss) throws {
        try Self.with("suspend_with = \"\(with)\"") { daemon throws in
            let (ann, bob) = (try Self.open("ann", daemon), try Self.open("bob", daemon))
            let pid = try #require(try daemon.summary("desk").pid)
            try Self.rest("ann", ann, daemon)
            try daemon.lose(loss)
            #expect(ann.isFrozen && ann.isIn)
            #expect(try Self.info("ann", daemon)?.isFrozen == true)
            try daemon.done(.suspend, "desk")
            if with == "signal" { #expect(Truth.isStopped(pid)) }
            try daemon.done(.foreground, "desk@bob")
            #expect(!Truth.isStopped(pid) && ann.isFrozen && !bob.isFrozen)
            // Everybody hears that it ends.
            try daemon.done(.stop, "desk")
            #expect(Set(daemon.records("desk")).isSuperset(of: ["term ann", "term bob"]))
        }
    }

    @Test("A scene that went while torpord was away leaves nothing", arguments: [Loss.killed, .both])
    func left(loss: Loss) throws {
        try Self.with { daemon throws in
            let (ann, bob) = (try Self.open("ann", daemon), try Self.open("bob", daemon))
            try daemon.done(.background, "desk@ann")
            let stray = ann.group.replacingOccurrences(of: "@ann", with: "@nobody")
            try daemon.lose(loss) {
                try Cgroup.create(stray)
                try Cgroup.add(stray, pid: ann.pid)
            }
            try daemon.eventually("what is nobody's is gone") { !File.exists(stray) && !Truth.isAlive(ann.pid) }
            #expect(bob.isIn && File.exists(ann.group))
        }
    }

    @Test("What worked for a scene until it was disconnected does not work for it when it comes back at once")
    func again() throws {
        try Self.with { daemon throws in
            let (ann, _) = (try Self.open("ann", daemon), try Self.open("bob", daemon))
            try daemon.done(.background, "desk@ann")
            try File.write(daemon.directory + "/hold", "")
            _ = try daemon.verb(.disconnect, "desk@ann") { $0.wait = false }
            let message = try daemon.waitForMessage("sceneDidDisconnect", app: "desk")
            try daemon.openScene("ann", of: "desk") { ($0.wait, $0.background) = (false, true) }
            try daemon.ask("d.answer(\(try #require(message.id)))", app: "desk")
            try daemon.eventually("it is connected again") { try Self.worker(of: "ann", daemon).pid != ann.pid }
            let new = try Self.worker(of: "ann", daemon)
            try daemon.eventually("only the new one is there") { !Truth.isAlive(ann.pid) && new.isIn }
        }
    }

    @Test("A scene that is refused leaves no worker")
    func refused() throws {
        try Self.with { daemon throws in
            #expect(throws: (any Error).self) { _ = try Self.open("nobody", daemon) }
            let worker = try Self.worker(of: "nobody", daemon)
            try daemon.eventually("its worker is gone") { !Truth.isAlive(worker.pid) && !File.exists(worker.group) }
        }
    }

    @Test("The main process does not stay in a scene's, and is neither frozen nor ended with it")
    func main() throws {
        try Self.with { daemon throws in
            let (ann, _) = (try Self.open("ann", daemon), try Self.open("bob", daemon))
            let pid = try #require(try daemon.summary("desk").pid)
            let move = "open(groups['ann'] + '/cgroup.procs', 'w').write(str(os.getpid()))"
            try daemon.ask(move, app: "desk")
            #expect(Set(try Cgroup.procs(ann.group)) == [ann.pid, pid])
            try Self.rest("ann", ann, daemon)
            #expect(ann.isIn)
            try daemon.done(.foreground, "desk@ann")
            try daemon.ask(move, app: "desk")
            try daemon.done(.background, "desk@ann")
            try daemon.done(.disconnect, "desk@ann")
            try daemon.eventually("it is gone") { !Truth.isAlive(ann.pid) && !File.exists(ann.group) }
            let summary = try daemon.summary("desk")
            #expect(summary.pid == pid && summary.state == "active")
        }
    }

    @Test("One that left the configuration while torpord was away hears that it ends, frozen or not")
    func orphan() throws {
        try Self.with { daemon throws in
            let (ann, _) = (try Self.open("ann", daemon), try Self.open("bob", daemon))
            try Self.rest("ann", ann, daemon)
            try daemon.lose(.both) {
                _ = try Daemon.writeConfiguration(
                    "[apps.other]\nexec = [\"/bin/sleep\", \"1000\"]\n",
                    in: daemon.directory
                )
            }
            try daemon.waitForRecord("desk", "term ann")
        }
    }

    @Test("Another user's app puts its workers there, and nothing anywhere else", .enabled(if: geteuid() == 0))
    func user() throws {
        try Self.with("user = \"nobody\"") { daemon throws in
            let ann = try Self.open("ann", daemon)
            #expect(ann.isIn)
            let out = ann.group.replacingOccurrences(of: "/desk/@ann", with: "")
            for path in [out + "/cgroup.procs", ann.group + "/cgroup.freeze", ann.group + "/cgroup.kill"] {
                #expect(try daemon.ask("os.access('\(path)', os.W_OK)", app: "desk").boolValue == false, "\(path)")
            }
        }
    }

    @Test("There is none unless it is wanted; it comes with the next connection after an edit")
    func edited() throws {
        try withDaemon(Self.toml("max_live = 3"), files: Self.files) { daemon throws in
            guard !Truth.cgroups(of: daemon.runtime).isEmpty else { return print("skipped: no cgroups here") }
            try daemon.openScene("ann", of: "desk")
            #expect(daemon.records("desk").contains("none ann"))
            #expect(try Self.info("ann", daemon)?.processes == nil)
            try daemon.apply(Self.toml().replacingOccurrences(of: "@D", with: daemon.directory))
            #expect(try Self.open("bob", daemon).isIn)
            #expect(try daemon.summary("desk").incarnation == 1)
            // And back: who has one keeps it until it goes.
            let bob = try Self.worker(of: "bob", daemon)
            try daemon.apply(Self.toml("max_live = 3").replacingOccurrences(of: "@D", with: daemon.directory))
            try Self.rest("bob", bob, daemon)
            try daemon.done(.disconnect, "desk@bob")
            try daemon.eventually("it is gone") { !Truth.isAlive(bob.pid) && !File.exists(bob.group) }
            try daemon.openScene("bob", of: "desk")
            try daemon.waitForRecord("desk", "none bob")
        }
    }
}
