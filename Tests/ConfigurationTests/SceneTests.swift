// SPDX-License-Identifier: Apache-2.0

import Lifecycle
import Linux
import Testing

@testable import Configuration

@Suite("Templates of scenes") struct SceneTests {
    private static let template = """
        [apps.db]
        exec = ["/bin/db"]
        [apps.code]
        exec = ["/bin/code", "--user=%s", "%i%%s"]
        directory = "/home/%s"
        environment = { HOME = "/home/%s", N = "%02i" }
        environment_file = ["-/etc/%s.env"]
        before_start = [["/bin/mkdir", "-p", "/run/%s"]]
        title = "Code of %s"
        ready = { http = "http://127.0.0.1:80/%s" }
        snapshot = { file = "/run/%s.png" }
        requires = ["db"]
        tags = ["class"]
        scenes = { max_live = 3, discard_after = "2h" }
        [[apps.code.sockets]]
        stream = "/run/code/%s.sock"
        symlinks = ["/run/%s"]

        """

    @Test("A template is no app, and a scene is what it says with the scene's name wherever %s stands")
    func scene() throws {
        let configuration = try load(Self.template).get()
        #expect(configuration.apps.map(\.name) == ["db"])
        #expect(configuration.templates.map(\.name) == ["code"])
        #expect(configuration.warnings.filter { $0.path.hasPrefix("apps.code.scenes") }.isEmpty)
        let app = try #require(configuration.template(named: "code")).scene(named: "al.ice-1")
        #expect(app.name == "code@al.ice-1" && app.template == "code" && app.scene == "al.ice-1" && app.instance == nil)
        #expect(app.exec == ["/bin/code", "--user=al.ice-1", "%i%al.ice-1"])
        #expect(app.directory == "/home/al.ice-1")
        #expect(app.environment == ["HOME": "/home/al.ice-1", "N": "%02i", "TORPOR_SCENE": "al.ice-1"])
        #expect(app.environmentFiles.map(\.path) == ["/etc/al.ice-1.env"])
        #expect(app.beforeStart.first?.command == ["/bin/mkdir", "-p", "/run/al.ice-1"])
        #expect(app.presentation.title == "Code of al.ice-1")
        #expect(app.sockets.first?.plan.address == .path("/run/code/al.ice-1.sock"))
        #expect(app.sockets.first?.symlinks == ["/run/al.ice-1"])
        #expect(app.snapshot?.source == .file("/run/al.ice-1.png"))
        guard case .probe(let probe) = app.ready, case .http(_, 80, let path) = probe.kind else {
            Issue.record("\(app.ready)")
            return
        }
        #expect(path == "/al.ice-1")
        #expect(app.launch == .onDemand && app.requires == ["db"] && app.tags == ["class"])
        #expect(
            app.scenes?.maxLive == 3 && app.scenes?.maxSessions == 1_000 && app.scenes?.discardAfter == .seconds(7200)
        )
        #expect(app.addressProblem == nil)
        // Its path is too long for a socket.
        let long = app.sockets.count == 1 ? String(repeating: "x", count: 58) : ""
        var deep = try #require(configuration.template(named: "code"))
        deep.sockets[0].plan.address = .path("/run/" + String(repeating: "y", count: 60) + "/%s")
        #expect(deep.scene(named: long).addressProblem?.contains("at most") == true)
    }

    @Test(
        "What scenes cannot have is refused in a sentence",
        arguments: [
            ("[[apps.a.sockets]]\nstream = \"127.0.0.1:80\"\n", "would be the same address for every scene"),
            ("[[apps.a.sockets]]\nstream = \"/run/a\"\n", "would be the same address for every scene"),
            (
                "[[apps.a.sockets]]\nstream = \"/run/%s\"\nsymlinks = [\"/run/b\"]\n",
                "would be the same symlink for every scene"
            ),
            ("instances = 2\n", "instances or scenes, not both"),
            ("launch = \"foreground\"\n", "are launched when they are opened"),
        ]
    )
    func refused(_ keys: String, _ sentence: String) throws {
        let result = load("[apps.a]\nexec = [\"/bin/a\", \"%s\"]\nscenes = {}\n" + keys)
        guard case .failure(let list) = result else {
            Issue.record("\(keys) is taken")
            return
        }
        #expect(list.description.contains(sentence), "\(list)")
    }

    @Test("cgroups that are never frozen get a warning, and those of a template one sentence alone")
    func cgroups() throws {
        let inside = "[apps.a]\nexec = [\"/bin/a\"]\nready = \"delegate\"\nscenes = { inside = true, cgroups = true }\n"
        let never = try load(inside + "background_time = \"none\"\n").get()
        #expect(never.warnings.map(\.message).contains { $0.contains("cgroups are never frozen") })
        #expect(try load(inside + "background_time = \"1m\"\n").get().warnings.isEmpty)
        guard case .failure(let list) = load("[apps.a]\nexec = [\"/bin/a\"]\nscenes = { cgroups = true }\n") else {
            Issue.record("cgroups of a template are taken")
            return
        }
        #expect(list.diagnostics.count == 1 && list.description.contains("cgroups is for scenes inside one process"))
    }

    @Test("Bounds, names of templates, and what others may say of them")
    func others() throws {
        func problems(_ text: String) -> String {
            guard case .failure(let list) = load(text) else { return "" }
            return list.description
        }
        let a = "[apps.a]\nexec = [\"/bin/a\", \"%s\"]\n"
        #expect(
            problems(a + "scenes = { max_live = 5, max_sessions = 4 }\n").contains(
                "max_live must not be more than max_sessions (4)"
            )
        )
        #expect(problems(a + "scenes = { max_live = 0 }\n").contains("out of range"))
        #expect(problems(a + "scenes = { most = 1 }\n").contains("there is no such key"))
        #expect(problems(a + "scenes = true\n").contains("expected a table"))
        let long = String(repeating: "n", count: 41)
        #expect(problems("[apps.\(long)]\nexec = [\"/bin/%s\"]\nscenes = {}\n").contains("at most 40 characters"))
        for key in ["requires", "after"] {
            for name in ["a", "a@x"] {
                let text = a + "scenes = {}\n[apps.b]\nexec = [\"b\"]\n\(key) = [\"\(name)\"]\n"
                #expect(problems(text).contains("is a template of scenes, which no app can wait for"))
            }
        }
        #expect(
            problems("[supervisor]\nmain = \"a\"\n" + a + "scenes = {}\n").contains(
                "is a template of scenes, which never runs itself"
            )
        )
        // A default of all apps is no mistake of the template's.
        let configuration = try load("[defaults]\nlaunch = \"background\"\n" + a + "scenes = {}\n").get()
        #expect(configuration.templates.first?.launch == .onDemand)
        // Scenes that do the same, but for a variable.
        let same = try load("[apps.a]\nexec = [\"/bin/a\"]\nscenes = {}\n").get()
        #expect(same.warnings.contains { $0.message.contains("differ only in $TORPOR_SCENE") })
    }

    @Test("An app with scenes inside is an app, launched when somebody wants it, and has a delegate")
    func inside() throws {
        let head = "[apps.a]\nexec = [\"/bin/a\"]\nready = \"delegate\"\n"
        let configuration = try load(head + "scenes = { inside = true, max_live = 2 }\n").get()
        let app = try #require(configuration.apps.first)
        #expect(configuration.templates.isEmpty && app.scenes == nil && app.innerScenes?.maxLive == 2)
        #expect(app.rules.hasScenes && app.launch == .onDemand && configuration.warnings.isEmpty)
        let launched = try load(head + "launch = \"background\"\nscenes = { inside = true }\n").get()
        #expect(launched.apps.first?.launch == .background)
        let wrong: [(String, String)] = [
            ("[apps.a]\nexec = [\"/bin/a\"]\n", "write ready = \"delegate\""),
            (head + "exits_on_suspend = true\n", "keeps running when they leave the foreground"),
            (head + "type = \"oneshot\"\n", "a oneshot app cannot have scenes"),
            (head + "instances = 2\n", "instances or scenes, not both"),
            (head + "signals = { sceneDidDisconnect = \"SIGUSR1\" }\n", "a signal cannot say which scene it is about"),
        ]
        for (text, complaint) in wrong {
            guard case .failure(let problems) = load(text + "scenes = { inside = true }\n") else {
                Issue.record("taken: \(text)")
                continue
            }
            #expect(problems.description.contains(complaint), "\(problems)")
        }
    }

    @Test("Names of scenes are those of apps, and short enough behind the template's")
    func names() {
        for name in ["alice", "a.b", "x_1", String(repeating: "x", count: 58)] {
            #expect(AppName.problem(scene: name, of: "code") == nil, "\(name)")
            #expect(AppName.sceneParts("code@" + name)?.scene == name)
        }
        for name in ["", ".x", "-x", "a b", "a/b", "a@b", "ä", "a\n", String(repeating: "x", count: 59)] {
            #expect(AppName.problem(scene: name, of: "code") != nil, "\(name)")
            #expect(AppName.sceneParts("code@" + name) == nil)
        }
        #expect(
            AppName.sceneParts("code") == nil && AppName.sceneParts("@x") == nil && AppName.sceneParts(".x@y") == nil
        )
    }
}
