// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import MockLogind
import Testing
import TorporAPI
import Varlink

@Suite(
    "The focus moves apps",
    .enabled(if: SwayScene.obstacle == nil, "sway and foot are needed: make test installs them")
)
struct FocusTests {
    @Test("The app whose window has the focus is in the foreground, and no other") func focus() throws {
        try SwayScene.run { scene in
            let daemon = scene.daemon
            try scene.start("one")
            try scene.start("two")
            try scene.expectAway("one")
            try scene.focus(on: "one", leaving: "two")
            try scene.focus(on: "two", leaving: "one")
            // A workspace without windows.
            try scene.ask("workspace", "5")
            try scene.expectAway("two")
            try scene.ask("workspace", "1")
            try daemon.waitFor("two", "active")
            // The window is gone with its process, and the other one gets the focus.
            try daemon.done(.stop, "two")
            try daemon.waitFor("one", "active")
            #expect(try daemon.summary("two").state == "not-running")
        }
    }

    @Test("A person's word wins until the focus changes") func person() throws {
        try SwayScene.run { scene in
            let daemon = scene.daemon
            try scene.start("one")
            try scene.start("two")
            try scene.expectAway("one")
            try daemon.done(.background, "two")
            let moves = try (scene.moves("one"), scene.moves("two"))
            // Something happens to the windows, and the focus stays.
            try scene.ask("[app_id=two]", "floating", "enable")
            try scene.ask("[app_id=two]", "focus")
            try scene.ask("[app_id=two]", "floating", "disable")
            try scene.expectAway("two")
            #expect(try (scene.moves("one"), scene.moves("two")) == moves)
            try scene.focus(on: "one", leaving: "two")
            try scene.focus(on: "two", leaving: "one")
        }
    }

    @Test("The app of the focused window comes back when what a person brought in front of it ends")
    func inFront() throws {
        let mobile = """
            [apps.film]
            exec = ["/bin/sleep", "1000"]
            launch = "on-demand"
            restart = "never"
            [policies.mobile]
            path = "\(Built.path("libMobilePolicy.so"))"
            deadline = "5s"
            options = { keep_running = ["sway"] }

            """
        try SwayScene.run(keys: "policies = [\"mobile\"]", mobile) { scene in
            let daemon = scene.daemon
            try scene.start("one")
            try daemon.done(.foreground, "film")
            try scene.expectAway("one")
            #expect(try scene.hasFocus("one"))
            kill(try daemon.process(of: "film"), SIGKILL)
            try daemon.waitFor("one", "active")
            // A person who sends the app away means it.
            try daemon.done(.foreground, "film")
            try scene.expectAway("one")
            try daemon.done(.background, "one")
            let moves = try scene.moves("one")
            kill(try daemon.process(of: "film"), SIGKILL)
            try daemon.waitFor("film", "not-running")
            try scene.start("two")
            #expect(try scene.moves("one") == moves)
        }
    }

    @Test("What is started from a menu is not sent away when the menu closes")
    func menu() throws {
        let slow = """
            [apps.slow]
            exec = ["/bin/sh", "-c", "while [ ! -e @D/go ]; do sleep 0.1; done; exec sleep 1000"]
            ready = { file = "@D/go" }
            launch_deadline = "none"
            launch = "on-demand"
            restart = "never"

            """
        try SwayScene.run(slow) { scene in
            let daemon = scene.daemon
            try scene.start("one")
            // A window of no app takes the focus, and goes once the app is on its way.
            let socket = daemon.directory + "/run/wayland-1"
            let menu = "touch @M; until [ -e @M.end ]; do sleep 0.1; done".replacing(
                "@M",
                with: daemon.directory + "/menu"
            )
            let terminal = ["/usr/bin/foot", "-c", "/dev/null", "-a", "menu", "sh", "-c", menu]
            try scene.ask("exec", terminal.map { "'\($0)'" }.joined(separator: " "))
            try daemon.eventually("the menu is there") {
                File.exists(daemon.directory + "/menu") && File.exists(socket)
            }
            try scene.expectAway("one")
            let before = try scene.moves("one")
            var request = VerbRequest(verb: .foreground, apps: ["slow"])
            request.wait = false
            _ = try daemon.call(.verb(request))
            try daemon.eventually("slow is launching") { try daemon.summary("slow").transition == "launching" }
            try File.write(daemon.directory + "/menu.end", "")
            try daemon.eventually("the focus is back") { try scene.hasFocus("one") }
            // Some seconds after it has become active, slow no longer counts as about to open its first window.
            try daemon.eventually("torpord knows") { daemon.log.contains("the focus is back on one") }
            try File.write(daemon.directory + "/go", "")
            try daemon.waitFor("slow", "active")
            // The next window gets the focus later than the first one got it back.
            try scene.start("two")
            #expect(try scene.moves("one") == before)
            // The menu was a process of Sway's, which is an app: it stays where it is.
            #expect(try scene.moves("sway") == 0)
        }
    }

    @Test("Apps move the focus: what a person asks for has its window raised, and the focus that follows moves nothing")
    func raised() throws {
        let opener = """
            [apps.opener]
            exec = ["/bin/sleep", "1000"]
            launch = "on-demand"
            url_schemes = ["none"]
            open_command = ["/bin/true", "%u"]

            """
        try SwayScene.run(opener) { scene in
            let daemon = scene.daemon
            func torpor(_ words: String...) throws {
                let result = try Spawn.run([Built.path("torpor")] + words + ["--socket", daemon.socket])
                #expect(result.code == 0, "\(words): \(result.output)")
            }
            func expectRaised(_ app: String, leaving other: String) throws {
                try daemon.eventually("\(app) has the focus") { try scene.hasFocus(app) }
                try daemon.waitFor(app, "active")
                try scene.expectAway(other)
            }
            try scene.start("one")
            try scene.start("two")
            try scene.expectAway("one")
            let moves = try scene.moves("one")
            // From sleep, on another workspace.
            try scene.ask("[app_id=one]", "move", "container", "to", "workspace", "7")
            try daemon.done(.suspend, "one")
            try torpor("foreground", "one")
            try expectRaised("one", leaving: "two")
            #expect(try scene.moves("one") == moves, "it was in the foreground already")
            // The answer to an alert.
            try torpor("notify", "two", "tea", "--id", "tea")
            try daemon.eventually("it is open") {
                try Spawn.run([Built.path("torpor"), "alerts", "--socket", daemon.socket]).output.contains("tea")
            }
            try torpor("alerts", "two", "--answer", "tea")
            try expectRaised("two", leaving: "one")
            // An app without a window takes the focus from none, and neither does a word that shows nothing.
            try torpor("open", "none:1")
            try torpor("background", "one")
            try torpor("resume", "one")
            try daemon.waitFor("one", "background")
            #expect(try scene.hasFocus("two"))
            try torpor("start", "one")
            try expectRaised("one", leaving: "two")
            try scene.focus(on: "two", leaving: "one")
            try scene.focus(on: "one", leaving: "two")
        }
    }

    @Test("doctor says whose focus is followed and by what, and alerts that nobody sees")
    func doctor() throws {
        try SwayScene.run { scene in
            func page(_ verb: String) throws -> String {
                try Spawn.run([Built.path("torpor"), verb, "--socket", scene.daemon.socket]).output
            }
            let user = Users.isRoot ? 65534 : Users.effectiveUID
            try scene.daemon.eventually("it is followed") {
                try page("doctor").contains(
                    "focus: that of Sway in the session of user \(user), by torpor-desktop, process"
                )
            }
            #expect(try !page("doctor").contains("alerts on the desktop") && page("alerts") == "no alerts\n")
            _ = try Spawn.run([
                Built.path("torpor"), "notify", "--socket", scene.daemon.socket, "one", "tea", "--id", "tea",
            ])
            let problem = "the session's bus cannot be used"
            try scene.daemon.eventually("nobody sees it") { try page("alerts").contains(problem) }
            let text = try page("doctor").split(separator: "\n").map(String.init)
            let place = try #require(text.firstIndex { $0.hasPrefix("missing alerts on the desktop") }, "\(text)")
            #expect(text[place + 1].contains(problem) && !text[place].contains("runs"), "\(text)")
        }
    }

    @Test("torpord and torpor-desktop may be killed at any time") func killed() throws {
        try SwayScene.run { scene in
            let daemon = scene.daemon
            try scene.start("one")
            try scene.start("two")
            try scene.expectAway("one")
            let helper = try #require(scene.helper)
            // A person's word outlives torpord too.
            try daemon.done(.background, "two")
            let moves = try scene.moves("two")
            try daemon.replaceTorpord()
            #expect(scene.helper == helper, "the helper goes on")
            try scene.focus(on: "one", leaving: "two")
            #expect(try scene.moves("two") == moves, "it is in the background already")
            try scene.focus(on: "two", leaving: "one")
            #expect(scene.helper == helper)
            kill(helper, SIGKILL)
            try daemon.eventually("another helper runs") { scene.helper.map { $0 != helper } ?? false }
            try scene.focus(on: "one", leaving: "two")
            // Both at once.
            if let second = scene.helper { kill(second, SIGKILL) }
            try daemon.replaceTorpord()
            try scene.focus(on: "two", leaving: "one")
        }
    }

    @Test(
        "Root's supervisor follows the focus as the user of the session",
        .enabled(if: Users.isRoot && MockLogind.obstacle == nil, "needs root, python3-dbusmock and dbus")
    )
    func root() throws {
        let logind = try MockLogind()
        try logind.startLogind()
        try logind.run("add_session('c1', 0)")
        let user = "user = \"65534\"\ngroup = \"65534\""
        let terminal = { (name: String) in
            """
            [apps.\(name)]
            exec = ["/usr/bin/foot", "-c", "/dev/null", "-a", "\(name)", "sleep", "1000"]
            environment = { WAYLAND_DISPLAY = "wayland-1", XDG_RUNTIME_DIR = "/run/user/65534" }
            launch = "on-demand"
            restart = "never"
            \(user)

            """
        }
        let toml = """
            focus = "sway"
            session = "seat0"
            [apps.sway]
            exec = ["/usr/bin/sway", "-c", "@D/sway.conf"]
            environment = { WLR_BACKENDS = "headless", WLR_LIBINPUT_NO_DEVICES = "1", WLR_RENDERER = "pixman", \
            XDG_RUNTIME_DIR = "/run/user/65534" }
            restart = "never"
            \(user)
            \(terminal("one"))
            \(terminal("two"))
            """
        // Folders of sessions that no other program sees.
        let script = """
            mount --make-rprivate / && mkdir -p /run/user && mount -t tmpfs none /run/user
            mkdir -m 700 /run/user/65534 && chown 65534:65534 /run/user/65534
            unset SWAYSOCK WAYLAND_DISPLAY DISPLAY XDG_RUNTIME_DIR DBUS_SESSION_BUS_ADDRESS; exec "$@"
            """
        let daemon = try Daemon(
            toml,
            files: ["sway.conf": "xwayland disable\n"],
            environment: ["DBUS_SYSTEM_BUS_ADDRESS": logind.address, "TORPOR_RESTART_DELAY_CAP_MS": "0"],
            wrapper: ["/usr/bin/unshare", "--mount", "/bin/sh", "-ec", script, "sh"]
        )
        try daemon.waitUntilItAnswers()
        let scene = SwayScene(daemon: daemon, folder: "/proc/\(daemon.pid)/root/run/user/65534")
        try daemon.eventually("Sway answers") { scene.isReady }
        // The session in front is root's: that user is not Sway's.
        try scene.start("one", isFollowed: false)
        // Now it is the user's.
        try logind.run("add_session('c2', 65534)")
        try daemon.eventually("torpor-desktop is that user's") {
            scene.helper.map { (try? ProcFS.realUser($0)) == 65534 } ?? false
        }
        try scene.start("two")
        try scene.focus(on: "one", leaving: "two")
        try scene.focus(on: "two", leaving: "one")
        try daemon.replaceTorpord()
        try scene.focus(on: "one", leaving: "two")
        #expect(scene.helper.map { (try? ProcFS.realUser($0)) == 65534 } == true)
        try daemon.stop()
    }

    @Test(
        "i3 does not name processes: the X server is asked",
        .enabled(if: SwayScene.obstacleOfI3 == nil, "i3, xvfb and xterm are needed: make test installs them")
    )
    func i3() throws {
        // No other test has that number.
        let display = ":\(1000 + ThisProcess.pid % 50_000)"
        let terminal = { (name: String) in
            """
            [apps.\(name)]
            exec = ["/usr/bin/xterm", "-name", "\(name)", "-e", "sleep", "1000"]
            environment = { DISPLAY = "\(display)" }
            launch = "on-demand"
            restart = "never"

            """
        }
        let toml = """
            focus = "i3"
            [apps.screen]
            exec = ["/usr/bin/Xvfb", "\(display)", "-nolisten", "tcp", "-screen", "0", "320x200x24"]
            ready = { file = "/tmp/.X11-unix/X\(display.dropFirst())" }
            restart = "never"
            [apps.i3]
            exec = ["/usr/bin/i3", "-c", "@D/i3.conf"]
            environment = { DISPLAY = "\(display)", XDG_RUNTIME_DIR = "@D/run" }
            requires = ["screen"]
            after = ["screen"]
            restart = "never"
            \(terminal("one"))
            \(terminal("two"))
            """
        let daemon = try Daemon(
            toml,
            files: ["i3.conf": "# i3 config file (v4)\nfont pango:monospace 8\n"],
            environment: ["DISPLAY": display],
            wrapper: [
                "/bin/sh", "-ec",
                "mkdir @D/run; export XDG_RUNTIME_DIR=@D/run HOME=@D DBUS_SESSION_BUS_ADDRESS=unix:path=@D/run/bus; "
                    + "exec \"$@\"", "sh",
            ]
        )
        try daemon.waitUntilItAnswers()
        let folder = daemon.directory + "/run/i3"
        try daemon.eventually("i3 answers") {
            ((try? File.list(folder)) ?? []).contains { $0.hasPrefix("ipc-socket.") }
        }
        let name = try #require(File.list(folder).first { $0.hasPrefix("ipc-socket.") })
        func ask(_ words: String...) throws -> String {
            try Spawn.run(["/usr/bin/i3-msg", "-s", folder + "/" + name] + words).output
        }
        let scene = SwayScene(daemon: daemon)
        for app in ["one", "two"] {
            try daemon.done(.start, app)
            try daemon.eventually("\(app) has the focus") { try scene.moves(app) > 0 }
            try daemon.eventually("\(app) has a window") {
                try ask("-t", "get_tree").contains("\"instance\":\"\(app)\"")
            }
        }
        try scene.expectAway("one")
        for (app, other) in [("one", "two"), ("two", "one"), ("one", "two")] {
            let before = try scene.moves(app)
            _ = try ask("[instance=\(app)]", "focus")
            try daemon.eventually("the focus stays on \(app)") { try scene.moves(app) > before }
            try daemon.waitFor(app, "active")
            try scene.expectAway(other)
        }
        // Apps move the focus.
        for (app, other) in [("two", "one"), ("one", "two")] {
            try daemon.done(.foreground, app)
            try daemon.eventually("i3 raises \(app)") {
                SwayScene.focused(in: try JSON.parse(try ask("-t", "get_tree")), "instance") == app
            }
            try scene.expectAway(other)
            try daemon.waitFor(app, "active")
        }
        try daemon.stop()
    }

    @Test("It is followed and given up as the configuration says") func configured() throws {
        try SwayScene.run { scene in
            let daemon = scene.daemon
            try scene.start("one")
            try daemon.eventually("torpor-desktop runs") { scene.helper != nil }
            let helper = try #require(scene.helper)
            let path = daemon.directory + "/torpor.toml"
            let text = try File.readString(path)
            try File.replace(path, Array(text.replacingOccurrences(of: "focus = \"sway\"", with: "").utf8))
            _ = try daemon.call(.apply(ApplyRequest()))
            try daemon.eventually("it ends") { !Truth.isAlive(helper) && scene.helper == nil }
            try File.replace(path, Array(text.utf8))
            _ = try daemon.call(.apply(ApplyRequest()))
            try daemon.eventually("it runs again") { scene.helper != nil }
            try scene.start("two")
            try scene.focus(on: "one", leaving: "two")
        }
    }
}
