// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Linux
import Testing
import TorporAPI

@Suite("Latency of torpor top", .serialized) struct TopLatencyTests {
    @Test("A change that others make is on the screen well within a tenth of a second of its event")
    func change() throws {
        guard Screen.isThere else { return print("skipped: there is no /usr/bin/tmux here") }
        try withDaemon(Apps.sleeper("web")) { daemon throws in
            try daemon.waitFor("web", "active")
            // The next reading comes in an hour: only the events can bring it.
            let screen = try Screen(daemon, options: "--delay 1h")
            defer { screen.close() }
            try screen.waitFor("● active", of: "web")
            var best = Duration.seconds(10)
            // What it takes alone to ask tmux, on a screen that shows it already.
            var control = Duration.seconds(10)
            for (verb, sign) in [(Verb.suspend, "☾"), (.foreground, "●"), (.suspend, "☾"), (.foreground, "●")] {
                try daemon.done(verb, "web")
                let began = Clock.monotonic()
                try screen.waitFor(sign, of: "web")
                let seen = Clock.monotonic()
                try screen.waitFor(sign, of: "web")
                best = min(best, seen - began)
                control = min(control, Clock.monotonic() - seen)
            }
            print("a change is on the screen in \(best), of which \(control) is tmux")
            #expect(best < .milliseconds(100) + control * 2)
            screen.close()
        }
    }
}
