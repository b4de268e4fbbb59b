// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

/// A user's supervisor in a session with PipeWire, which is one of its apps, as is a device without sound.
struct SoundScene {
    /// Why there can be none here; nil if there can.
    static let obstacle: String? = {
        for program in ["pipewire", "wireplumber", "pw-dump", "pw-play", "dbus-daemon"]
        where !File.isExecutable("/usr/bin/" + program) {
            return "\(program) is not installed: make test installs it"
        }
        return nil
    }()

    let daemon: Daemon

    private static let sink = """
        context.objects = [
            { factory = adapter
                args = {
                    factory.name = support.null-audio-sink
                    node.name = silence
                    media.class = Audio/Sink
                    audio.position = [ MONO ]
                }
            }
        ]

        """

    /// It plays from SIGUSR2 on, and stops at SIGUSR1. The session manager sends a stream away that comes before the
    /// device is ready.
    private static let player = """
        play() {
            trap 'kill $stream; exit' TERM
            while :; do
                "$@" & stream=$!
                wait $stream
                sleep 0.1
            done
        }
        trap 'kill $child' USR1
        trap 'play pw-play ${ROLE:+--media-role=$ROLE} "$1" & child=$!' USR2
        while :; do sleep 0.05; done

        """

    /// A file of silence: one channel of eight bits, 8,000 times a second.
    private static func silence(seconds: Int) -> [UInt8] {
        func bytes(_ number: Int, _ count: Int) -> [UInt8] { (0..<count).map { UInt8(number >> (8 * $0) & 255) } }
        let count = 8_000 * seconds
        let format = bytes(1, 2) + bytes(1, 2) + bytes(8_000, 4) + bytes(8_000, 4) + bytes(1, 2) + bytes(8, 2)
        return Array("RIFF".utf8) + bytes(36 + count, 4) + Array("WAVEfmt ".utf8) + bytes(16, 4) + format
            + Array("data".utf8) + bytes(count, 4) + [UInt8](repeating: 128, count: count)
    }

    /// - Parameters:
    ///   - supervisor: more keys of the supervisor, as TOML.
    ///   - apps: more apps. `@PLAYER` is the command of a player.
    static func run(
        _ supervisor: String = "",
        apps: String,
        at location: SourceLocation = #_sourceLocation,
        _ body: (SoundScene) throws -> Void
    ) throws {
        let script = """
            mkdir -m 700 @D/run @D/.config
            export XDG_RUNTIME_DIR=@D/run HOME=@D DBUS_SESSION_BUS_ADDRESS=unix:path=@D/run/bus
            unset SWAYSOCK WAYLAND_DISPLAY DISPLAY XDG_CONFIG_HOME
            mkdir -p @D/.config/pipewire/pipewire.conf.d
            cp @D/sink.conf @D/.config/pipewire/pipewire.conf.d
            exec "$@"
            """
        let toml = """
            \(supervisor)
            [defaults]
            restart = "on-failure"
            [apps.bus]
            exec = ["/usr/bin/dbus-daemon", "--session", "--address=unix:path=@D/run/bus", "--nofork", "--nopidfile"]
            ready = { file = "@D/run/bus" }
            [apps.pipewire]
            exec = ["/usr/bin/pipewire"]
            requires = ["bus"]
            ready = { file = "@D/run/pipewire-0" }
            [apps.manager]
            exec = ["/usr/bin/wireplumber"]
            requires = ["pipewire"]
            \(apps.replacingOccurrences(of: "@PLAYER", with: #"["/bin/sh", "@D/player", "@D/silence.wav"]"#))
            """
        let daemon = try Daemon(
            toml,
            files: ["sink.conf": sink, "player": player],
            environment: ["TORPOR_RESTART_DELAY_CAP_MS": "0"],
            wrapper: ["/bin/sh", "-ec", script, "sh"]
        )
        try File.write(daemon.directory + "/silence.wav", silence(seconds: 600))
        try daemon.waitUntilItAnswers(at: location)
        let scene = SoundScene(daemon: daemon)
        try daemon.waitFor("manager", "active", at: location)
        try body(scene)
        let helper = scene.helper
        try daemon.stop(at: location)
        if let helper { #expect(!Truth.isAlive(helper), "torpor-desktop is left", sourceLocation: location) }
    }

    /// torpor-desktop, by /proc: a child of the keeper.
    var helper: Int32? {
        (try? ProcFS.children(daemon.pid))?.first { (try? ProcFS.cmdline($0)) == ["torpor-desktop"] }
    }

    /// Sends the signal for it to a player, and waits until PipeWire has its stream running, or gone.
    func play(_ app: String, _ plays: Bool = true, at location: SourceLocation = #_sourceLocation) throws {
        // A shell that has not come to its traps would end of the signal.
        var main: Int32 = 0
        try daemon.eventually("\(app) waits for the signal", at: location) {
            main = daemon.processes(of: app).first ?? 0
            let caught = try? ProcFS.statusField(main, "SigCgt")
            return UInt64(caught.flatMap { $0 } ?? "", radix: 16).map { $0 & 1 << UInt64(SIGUSR2 - 1) != 0 } ?? false
        }
        kill(main, plays ? SIGUSR2 : SIGUSR1)
        try daemon.eventually("\(app) \(plays ? "plays" : "is quiet")", at: location) { try isPlaying(app) == plays }
    }

    /// Whether PipeWire has a running stream of the app.
    func isPlaying(_ app: String) throws -> Bool {
        let words = ["/usr/bin/pw-dump"]
        let output = try Spawn.run(words, environment: ["XDG_RUNTIME_DIR": daemon.directory + "/run"]).output
        guard let objects = try? JSONSerialization.jsonObject(with: Data(output.utf8)) as? [[String: Any]] else {
            return false
        }
        func properties(_ object: [String: Any]) -> [String: Any] {
            (object["info"] as? [String: Any])?["props"] as? [String: Any] ?? [:]
        }
        let own = Set(daemon.processes(of: app).map { Int($0) })
        let clients = objects.filter { own.contains(properties($0)["pipewire.sec.pid"] as? Int ?? 0) }
            .compactMap { $0["id"] as? Int }
        return objects.contains { object in
            clients.contains(properties(object)["client.id"] as? Int ?? -1)
                && (object["info"] as? [String: Any])?["state"] as? String == "running"
        }
    }
}

@Suite(
    "The background mode audio with PipeWire",
    .enabled(if: SoundScene.obstacle == nil, "pipewire and wireplumber are needed: make test installs them")
)
struct PipeWireTests {
    private static let apps = """
        [apps.player]
        exec = @PLAYER
        background_modes = ["audio"]
        background_time = "100ms"
        [apps.other]
        exec = @PLAYER
        background_modes = ["audio"]
        background_time = "100ms"

        """

    private func doctor(_ scene: SoundScene) throws -> String {
        try Spawn.run([Built.path("torpor"), "doctor", "--socket", scene.daemon.socket]).output
    }

    @Test("An app that plays keeps its time in the background; when it is quiet it is suspended") func plays() throws {
        try SoundScene.run(apps: Self.apps) { scene in
            let daemon = scene.daemon
            #expect(try doctor(scene).contains("sound: by /proc/asound, and by PipeWire while"))
            try scene.play("player")
            try daemon.done(.suspend, "player") { $0.wait = false }
            try daemon.waitForEvent("player", "may stay in the background")
            // Another app's sound holds only that.
            try daemon.done(.suspend, "other")
            #expect(daemon.isStopped("other"))
            #expect(try daemon.summary("player").holds == ["the mode audio"])
            #expect(!daemon.isStopped("player"))
            try daemon.eventually("doctor says so") { try doctor(scene).contains("and by PipeWire in the session of") }
            try scene.play("player", false)
            try daemon.waitFor("player", "suspended")
            #expect(daemon.isStopped("player"))
            // It plays again later.
            try daemon.done(.foreground, "player")
            try scene.play("player")
            try daemon.done(.background, "player")
            try daemon.eventually("it is held") { try daemon.summary("player").holds == ["the mode audio"] }
        }
    }

    @Test("torpord, torpor-desktop, pw-dump and PipeWire may be killed at any time") func killed() throws {
        try SoundScene.run(apps: Self.apps) { scene in
            let daemon = scene.daemon
            try scene.play("player")
            try daemon.done(.suspend, "player") { $0.wait = false }
            try daemon.waitForEvent("player", "may stay in the background")
            let helper = try #require(scene.helper)
            try daemon.replaceTorpord()
            #expect(scene.helper == helper, "the helper goes on")
            #expect(try daemon.summary("player").holds == ["the mode audio"])
            kill(helper, SIGKILL)
            try daemon.eventually("another helper runs") { scene.helper.map { $0 != helper } ?? false }
            // Both at once.
            if let second = scene.helper { kill(second, SIGKILL) }
            try daemon.replaceTorpord()
            try daemon.eventually("a helper runs") { scene.helper != nil }
            let third = try #require(scene.helper)
            try daemon.eventually("pw-dump runs") { ((try? ProcFS.children(third)) ?? []).count == 1 }
            let dump = try #require(ProcFS.children(third).first)
            kill(dump, SIGKILL)
            try daemon.eventually("another pw-dump runs") {
                ((try? ProcFS.children(third)) ?? []).contains { $0 != dump }
            }
            #expect(try daemon.summary("player").holds == ["the mode audio"])
            #expect(try daemon.events("player").filter { $0.text.contains("longer needs the background") }.isEmpty)
            // The stream goes with PipeWire.
            try daemon.done(.stop, "pipewire")
            try daemon.waitFor("player", "suspended")
        }
    }

    @Test("Without PipeWire an app is suspended as usual, and doctor says what is missing") func absent() throws {
        let toml = """
            [apps.player]
            exec = ["/bin/sleep", "1000"]
            background_modes = ["audio"]
            background_time = "1h"

            """
        let daemon = try Daemon(
            toml,
            environment: ["TORPOR_PW_DUMP": "/nonexistent/pw-dump"],
            wrapper: [
                "/bin/sh", "-ec",
                "mkdir @D/run; export XDG_RUNTIME_DIR=@D/run DBUS_SESSION_BUS_ADDRESS=unix:path=@D/run/bus; exec \"$@\"",
                "sh",
            ]
        )
        try daemon.waitUntilItAnswers()
        try daemon.waitFor("player", "active")
        try daemon.done(.background, "player")
        try daemon.eventually("doctor says so") {
            let page = try Spawn.run([Built.path("torpor"), "doctor", "--socket", daemon.socket]).output
            return page.contains("streams of PipeWire are not seen: /nonexistent/pw-dump is not there")
        }
        try daemon.done(.suspend, "player")
        #expect(daemon.isStopped("player"))
        try daemon.stop()
    }

    // MARK: Interruptions

    private static let players = """
        [apps.music]
        exec = @PLAYER
        [apps.quiet]
        exec = @PLAYER
        [apps.phone]
        exec = @PLAYER
        environment = { ROLE = "Communication" }

        """

    /// How often an app was interrupted.
    private func interruptions(_ scene: SoundScene, _ app: String) throws -> Int {
        try scene.daemon.events(app).count { $0.reason == "sound" }
    }

    @Test("A call interrupts the app in the foreground that plays, and no other, until it has ended") func call() throws
    {
        try SoundScene.run("interrupt_on = [\"audio\"]", apps: Self.players) { scene in
            let daemon = scene.daemon
            try scene.play("music")
            try scene.play("phone")
            try daemon.waitFor("music", "inactive")
            #expect(
                try daemon.events("music").contains { $0.text == "is interrupted by sound of phone (Communication)" }
            )
            for other in ["quiet", "phone"] { #expect(try daemon.summary(other).state == "active") }
            // torpord and torpor-desktop are killed in between.
            try daemon.replaceTorpord()
            #expect(try daemon.summary("music").state == "inactive")
            let helper = try #require(scene.helper)
            kill(helper, SIGKILL)
            try daemon.eventually("another helper runs") { scene.helper.map { $0 != helper } ?? false }
            #expect(try daemon.summary("music").state == "inactive")
            try scene.play("phone", false)
            try daemon.waitFor("music", "active")
            // It begins to play while there is a call.
            try scene.play("phone")
            try daemon.waitFor("music", "inactive")
            try scene.play("music", false)
            try scene.play("phone", false)
            try daemon.waitFor("music", "active")
            try scene.play("phone")
            try scene.play("quiet")
            try daemon.waitFor("quiet", "inactive")
            #expect(try daemon.summary("music").state == "active")
            #expect(try (interruptions(scene, "music"), interruptions(scene, "phone")) == (2, 0))
            // The key is taken away.
            let path = daemon.directory + "/torpor.toml"
            let text = try File.readString(path)
            try File.replace(path, Array(text.replacingOccurrences(of: "[\"audio\"]", with: "[]").utf8))
            _ = try daemon.call(.apply(ApplyRequest()))
            try daemon.waitFor("quiet", "active")
        }
    }

    @Test("By default no sound interrupts, and no helper listens") func byDefault() throws {
        try SoundScene.run(apps: Self.players) { scene in
            try scene.play("music")
            try scene.play("phone")
            #expect(try scene.daemon.summary("music").state == "active")
            #expect(scene.helper == nil)
        }
    }
}
