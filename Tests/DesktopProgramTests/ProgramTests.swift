// SPDX-License-Identifier: Apache-2.0

import DesktopProtocol
import Foundation
import Linux
import Testing
import Varlink

/// torpor-desktop and its socket to torpord.
@Suite struct ProgramTests {
    @Test func `it ends when torpord closes the socket`() throws {
        let bench = try Bench(hasBus: false)
        _ = try bench.greet()
        bench.socket?.close()
        #expect(bench.program?.reap(within: Bench.bound) == 0)
    }

    @Test func `nonsense is left out`() throws {
        let bench = try Bench(hasBus: false)
        try bench.say(.show(DesktopAlert(id: 1, app: "a", title: "t")))
        for text in ["", "{", "{}", #"{"command":"dance"}"#, #"{"command":"close","id":"x"}"#, "\u{1}\u{2}", "[[[["] {
            try bench.say(Array(text.utf8) + [0])
        }
        for command in [
            DesktopCommand.acknowledge(id: 5), .close(id: 5), .badge(entry: "../x", count: -1), .follow(nil),
        ] {
            try bench.say(command)
        }
        // Half a message of a torpord that died, and the first of the next.
        try bench.say(Array(#"{"command":"sho"#.utf8))
        try bench.say([0])
        #expect(try bench.greet().ids == [1])
        #expect(bench.log.contains("ignoring a command"))
    }

    @Test func `a message without an end ends it`() throws {
        let bench = try Bench(hasBus: false)
        let piece = [UInt8](repeating: 0x20, count: 1 << 16)
        do {
            for _ in 0..<64 { try bench.say(piece) }
        } catch {}
        #expect(bench.program?.reap(within: Bench.bound) == 0)
        #expect(bench.log.contains("longer than"))
    }

    @Test func `without a socket it says who starts it`() throws {
        let bench = try Bench(hasBus: false, starts: false)
        let program = try bench.child([Built.path("torpor-desktop")])
        #expect(program.reap(within: Bench.bound) == 512)
        #expect(bench.log.contains("torpord starts this program"))
    }

    @Test(.enabled(if: Confinement.isAvailable(), "needs Landlock"))
    func `it gains no privileges, and its memory is its own`() throws {
        let bench = try Bench(hasBus: false)
        _ = try bench.greet()
        let pid = try #require(bench.program?.pid)
        let status = try File.readString("/proc/\(pid)/status")
        #expect(status.contains("NoNewPrivs:\t1"))
        #expect(try File.status("/proc/\(pid)/mem").uid == 0)
    }
}

/// torpor-desktop with a real notification server.
@Suite(.enabled(if: Obstacle.dunst == nil, "dunst, xvfb and dbus are needed: make test installs them"))
struct DunstTests {
    /// A screen in memory with dunst.
    final class Dunst {
        private let screen: ChildProcess
        let dunst: ChildProcess
        private let bench: Bench

        init(_ bench: Bench) throws {
            self.bench = bench
            let (read, write) = try Descriptor.pipe()
            screen = try bench.child(
                ["/usr/bin/Xvfb", "-displayfd", "1", "-nolisten", "tcp", "-screen", "0", "320x200x24"],
                output: write.raw
            )
            write.close()
            var number = ""
            while !number.hasSuffix("\n") {
                let isReady = try read.withRaw { raw throws(Errno) in try Descriptor.wait(raw, timeout: Bench.bound) }
                guard isReady else { throw Trouble("Xvfb has no screen") }
                let bytes = try read.withRaw { raw throws(Errno) in try Descriptor.read(raw, maximum: 16) } ?? []
                guard !bytes.isEmpty else { throw Trouble("Xvfb ended:\n\(bench.log)") }
                number += String(decoding: bytes, as: UTF8.self)
            }
            let display = ":" + number.dropLast()
            let configuration = "[global]\nidle_threshold = 0\nmarkup = full\n[urgency_normal]\ntimeout = 0\n"
            try File.write(bench.directory + "/dunstrc", configuration)
            dunst = try bench.child(["/usr/bin/dunst", "-conf", bench.directory + "/dunstrc"], ["DISPLAY=\(display)"])
        }

        deinit {
            for process in [dunst, screen] {
                process.kill()
                process.reap()
            }
        }

        func control(_ words: String...) throws -> String {
            let (read, write) = try Descriptor.pipe()
            let process = try bench.child(["/usr/bin/dunstctl"] + words, output: write.raw)
            write.close()
            var text: [UInt8] = []
            while true {
                let bytes = try read.withRaw { raw throws(Errno) in try Descriptor.read(raw, maximum: 65_536) } ?? []
                if bytes.isEmpty { break }
                text += bytes
            }
            guard process.reap() == 0 else { throw Trouble("dunstctl \(words) failed:\n\(bench.log)") }
            return String(decoding: text, as: UTF8.self)
        }

        /// What was on the screen, the last first.
        func history() throws -> [JSON] {
            let json = try JSON.parse(Array(control("history").utf8))
            return json["data"]?.arrayValue?.first?.arrayValue ?? []
        }
    }

    @Test func `dunst shows it as it is, and a click is an answer`() throws {
        let bench = try Bench()
        let dunst = try Dunst(bench)
        try bench.show(ServerTests.alert())
        #expect(try dunst.control("count", "displayed").contains("1"))
        _ = try dunst.control("action")
        try bench.hear(.answered(id: 1, action: "default", token: nil))
        var shown: JSON?
        try bench.eventually("it is history") {
            shown = (try? dunst.history())?.first
            return shown != nil
        }
        #expect(shown?["summary"]?["data"]?.stringValue == "Milk <b>&")
        #expect(shown?["appname"]?["data"]?.stringValue == "Notes")
        // Markup was escaped: nothing of the text was read as such.
        #expect(
            shown?["message"]?["data"]?.stringValue?.hasSuffix("for &lt;Ada&gt; &amp; co") == true,
            "\(shown as Any)"
        )
        try bench.show(ServerTests.alert(2))
        _ = try dunst.control("close")
        try bench.hear(.closed(id: 2, .dismissed))
    }

    @Test func `dunst hangs, and shows what came meanwhile once when it goes on`() throws {
        let bench = try Bench()
        let dunst = try Dunst(bench)
        // dunst would stack alerts of the same content.
        func alert(_ id: Int64) -> DesktopAlert {
            var alert = ServerTests.alert(id)
            alert.title = "\(id)"
            return alert
        }
        try bench.show(alert(1))
        kill(dunst.dunst.pid, SIGSTOP)
        for id in 2...3 { try bench.say(.show(alert(Int64(id)))) }
        try bench.say(.close(id: 3))
        try bench.hear { report in
            if case .unseen(.some(let problem)) = report, problem.hasSuffix("does not answer") { () } else { nil }
        }
        try bench.say(.show(alert(4)))
        _ = try bench.greet()
        kill(dunst.dunst.pid, SIGCONT)
        try bench.hear(shown: 2)
        try bench.hear(shown: 4)
        func hasDisplayed(_ count: String) throws {
            try bench.eventually("\(count) are on the screen") {
                (try? dunst.control("count", "displayed"))?.contains(count) ?? false
            }
        }
        try hasDisplayed("3")
        // Each has the buttons that work.
        var answered: Set<Int64> = []
        for _ in 1...3 {
            _ = try dunst.control("action")
            answered.insert(
                try bench.hear { report in if case .answered(let id, "default", nil) = report { id } else { nil } }
            )
        }
        #expect(answered == [1, 2, 4])
        try hasDisplayed("0")
    }

    @Test func `dunst goes, and shows what is open when it returns`() throws {
        let bench = try Bench()
        var dunst: Dunst? = try Dunst(bench)
        try bench.show(ServerTests.alert())
        dunst = nil
        try bench.hear(.server(nil))
        dunst = try Dunst(bench)
        try bench.hear(shown: 1)
        #expect(try dunst?.control("count", "displayed").contains("1") == true)
    }
}
