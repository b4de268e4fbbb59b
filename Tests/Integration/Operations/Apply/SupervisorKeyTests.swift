// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

@Suite("Keys of the supervisor that change") struct SupervisorKeyTests {
    /// The configuration as the harness writes it, with other words in it.
    private func rewrite(_ daemon: Daemon, _ changes: [(String, String)]) throws {
        let path = daemon.directory + "/torpor.toml"
        var text = try String(contentsOfFile: path, encoding: .utf8)
        for (old, new) in changes {
            #expect(text.contains(old))
            text = text.replacing(old, with: new)
        }
        try text.write(toFile: path, atomically: true, encoding: .utf8)
    }

    @Test("The log level and on_exit change at once")
    func live() throws {
        try withDaemon(Apps.sleeper("a")) { daemon throws in
            try daemon.waitFor("a", "active")
            try self.rewrite(daemon, [("log_level = \"debug\"", "log_level = \"error\"\non_exit = \"terminate\"")])
            let reply = try daemon.apply()
            #expect(
                reply.supervisor.map { "\($0.key) \($0.old ?? "") \($0.new ?? "") \($0.effect)" } == [
                    "supervisor.log_level debug error live"
                ]
            )
            #expect(reply.apps.isEmpty)
            let before = daemon.log
            try daemon.done(.restart, "a")
            #expect(daemon.log == before)
        }
    }

    @Test("Directories stay where they are, which is said each time, and everything else is applied")
    func directories() throws {
        try withDaemon(Apps.sleeper("a")) { daemon throws in
            try self.rewrite(
                daemon,
                [
                    ("log_directory = \"\(daemon.directory)/l\"", "log_directory = \"\(daemon.directory)/other\""),
                    ("runtime_directory = \"\(daemon.directory)/r\"", "runtime_directory = \"\(daemon.directory)/r2\""),
                    ("[apps.a]", Apps.sleeper("b") + "[apps.a]"),
                ]
            )
            for round in 1...2 {
                let reply = try daemon.apply()
                #expect(reply.supervisor.map(\.key) == ["supervisor.log_directory", "supervisor.runtime_directory"])
                #expect(reply.supervisor.allSatisfy { $0.effect == "supervisor-start" })
                #expect(reply.apps.count == (round == 1 ? 1 : 0))
            }
            try daemon.waitFor("b", "active")
            #expect(!FileManager.default.fileExists(atPath: daemon.directory + "/other"))
            #expect(!FileManager.default.fileExists(atPath: daemon.directory + "/r2"))
            #expect(daemon.log.contains("supervisor.log_directory"))
        }
    }

    @Test("Nothing is applied while the supervisor ends")
    func shuttingDown() throws {
        let toml = RemovalTests.app("one")
        try withDaemon(toml, files: RemovalTests.files) { daemon throws in
            try daemon.waitForRecord("app", "up one")
            kill(daemon.pid, SIGTERM)
            try daemon.waitForRecord("app", "SIGTERM")
            try daemon.configure(toml + Apps.sleeper("late"))
            #expect(throws: VarlinkClientError.self) { try daemon.apply() }
            kill(daemon.pid, SIGHUP)
            try daemon.eventually("it is said") {
                daemon.log.components(separatedBy: "is not reloaded: torpord is shutting down").count >= 3
            }
            #expect(try daemon.list().map(\.name) == ["app"])
            try Daemon.write(["go": ""], in: daemon.directory)
        }
    }

    @Test("A reader may not apply, nor ask what would be")
    func authority() throws {
        guard geteuid() == 0 else { return }
        try withDaemon(Apps.sleeper("a")) { daemon throws in
            try self.rewrite(daemon, [("log_level = \"debug\"", "readers = [\"\(Self.nobodysGroup)\"]")])
            try daemon.apply()
            func torpor(_ words: [String]) throws -> (code: Int32, output: String) {
                let command = [
                    "/usr/bin/setpriv", "--reuid=65534", "--regid=\(Self.nobodysGroup)", "--clear-groups", "--",
                ]
                return try Spawn.run(command + [Built.path("torpor")] + words + ["--socket", daemon.socket])
            }
            #expect(try torpor(["list"]).code == 0)
            for words in [["apply"], ["apply", "--diff"]] {
                let (code, output) = try torpor(words)
                #expect(code == 1)
                #expect(output.contains("operators"), "\(output)")
            }
        }
    }

    @Test("A group that is made while torpord runs gives rights at once, and one that is removed soon gives none")
    func groups() throws {
        guard geteuid() == 0, Namespaces.areAllowed else { return }
        // torpord sees a file of its own as /etc/group.
        let daemon = try Daemon(
            Apps.sleeper("a"),
            files: ["group": "root:x:0:\n"],
            wrapper: [
                "/usr/bin/unshare", "--mount", "--propagation", "private", "/bin/sh", "-c",
                "mount --bind @D/group /etc/group && exec \"$@\"", "sh",
            ]
        )
        try daemon.waitUntilItAnswers()
        try self.rewrite(daemon, [("log_level = \"debug\"", "operators = [\"keepers-of-apps\"]")])
        try daemon.apply()
        try daemon.waitFor("a", "active")
        func torpor(_ words: [String]) throws -> (code: Int32, output: String) {
            let command = ["/usr/bin/setpriv", "--reuid=65534", "--regid=77123", "--clear-groups", "--"]
            return try Spawn.run(command + [Built.path("torpor")] + words + ["--socket", daemon.socket])
        }
        func write(_ text: String) throws {
            // The file itself is mounted: it cannot be replaced.
            try text.write(toFile: daemon.directory + "/group", atomically: false, encoding: .utf8)
        }
        let none = try torpor(["list"])
        #expect(none.code == 1 && none.output.contains("from their next login on"), "\(none.output)")
        try write("root:x:0:\nkeepers-of-apps:x:77123:\n")
        let some = try torpor(["suspend", "a"])
        #expect(some.code == 0, "\(some.output)")
        try write("root:x:0:\nkeepers-of-apps:x:77124:\n")
        try daemon.eventually("the group's new number counts") { try torpor(["list"]).code == 1 }
        try daemon.stop()
    }

    @Test("A user without rights is told which file says who has them, and how to have a supervisor of the user's own")
    func own() throws {
        guard geteuid() == 0, Namespaces.areAllowed else { return }
        try withDaemon(Apps.sleeper("a")) { daemon throws in
            // The supervisor of the machine, for the command alone.
            let script = """
                mount -t tmpfs none /run && mkdir /run/torpor && mount --bind \(daemon.runtime) /run/torpor || exit 9
                exec /usr/bin/setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
                """
            let config = daemon.directory + "/config"
            let folder = config + "/torpor"
            func torpor(_ verb: String...) throws -> (code: Int32, output: String) {
                let words = ["/usr/bin/unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", script, "sh"]
                let place = ["XDG_RUNTIME_DIR": "/none", "XDG_CONFIG_HOME": config, "TORPOR_MANAGER_SOCKET": ""]
                return try Spawn.run(words + [Built.path("torpor")] + verb, environment: place)
            }
            let none = try torpor("list")
            let file = daemon.directory + "/torpor.toml"
            #expect(none.code == 1 && none.output.contains("under [supervisor] in \(file) names (none of them is set)"))
            let start = "‘systemctl --user start torpord’ starts it\n"
            let make = "‘mkdir -p \(folder) && torpor init \(folder)’ writes \(folder)/torpor.toml, then \(start)"
            #expect(none.output.hasSuffix("; for a supervisor of your own, \(make)"), "\(none.output)")
            // A user who may look means this supervisor.
            let (before, readers) = ("log_level = \"debug\"", "readers = [\"65534\"]")
            try self.rewrite(daemon, [(before, readers)])
            try daemon.apply()
            let refused = try torpor("stop", "a")
            #expect(refused.code == 1 && refused.output.contains("may not change apps"), "\(refused.output)")
            #expect(!refused.output.contains("supervisor of your own"), "\(refused.output)")
            try self.rewrite(daemon, [(readers, before)])
            try daemon.apply()
            try File.makeDirectories(folder)
            try File.write(folder + "/torpor.toml", "")
            let some = try torpor("list")
            #expect(some.output.hasSuffix("; your own supervisor is not running: \(start)"), "\(some.output)")
        }
    }

    @Test("A user whose own supervisor is down changes nothing of the machine's, unless it is named")
    func fallback() throws {
        guard geteuid() == 0, Namespaces.areAllowed else { return }
        try withDaemon(Apps.sleeper("a")) { daemon throws in
            try self.rewrite(daemon, [("log_level = \"debug\"", "operators = [\"\(Self.nobodysGroup)\"]")])
            try daemon.apply()
            try daemon.waitFor("a", "active")
            // The supervisor of the machine, for the command alone.
            let script = """
                mount -t tmpfs none /run && mkdir /run/torpor && mount --bind \(daemon.runtime) /run/torpor || exit 9
                exec /usr/bin/setpriv --reuid=65534 --regid=\(Self.nobodysGroup) --clear-groups "$@"
                """
            let config = daemon.directory + "/config"
            func torpor(
                _ verb: [String],
                _ place: [String: String] = [:]
            ) throws -> (code: Int32, output: String) {
                let words = ["/usr/bin/unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", script, "sh"]
                let usual = [
                    "XDG_RUNTIME_DIR": "/none", "XDG_CONFIG_HOME": config, "XDG_STATE_HOME": config + "/state",
                    "TORPOR_MANAGER_SOCKET": "",
                ]
                let environment = usual.merging(place) { $1 }
                return try Spawn.run(words + [Built.path("torpor")] + verb, environment: environment)
            }
            func run() throws -> Int32? { try daemon.summary("a").pid }
            let notice = "torpor: your own supervisor is not running: this is the machine's\n"
            // Without a configuration of the user, there is no other supervisor to mean.
            let restarted = try torpor(["restart", "a"])
            #expect(restarted.code == 0 && restarted.output.contains(notice), "\(restarted.output)")
            #expect(try torpor(["list"]).output.hasPrefix("NAME"))
            // With one, or with the state of an earlier run, only reading is not refused.
            let pid = try run()
            let start = "‘systemctl --user start torpord’ starts it"
            for (file, way) in [("torpor/torpor.toml", start), ("state/torpor/x", "‘torpord --config FILE’ starts it")]
            {
                try File.makeDirectories(File.parent(of: config + "/" + file) ?? "")
                try File.write(config + "/" + file, "")
                let sentence =
                    "torpor: your own supervisor is not running, and nothing was changed: \(way); if you mean the "
                    + "machine's, add --socket /run/torpor/io.torpor\n"
                for verb in [["stop", "*"], ["apply"], ["signal", "TERM", "a"], ["upgrade"]] {
                    let refused = try torpor(verb)
                    #expect(refused.code == 5 && refused.output == sentence, "\(refused.output)")
                }
                for verb in [["list"], ["wait", "a", "--for", "active"], ["apply", "--diff"]] {
                    #expect(try torpor(verb).code == 0)
                }
                #expect(try run() == pid)
                try? FileManager.default.removeItem(atPath: config + "/torpor")
            }
            // Whoever names it means it.
            let socket = "/run/torpor/io.torpor"
            let named = try torpor(["restart", "a"], ["TORPOR_MANAGER_SOCKET": socket])
            #expect(named.code == 0 && !named.output.contains("machine's"), "\(named.output)")
            let stopped = try torpor(["stop", "a", "--socket", socket])
            #expect(stopped.code == 0 && !stopped.output.contains("machine's"), "\(stopped.output)")
        }
    }

    private static let nobodysGroup = 65534

    @Test("An app that gets another user keeps its sockets")
    func user() throws {
        guard geteuid() == 0 else { return }
        let files = [
            "app.py": """
            import tp
            tp.notify("READY=1")
            print("I am", tp.os.getuid(), flush=True)
            with open("/dev/stdout", "w") as again: print("again", file=again)
            tp.wait()
            """
        ]
        func toml(_ keys: String) -> String {
            "[apps.app]\n\(Scripts.python)\"@D/app.py\"]\nready = \"notify\"\n\(keys)\n"
        }
        try withDaemon(toml(""), files: files) { daemon throws in
            try daemon.waitFor("app", "active")
            for (keys, uid) in [("user = \"nobody\"", "65534"), ("", "0")] {
                let reply = try daemon.apply(toml(keys)) { $0.restart = true }
                #expect(reply.apps.allSatisfy { $0.ok }, "\(reply.lines)")
                try daemon.eventually("it said who it is, twice") {
                    let log = (try? String(contentsOfFile: daemon.directory + "/l/app.log", encoding: .utf8)) ?? ""
                    let lines = log.split(separator: "\n").suffix(2)
                    return lines.first?.hasSuffix("I am \(uid)") == true && lines.last?.hasSuffix("again") == true
                }
            }
        }
    }
}
