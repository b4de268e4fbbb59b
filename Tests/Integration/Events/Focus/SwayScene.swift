// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import MockLogind
import Testing
import TorporAPI
import Varlink

/// A user's supervisor in a session of its own: Sway without a screen, with two terminals that are apps.
struct SwayScene {
    /// Why there can be none here; nil if there can.
    static let obstacle: String? = {
        for program in ["sway", "swaymsg", "foot"] where !File.isExecutable("/usr/bin/" + program) {
            return "\(program) is not installed: make test installs it"
        }
        return nil
    }()

    let daemon: Daemon
    /// Where Sway's sockets are.
    let folder: String

    init(daemon: Daemon, folder: String? = nil) {
        self.daemon = daemon
        self.folder = folder ?? daemon.directory + "/run"
    }

    /// - Parameters:
    ///   - keys: more keys of `[supervisor]`, as TOML.
    ///   - apps: more apps, as TOML.
    ///   - files: more files of the daemon's folder.
    static func run(
        keys: String = "",
        _ apps: String = "",
        files: [String: String] = [:],
        at location: SourceLocation = #_sourceLocation,
        _ body: (SwayScene) throws -> Void
    ) throws {
        // Sway does not run as root.
        let user = Users.isRoot ? "exec setpriv --reuid=65534 --regid=65534 --clear-groups" : "exec env"
        let script = """
            mkdir -m 700 @D/run @D/home && if [ $(id -u) = 0 ]; then chown -R 65534:65534 @D; fi
            export XDG_RUNTIME_DIR=@D/run HOME=@D/home DBUS_SESSION_BUS_ADDRESS=unix:path=@D/run/bus
            unset SWAYSOCK WAYLAND_DISPLAY DISPLAY
            \(user) "$@"
            """
        let terminal = { (name: String) in
            """
            [apps.\(name)]
            exec = ["/usr/bin/foot", "-c", "/dev/null", "-a", "\(name)", "sleep", "1000"]
            environment = { WAYLAND_DISPLAY = "wayland-1" }
            launch = "on-demand"
            restart = "never"

            """
        }
        let toml = """
            focus = "sway"
            \(keys)
            [apps.sway]
            exec = ["/usr/bin/sway", "-c", "@D/sway.conf"]
            environment = { WLR_BACKENDS = "headless", WLR_LIBINPUT_NO_DEVICES = "1", WLR_RENDERER = "pixman" }
            restart = "never"
            \(terminal("one"))
            \(terminal("two"))
            \(apps)
            """
        let daemon = try Daemon(
            toml,
            files: files.merging(["sway.conf": "xwayland disable\n"]) { $1 },
            environment: ["TORPOR_RESTART_DELAY_CAP_MS": "0"],
            wrapper: ["/bin/sh", "-ec", script, "sh"]
        )
        try daemon.waitUntilItAnswers(at: location)
        let scene = SwayScene(daemon: daemon)
        try daemon.eventually("Sway answers", at: location) { scene.isReady }
        try body(scene)
        let helper = scene.helper
        try daemon.stop(at: location)
        if let helper { #expect(!Truth.isAlive(helper), "torpor-desktop is left", sourceLocation: location) }
    }

    /// Why there can be no i3 here; nil if there can.
    static let obstacleOfI3: String? = {
        for program in ["i3", "i3-msg", "Xvfb", "xterm"] where !File.isExecutable("/usr/bin/" + program) {
            return "\(program) is not installed: make test installs it"
        }
        return nil
    }()

    var isReady: Bool { socket != nil && File.exists(folder + "/wayland-1") }

    var socket: String? {
        (try? File.list(folder))?.first { $0.hasPrefix("sway-ipc.") }.map { folder + "/" + $0 }
    }

    /// torpor-desktop, by /proc: a child of the keeper.
    var helper: Int32? {
        (try? ProcFS.children(daemon.pid))?.first { (try? ProcFS.cmdline($0)) == ["torpor-desktop"] }
    }

    func ask(_ words: String..., at location: SourceLocation = #_sourceLocation) throws {
        let socket = try #require(socket, sourceLocation: location)
        let reply = try Spawn.run(["/usr/bin/swaymsg", "-s", socket] + words)
        #expect(reply.code == 0, "\(words): \(reply.output)", sourceLocation: location)
    }

    /// Starts an app, whose new window gets the focus, and waits until the focus has stayed there.
    func start(_ app: String, isFollowed: Bool = true, at location: SourceLocation = #_sourceLocation) throws {
        try daemon.done(.start, app, at: location)
        if isFollowed { try daemon.eventually("\(app) has the focus", at: location) { try moves(app) > 0 } }
        try daemon.waitFor(app, "active", at: location)
        try daemon.eventually("\(app) has a window", at: location) {
            let tree = try Spawn.run(["/usr/bin/swaymsg", "-s", socket ?? "", "-t", "get_tree"])
            return tree.output.contains("\"app_id\": \"\(app)\"")
        }
    }

    /// Moves the focus to an app, and waits until both are where they belong.
    func focus(on app: String, leaving other: String, at location: SourceLocation = #_sourceLocation) throws {
        let before = try moves(app)
        try ask("[app_id=\(app)]", "focus", at: location)
        try daemon.eventually("the focus stays on \(app)", at: location) { try moves(app) > before }
        try daemon.waitFor(app, "active", at: location)
        try expectAway(other, at: location)
    }

    /// Whether the window manager has given the focus to a window of the app.
    func hasFocus(_ app: String) throws -> Bool {
        let tree = try Spawn.run(["/usr/bin/swaymsg", "-s", socket ?? "", "-t", "get_tree"])
        return Self.focused(in: try JSON.parse(tree.output), "app_id") == app
    }

    /// What the focused window of a tree is called.
    static func focused(in node: JSON, _ name: String) -> String? {
        if node["focused"]?.boolValue == true {
            return (node[name] ?? node["window_properties"]?[name])?.stringValue
        }
        let children = (node["nodes"]?.arrayValue ?? []) + (node["floating_nodes"]?.arrayValue ?? [])
        return children.lazy.compactMap { focused(in: $0, name) }.first
    }

    /// An app without background work is suspended soon.
    func expectAway(_ app: String, at location: SourceLocation = #_sourceLocation) throws {
        try daemon.eventually("\(app) has left the foreground", at: location) {
            ["background", "suspended"].contains(try daemon.summary(app).state)
        }
    }

    /// How often the focus has moved an app.
    func moves(_ app: String) throws -> Int {
        try daemon.events(app).count { $0.kind == "request" && $0.reason == "focus" }
    }
}
