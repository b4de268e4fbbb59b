// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import KernelFiles
import Linux
import Testing
import TorporAPI
import Varlink

@Suite("The fetch mode") struct FetchTests {
    private static func toml(_ rest: String = "") -> String {
        Delegates.head + """
            event_time = "5s"
            background_modes = ["fetch"]
            fetch_interval = "1s"
            \(rest)
            """
    }

    /// A daemon on a machine that is calm, whatever else runs on this one.
    private func withCalm(_ answer: String, _ body: (Daemon) throws -> Void) throws {
        let kernel = try KernelFiles()
        let environment = ["TORPOR_KERNEL_FILES": kernel.root]
        try withExtendedLifetime(kernel) {
            try withDaemon(Self.toml(), files: Delegates.files(answer), environment: environment, body)
        }
    }

    private func fetches(_ daemon: Daemon) throws -> [Heard] {
        try daemon.heard().filter { $0.what == "message" && $0.name == "performFetch" }
    }

    private func when(_ daemon: Daemon) throws -> String? {
        try TimerTests.timers(daemon).first { $0.kind == "fetch" }?.when
    }

    @Test("A sleeping app is woken to look for new content, and what it found decides when it is again")
    func learns() throws {
        let answer = #"performFetch={"result": "done", "fetch": "no-data"}"#
        try withCalm(answer) { daemon in
            try daemon.done(.start, "web")
            try daemon.done(.suspend, "web")
            let first = try when(daemon)
            // On a machine with too much to do its turn may have come already.
            #expect(try first == "every 1s" || !fetches(daemon).isEmpty, "\(first ?? "")")
            try daemon.waitForEvent("web", "woken by its turn to look for new content")
            try daemon.waitForEvent("web", "looked for new content: no-data; again in")
            try daemon.eventually("it looked twice more") { try fetches(daemon).count >= 3 }
            let times = try fetches(daemon).map(\.at)
            #expect(times[2] - times[1] > .milliseconds(1_100), "longer than at first: \(times)")
        }
    }

    @Test("What could not be looked for is said so; an answer that is none is refused, and may be given again")
    func answers() throws {
        let answer = #"performFetch=hold"#
        try withCalm(answer) { daemon in
            try daemon.done(.start, "web")
            try daemon.eventually("it is told to look") { try fetches(daemon).count == 1 }
            let id = try #require(try fetches(daemon).first?.id)
            try daemon.ask("d.answer(\(id), fetch='nothing')")
            #expect(try daemon.heard().last { $0.what == "answered" }?.reply.stringValue == "InvalidParameter")
            try daemon.ask("d.answer(\(id), fetch='failed')")
            let event = try daemon.waitForEvent("web", "looked for new content: failed; again in")
            #expect(event.kind == "wake")
        }
    }

    @Test("On a battery that is nearly empty an app looks later, and once it is fed again does")
    func battery() throws {
        let kernel = try KernelFiles()
        defer { withExtendedLifetime(kernel) {} }
        let battery = "/sys/class/power_supply/BAT0/"
        for (name, text) in ["type": "Battery", "present": "1", "status": "Discharging", "capacity": "7"] {
            try kernel.write(battery + name, text + "\n")
        }
        let environment = ["TORPOR_KERNEL_FILES": kernel.root]
        let answer = #"performFetch={"result": "done", "fetch": "new-data"}"#
        try withDaemon(Self.toml(), files: Delegates.files(answer), environment: environment) { daemon in
            try daemon.done(.start, "web")
            try daemon.done(.suspend, "web")
            try daemon.waitForEvent("web", "looks for new content later: the battery has 7 % left")
            #expect(try fetches(daemon).isEmpty)
            let next = try #require(try TimerTests.timers(daemon).first { $0.kind == "fetch" }?.next)
            #expect(next > Clock.realtimeMicroseconds() + 30_000_000, "it is not looked at again and again")
        }
    }

    @Test("What was learned outlives torpord")
    func outlives() throws {
        let answer = #"performFetch={"result": "done", "fetch": "no-data"}"#
        let toml = Self.toml().replacingOccurrences(of: "fetch_interval = \"1s\"", with: "fetch_interval = \"2s\"")
        let kernel = try KernelFiles()
        defer { withExtendedLifetime(kernel) {} }
        let environment = ["TORPOR_KERNEL_FILES": kernel.root]
        let daemon = try Daemon(toml, files: Delegates.files(answer), environment: environment)
        try daemon.waitUntilItAnswers()
        try daemon.done(.start, "web")
        try daemon.waitForEvent("web", "looked for new content: no-data; again in")
        try daemon.eventually("it learned") { try when(daemon) == "every 3s" }
        try daemon.stop()
        try daemon.startAgain()
        try daemon.waitUntilItAnswers()
        try daemon.eventually("it remembers") { try when(daemon) == "every 3s" }
        try daemon.stop()
    }
}
