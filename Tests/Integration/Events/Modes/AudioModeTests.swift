// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import KernelFiles
import Linux
import Testing
import TorporAPI

/// `/proc/asound` is a folder of the test's own: there are no sound cards where tests run.
@Suite("The background mode audio") struct AudioModeTests {
    static let toml = """
        [defaults]
        exec = ["/bin/sleep", "1000"]
        launch = "background"
        restart = "never"
        background_time = "100ms"
        [apps.player]
        background_modes = ["audio"]
        [apps.other]
        """

    /// The machine's sound, with one card.
    struct Sound {
        let kernel = try! KernelFiles()

        func play(_ pid: Int32, state: String = "RUNNING") throws {
            try kernel.write("/proc/asound/card0/pcm0p/sub0/status", "state: \(state)\nowner_pid   : \(pid)\n")
        }

        func end() throws { try kernel.write("/proc/asound/card0/pcm0p/sub0/status", "closed\n") }

        var environment: [String: String] { ["TORPOR_KERNEL_FILES": kernel.root] }
    }

    private func player(_ daemon: Daemon, _ app: String = "player") throws -> Int32 {
        try daemon.waitFor(app, "background")
        return try #require(daemon.processes(of: app).first)
    }

    /// It begins to play in the foreground and is to be suspended, on the way to which it is found to play.
    private func plays(_ sound: Sound, _ daemon: Daemon) throws {
        let pid = try player(daemon)
        try daemon.done(.foreground, "player")
        try sound.play(pid)
        try daemon.done(.suspend, "player") { $0.wait = false }
        try daemon.waitForEvent("player", "may stay in the background")
    }

    @Test("An app that plays is not suspended; it is as soon as the sound has ended")
    func playing() throws {
        let sound = Sound()
        try withDaemon(Self.toml, environment: sound.environment) { daemon in
            try plays(sound, daemon)
            let began = try daemon.waitForEvent("player", "may stay in the background")
            #expect(began.text.contains("(mode audio)"))
            try daemon.waitFor("player", "background")
            #expect(!daemon.isStopped("player"))
            #expect(try daemon.summary("player").holds == ["the mode audio"])
            let refused = try daemon.verb(.suspend, "player")
            #expect(!refused.ok && (refused.message?.contains("is held by the mode audio") ?? false))
            // Another title begins at once: a moment of silence is no end.
            try sound.end()
            try daemon.eventually("two looks have passed") { Self.looks(daemon, 2) }
            try sound.play(try player(daemon))
            try daemon.eventually("some more have") { Self.looks(daemon, 4) }
            #expect(!daemon.isStopped("player"))
            try sound.play(try player(daemon), state: "PAUSED")
            try daemon.waitFor("player", "suspended")
            #expect(daemon.isStopped("player"))
            #expect(try daemon.summary("player").holds.isEmpty)
            #expect(try daemon.events("player").filter { $0.text.contains("longer needs the background") }.count == 1)
        }
    }

    /// Whether a second passed so many times, which is how often it looks.
    private static func looks(_ daemon: Daemon, _ count: Int) -> Bool {
        let began = (try? daemon.events("player"))?.first { $0.text.contains("may stay") }
        guard let began else { return false }
        return Int64(Date().timeIntervalSince1970 * 1e6) - began.at >= Int64(count) * 1_000_000
    }

    @Test("An app without the mode is suspended while it plays, and the sound of one holds no other")
    func others() throws {
        let sound = Sound()
        try withDaemon(Self.toml, environment: sound.environment) { daemon in
            try sound.play(try player(daemon, "other"))
            _ = try player(daemon)
            try daemon.done(.suspend, "other")
            try daemon.done(.suspend, "player")
            #expect(daemon.isStopped("other") && daemon.isStopped("player"))
        }
    }

    @Test("A person's force suspends it all the same, and it plays on when it is continued")
    func forced() throws {
        let sound = Sound()
        try withDaemon(Self.toml, environment: sound.environment) { daemon in
            try plays(sound, daemon)
            try daemon.done(.suspend, "player") { $0.force = true }
            #expect(daemon.isStopped("player"))
            #expect(try daemon.summary("player").holds.isEmpty)
            try daemon.done(.resume, "player")
            try daemon.eventually("it is held again") { try daemon.summary("player").holds == ["the mode audio"] }
        }
    }

    @Test(
        "The next torpord finds the sound that runs, and the end of one that ended meanwhile",
        arguments: [true, false]
    )
    func recovery(endsMeanwhile: Bool) throws {
        let sound = Sound()
        try withDaemon(Self.toml, environment: sound.environment) { daemon in
            try plays(sound, daemon)
            let before = try daemon.torpord()
            if endsMeanwhile { try sound.end() }
            kill(before, SIGKILL)
            try daemon.eventually("another torpord runs") { (try? daemon.torpord()).map { $0 != before } ?? false }
            try daemon.waitUntilItAnswers()
            if !endsMeanwhile {
                #expect(try daemon.summary("player").holds == ["the mode audio"])
                #expect(!daemon.isStopped("player"))
                try sound.end()
            }
            try daemon.waitFor("player", "suspended")
        }
    }

    @Test("A configuration that no longer has the mode lets it go")
    func withdrawn() throws {
        let sound = Sound()
        try withDaemon(Self.toml, environment: sound.environment) { daemon in
            try plays(sound, daemon)
            let without = Self.toml.replacingOccurrences(of: "background_modes = [\"audio\"]", with: "")
            try daemon.apply(without)
            try daemon.waitFor("player", "suspended")
        }
    }
}
