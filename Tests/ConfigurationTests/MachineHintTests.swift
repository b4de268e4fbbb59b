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
}
