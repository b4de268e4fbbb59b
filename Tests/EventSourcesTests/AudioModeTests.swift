// SPDX-License-Identifier: Apache-2.0

import Engine
import EngineHarness
import EventLoop
import KernelFiles
import Lifecycle
import Linux
import Testing

@testable import EventSources

@Suite("The background mode for sound", .enabled(if: FakeEvents.hasProcess)) struct AudioModeTests {
    private static let toml =
        ["radio", "tape"].map { name in
            """
            [apps.\(name)]
            exec = ["/bin/true"]
            launch = "on-demand"
            restart = "never"
            background_modes = ["audio"]
            background_time = "1h"

            """
        }.joined() + "[apps.web]\nexec = [\"/bin/true\"]"

    /// All processes of these tests, which is that of every app, play or are quiet from now on.
    private func play(_ events: FakeEvents, _ plays: Bool = true) throws {
        let status = plays ? "state: RUNNING\nowner_pid   : \(FakeEvents.process)\n" : "closed\n"
        try events.kernel.write("/proc/asound/card0/pcm0p/sub0/status", status)
    }

    private func holds(_ events: FakeEvents, _ name: String = "radio") -> Bool {
        events.machine(name).modes.contains(.audio)
    }

    /// One that plays in the background, and was found to.
    private func playing() throws -> FakeEvents {
        let events = try FakeEvents(Self.toml)
        try play(events)
        try events.shell.request(.start(background: true), "radio")
        #expect(!holds(events), "it is looked beside the loop")
        try events.wait("it plays") { holds(events) }
        return events
    }

    /// A second passes, and it is looked again.
    private func lookAgain(_ events: FakeEvents) throws {
        try events.pass(AudioMode.interval)
        guard holds(events) else { return }
        let next = events.shell.time.now + AudioMode.interval
        try events.wait("it was looked") { events.shell.time.next == next || !holds(events) }
    }

    @Test("An app that plays in the background is held there until it has been quiet for three seconds") func holds()
        throws
    {
        let events = try playing()
        #expect(throws: RequestError.self) { try events.shell.suspend("radio") }
        for _ in 0..<5 { try lookAgain(events) }
        #expect(holds(events))
        try play(events, false)
        for _ in 0..<2 { try lookAgain(events) }
        #expect(holds(events))
        try lookAgain(events)
        #expect(!holds(events))
        try events.shell.suspend("radio")
        #expect(events.state("radio") == .suspended)
    }

    @Test("A pause between two pieces is no end") func pause() throws {
        let events = try playing()
        for _ in 0..<3 {
            try play(events, false)
            for _ in 0..<2 { try lookAgain(events) }
            try play(events)
            try lookAgain(events)
            #expect(holds(events))
        }
    }

    @Test(
        "It is over when the app comes to the foreground, or is suspended by force, or ends",
        arguments: [
            Request.foreground, .forceSuspend, .stop(.stopped),
        ]
    )
    func leaves(_ request: Request) throws {
        let events = try playing()
        try events.shell.request(request, "radio")
        #expect(!holds(events))
        if request == .foreground {
            try events.shell.request(.background, "radio")
            try events.wait("it plays, and is found to in its next stay") { holds(events) }
        }
    }

    @Test("An app without the mode is stopped at once, and nothing is looked up for it") func withoutMode() throws {
        let events = try FakeEvents(Self.toml)
        try play(events)
        try events.shell.request(.start(background: true), "web")
        var isStopped = false
        events.wakes.audioMode.look(before: events.app("web")) { isStopped = true }
        #expect(isStopped && !holds(events, "web"))
        try events.pass(.seconds(10))
        #expect(!holds(events, "web"))
    }

    @Test("One that is quiet is stopped when that was seen, once, and one that plays is not", arguments: [true, false])
    func beforeStop(_ plays: Bool) throws {
        let events = try FakeEvents(Self.toml)
        try events.shell.request(.start(background: true), "radio")
        // Only now: it was quiet when it came.
        var looks = 0
        events.wakes.audioMode.look(before: events.app("radio")) { looks += 1 }
        #expect(looks == 0)
        try events.wait("it is quiet") { looks == 1 }
        try play(events, plays)
        events.wakes.audioMode.look(before: events.app("radio")) { looks += 1 }
        events.wakes.audioMode.look(before: events.app("radio")) { looks += 1 }
        try events.wait("it was looked") { plays ? holds(events) : looks == 2 }
        var isOver = false
        events.wakes.audioMode.look(before: events.app("tape")) {}
        events.host.lookups.ask({ 0 }) { (_: Int) in isOver = true }
        try events.wait("what else was under way is over") { isOver }
        #expect(looks == (plays ? 1 : 2), "two that ask for the same are answered as one")
    }

    @Test("Whoever waits for a look at an app that goes meanwhile waits no longer") func goesMeanwhile() throws {
        let events = try FakeEvents(Self.toml)
        try events.shell.request(.start(background: true), "radio")
        try events.shell.request(.start(background: true), "tape")
        var stopped: [String] = []
        for name in ["radio", "tape"] {
            events.wakes.audioMode.look(before: events.app(name)) { stopped.append(name) }
        }
        try events.leave("radio")
        #expect(stopped == ["radio"])
        try events.wait("the other one is quiet") { stopped.count == 2 }
        #expect(stopped == ["radio", "tape"])
    }

    @Test("What an earlier torpord found to play, and is quiet now, has its pause") func earlier() throws {
        let events = try FakeEvents(Self.toml)
        try events.shell.request(.start(background: true), "radio")
        try events.shell.request(.mode(.audio, isTrue: true), "radio")
        let next = events.shell.time.now + AudioMode.interval
        try events.wait("it was looked") { events.shell.time.next == next }
        for _ in 0..<2 { try lookAgain(events) }
        #expect(holds(events))
        try lookAgain(events)
        #expect(!holds(events))
    }

    /// A sound server that a test controls.
    private final class FakeSound: SoundSource {
        var isFollowed = false
        var onChange: (() -> Void)?
        var playing: [Int32] = [] { didSet { onChange?() } }
        func look(_ answer: @escaping ([Int32]) -> Void) { answer(playing) }
    }

    /// With a sound server.
    private func served() throws -> (FakeEvents, FakeSound) {
        let sound = FakeSound()
        let events = try FakeEvents(Self.toml) { host, _ in host.sessionSound = sound }
        return (events, sound)
    }

    @Test("A stream of the sound server counts as one of the kernel does, and its beginning is heard at once")
    func server() throws {
        let (events, sound) = try served()
        #expect(!sound.isFollowed)
        try events.shell.request(.start(background: true), "radio")
        #expect(sound.isFollowed)
        sound.playing = [FakeEvents.process]
        try events.wait("it plays") { holds(events) }
        for _ in 0..<5 { try lookAgain(events) }
        #expect(holds(events))
        sound.playing = []
        for _ in 0..<3 { try lookAgain(events) }
        #expect(!holds(events))
        // The kernel's streams count beside it.
        try play(events)
        events.wakes.audioMode.look(before: events.app("radio")) {}
        try events.wait("it plays by itself") { holds(events) }
        #expect(sound.isFollowed)
    }

    @Test("A stream of another's process holds nothing") func otherProcess() throws {
        let (events, sound) = try served()
        try events.shell.request(.start(background: true), "radio")
        sound.playing = [1, ThisProcess.pid, .max]
        var isStopped = false
        events.wakes.audioMode.look(before: events.app("radio")) { isStopped = true }
        try events.wait("it was looked") { isStopped }
        #expect(!holds(events))
    }

    @Test("The server is followed while an app with the mode is in the background, and no longer") func followed()
        throws
    {
        let (events, sound) = try served()
        try events.shell.request(.start(background: true), "web")
        #expect(!sound.isFollowed)
        try events.shell.request(.start(background: true), "radio")
        try events.shell.request(.start(background: true), "tape")
        #expect(sound.isFollowed)
        try events.shell.request(.foreground, "radio")
        #expect(sound.isFollowed)
        try events.shell.suspend("tape")
        try events.wait("it sleeps") { events.state("tape") == .suspended }
        #expect(!sound.isFollowed)
        try events.shell.request(.background, "radio")
        #expect(sound.isFollowed)
        try events.leave("radio")
        #expect(!sound.isFollowed)
    }
}
