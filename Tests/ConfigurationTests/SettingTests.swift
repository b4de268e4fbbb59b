// SPDX-License-Identifier: Apache-2.0

import Lifecycle
import Linux
import Testing

@testable import Configuration

@Suite("Settings are declared with their types")
struct SettingTests {
    private static let all = """
        settings.port = { type = "integer", default = 8000, min = 1, max = 65535, title = "Port", restart = true }
        settings.theme = { type = "choice", values = ["light", "dark"], default = "light" }
        settings.api_key = { type = "secret", title = { default = "API key", de = "Schlüssel" }, identity = true }
        settings.quota = { type = "size", default = "1GiB", max = "2GiB" }
        settings.every = { type = "duration", default = "90s", writable = true }
        settings.ratio = { type = "number", default = 1, min = 0.5 }
        settings.loud = { type = "boolean", default = false }
        settings.name = { type = "string", pattern = "[a-z]+", max_length = 4, help = "Of the owner.\\nShort." }
        settings.folder = { type = "path", default = "data" }
        """

    private func declared(_ keys: String = Self.all) throws -> AppSpecification {
        let result = load("[apps.a]\nexec = [\"/bin/a\"]\n\(keys)\n")
        guard case .success(let configuration) = result else {
            Issue.record("\(complaints(result))")
            throw SettingProblem.unfitting
        }
        return try #require(configuration.apps.first)
    }

    @Test("each type has its default in a normal form, and programs get its value")
    func types() throws {
        let app = try declared()
        let defaults = app.declaredSettings.map { $0.defaultValue }
        #expect(defaults == ["8000", "light", nil, "1GiB", "1min30s", "1", "false", nil, "/etc/torpor/data"])
        func value(_ name: String, _ text: String) throws -> SettingValue {
            let setting = try #require(app.setting(name))
            return setting.value(try setting.normal(text))
        }
        #expect(try value("port", "80") == .integer(80))
        #expect(try value("quota", "1KiB") == .integer(1024) && value("every", "1m") == .number(60))
        #expect(try value("every", "1m").text == "60" && value("ratio", "0.75").text == "0.75")
        #expect(try value("loud", "true") == .boolean(true) && value("name", "abc") == .text("abc"))
        #expect(try value("folder", "/a/./b/") == .text("/a/b"))
        #expect(app.setting("api_key")?.titles == ["de": "Schlüssel"])
    }

    @Test(
        "what does not fit is refused in a sentence",
        arguments: [
            ("port", "0"), ("port", "65536"), ("port", "8O00"), ("port", ""), ("theme", "drak"), ("quota", "3GiB"),
            ("quota", "1"), ("every", "1"), ("every", "-1s"), ("ratio", "0.4"), ("ratio", "nan"), ("loud", "yes"),
            ("name", "abcde"), ("name", "AB"), ("name", "a\u{1}"), ("folder", "data"), ("folder", ""),
            ("api_key", String(repeating: "x", count: 4097)),
        ]
    )
    func misfits(name: String, text: String) throws {
        let setting = try #require(try declared().setting(name))
        #expect(throws: SettingProblem.self) { try setting.normal(text) }
    }

    @Test("a word that is nearly one of the choices is named")
    func nearest() throws {
        let setting = try #require(try declared().setting("theme"))
        do {
            _ = try setting.normal("drak")
        } catch {
            #expect(error.description.hasSuffix("did you mean \"dark\"?"))
        }
    }

    @Test(
        "a declaration that cannot be is an error",
        arguments: [
            ("settings.a = { type = \"integer\", default = \"8\" }", "expected an integer"),
            ("settings.a = { type = \"integer\", default = 8, max = 7 }", "the default is out of range"),
            ("settings.a = { type = \"intger\" }", "did you mean \"integer\"?"),
            ("settings.a = { default = 8 }", "type is missing"),
            ("settings.a = { type = \"choice\" }", "values is missing"),
            ("settings.a = { type = \"choice\", values = [\"x\", \"x\"] }", "different words"),
            ("settings.a = { type = \"secret\", default = \"x\" }", "a secret has no default"),
            ("settings.a = { type = \"string\", pattern = \"(\" }", "not an extended regular expression"),
            ("settings.a = { type = \"string\", pattern = \"(a)\\\\1\" }", "not an extended regular expression"),
            (
                "settings.a = { type = \"string\", pattern = \"[ab]*a[ab]{900}\" }",
                "steps, more than 1048576: set max_length to at most 289, or write fewer repetitions"
            ),
            ("settings.a = { type = \"boolean\", min = 1 }", "is only for the types"),
            ("settings.a = { type = \"integer\", min = 2, max = 1 }", "min must not be more than max"),
            ("settings.1a = { type = \"string\" }", "does not begin with a digit"),
            ("settings.a = { type = \"string\", titel = \"x\" }", "did you mean \"title\"?"),
            (
                "settings.port = { type = \"string\" }\nexec = [\"/bin/a\", \"{settings.prot}\"]",
                "did you mean \"port\"?"
            ),
            ("sockets = [{ stream = \"{settings.port}\" }]", "there is no setting \"port\""),
            (
                "settings.port = { type = \"integer\" }\nsockets = [{ stream = \"{settings.port}\" }]",
                "the setting port needs a default"
            ),
        ]
    )
    func errors(keys: String, complaint: String) throws {
        let exec = keys.contains("exec =") ? "" : "exec = [\"/bin/a\"]\n"
        let result = load("[apps.a]\n\(exec)\(keys)\n")
        #expect(complaints(result).contains { $0.contains(complaint) }, "\(complaints(result))")
    }

    @Test("a pattern whose values may be long enough to take many steps is allowed with a smaller max_length")
    func costlyPattern() throws {
        let app = try declared("settings.a = { type = \"string\", max_length = 289, pattern = \"[ab]*a[ab]{900}\" }")
        let bounded = try #require(app.setting("a"))
        #expect(bounded.mostSteps <= SettingDeclaration.mostSteps)
        // A host name: values of any length may be checked with it.
        let label = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
        let host = try declared("settings.a = { type = \"string\", pattern = '\(label)(\\.\(label))*' }")
        let setting = try #require(host.setting("a"))
        #expect(try setting.normal("www.example.org") == "www.example.org")
        #expect(throws: SettingProblem.self) { try setting.normal("www.example.") }
    }

    @Test("the patterns of an app have a bound together")
    func patternsTogether() {
        func complaint(_ count: Int) -> String {
            var keys = "[apps.a]\nexec = [\"/bin/a\"]\n"
            for number in 0..<count {
                keys += "settings.a\(number) = { type = \"secret\", pattern = \"[ab]*a[ab]{240}\" }\n"
            }
            return complaints(load(keys)).joined()
        }
        #expect(!complaint(2).contains("to match"))
        #expect(complaint(3).contains("to match all values of the app with their patterns may take"))
    }

    @Test("a secret in exec is warned of, and not one in environment")
    func secret() throws {
        func warnings(_ keys: String) throws -> [String] {
            let result = load("[apps.a]\nsettings.key = { type = \"secret\" }\n\(keys)\n")
            guard case .success(let configuration) = result else { throw SettingProblem.unfitting }
            return configuration.warnings.map(\.description)
        }
        #expect(try warnings("exec = [\"/bin/a\", \"{settings.key}\"]").contains { $0.contains("list of processes") })
        #expect(
            try !warnings("exec = [\"/bin/a\"]\nenvironment.KEY = \"{settings.key}\"").contains {
                $0.contains("secret")
            }
        )
    }

    @Test("values go into words, variables and addresses")
    func templates() throws {
        let text = "a{settings.x}b{settings.y}{settings.}{settings"
        #expect(SettingTemplate.names(in: text) == ["x", "y", ""])
        #expect(try SettingTemplate.fill(text) { $0.isEmpty ? "-" : $0 + $0 } == "axxbyy-{settings")
        #expect(throws: MissingSetting(name: "y")) { try SettingTemplate.fill(text) { $0 == "x" ? "1" : nil } }
        let app = try declared(
            Self.all
                + "\nsockets = [{ stream = \"127.0.0.1:{settings.port}\" }]\nenvironment.Q = \"{settings.quota}\"\n"
                + "on_failure = [\"/bin/tell\", \"{settings.port}\", \"{settings.theme}\"]\n"
        )
        #expect("\(app.sockets[0].plan.address)" == "127.0.0.1:8000" && app.hasSocketTemplates)
        #expect(app.settingsAtLaunch == ["port", "quota"] && app.settingsAtFailure == ["port", "theme"])
        #expect(app.sockets[0].filled { _ in "81" }.map { "\($0.plan.address)" } == "127.0.0.1:81")
        #expect(app.sockets[0].filled { _ in "x" } == nil && app.sockets[0].filled { _ in nil } == nil)
    }

    @Test("those of [defaults] are there too, and an app's own of the same name counts")
    func defaults() throws {
        let result = load(
            """
            [defaults.settings]
            level = { type = "string", default = "info" }
            port = { type = "integer", default = 1 }
            [apps.a]
            exec = ["/bin/a"]
            settings.port = { type = "integer", default = 2 }
            """
        )
        guard case .success(let configuration) = result else {
            Issue.record("\(complaints(result))")
            return
        }
        #expect(configuration.apps[0].declaredSettings.map(\.name) == ["level", "port"])
        #expect(configuration.apps[0].setting("port")?.defaultValue == "2")
    }
}
