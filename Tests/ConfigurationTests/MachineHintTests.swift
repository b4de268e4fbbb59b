// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Configuration

@Suite("What is probably not as the configuration says is a warning") struct MachineHintTests {
    private let policies = "[supervisor]\npolicies = [\"server\"]\n[policies.server]\npath = "

    @Test("a policy's library that is not where others are")
    func library() {
        let folder = "/usr/lib/torpor/policies"
        let others = ["\(folder)/libServerPolicy.so": "", "\(folder)/libMobilePolicy.so": ""]
        func warnings(_ path: String, _ files: [String: String]) -> [String] {
            complaints(load(files.merging(["torpor.toml": policies + "\"\(path)\""]) { $1 }))
        }
        #expect(
            warnings("libServerPolcy.so", others) == [
                "torpor.toml:3:11: warning: policies.server: there is no \"libServerPolcy.so\" in \(folder) now; did you mean "
                    + "\"libServerPolicy.so\"?"
            ]
        )
        #expect(warnings("libServerPolicy.so", others).isEmpty)
        // Of a machine without any nothing is known.
        #expect(warnings("libServerPolicy.so", [:]).isEmpty)
    }

    @Test("an icon that is not there, of all instances once")
    func icon() {
        func warnings(_ keys: String) -> [String] {
            complaints(
                load(["torpor.toml": "[apps.web]\nexec = [\"/a\"]\n\(keys)\n", "icons/web.svg": "", "icons/2.svg": ""])
            )
        }
        #expect(warnings("icon = \"icons/web.svg\"").isEmpty)
        #expect(
            warnings("instances = 3\nicon = \"icons/wbe.svg\"") == [
                "torpor.toml:4:8: warning: apps.web.icon: there is no \"wbe.svg\" in /etc/torpor/icons now; did you mean "
                    + "\"web.svg\"?"
            ]
        )
    }

    @Test("a file beside the configuration, of an app that begins elsewhere")
    func directory() {
        func warnings(_ keys: String) -> [String] {
            complaints(load(["torpor.toml": "[apps.web]\n\(keys)\n", "serve.py": "", "sub/main.js": ""]))
        }
        #expect(
            warnings("exec = [\"python3\", \"-u\", \"serve.py\"]") == [
                "torpor.toml:2:8: warning: apps.web.exec: \"serve.py\" is looked up in /, the app's working "
                    + "directory: write directory = \"/etc/torpor\""
            ]
        )
        #expect(warnings("exec = [\"node\", \"./sub/main.js\"]").count == 1)
        #expect(warnings("exec = [\"python3\", \"serve.py\"]\ndirectory = \".\"").isEmpty)
        #expect(warnings("exec = [\"python3\", \"other.py\", \"127.0.0.1\", \"/serve.py\"]").isEmpty)
    }

    @Test("an app that cannot be told what to open, unless it has a delegate by then")
    func opens() {
        func warnings(_ keys: String, exec: String = "[\"/a\"]") -> [String] {
            complaints(load(["torpor.toml": "[apps.web]\nexec = \(exec)\n\(keys)\n"]))
        }
        for key in ["url_schemes = [\"web\"]", "url_hosts = [\"a.example.org\"]", "opens = [\"*.md\"]"] {
            let found = warnings(key)
            #expect(found.count == 1 && found[0].contains("nothing tells the app what to open"), "\(found)")
            #expect(found.first?.contains("torpor.toml:3:") == true && found.first?.contains("delegate") == true)
            #expect(warnings(key + "\nready = \"delegate\"").isEmpty)
            #expect(warnings(key + "\nopen_command = [\"/o\", \"%u\"]").isEmpty)
            #expect(warnings(key + "\nsignals.openURL = \"USR1\"").isEmpty)
            #expect(warnings(key, exec: "[\"/a\", \"%f\"]").isEmpty)
        }
    }

    @Test("LANG beside language, and translations that no reader asks for")
    func languages() {
        func warnings(_ keys: String) -> [String] {
            complaints(load(["torpor.toml": "[apps.web]\nexec = [\"/a\"]\n\(keys)\n"]))
        }
        #expect(warnings("language = \"de_DE.UTF-8\"").isEmpty && warnings("environment.LANG = \"C\"").isEmpty)
        for name in ["LANG", "LANGUAGE"] {
            let found = warnings("language = \"de_DE.UTF-8\"\nenvironment = { \(name) = \"C\" }")
            #expect(found.count == 1 && found[0].contains("has \(name), which language replaces"), "\(found)")
        }
        for tag in ["de", "pt-BR", "pt_BR", "zh-Hant-TW", "es-419", "de-1996", "sl-rozaj-biske", "en-x-own", "zh-yue"] {
            #expect(warnings("title = { default = \"a\", \(tag) = \"b\" }").isEmpty, "\(tag)")
        }
        for tag in ["english", "germ", "de-DE-DE", "de-d", "en-Latn-Latn"] {
            let found = warnings("summary = { default = \"a\", \(tag) = \"b\" }")
            #expect(found.count == 1 && found[0].contains("warning: apps.web.summary.\(tag): is not"), "\(found)")
        }
    }

    @Test("where files are inspected: an icon that is no picture, and a locale that the machine lacks")
    func inspected() throws {
        func warnings(_ keys: String, _ icon: String = "") -> [String] {
            var system = machine(["torpor.toml": "[apps.web]\nexec = [\"/a\"]\n\(keys)\n", "i": icon])
            system.inspection = ConfigurationSystem.Inspection(searchPath: "/bin") { _, _ in nil }
            system.inspection?.find = { _ in .program }
            system.inspection?.hasLocale = { $0 == "de_DE.UTF-8" }
            return complaints(ConfigurationLoader.load(path: "torpor.toml", environment: [:], system: system))
        }
        for picture in [
            "<svg xmlns=\"x\"/>", "\u{feff} <svg>", "<?xml version=\"1.0\"?>\n<svg/>", "<!-- c --><svg/>",
            "<!DOCTYPE svg><svg/>", "GIF89a", "RIFF1234WEBPVP8 ",
        ] {
            #expect(warnings("icon = \"i\"", picture).isEmpty, "\(picture)")
        }
        for other in ["", "RIFF1234WAVE", "<html><svg/></html>", "<?xml version=\"1.0\"?><a/>", "icon"] {
            let found = warnings("icon = { default = \"i\" }", other)
            #expect(found.count == 1 && found[0].contains("\"/etc/torpor/i\" is neither SVG, PNG, "), "\(found)")
        }
        #expect(warnings("language = \"de_DE.UTF-8\"").isEmpty)
        let found = warnings("language = \"fr_FR.UTF-8\"")
        #expect(found.count == 1 && found[0].contains("this machine has no locale \"fr_FR.UTF-8\" now"), "\(found)")
    }
}
