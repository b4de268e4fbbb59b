// SPDX-License-Identifier: Apache-2.0

import Lifecycle
import Linux
import Mailbox
import Testing
import WireText

@testable import Configuration

@Suite("What values of a configuration mean")
struct ValueTests {
    @Test("globs match as a shell's do")
    func globs() {
        for (pattern, name, isMatch) in [
            ("*.toml", "a.toml", true), ("*.toml", "a.txt", false), ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxc", false),
            ("?", "ä", true), ("?", "", false), ("[a-c]x", "bx", true), ("[!a-c]x", "bx", false), ("[]]", "]", true),
            ("[", "[", true), ("*", "", true), ("[a-", "[a-", true), ("**", "x", true),
        ] {
            #expect(Glob.matches(pattern, name) == isMatch, "\(pattern) \(name)")
        }
    }

    @Test("the directories of root, of a user and of systemd")
    func directories() {
        let root = SupervisorSpecification(environment: ["XDG_RUNTIME_DIR": "/run/user/0"], userID: 0)
        #expect(root.runtimeDirectory == "/run/torpor")
        #expect(root.stateDirectory == "/var/lib/torpor")
        #expect(root.logDirectory == "/var/log/torpor")
        #expect(root.policyDirectory == "/usr/lib/torpor/policies")
        let home = ["HOME": "/home/u", "XDG_RUNTIME_DIR": "/run/user/5"]
        let user = SupervisorSpecification(environment: home, userID: 5)
        #expect(user.runtimeDirectory == "/run/user/5/torpor")
        #expect(user.stateDirectory == "/home/u/.local/state/torpor")
        #expect(user.logDirectory == "/home/u/.local/state/torpor/log")
        #expect(DefaultPaths(environment: home, userID: 5).configuration == "/home/u/.config/torpor/torpor.toml")
        #expect(DefaultPaths(environment: [:], userID: 0).configuration == "/etc/torpor/torpor.toml")
        let unit = [
            "RUNTIME_DIRECTORY": "/run/a:/run/b", "STATE_DIRECTORY": "/s", "LOGS_DIRECTORY": "/l",
            "CONFIGURATION_DIRECTORY": "/c",
        ]
        let paths = DefaultPaths(environment: unit, userID: 5)
        #expect(
            [paths.runtime, paths.state, paths.log, paths.configuration] == ["/run/a", "/s", "/l", "/c/torpor.toml"]
        )
    }

    @Test("durations are read and written")
    func durations() throws {
        for (text, duration) in [
            ("500ms", Duration.milliseconds(500)), ("5s", .seconds(5)), ("2min", .seconds(120)), ("2m", .seconds(120)),
            ("1h30m", .seconds(5_400)), ("1h 30min", .seconds(5_400)), ("1.5s", .milliseconds(1_500)),
            ("3us", .microseconds(3)), ("2d", .seconds(172_800)), ("0s", .zero),
        ] {
            #expect(try Quantity.duration(text) == duration)
            #expect(try Quantity.duration(Quantity.text(duration)) == duration)
        }
        #expect(Quantity.text(.milliseconds(90_061_001)) == "1d1h1min1s1ms")
    }

    @Test("sizes are binary with i or a single letter, else decimal")
    func sizes() throws {
        for (text, size) in [
            ("64MiB", UInt64(64 << 20)), ("1GB", 1_000_000_000), ("512K", 512 << 10), ("7B", 7), ("1.5KiB", 1_536),
        ] {
            #expect(try Quantity.size(text) == size)
        }
    }

    @Test("the delays of restarts until the app is given up")
    func restartSchedule() throws {
        func schedule(_ keys: String) throws -> RestartSchedule {
            let app = try #require(try load("[apps.a]\nexec = [\"a\"]\n" + keys).get().apps.first)
            return ConfigurationLoader.restartSchedule(for: app)
        }
        let plain = try schedule("")
        #expect(plain.givesUp)
        #expect(plain.delays.count == 10)
        #expect(plain.delays.prefix(3) == [.milliseconds(100), .milliseconds(200), .milliseconds(400)])
        #expect(plain.total == .milliseconds(102_300))
        #expect(try schedule("restart = \"never\"") == RestartSchedule(delays: [], givesUp: true))
        #expect(try schedule("restart_backoff.limit = 0") == RestartSchedule(delays: [], givesUp: true))
        let endless = try schedule("restart_backoff = { initial = \"1s\", cap = \"4s\", window = \"5s\" }")
        #expect(endless == RestartSchedule(delays: [.seconds(1), .seconds(2), .seconds(4)], givesUp: false))
        // The first of them is 12 s ago when it ends for the fifth time.
        let constant = "restart_backoff = { initial = \"3s\", factor = 1, limit = 4, window = "
        #expect(try !schedule(constant + "\"10s\" }").givesUp)
        #expect(try schedule(constant + "\"13s\" }").givesUp)
        // Every run counts as one that went well.
        let stable = try schedule("stable_after = \"0s\"\nrestart_backoff.limit = 10000")
        #expect(stable == RestartSchedule(delays: [.milliseconds(100)], givesUp: false))
    }

    @Test("A oneshot has all the time it needs for its work, unless the configuration says otherwise")
    func oneshotDeadline() throws {
        func deadline(_ keys: String, _ defaults: String = "") throws -> Duration? {
            let text = defaults + "[apps.a]\nexec = [\"a\"]\n" + keys
            return try #require(try load(text).get().apps.first).rules.launchDeadline
        }
        #expect(try deadline("") == .seconds(5))
        #expect(try deadline("type = \"oneshot\"") == nil)
        #expect(try deadline("type = \"oneshot\"\nlaunch_deadline = \"7s\"") == .seconds(7))
        #expect(try deadline("type = \"oneshot\"", "[defaults]\nlaunch_deadline = \"8s\"\n") == .seconds(8))
    }
}
