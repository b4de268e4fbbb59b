// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

@Suite("The names of verbs") struct VerbNameTests {
    private static func torpor(_ daemon: Daemon, _ words: String...) throws -> (code: Int32, output: String) {
        try Spawn.run([Built.path("torpor")] + words, environment: ["TORPOR_MANAGER_SOCKET": daemon.socket])
    }

    @Test(
        "Those that verbs had before go on working, and help does not show them",
        arguments: [
            ("policies", "policy list"), ("delegate", "app delegate"), ("task", "app task"),
            ("task run", "app task run"),
            ("state save", "app state save"), ("subscribe", "app subscribe"),
        ]
    )
    func earlier(old: String, now: String) throws {
        func help(_ words: [String]) throws -> String {
            let (code, output) = try Spawn.run([Built.path("torpor")] + words)
            #expect(code == 0, "\(output)")
            return output
        }
        let words = old.components(separatedBy: " ")
        let text = try #require(ManualPageTests.helps[now])
        #expect(try help(words + ["--help"]) == text)
        // ‘policies’ is also a topic. With `help` before it a verb has no --version.
        if old == "policies" { return }
        #expect(
            try help(["help"] + words).components(separatedBy: "USAGE: ")[0]
                == text.components(separatedBy: "USAGE: ")[0]
        )
        #expect(!ManualPageTests.verbs.contains(old))
    }

    @Test("Commands of PM2, and names that are nearly those of apps, have a hint")
    func habits() throws {
        for (words, hint) in [
            (["ping"], "‘torpor health’"), (["prettylist"], "‘torpor list --json’"),
            (["jlist"], "‘torpor list --json’"),
            (["sendSignal", "USR2", "api"], "‘torpor signal SIGNAL APP’"), (["id", "api"], "names and no numbers"),
            (["deploy", "production"], "‘torpor restart APP’"),
            (["restart", "api", "--update-env"], "environment in the"),
            (["dump"], "stores the state of each app itself"),
            (["env", "api"], "environment in the configuration"),
            (["events", "--app", "web", "-f"], "apps are named without an option, as in ‘torpor events web’"),
            (["logs", "--app=web"], "as in ‘torpor logs web’"), (["history", "--app"], "as in ‘torpor history APP’"),
            (["logs", "api", "-n", "-5"], "-n wants a number from 0, such as -n 5"),
        ] {
            let (code, output) = try Spawn.run([Built.path("torpor")] + words)
            #expect(code == 2 && output.contains(hint), "\(words): \(output)")
        }
        let toml =
            Apps.sleeper("api", "instances = 2\ntags = [\"shopgroup\"]") + Apps.sleeper("web")
            + Apps.sleeper("resize", "instances = 2\ninstance_first = 0")
        try withDaemon(toml, files: ["app.js": ""]) { daemon in
            for (words, hint) in [
                (["restart", "aip"], "did you mean api?"), (["stop", "shopgroup"], "did you mean tag:shopgroup?"),
                (["stop", "shopgroup:*"], "‘tag:shopgroup’ is all apps with a tag"),
                (["stop", "api:*"], "did you mean api?"), (["status", "web:"], "did you mean web?"),
                (["stop", "shopgroup:api_01"], "did you mean api@1?"),
                (["restart", "resize_01"], "did you mean resize@1?"),
                (["status", "workers:resize-1"], "did you mean resize@1?"), (["status", "web_0"], "did you mean web?"),
                (["stop", "x:resize_7"], "‘torpor list’ shows"), (["stop", "resize_7"], "there is no app resize_7"),
                (["restart", "all"], "write '*', in quotes"),
                (["stop", "[aw]*"], "only * and ? stand for other characters"),
                (["start", daemon.directory + "/app.js"], "a file is not started by its name"),
            ] {
                let socket = ["TORPOR_MANAGER_SOCKET": daemon.socket]
                let (code, output) = try Spawn.run([Built.path("torpor")] + words, environment: socket)
                #expect(code == 4 && output.contains(hint), "\(words): \(output)")
                #expect(!output.contains("resize@0"), "\(words): \(output)")
            }
        }
    }

    @Test("An option before the verb goes to it, however many words it has")
    func optionsBefore() throws {
        try withDaemon(Apps.sleeper("a")) { daemon in
            for verb in [["policy", "list"], ["policies"], ["memory", "rehearse"], ["list"]] {
                let words = [Built.path("torpor"), "--socket", daemon.socket, "--json"] + verb
                let (code, output) = try Spawn.run(words)
                #expect(code == 0 && output.hasPrefix("["), "\(verb): \(output)")
            }
        }
        let (code, output) = try Spawn.run([Built.path("torpor"), "policy", "ordr"])
        #expect(code == 2 && output == "torpor: there is no verb policy ordr: did you mean ‘torpor policy order’?\n")
    }

    @Test(
        "An app that was force-quit says that no event launches it, until it is started",
        arguments: ["force-quit", "kill"]
    )
    func forceQuit(verb: String) throws {
        try withDaemon(Apps.sleeper("a") + "\ntopics = { news = \"all\" }\n") { daemon in
            try daemon.waitFor("a", "active")
            #expect(try !Self.torpor(daemon, "status", "a").output.contains("force-quit"))
            let (code, output) = try Self.torpor(daemon, verb, "a")
            #expect(code == 0 && output.contains("no event launches it again"), "\(output)")
            let status = try Self.torpor(daemon, "status", "a")
            #expect(status.code == 3, "\(status)")
            let text = "force-quit: no event launches it again (‘torpor start a’ does)\n"
            #expect(status.output.contains(text), "\(status.output)")
            // And none does.
            _ = try Self.torpor(daemon, "post", "a", "news", "--urgent")
            #expect(try daemon.summary("a").state == "not-running")
            #expect(try Self.torpor(daemon, "start", "a").code == 0)
            #expect(try !Self.torpor(daemon, "status", "a").output.contains("launches it again"))
            try daemon.done(.stop, "a")
            #expect(try !Self.torpor(daemon, "status", "a").output.contains("launches it again"))
        }
    }

    @Test("hold says what it does to an app that is not in the background")
    func hold() throws {
        try withDaemon(Apps.sleeper("a")) { daemon in
            try daemon.waitFor("a", "active")
            let active = try Self.torpor(daemon, "hold", "a").output
            #expect(
                active.hasPrefix("a: active (pid ") && active.contains("it stays where it is, and is not suspended")
            )
            #expect(try daemon.summary("a").state == "active")
            #expect(try Self.torpor(daemon, "hold", "a", "--end").code == 0)
            try daemon.done(.suspend, "a")
            let suspended = try Self.torpor(daemon, "hold", "a").output
            #expect(suspended.contains("it stays suspended until it is resumed"), "\(suspended)")
            #expect(try daemon.summary("a").state == "suspended")
            #expect(ManualPageTests.helps["hold"]?.contains("an active one stays active") == true)
        }
    }
}
