// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

/// Alerts on a real desktop: torpord, torpor-desktop, a session's bus, and mako under Sway without a screen.
@Suite(
    "Alerts on a desktop",
    .enabled(if: SwayScene.obstacle == nil, "sway and foot are needed: make test installs them"),
    .enabled(
        if: ["mako", "makoctl", "dbus-daemon", "busctl"].allSatisfy { File.isExecutable("/usr/bin/" + $0) },
        "mako and dbus are needed: make test installs them"
    )
)
struct DesktopAlertTests {
    private static let apps = """
        [apps.bus]
        exec = ["/usr/bin/dbus-daemon", "--config-file=@D/bus.conf", "--nofork", "--nopidfile"]
        restart = "never"
        [apps.mako]
        exec = ["/usr/bin/mako", "-c", "@D/mako.conf"]
        environment = { DBUS_SESSION_BUS_ADDRESS = "unix:path=@D/run/bus", WAYLAND_DISPLAY = "wayland-1" }
        restart_backoff = { initial = "10ms", limit = 100 }
        [apps.web]
        exec = ["/bin/sleep", "1000"]
        title = "Web"
        background_time = "1min"

        """

    private static let files = [
        "mako.conf": "default-timeout=0\n",
        "bus.conf": """
        <busconfig>
          <type>session</type>
          <listen>unix:path=@D/run/bus</listen>
          <auth>EXTERNAL</auth>
          <policy context="default">
            <allow send_destination="*" eavesdrop="true"/>
            <allow eavesdrop="true"/>
            <allow own="*"/>
          </policy>
        </busconfig>

        """,
    ]

    /// makoctl as the person of the session.
    private static func mako(_ scene: SwayScene, _ words: String...) throws -> String {
        let person = Users.isRoot ? ["/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] : []
        let environment = [
            "DBUS_SESSION_BUS_ADDRESS=unix:path=\(scene.folder)/bus", "XDG_RUNTIME_DIR=\(scene.folder)",
        ]
        return try Spawn.run(person + ["/usr/bin/env"] + environment + ["/usr/bin/makoctl"] + words).output
    }

    @Test("An alert of an app that sleeps is shown, outlives torpord, and a click brings the app back")
    func clicked() throws {
        try SwayScene.run(Self.apps, files: Self.files) { scene in
            let daemon = scene.daemon
            func notify(_ words: String...) throws {
                let (code, output) = try Spawn.run([Built.path("torpor"), "notify", "--socket", daemon.socket] + words)
                #expect(code == 0, "\(words): \(output)")
            }
            try daemon.done(.start, "web")
            let pid = try #require(daemon.summary("web").pid)
            try daemon.done(.suspend, "web")
            try notify("web", "tea <b>&", "--id", "tea", "--body", "in the kitchen")
            try daemon.eventually("mako shows it") { try Self.mako(scene, "list").contains("tea <b>&") }
            #expect(try Self.mako(scene, "list").contains("\"Web\""))
            #expect(try ProcFS.stat(pid).state == "T", "it is not woken")
            let helper = try #require(scene.helper)
            try daemon.replaceTorpord()
            #expect(scene.helper == helper)
            _ = try Self.mako(scene, "invoke")
            try daemon.waitFor("web", "active")
            #expect(try daemon.summary("web").pid == pid)
            try daemon.eventually("it is gone from the screen") { try !Self.mako(scene, "list").contains("tea") }

            // One that is answered elsewhere leaves the screen, and another mako shows what is open.
            try daemon.done(.suspend, "web")
            try notify("web", "first", "--id", "first")
            try notify("web", "second", "--id", "second")
            try daemon.eventually("mako shows both") {
                let list = try Self.mako(scene, "list")
                return list.contains("first") && list.contains("second")
            }
            let (code, output) = try Spawn.run([
                Built.path("torpor"), "alerts", "--socket", daemon.socket, "web", "--answer", "first",
            ])
            #expect(code == 0, "\(output)")
            try daemon.eventually("it leaves the screen") { try !Self.mako(scene, "list").contains("first") }
            kill(try #require(daemon.summary("mako").pid), SIGKILL)
            try daemon.eventually("another mako shows the other") {
                try Self.mako(scene, "list").contains("second") && daemon.summary("mako").restarts > 0
            }
        }
    }

    /// How often mako shows a notification with this title.
    private static func count(_ title: String, _ scene: SwayScene) throws -> Int {
        try mako(scene, "list").components(separatedBy: title).count - 1
    }

    private static func torpor(_ scene: SwayScene, _ words: String...) throws -> String {
        let (code, output) = try Spawn.run([Built.path("torpor")] + words + ["--socket", scene.daemon.socket])
        #expect(code == 0 || words == ["doctor"], "\(words): \(output)")
        return output
    }

    private static let commands = """
        [supervisor.alerts]
        commands = [["/bin/sh", "-c", "echo $TORPOR_ALERT_TITLE >>@D/home/commands"]]

        """

    @Test("A server that hangs is said to, and what came meanwhile is shown once when it goes on")
    func silentServer() throws {
        try SwayScene.run(keys: Self.commands, Self.apps, files: Self.files) { scene in
            let daemon = scene.daemon
            try daemon.done(.start, "web")
            try daemon.done(.suspend, "web")
            _ = try Self.torpor(scene, "notify", "web", "tea", "--id", "tea")
            try daemon.eventually("mako shows it") { try Self.count("tea", scene) == 1 }
            let server = try #require(daemon.summary("mako").pid)
            kill(server, SIGSTOP)
            for title in ["milk", "bread"] { _ = try Self.torpor(scene, "notify", "web", title, "--id", title) }
            let problem = "the notification server mako"
            try daemon.eventually("alerts say why") {
                let output = try Self.torpor(scene, "alerts")
                return output.contains(problem) && output.contains("does not answer")
            }
            #expect(try Self.torpor(scene, "doctor").contains(problem))
            try daemon.eventually("the commands go on") {
                try File.readString(daemon.directory + "/home/commands") == "tea\nmilk\nbread\n"
            }
            _ = try Self.torpor(scene, "alerts", "web", "--answer", "milk")
            try daemon.done(.suspend, "web")
            let helper = scene.helper
            try daemon.replaceTorpord()
            #expect(scene.helper == helper)
            try daemon.eventually("the next torpord says it too") { try Self.torpor(scene, "alerts").contains(problem) }
            kill(server, SIGCONT)
            try daemon.eventually("mako shows what is open") {
                try [Self.count("tea", scene), Self.count("milk", scene), Self.count("bread", scene)] == [1, 0, 1]
            }
            try daemon.eventually("alerts have no problem") { try !Self.torpor(scene, "alerts").contains(problem) }
            // What is on the screen has buttons that work.
            for title in ["bread", "tea"] {
                try daemon.done(.suspend, "web")
                _ = try Self.mako(scene, "invoke")
                try daemon.waitFor("web", "active")
                try daemon.eventually("\(title) is gone") { try Self.count(title, scene) == 0 }
            }
        }
    }

    @Test("A torpor-desktop that hangs is killed, and the next shows each alert once")
    func silentHelper() throws {
        try SwayScene.run(Self.apps, files: Self.files) { scene in
            let daemon = scene.daemon
            try daemon.done(.start, "web")
            try daemon.done(.suspend, "web")
            _ = try Self.torpor(scene, "notify", "web", "tea", "--id", "tea")
            try daemon.eventually("mako shows it") { try Self.count("tea", scene) == 1 }
            let helper = try #require(scene.helper)
            // It works, so it is left alone, and says so.
            _ = try Self.torpor(scene, "notify", "web", "milk", "--id", "milk")
            try daemon.eventually("mako shows it") { try Self.count("milk", scene) == 1 }
            kill(helper, SIGSTOP)
            _ = try Self.torpor(scene, "notify", "web", "bread", "--id", "bread")
            try daemon.eventually("mako shows it") { try Self.count("bread", scene) == 1 }
            #expect(!Truth.isAlive(helper))
            let sentence =
                "alerts are not on the desktop, and the focus is not followed: torpor-desktop does not answer"
            #expect(daemon.log.contains(sentence), "\(daemon.log)")
            try daemon.eventually("it works again") { daemon.log.contains("torpor-desktop works again") }
            let events = try daemon.events("web").map { "\($0)" }
            #expect(events.contains { $0.contains("that is not on the screen: torpor-desktop does not") }, "\(events)")
            try daemon.eventually("each is there once") {
                try ["tea", "milk", "bread"].allSatisfy { try Self.count($0, scene) == 1 }
            }
            for title in ["bread", "milk", "tea"] {
                try daemon.done(.suspend, "web")
                _ = try Self.mako(scene, "invoke")
                try daemon.waitFor("web", "active")
                try daemon.eventually("an alert is gone") { try Self.count(title, scene) == 0 }
            }
        }
    }

    /// An app of the kiosk: a terminal that opens as soon as the file `curtain` is there.
    private static let show = """
        until [ -e "$0/curtain" ]; do sleep 0.05; done
        : >"$0/ready"
        exec /usr/bin/foot -c /dev/null -a films sleep 1000

        """
    private static let films = """
        [apps.films]
        exec = ["/bin/sh", "-c", ". @D/films.sh", "@D"]
        environment = { WAYLAND_DISPLAY = "wayland-1", XDG_RUNTIME_DIR = "@D/run" }
        before_start = [["/bin/rm", "-f", "@D/ready"]]
        ready = { file = "@D/ready" }
        launch = "on-demand"
        restart = "never"
        launch_deadline = "none"
        launch_image = "@D/films.png"
        cover = ["/usr/bin/foot", "-c", "/dev/null", "-a", "cover", "/bin/sh", "-c", "exec sleep 1000", "%f"]
        cover_after = "10ms"

        """

    @Test("A kiosk: a person switches, an alert is answered, an app that was ended asleep comes back behind its cover")
    func kiosk() throws {
        try SwayScene.run(Self.apps + Self.films, files: Self.files.merging(["films.sh": Self.show]) { $1 }) { scene in
            let daemon = scene.daemon
            let (curtain, image) = (daemon.directory + "/curtain", daemon.directory + "/films.png")
            func torpor(_ words: String...) throws {
                let (code, output) = try Spawn.run([Built.path("torpor")] + words + ["--socket", daemon.socket])
                #expect(code == 0, "\(words): \(output)")
            }
            try File.write(image, Pictured.png)
            try File.write(curtain, "")
            try scene.start("one")
            try scene.start("films")
            let pid = try #require(daemon.summary("films").pid)
            // A person switches, and the film goes to sleep.
            func putAway() throws {
                try scene.focus(on: "one", leaving: "films")
                try daemon.done(.suspend, "films")
                #expect(try ProcFS.stat(pid).state == "T")
            }
            try putAway()
            // Its alert is shown while it sleeps, and the answer brings it to the front with all that it had.
            try torpor("notify", "films", "The film begins", "--id", "begin")
            try daemon.eventually("mako shows it") { try Self.mako(scene, "list").contains("The film begins") }
            #expect(try ProcFS.stat(pid).state == "T", "it is not woken")
            _ = try Self.mako(scene, "invoke")
            try daemon.waitFor("films", "active")
            try daemon.eventually("its window has the focus") { try scene.hasFocus("films") }
            #expect(try daemon.summary("films").pid == pid)
            try scene.expectAway("one")
            // It is ended in its sleep, and takes its time to come back: the cover stands in for it.
            try putAway()
            try File.remove(curtain)
            kill(pid, SIGKILL)
            try daemon.waitFor("films", "not-running")
            try torpor("foreground", "films", "--no-wait")
            try daemon.eventually("the cover is on the screen") { try scene.hasFocus("cover") }
            #expect(try daemon.summary("films").transition == "launching")
            try File.write(curtain, "")
            try daemon.waitFor("films", "active")
            try daemon.eventually("the film is on the screen in its place") {
                let tree = try Spawn.run(["/usr/bin/swaymsg", "-s", scene.socket ?? "", "-t", "get_tree"]).output
                return try scene.hasFocus("films") && !tree.contains("\"app_id\": \"cover\"")
            }
            try scene.expectAway("one")
        }
    }
}
