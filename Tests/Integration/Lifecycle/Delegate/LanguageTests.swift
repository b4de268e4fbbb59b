// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI
import Varlink

@Suite("The language of one app") struct LanguageTests {
    private static func delegate(_ keys: String) -> String {
        Delegates.head + "notifications = [\"locale\"]\nenvironment = { LANG = \"fr_FR.UTF-8\", A = \"1\" }\n" + keys
    }

    /// Variables of the app's main process.
    private func variables(_ daemon: Daemon) throws -> [String: String] {
        let pid = try #require(try daemon.summary("web").pid)
        let text = String(decoding: try File.read("/proc/\(pid)/environ"), as: UTF8.self)
        var variables: [String: String] = [:]
        for entry in text.split(separator: "\0") {
            let parts = entry.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            if parts.count == 2 { variables[String(parts[0])] = String(parts[1]) }
        }
        return variables
    }

    @Test("It gets it at its launch, and is told of another one while it runs") func launched() throws {
        let files = Delegates.files()
        let torpord = ["LC_ALL": "en_GB.UTF-8", "LC_MESSAGES": ""]
        try withDaemon(Self.delegate("language = \"de_DE.UTF-8\""), files: files, environment: torpord) { daemon in
            try daemon.done(.foreground, "web")
            var given = try variables(daemon)
            #expect(given["LANG"] == "de_DE.UTF-8" && given["LANGUAGE"] == "de_DE:de" && given["A"] == "1")
            #expect(given["LC_ALL"] == "")
            #expect(try daemon.summary("web").language == "de_DE.UTF-8")
            let pid = try daemon.summary("web").pid
            _ = try daemon.apply(Self.delegate("language = \"pt_BR.UTF-8\""))
            try daemon.eventually("it is told") {
                try daemon.heard("web").contains { $0.what == "message" && $0.name == "didReceiveNotification" }
            }
            let told = try #require(try daemon.heard("web").last { $0.name == "didReceiveNotification" })
            #expect(told.parameters["topic"] == "locale")
            #expect(told.parameters["payload"] == ["LANG": "pt_BR.UTF-8", "LANGUAGE": "pt_BR:pt"])
            #expect(try daemon.summary("web").pid == pid && variables(daemon)["LANG"] == "de_DE.UTF-8")
            try daemon.done(.restart, "web")
            given = try variables(daemon)
            #expect(given["LANG"] == "pt_BR.UTF-8" && given["LANGUAGE"] == "pt_BR:pt")
            // Without the key everything is as before.
            _ = try daemon.apply(Self.delegate(""))
            try daemon.done(.restart, "web")
            given = try variables(daemon)
            #expect(given["LANG"] == "fr_FR.UTF-8" && given["LC_ALL"] == "en_GB.UTF-8")
        }
    }

    @Test("It may be the value of a setting") func setting() throws {
        let keys = """
            language = "{settings.language}"
            [apps.web.settings]
            language = { type = "string", default = "de_DE.UTF-8" }
            """
        try withDaemon(Self.delegate(keys), files: Delegates.files()) { daemon in
            try daemon.done(.foreground, "web")
            #expect(try variables(daemon)["LANG"] == "de_DE.UTF-8")
            var request = SetSettingsRequest(app: "web")
            request.values = [.init("language", "es_ES.UTF-8")]
            _ = try daemon.call(.setSettings(request))
            try daemon.done(.restart, "web")
            #expect(try variables(daemon)["LANG"] == "es_ES.UTF-8")
            // What is not a locale is left out.
            request.values = [.init("language", "no locale")]
            _ = try daemon.call(.setSettings(request))
            try daemon.done(.restart, "web")
            #expect(try variables(daemon)["LANG"] == "fr_FR.UTF-8")
        }
    }
}
