// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

/// The real `torpor top` on a real terminal, beside what /proc says.
@Suite("torpor top on a terminal") struct TopTests {
    static let toml = """
        [apps.web]
        exec = ["/bin/sh", "-c", "n=0; while :; do n=$((n+1)); echo line $n; sleep 0.2; done"]

        [apps.db]
        exec = ["/bin/sleep", "1000"]
        launch = "background"

        [apps.cache]
        exec = ["/bin/sleep", "1000"]
        launch = "on-demand"
        """

    @Test("shows all apps with their states, and s suspends one: the screen and /proc agree")
    func suspend() throws {
        try Self.withScreen { daemon, screen in
            try screen.waitFor("● active", of: "web")
            try screen.waitFor("○ background", of: "db")
            try screen.waitFor("· not running", of: "cache")
            // Sorted by name: cache, db, web.
            try screen.press("j", "j", "s")
            try screen.waitFor("☾ suspended", of: "web")
            let pid = try #require(try daemon.summary("web").pid)
            #expect(Truth.isStopped(pid))
            try screen.waitFor("web: suspended (pid \(pid))")
            try screen.press("f")
            try screen.waitFor("● active", of: "web")
            #expect(!Truth.isStopped(pid))
        }
    }

    @Test("it is right at every size that the window gets")
    func resize() throws {
        try Self.withScreen { daemon, screen in
            try screen.waitFor("● active", of: "web")
            try screen.resize(columns: 40, rows: 12)
            try screen.waitFor("40 columns") { lines in
                lines.filter { !$0.isEmpty }.allSatisfy { $0.count <= 40 } && lines[0].hasSuffix("3 apps")
                    && lines.contains { $0.hasPrefix(" web") && $0.contains("● active") }
            }
            try screen.resize(columns: 200, rows: 50)
            let pid = try #require(try daemon.summary("web").pid)
            // It may be seen while it is being drawn.
            try screen.waitFor("200 columns") { lines in
                lines[0].count > 150 && lines[0].hasSuffix("3 apps")
                    && lines.contains { $0.contains("PID") && $0.contains("LAST EVENT") }
                    && lines.contains { $0.hasPrefix(" web") && $0.contains(" \(pid) ") }
            }
            try screen.resize(columns: 40, rows: 10)
            try screen.waitFor("● active", of: "web")
        }
    }

    @Test("K asks, n leaves the app alone, y forces it to quit")
    func kill() throws {
        try Self.withScreen { daemon, screen in
            try screen.waitFor("● active", of: "web")
            let pid = try #require(try daemon.summary("web").pid)
            try screen.press("End", "K")
            try screen.waitFor("force quit web?")
            try screen.press("n")
            try screen.waitFor("nothing was ended")
            #expect(Truth.isAlive(pid))
            try screen.press("K")
            try screen.waitFor("force quit web?")
            try screen.press("y")
            try screen.waitFor("· not running", of: "web")
            #expect(!Truth.isAlive(pid))
            #expect(try daemon.summary("web").lastExit?.reason == "force-quit")
        }
    }

    @Test("several marked apps go together; a hold is seen, and what is refused is said")
    func marked() throws {
        try Self.withScreen(columns: 160) { daemon, screen in
            try screen.waitFor("● active", of: "web")
            try screen.press("j", "Space", "Space", "s")
            try screen.waitFor("☾ suspended", of: "web")
            try screen.waitFor("☾ suspended", of: "db")
            try screen.press("b")
            try screen.waitFor("○ background", of: "web")
            try screen.press("u", "H")
            try screen.waitFor("an operator", of: "web")
            try screen.press("s")
            // Held: the supervisor says why not.
            try screen.waitFor("it is not suspended")
            try screen.press("H")
            try screen.waitFor("no hold") { lines in
                lines.contains { $0.hasPrefix(" web") && !$0.contains("an operator") }
            }
            #expect(try daemon.summary("web").holds.isEmpty)
        }
    }

    @Test("the timeline has a lane an app, with the states that it went through")
    func timeline() throws {
        try Self.withScreen { daemon, screen in
            try screen.waitFor("● active", of: "web")
            try daemon.done(.suspend, "db")
            try screen.press("t")
            try screen.waitFor("15 min")
            try screen.waitFor("█", of: "web")
            try screen.press("+", "+")
            try screen.waitFor("1 min ")
            try screen.waitFor("░", of: "db")
            try screen.press("-", "-", "-", "-", "-", "-", "-")
            try screen.waitFor("24 h ")
            try screen.waitFor("·", of: "web")
            try screen.press("q")
            try screen.waitFor("STATE")
        }
    }

    @Test("the log shows lines as they come, the pages of an app and of events what they should")
    func pages() throws {
        try Self.withScreen { daemon, screen in
            try screen.waitFor("● active", of: "web")
            try screen.press("End", "l")
            let lines = try screen.waitFor("line ")
            let last = lines.compactMap { $0.hasPrefix("line ") ? Int($0.dropFirst(5)) : nil }.max() ?? 0
            try screen.waitFor("line \(last + 5)")
            try screen.press("i")
            try screen.waitFor("uptime:")
            try screen.waitFor("exec: /bin/sh")
            try screen.press("e")
            try screen.waitFor("web is active") { $0.contains { $0.contains("web ") && $0.contains("is active") } }
            try screen.press("?")
            try screen.waitFor("force quit (asks first)")
            try screen.press("q", "q", "/")
            try screen.type("db")
            try screen.waitFor("1 of 3 apps")
        }
    }

    @Test("quitting, Ctrl-C, SIGTERM and Ctrl-Z give the terminal back as it was")
    func restored() throws {
        try Self.withScreen { daemon, screen in
            func expectPrompt() throws {
                // Echo and line mode are back too.
                try screen.waitFor("prompt:")
                try screen.type("echo $((6*7))x; stty -a | grep -o ' echo ' | head -1")
                try screen.waitFor("42x")
                try screen.waitFor("echo") { $0.contains(" echo") }
                try screen.run(["send-keys", "-l", "clear"])
                try screen.press("Enter")
            }
            func again() throws {
                try screen.type(Built.path("torpor") + " top")
                try screen.waitFor("● active", of: "web")
            }
            try screen.waitFor("● active", of: "web")
            try screen.press("q")
            try expectPrompt()
            try again()
            try screen.press("C-c")
            try expectPrompt()
            try again()
            Foundation.kill(try screen.top(), SIGTERM)
            try expectPrompt()
            try again()
            try screen.press("C-z")
            try screen.waitFor("Stopped")
            try expectPrompt()
            try screen.type("fg")
            try screen.waitFor("● active", of: "web")
            // It goes on where it was, and knows the first key.
            try screen.waitFor("the keypad") { _ in (try? screen.hasKeypad()) ?? false }
            try screen.press("End", "s")
            try screen.waitFor("☾ suspended", of: "web")
            try screen.press("q")
            try screen.waitFor("prompt:")
        }
    }

    @Test("in the background it stops, as what wants the terminal does, and SIGTERM ends it there")
    func background() throws {
        let stopped = "until jobs -s | grep -q top; do sleep 0.01; done"
        try Self.withScreen { daemon, screen in
            func expectEnd(_ pid: Int32) throws {
                try screen.type("kill %1")
                try screen.waitFor("its end") { _ in !Truth.isAlive(pid) }
                // The shell tells by what when it prompts the next time.
                try screen.press("Enter")
                try screen.waitFor("Terminated")
            }
            try screen.waitFor("● active", of: "web")
            // Stopped, sent to the background, where it stops again, and ended: with the shell's terminal untouched.
            try screen.press("C-z")
            try screen.waitFor("Stopped")
            try screen.type("bg; \(stopped); echo again:$?")
            try screen.waitFor("again:0")
            let first = try screen.top()
            try expectEnd(first)
            // Begun in the background: it has not touched the terminal when it stops.
            try screen.type("clear; \(Built.path("torpor")) top & \(stopped); echo now:$?")
            try screen.waitFor("now:0")
            let second = try screen.top()
            try screen.type("fg")
            try screen.waitFor("● active", of: "web")
            try screen.press("C-z")
            try screen.waitFor("Stopped")
            try expectEnd(second)
            try screen.type("stty -a | grep -o ' echo ' | head -1")
            try screen.waitFor("echo") { $0.contains(" echo") }
        }
    }

    @Test("a torpord that is killed and comes back is said, and the screen goes on by itself")
    func replaced() throws {
        try Self.withScreen { daemon, screen in
            try screen.waitFor("● active", of: "web")
            let first = try daemon.torpord()
            Foundation.kill(first, SIGKILL)
            try screen.waitFor("has taken over as process")
            try screen.press("End", "s")
            try screen.waitFor("☾ suspended", of: "web")
            #expect(try daemon.torpord() != first)
        }
    }

    @Test("without a supervisor it says so for as long as that lasts")
    func lost() throws {
        try Self.withScreen { daemon, screen in
            try screen.waitFor("● active", of: "web")
            Foundation.kill(daemon.pid, SIGTERM)
            try daemon.waitForEnd()
            try screen.waitFor("no answer")
            try screen.waitFor("trying again")
            try daemon.startAgain()
            try screen.waitFor("● active", of: "web")
            try screen.waitFor("3 apps ") { $0[0].hasSuffix("3 apps") }
        }
    }
}
