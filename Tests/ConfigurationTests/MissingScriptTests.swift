// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Configuration

@Suite("A script that an interpreter would not find is a warning") struct MissingScriptTests {
    private static let interpreters: Set = [
        "node", "python3", "python3.11", "ruby", "perl", "php", "sh", "bash", "deno", "bun",
    ]

    /// The warnings about an app on a machine that has these interpreters in /bin, and these files.
    private func warnings(_ exec: [String], _ keys: String = "", files: Set<String> = []) -> [String] {
        let words = exec.map { "'\($0)'" }.joined(separator: ", ")
        var system = machine(["torpor.toml": "[apps.web]\nexec = [\(words)]\n\(keys)\n", "beside.py": ""])
        system.inspection = ConfigurationSystem.Inspection(searchPath: "/usr/bin:/bin")
        system.inspection?.find = { path in
            if files.contains(path) { return .file }
            if ["/", "/srv", "/srv/site"].contains(path) { return .folder }
            let parts = path.split(separator: "/").map(String.init)
            return parts.count == 2 && parts[0] == "bin" && Self.interpreters.contains(parts[1]) ? .program : .nothing
        }
        system.inspection?.head = { _ in nil }
        return complaints(ConfigurationLoader.load(path: "torpor.toml", environment: [:], system: system))
    }

    @Test(
        "whatever options come before it",
        arguments: [
            "node gone", "/bin/node gone", "node --inspect --require ./hook.js gone", "node -r ./hook.js gone",
            "node --max-old-space-size=400 gone", "node --env-file /none.env -- gone", "node inspect gone",
            "python3 gone", "python3 -u -W ignore gone", "python3 -uWignore gone", "python3 -Xdev gone -m x",
            "python3.11 gone a b", "ruby -I lib -rbundler/setup -W0 gone", "perl -w -Mstrict gone",
            "php -d memory_limit=1G gone", "sh gone", "sh -eu gone", "bash -euo pipefail gone", "bash +x --norc gone",
            "deno run -A --config d.json gone.ts", "deno run --allow-net=example.org gone.ts", "bun run gone.ts",
            "bun --watch gone.ts",
        ]
    )
    func missing(command: String) {
        let words = command.split(separator: " ").map(String.init)
        let name = words.contains("gone.ts") ? "gone.ts" : "gone"
        for folder in ["", "/srv/site/"] {
            let exec = words.map { $0 == name ? folder + name : $0 }
            let place = folder.isEmpty ? "/" : "/srv/site"
            let text = "torpor.toml:2:8: warning: apps.web.exec: there is no script \"\(name)\" in \(place) now"
            #expect(warnings(exec) == [text])
            #expect(warnings(exec, files: [folder.isEmpty ? "/" + name : folder + name]).isEmpty)
        }
    }

    @Test(
        "where there is none, or none that is known, nothing is said",
        arguments: [
            "node", "node -", "node -e gone", "node --eval=gone x", "node --unknown gone", "node -p gone",
            "node --test gone", "node inspect 127.0.0.1:9229", "python3 -m gone", "python3 -mgone", "python3 -um gone",
            "python3 -c gone x",
            "python3 --unknown gone", "python3 -V", "ruby -e gone", "ruby -S rake", "ruby -C lib gone",
            "perl -lne gone",
            "perl -e gone", "perl -S gone", "php -S 127.0.0.1:80", "php -r gone", "php -f gone", "sh -c gone",
            "sh -ec gone", "bash -xlc gone", "sh -s gone", "sh -o", "deno gone.ts", "deno task gone", "deno run gone",
            "deno run https://example.org/gone.ts", "deno run npm:cowsay", "bun run gone", "bun install", "bun x gone",
            "/bin/true gone", "/opt/node-wrapper gone",
        ]
    )
    func none(command: String) {
        let found = warnings(command.split(separator: " ").map(String.init))
        #expect(!found.contains { $0.contains("no script") }, "\(found)")
    }

    @Test("an ending that node adds, PATH for a shell, a symlink before .., and what another warning says already")
    func found() {
        #expect(warnings(["node", "/srv/server"], files: ["/srv/server.js"]).isEmpty)
        #expect(warnings(["python3", "/srv/server"], files: ["/srv/server.py"]).count == 1)
        #expect(warnings(["sh", "deploy"], files: ["/bin/deploy"]).isEmpty)
        #expect(warnings(["perl", "deploy"], files: ["/bin/deploy"]).count == 1)
        let elsewhere = warnings(["sh", "deploy"], "environment = { PATH = \"/opt\" }", files: ["/bin/deploy"])
        #expect(elsewhere.contains { $0.contains("no script \"deploy\" in / now") }, "\(elsewhere)")
        #expect(warnings(["node", "/srv/now/../main.js"], files: ["/srv/now/../main.js"]).isEmpty)
        #expect(warnings(["node", "main.js"], "directory = \"/srv\"", files: ["/srv/main.js"]).isEmpty)
        #expect(warnings(["node", "main.js"], "user = \"web\"").isEmpty, "it may be in the user's home")
        #expect(warnings(["node", "/main.js"], "user = \"web\"").count == 1)
        let folder = warnings(["node", "main.js"], "directory = \"/none\"")
        #expect(folder.count == 1 && folder[0].contains("there is no folder"), "\(folder)")
        let beside = warnings(["python3", "beside.py"])
        #expect(beside.count == 1 && beside[0].contains("is looked up in /"), "\(beside)")
        let hook = warnings(["/bin/sh", "-c", "true"], "before_start = [{ command = [\"/bin/sh\", \"gone.sh\"] }]")
        #expect(hook.count == 1 && hook[0].contains("before_start: there is no script \"gone.sh\" in / now"), "\(hook)")
    }
}
