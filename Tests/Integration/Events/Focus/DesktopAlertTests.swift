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
}
