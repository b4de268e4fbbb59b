// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Linux
import Testing
import TorporAPI

/// Commands of before_start and after_stop that run when torpord is replaced.
@Suite("Commands of an app, when torpord is replaced") struct CommandTests {
    /// Records its name and the names of its processes' steps: it begins, waits for `NAME.go`, and exits with what that
    /// file contains.
    private static let command = """
        import sys, tp
        name = sys.argv[1]
        tp.record(name)
        tp.await_file(name + ".go")
        tp.record(name + " done")
        sys.exit(int(open(tp.HERE + "/" + name + ".go").read() or "0"))
        """

    private static func toml(_ keys: String) -> String {
        """
        [apps.web]
        exec = ["@B/torpor-test-app"]
        launch = "on-demand"
        restart = "never"
        \(keys)
        """
    }

    private static func list(_ key: String, _ names: [String], deadline: String = "1min") -> String {
        let commands = names.map {
            "{ command = [\"/usr/bin/python3\", \"-S\", \"@D/command.py\", \"\($0)\"], deadline = \"\(deadline)\" }"
        }
        return "\(key) = [\(commands.joined(separator: ", "))]"
    }

    private func write(_ daemon: Daemon, _ name: String, _ text: String = "") throws {
        try File.write(daemon.directory + "/\(name).go.new", text)
        try File.rename(daemon.directory + "/\(name).go.new", daemon.directory + "/\(name).go")
    }

    @Test("before_start continues where it was: no command is run twice", arguments: [Loss.killed, .upgraded])
    func beforeStart(loss: Loss) throws {
        let toml = Self.toml(Self.list("before_start", ["one", "two", "three"]))
        try withRecovery(toml, files: ["command.py": Self.command], loss: loss) { daemon throws in
            _ = try daemon.verb(.start, "web") { $0.wait = false }
            try daemon.waitForRecord("web", "one")
            try daemon.lose(loss)
            #expect(try daemon.summary("web").transition == "launching")
            try write(daemon, "one")
            try daemon.waitForRecord("web", "two")
            // This one ends while no torpord runs, and the next torpord is replaced again.
            try daemon.lose(loss) {
                try write(daemon, "two")
                try daemon.waitForRecord("web", "two done")
            }
            try daemon.waitForRecord("web", "three")
            try daemon.lose(loss)
            try daemon.lose(loss)
            try write(daemon, "three")
            try daemon.waitFor("web", "active")
            #expect(daemon.records("web") == ["one", "one done", "two", "two done", "three", "three done"])
            try daemon.lose(loss)
            #expect(try daemon.summary("web").state == "active")
            #expect(daemon.records("web").count == 6)
        }
    }

    @Test("The exit status of a before_start command decides, also if it ended while no torpord ran")
    func failure() throws {
        let toml = Self.toml(Self.list("before_start", ["one", "two"]))
        try withRecovery(toml, files: ["command.py": Self.command]) { daemon throws in
            _ = try daemon.verb(.start, "web") { $0.wait = false }
            try daemon.waitForRecord("web", "one")
            try daemon.lose(.killed) {
                try write(daemon, "one", "7")
                try daemon.waitForRecord("web", "one done")
            }
            let event = try daemon.waitForEvent("web", "launch-failed")
            #expect(event.text.contains("failed with exit status 7"), "\(event)")
            #expect(daemon.records("web") == ["one", "one done"])
        }
    }

    @Test("A stop ends a before_start command that was taken over")
    func stop() throws {
        let toml = Self.toml(Self.list("before_start", ["one"]))
        try withRecovery(toml, files: ["command.py": Self.command]) { daemon throws in
            _ = try daemon.verb(.start, "web") { $0.wait = false }
            try daemon.waitForRecord("web", "one")
            try daemon.lose(.killed)
            try daemon.done(.stop, "web")
            #expect(try daemon.summary("web").state == "not-running")
            #expect(daemon.records("web") == ["one"])
            try write(daemon, "one")
            try daemon.done(.start, "web") { $0.wait = false }
            try daemon.eventually("it runs again from the first") { daemon.records("web").count > 1 }
            #expect(daemon.records("web")[1] == "one", "the command that was ended does not continue")
        }
    }

    @Test("A command that was taken over has only the rest of its deadline")
    func deadline() throws {
        let toml = Self.toml(Self.list("before_start", ["one"], deadline: "2s"))
        try withRecovery(toml, files: ["command.py": Self.command]) { daemon throws in
            _ = try daemon.verb(.start, "web") { $0.wait = false }
            try daemon.waitForRecord("web", "one")
            try daemon.lose(.killed)
            let event = try daemon.waitForEvent("web", "launch-failed")
            #expect(event.text.contains("took longer than its deadline of 2s and was killed"), "\(event)")
            #expect(daemon.records("web") == ["one"])
        }
    }

    @Test("after_stop continues where it was, and the app has ended after it", arguments: [Loss.killed, .upgraded])
    func afterStop(loss: Loss) throws {
        let toml = Self.toml(Self.list("after_stop", ["one", "two"]))
        try withRecovery(toml, files: ["command.py": Self.command], loss: loss) { daemon throws in
            try daemon.done(.start, "web")
            _ = try daemon.verb(.stop, "web") { $0.wait = false }
            try daemon.waitForRecord("web", "one")
            try daemon.lose(loss)
            #expect(try daemon.summary("web").transition == "terminating")
            try daemon.lose(loss) {
                try write(daemon, "one")
                try daemon.waitForRecord("web", "one done")
            }
            try daemon.waitForRecord("web", "two")
            try write(daemon, "two")
            try daemon.eventually("it has ended") { try daemon.summary("web").state == "not-running" }
            #expect(daemon.records("web") == ["one", "one done", "two", "two done"])
            #expect(try daemon.summary("web").lastExit?.reason == "stopped")
        }
    }
}
