// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

/// What becomes of the state of an app that ends only because an app that it requires does.
@Suite("State archives of apps that require another app") struct DependentStateTests {
    /// `top` requires `base`; each records the state that its launch got. A setting or the environment changes `base`.
    private static func configuration(_ keys: String = "") -> String {
        """
        [apps.base]
        exec = ["/usr/bin/python3", "-S", "@D/app.py"]
        ready = "notify"
        settings.port = { type = "integer", default = 1, restart = true }
        \(keys)

        [apps.top]
        exec = ["/usr/bin/python3", "-S", "@D/app.py"]
        ready = "notify"
        requires = ["base"]

        """
    }

    private static func with(_ body: (Daemon) throws -> Void) throws {
        try withDaemon(configuration(), files: ["app.py": RestoreTests.program]) { daemon throws in
            for app in ["base", "top"] {
                try daemon.waitFor(app, "active")
                try daemon.plant(app + "'s", of: app)
            }
            try body(daemon)
        }
    }

    private func got(_ app: String, _ daemon: Daemon) -> [String] {
        daemon.records(app).filter { $0.hasPrefix("got ") }
    }

    /// Waits for the second launch of both apps, and expects what they got.
    private func expect(_ base: String, _ top: String, _ daemon: Daemon) throws {
        for app in ["base", "top"] {
            try daemon.eventually("\(app) is up again") {
                try daemon.summary(app).incarnation == 2 && daemon.summary(app).state == "active"
            }
        }
        #expect(got("base", daemon) == ["got nothing", "got \(base)"])
        #expect(got("top", daemon) == ["got nothing", "got \(top)"])
    }

    @Test(
        "a stop that keeps the state of an app keeps that of the apps that require it, named or not",
        arguments: [
            ["base"], ["base", "top"], ["top", "base"],
        ]
    )
    func kept(names: [String]) throws {
        try Self.with { daemon throws in
            let results = try daemon.verbs(.stop, names) { $0.keepState = true }
            #expect(results.count == 2 && results.allSatisfy(\.ok))
            #expect(try daemon.status("top").archive != nil)
            try daemon.done(.start, "top")
            try expect("base's", "top's", daemon)
        }
    }

    @Test("a stop that does not keep it discards both") func discarded() throws {
        try Self.with { daemon throws in
            try daemon.done(.stop, "base")
            try daemon.done(.start, "top")
            try expect("nothing", "nothing", daemon)
        }
    }

    @Test("an app that a user stopped with its state keeps it, although what it requires is then stopped without")
    func stoppedBefore() throws {
        try Self.with { daemon throws in
            try daemon.done(.stop, "top") { $0.keepState = true }
            try daemon.done(.stop, "base")
            try daemon.done(.start, "top")
            try expect("nothing", "top's", daemon)
        }
    }

    @Test("an apply that restarts an app is no stop of the apps that require it") func applied() throws {
        try Self.with { daemon throws in
            try daemon.apply(Self.configuration("environment.A = \"1\"")) { $0.restart = true }
            try expect("base's", "top's", daemon)
        }
    }

    @Test("nor is a setting for which an app is restarted") func setting() throws {
        try Self.with { daemon throws in
            var request = SetSettingsRequest(app: "base")
            request.values = [.init("port", "2")]
            _ = try daemon.call(.setSettings(request))
            try expect("base's", "top's", daemon)
        }
    }

    @Test("a restart does with the state of the apps that require it as with its own", arguments: [true, false])
    func restarted(keepsState: Bool) throws {
        try Self.with { daemon throws in
            try daemon.done(.restart, "base") { $0.keepState = keepsState }
            try expect(keepsState ? "base's" : "nothing", keepsState ? "top's" : "nothing", daemon)
        }
    }

    @Test("the state of a scene is kept with that of an app which its template requires") func scene() throws {
        let toml =
            Self.configuration() + """
                [apps.tm]
                exec = ["/usr/bin/python3", "-S", "@D/app.py", "%s"]
                ready = "notify"
                requires = ["base"]
                scenes = {}

                """
        try withDaemon(toml, files: ["app.py": RestoreTests.program]) { daemon throws in
            try daemon.waitFor("top", "active")
            try daemon.openScene("a", of: "tm")
            try daemon.waitFor("tm@a", "active")
            try daemon.plant("a's", of: "tm@a")
            try daemon.done(.stop, "base") { $0.keepState = true }
            try daemon.done(.start, "tm@a")
            #expect(got("tm@a", daemon) == ["got nothing", "got a's"])
        }
    }
}
