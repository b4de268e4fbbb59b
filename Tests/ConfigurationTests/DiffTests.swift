// SPDX-License-Identifier: Apache-2.0

import Foundation
import Lifecycle
import Testing

@testable import Configuration

@Suite("What is different between two configurations")
struct DiffTests {
    /// `[apps.a]` with these keys, beside two apps that it may name.
    private static func configuration(_ keys: [String: String]) throws -> TorporConfiguration {
        var keys = keys
        if keys["exec"] == nil { keys["exec"] = "[\"/bin/old\"]" }
        let lines = keys.sorted { $0.key < $1.key }.map { "\($0.key) = \($0.value)" }.joined(separator: "\n")
        return try load("[apps.b]\nexec = [\"b\"]\n[apps.c]\nexec = [\"c\"]\n[apps.a]\n" + lines).get()
    }

    private static func changes(_ old: [String: String], _ new: [String: String]) throws -> [KeyChange] {
        let diff = ConfigurationDiff(try configuration(old), try configuration(new))
        return try #require(diff.apps.count == 1 ? diff.apps.first : nil).changes
    }

    @Test("every key of an app says what a change of it does, and none besides")
    func everyKey() {
        #expect(AppKeyEffects.all.map(\.name) == AppKeys.all.map(\.name))
        #expect(SupervisorKeyEffects.all.map(\.name).sorted() == SupervisorKeys.all.map(\.name).sorted())
        #expect(SupervisorKeyEffects.policy.map(\.name) == SupervisorKeys.policy.map(\.name))
    }

    @Test("the page for users says of each key what the table says")
    func page() throws {
        let file = SchemaTests.folder.deletingLastPathComponent().appending(path: "docs/interfaces.md")
        let lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
        func keys(_ label: String) throws -> Set<String> {
            let line = try #require(lines.first { $0.hasPrefix("| \(label) |") }, "\(label)")
            // Every second part stands between backquotes.
            let parts = line.split(separator: "`", omittingEmptySubsequences: false)
            return Set(parts.enumerated().filter { $0.offset % 2 == 1 }.map { String($0.element) })
        }
        func names(_ effects: KeyEffect...) throws -> Set<String> {
            let some = try #require(Self.configuration([:]).apps.first { $0.name == "a" })
            return Set(AppKeyEffects.all.filter { effects.contains($0.effect(some, some)) }.map(\.name))
        }
        #expect(try keys("at once") == names(.live))
        #expect(try keys("at the next launch") == names(.launch))
        #expect(
            try keys("at the next launch, or with `--restart`").subtracting(["--restart", "watchdog"])
                == names(.restart)
        )
        #expect(try keys("as apps that come and go") == names(.apps))
        let live = SupervisorKeyEffects.all.filter { $0.effect(Self.supervisor, Self.supervisor) == .live }
        #expect(
            try keys("of `[supervisor]`, at once").subtracting(["[supervisor]", "[policies]"]) == Set(live.map(\.name))
        )
        #expect(
            try keys("of `[supervisor]`, when it is stopped and started again").subtracting(["[supervisor]"])
                == Set(SupervisorKeyEffects.directories.map(\.name))
        )
    }

    private static let supervisor = SupervisorSpecification(environment: [:], userID: 0)

    /// What a key needs beside itself to mean something.
    private static let company = [
        "answers": ["signals": "{ didEnterBackground = \"USR1\" }"],
        // Which is a oneshot's where none is written.
        "type": ["launch_deadline": "\"none\""],
    ]

    /// Keys that say which apps there are.
    private static let names: Set = ["instances", "instance_first", "scenes"]

    @Test("a change of each key is found, is told by its name and value, and changes nothing else")
    func eachKey() throws {
        for (key, value) in LoaderTests.everything where !Self.names.contains(key) {
            let base = Self.company[key] ?? [:]
            let changes = try Self.changes(base, base.merging([key: value]) { $1 })
            #expect(!changes.isEmpty, "\(key)")
            for change in changes {
                #expect(change.key == key || change.key.hasPrefix(key + "."), "\(key)")
                #expect(change.old != change.new, "\(key)")
            }
            // And back.
            let back = try Self.changes(base.merging([key: value]) { $1 }, base)
            #expect(back.map(\.key) == changes.map(\.key))
            #expect(back.map(\.old) == changes.map(\.new))
        }
    }

    @Test("the digest for launches tells of each key that a process gets at its launch, and of no other")
    func launchDigest() throws {
        func specification(_ keys: [String: String]) throws -> AppSpecification {
            try #require(Self.configuration(keys).apps.first { $0.name == "a" })
        }
        for (key, value) in LoaderTests.everything where !Self.names.contains(key) {
            let base = Self.company[key] ?? [:]
            let (old, new) = try (specification(base), specification(base.merging([key: value]) { $1 }))
            let changes = try Self.changes(base, base.merging([key: value]) { $1 })
            let isLive = changes.allSatisfy { $0.effect == .live }
            #expect((old.launchDigest == new.launchDigest) == isLive, "\(key)")
            #expect(old.launchDigest == old.taking(liveKeysOf: new).launchDigest, "\(key)")
            #expect(new.needsNoRestart(after: old.launchDigest) != changes.contains { $0.effect == .restart }, "\(key)")
        }
        // The same in each process: what one torpord wrote down, the next one compares.
        var known = AppSpecification(name: "a")
        known.exec = ["/bin/sleep", "1000"]
        #expect(known.launchDigest != AppSpecification(name: "a").launchDigest)
    }

    @Test("all keys together are the whole specification")
    func whole() throws {
        var keys = LoaderTests.everything
        for key in Self.names { keys[key] = nil }
        // No container is in a sandbox.
        keys["sandbox"] = nil
        let old = try #require(Self.configuration([:]).apps.first { $0.name == "a" })
        let new = try #require(Self.configuration(keys).apps.first { $0.name == "a" })
        var taken = old
        for key in AppKeyEffects.all { key.copy(&taken, new) }
        #expect(taken == new)
        // What can change live is taken, the rest is not, and is still different.
        let live = old.taking(liveKeysOf: new)
        for key in AppKeyEffects.all where !Self.names.contains(key.name) && key.name != "sandbox" {
            let isLive = key.effect(old, new) == .live
            #expect(key.isSame(live, new) == isLive, "\(key.name)")
            #expect(key.isSame(live, old) != isLive, "\(key.name)")
        }
    }

    @Test("values are shown as they are written")
    func values() throws {
        func shown(_ key: String, _ old: String?, _ new: String?) throws -> String {
            let changes = try Self.changes(old.map { [key: $0] } ?? [:], new.map { [key: $0] } ?? [:])
            return changes.map { "\($0.key) \($0.old ?? "none") → \($0.new ?? "none")" }.joined(separator: ", ")
        }
        #expect(try shown("grace", nil, "\"1min30s\"") == "grace 5s → 1min30s")
        #expect(try shown("launch_deadline", "\"none\"", "\"1s\"") == "launch_deadline none → 1s")
        #expect(
            try shown("exec", "[\"/bin/a\"]", "[\"/bin/a\", \"x \\\"y\"]") == #"exec ["/bin/a"] → ["/bin/a", "x \"y"]"#
        )
        #expect(try shown("directory", nil, "\"/srv\"") == "directory none → /srv")
        #expect(try shown("umask", "\"0022\"", "\"0007\"") == "umask 0022 → 0007")
        #expect(try shown("stop_signal", nil, "\"INT\"") == "stop_signal SIGTERM → SIGINT")
        #expect(try shown("memory_limit", "\"64MiB\"", "\"1000B\"") == "memory_limit 64MiB → 1000B")
        let type = try shown("type", nil, "\"oneshot\"").split(separator: ", ")
        #expect(Set(type) == ["type service → oneshot", "launch_deadline 5s → none"])
        #expect(try shown("log", nil, "\"null\"") == "log file → null")
        #expect(
            try shown("ready", nil, "{ tcp = \"[::1]:80\", interval = \"1s\" }")
                == "ready exec → tcp ::1:80, interval 1s"
        )
        #expect(try shown("success_exit_status", nil, "[3, \"HUP\"]") == "success_exit_status [] → [3, SIGHUP]")
        #expect(
            try shown("environment", "{ A = \"1\", B = \"2\", C = \"3\" }", "{ A = \"1\", B = \"4\", D = \"5\" }")
                == "environment.B 2 → 4, environment.C 3 → none, environment.D none → 5"
        )
        #expect(
            try shown("limits", "{ nofile = 10 }", "{ nofile = \"10:unlimited\", core = 0 }")
                == "limits.core none → 0, limits.nofile 10 → 10:unlimited"
        )
        #expect(try shown("limits", nil, "{ tasks = 9 }") == "limits.tasks none → 9")
        let tasks = try Self.changes(["limits": "{ tasks = 9 }"], ["limits": "{ tasks = 8 }"])
        #expect(tasks.map(\.effect) == [.live])
        let both = try Self.changes(["limits": "{ tasks = 9 }"], ["limits": "{ tasks = 8, nofile = 7 }"])
        #expect(both.map(\.effect) == [.restart, .restart])
        #expect(
            try shown("resources", "{ active = { cpu_max = \"50%\" } }", "{ active = { memory_high = \"1MiB\" } }")
                == "resources.active.cpu_max 50% → none, resources.active.memory_high none → 1MiB"
        )
        #expect(
            try shown("restart_backoff", nil, "{ limit = 3, initial = \"1s\" }")
                == "restart_backoff.initial 100ms → 1s, restart_backoff.limit 10 → 3"
        )
        #expect(
            try shown("resources", nil, "{ suspended = { cpu_weight = 7 } }")
                == "resources.suspended.cpu_weight none → 7"
        )
        #expect(try shown("after_stop", nil, "[[\"/bin/a\", \"b\"]]") == #"after_stop [] → ["/bin/a b"]"#)
    }

    @Test("a watchdog can become longer or go while the app runs, but not come or become shorter")
    func watchdog() throws {
        for (old, new, effect) in [
            ("10s", "20s", KeyEffect.live), ("10s", "none", .live), ("10s", "9s", .restart), ("none", "10s", .restart),
        ] {
            let changes = try Self.changes(["watchdog": "\"\(old)\""], ["watchdog": "\"\(new)\""])
            #expect(changes.map(\.effect) == [effect], "\(old) → \(new)")
        }
    }

    @Test("signals that are answered are one change")
    func answered() throws {
        let signals = "{ didEnterBackground = \"USR1\" }"
        let changes = try Self.changes(
            ["answers": "true", "signals": signals],
            ["answers": "true", "signals": "{ didEnterBackground = \"USR1\", willTerminate = \"USR2\" }"]
        )
        #expect(changes.map(\.key) == ["signals.willTerminate"])
        let new = try Self.configuration(["answers": "true", "signals": signals]).apps[0]
        let taken = try Self.configuration([:]).apps[0].taking(liveKeysOf: new)
        #expect(taken.rules.answeredMessages == new.rules.answeredMessages)
    }

    @Test("apps come, go and change; instances are apps of their own")
    func apps() throws {
        let old = try load("[apps.web]\nexec = [\"w\"]\ninstances = 3\n[apps.gone]\nexec = [\"g\"]").get()
        let new = try load("[apps.web]\nexec = [\"w\"]\ninstances = 2\ngrace = \"1s\"\n[apps.new]\nexec = [\"n\"]")
            .get()
        let diff = ConfigurationDiff(old, new)
        #expect(
            diff.apps.map { "\($0.name) \($0.kind.rawValue)" } == [
                "new added", "web@1 changed", "web@2 changed", "gone removed", "web@3 removed",
            ]
        )
        #expect(diff.apps[1].changes == [KeyChange(key: "grace", old: "5s", new: "1s", effect: .live)])
        #expect(!diff.apps[1].needsRestart)
        #expect(ConfigurationDiff(new, new).isEmpty)
    }

    @Test("instances that are numbered otherwise come and go, and those with a number of both stay")
    func numbers() throws {
        let old = try load("[apps.web]\nexec = [\"w\"]\ninstances = 2").get()
        let new = try load("[apps.web]\nexec = [\"w\"]\ninstances = 2\ninstance_first = 0").get()
        let diff = ConfigurationDiff(old, new)
        #expect(diff.apps.map { "\($0.name) \($0.kind.rawValue)" } == ["web@0 added", "web@2 removed"])
    }

    @Test("what the texts say otherwise and means the same is no difference")
    func sameMeaning() throws {
        let old = try load("[apps.web]\nexec = [\"w\"]\ngrace = \"60s\"").get()
        let new = try load("# A comment.\n[defaults]\ngrace = \"1min\"\n[apps.web]\nexec = [\"w\"]\nnice = 0").get()
        #expect(old.sources != new.sources)
        #expect(
            ConfigurationDiff(old, new).apps.map(\.changes) == [
                [KeyChange(key: "nice", old: nil, new: "0", effect: .restart)]
            ]
        )
    }

    @Test("the supervisor's keys and policies; directories stay until it is started again")
    func supervisor() throws {
        let old = try load("[supervisor]\nlog_level = \"info\"\nlog_directory = \"/a\"\n[apps]").get()
        let text = """
            [supervisor]
            log_level = "debug"
            log_directory = "/b"
            policies = ["mobile"]
            on_exit = "leave"
            main = "web"
            memory = { enabled = false, warning_available = "12.5%" }
            [policies.mobile]
            path = "lib.so"
            options = { max = 4 }
            [apps.web]
            exec = ["a"]
            """
        let new = try load(text).get()
        let diff = ConfigurationDiff(old, new)
        #expect(
            diff.supervisor.map { "\($0.key) \($0.old ?? "none") → \($0.new ?? "none") \($0.effect.rawValue)" } == [
                "supervisor.log_level info → debug live", "supervisor.main none → web live",
                "supervisor.memory.enabled true → false live",
                "supervisor.memory.warning_available 10% → 12.5% live",
                "supervisor.on_exit terminate → leave live",
                #"supervisor.policies [] → ["mobile"] live"#, "supervisor.log_directory /a → /b supervisor-start",
                "policies.mobile none → lib.so live",
            ]
        )
        var other = new
        other.policies[0].options["max"] = .integer(5)
        #expect(ConfigurationDiff(new, other).supervisor.map(\.key) == ["policies.mobile.options.max"])

        let kept = new.keepingDirectories(of: old)
        #expect(kept.supervisor.logDirectory == "/a")
        #expect(kept.supervisor.logLevel == .debug)
        #expect(kept.sources.directories == ["log_directory": "/a"])
        // Who reads it again from the sources has the directories in use.
        let sources = try #require(ConfigurationSources(decoding: kept.sources.encoded()))
        let again = try ConfigurationLoader.load(sources: sources, environment: [:], userID: 0).get()
        #expect(again == kept)
        #expect(ConfigurationDiff(again, new).supervisor.map(\.key) == ["supervisor.log_directory"])
        #expect(new.keepingDirectories(of: new).sources == new.sources)
    }
}
