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

    @Test("a limit above the hard limit that torpord cannot raise")
    func limits() {
        func warnings(_ limits: String) -> [String] {
            let text = "[apps.web]\nexec = [\"/a\"]\nlimits = { \(limits) }\n"
            var system = machine(["torpor.toml": text])
            system.inspection = ConfigurationSystem.Inspection(searchPath: nil)
            system.inspection?.find = { _ in .program }
            system.inspection?.hardLimit = { $0 == 7 ? 4096 : nil }
            return complaints(ConfigurationLoader.load(path: "torpor.toml", environment: [:], system: system))
        }
        #expect(warnings("nofile = 4096, nproc = \"unlimited\", tasks = 9").isEmpty)
        for wanted in ["4097", "\"100:unlimited\""] {
            let found = warnings("nofile = \(wanted)")
            #expect(found.count == 1 && found[0].contains("apps.web.limits: nofile: "), "\(found)")
            #expect(found.first?.contains("is above 4096, the hard limit here") == true, "\(found)")
            #expect(found.first?.contains("raise LimitNOFILE= of the service user@.service") == true, "\(found)")
        }
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
            #expect(warnings(key + "\nsignals.openURL = \"URG\"").isEmpty)
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

    @Test("where files are inspected: an icon that is no picture, a locale and Landlock that the machine lacks")
    func inspected() throws {
        func warnings(_ keys: String, _ icon: String = "", landlock: Int? = nil) -> [String] {
            var system = machine(["torpor.toml": "[apps.web]\nexec = [\"/a\"]\n\(keys)\n", "i": icon])
            system.inspection = ConfigurationSystem.Inspection(searchPath: "/bin")
            system.inspection?.find = { _ in .program }
            system.inspection?.hasLocale = { $0 == "de_DE.UTF-8" }
            system.inspection?.landlock = landlock
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
        let sandboxes = [nil, 0, 1].map { warnings("sandbox = true", landlock: $0) }
        #expect(sandboxes.map(\.count) == [0, 1, 0] && sandboxes[1][0].contains("has no Landlock"), "\(sandboxes)")
    }

    @Test("where files are inspected: protected data that the filesystem cannot encrypt")
    func unencrypted() {
        func warnings(_ keys: String, encrypts: Bool?) -> [String] {
            var system = machine(["torpor.toml": "[apps.web]\nexec = [\"/a\"]\n\(keys)\n"])
            system.inspection = ConfigurationSystem.Inspection(searchPath: "/bin")
            system.inspection?.find = { _ in .program }
            system.inspection?.encrypts = { $0 == "/var/lib/torpor" ? encrypts : nil }
            let environment = ["STATE_DIRECTORY": "/var/lib/torpor"]
            return complaints(ConfigurationLoader.load(path: "torpor.toml", environment: environment, system: system))
        }
        let key = "protected = \"complete\""
        #expect(warnings(key, encrypts: true).isEmpty && warnings(key, encrypts: nil).isEmpty)
        #expect(warnings("", encrypts: false).isEmpty)
        #expect(warnings(key + "\nprotected_fallback = \"permissions\"", encrypts: false).isEmpty)
        let found = warnings(key, encrypts: false)
        #expect(
            found.count == 1
                && found[0].contains("torpor.toml:3:13: warning: apps.web.protected: the app is not launched, since"),
            "\(found)"
        )
    }

    @Test("a script that the kernel cannot run")
    func scripts() {
        func warnings(_ head: String, program: String = "/a") -> [String] {
            var system = machine(["torpor.toml": "[apps.web]\nexec = [\"\(program)\"]\n"])
            system.inspection = ConfigurationSystem.Inspection(searchPath: "/bin")
            system.inspection?.find = { $0 == "/no/sh" ? .nothing : .program }
            system.inspection?.head = { _ in Array(head.utf8) }
            return complaints(ConfigurationLoader.load(path: "torpor.toml", environment: [:], system: system))
        }
        for head in ["#!/bin/sh\n", "#! /bin/sh -e\n", "\u{7f}ELF\u{2}\u{1}", "#!no/path\n", "MZ\u{0}"] {
            #expect(warnings(head).isEmpty, "\(head)")
        }
        for (head, text) in [
            ("#!/bin/sh\r\nsleep 1\r\n", "\"/a\" cannot be run: its lines end as on Windows (CRLF)"),
            ("#!/no/sh\n", "\"/a\" cannot be run now: there is no \"/no/sh\", which its first line names"),
            ("sleep 1\n", "\"/a\" cannot be run: its first line must name a program, as in #!/bin/sh"),
            ("", "\"/a\" cannot be run: its first line must name a program"),
        ] {
            let found = warnings(head)
            #expect(found.count == 1 && found[0].contains("warning: apps.web.exec: \(text)"), "\(found)")
        }
        #expect(warnings("sleep 1\n", program: "a").contains { $0.contains("\"/bin/a\" cannot be run") })
    }

    @Test("a program that only the caller's PATH has is named with its folder")
    func callerPath() {
        func warnings(_ keys: String) -> [String] {
            var system = machine(["torpor.toml": "[apps.web]\nexec = [\"node\"]\n\(keys)\n"])
            system.inspection = ConfigurationSystem.Inspection(searchPath: nil)
            system.inspection?.callerPath = "/opt/no:/opt/node/bin:/usr/bin"
            system.inspection?.find = { $0 == "/opt/node/bin/node" ? .program : .nothing }
            system.inspection?.head = { _ in nil }
            return complaints(ConfigurationLoader.load(path: "torpor.toml", environment: [:], system: system))
        }
        let found = warnings("")
        #expect(
            found.count == 1 && found[0].contains("\"node\" is in /opt/node/bin, which is on your PATH"),
            "\(found)"
        )
        let own = "environment = { PATH = \"/opt/node/bin:/usr/local/sbin:"
        #expect(found[0].contains(own.replacing("environment = { ", with: "")), "\(found)")
        #expect(warnings("environment = { PATH = \"/opt/node/bin\" }").isEmpty)
        #expect(warnings("environment = { PATH = \"/opt\" }").contains { $0.contains("on the PATH now (/opt)") })
    }

    @Test("a file beside those that include matches, with another ending")
    func skipped() {
        func warnings(_ names: String..., include: String = "conf.d/*.toml") -> [String] {
            var files = ["torpor.toml": "include = [\"\(include)\"]\n", "conf.d/a.toml": "[apps.a]\nexec = [\"/a\"]\n"]
            for name in names { files["conf.d/" + name] = "" }
            return complaints(load(files))
        }
        #expect(
            warnings("extra.conf") == [
                "torpor.toml:1:12: warning: include[0]: \"conf.d/extra.conf\" is skipped, since its name does not end "
                    + "in .toml: rename it"
            ]
        )
        #expect(warnings("B.TOML", "c.toml.txt", "d.ini").count == 3)
        #expect(warnings("README", "a.toml.bak", "a.toml~", ".a.conf", "b.disabled", "notes.txt").isEmpty)
        #expect(warnings("extra.conf", include: "conf.d/a.toml").isEmpty)
    }

    @Test("a program whose name is only a little similar to another's is not suggested")
    func similar() {
        func warnings(_ name: String) -> [String] {
            var system = machine(["torpor.toml": "[apps.web]\nexec = [\"/usr/bin/\(name)\"]\n", "/usr/bin/touch": ""])
            system.inspection = ConfigurationSystem.Inspection(searchPath: "/bin")
            system.inspection?.find = { _ in .nothing }
            return complaints(ConfigurationLoader.load(path: "torpor.toml", environment: [:], system: system))
        }
        #expect(warnings("tuoch").contains { $0.hasSuffix("in /usr/bin now; did you mean \"touch\"?") })
        #expect(warnings("nosuch").contains { $0.hasSuffix("there is no program \"nosuch\" in /usr/bin now") })
    }
    @Test("a program below the working directory is not missed in /, if that is the home of the app's user")
    func relative() {
        func warnings(_ keys: String) -> [String] {
            var system = machine(["torpor.toml": "[apps.web]\nexec = [\"./api.sh\"]\n\(keys)"])
            system.inspection = ConfigurationSystem.Inspection(searchPath: "/bin")
            system.inspection?.find = { _ in .nothing }
            let all = complaints(ConfigurationLoader.load(path: "torpor.toml", environment: [:], system: system))
            return all.filter { $0.contains("there is no program") }
        }
        #expect(warnings("").count == 1)
        #expect(warnings("user = \"kio\"\n").isEmpty)
        #expect(warnings("user = \"kio\"\ndirectory = \"/srv\"\n").count == 1)
    }
}
