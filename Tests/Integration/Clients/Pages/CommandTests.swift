import DaemonHarness
import Foundation
import Linux
import Testing

/// What the pages of reference and the help of verbs show is carried out, each command by itself; the pages that are
/// followed from the first line to the last are those of ``PagesTests``.
@Suite("Commands that pages and help show") struct CommandTests {
    /// What is only for processes of an app, or compiles for minutes: suites of their own see to it.
    private static let elsewhere = [
        "delegate", "task", "state", "subscribe", "mailbox --take", "snapshot --save", "policy check",
    ]

    /// Commands that go on until somebody ends them.
    private static func goesOn(_ command: String) -> Bool {
        let words = command.split(separator: " ")
        return words.contains("-f") || words.contains("--record") || command == "torpor top"
            || command.hasPrefix("torpor top --delay")
    }

    /// Calls of torpor in the code of a page, without what a shell does with their output.
    static func commands(in text: String) -> [String] {
        var commands: [String] = []
        for line in text.split(separator: "\n") {
            var line = line.drop { $0 == " " }
            if line.hasPrefix("$ ") || line.hasPrefix("# ") { line = line.dropFirst(2) }
            guard line.hasPrefix("torpor ") else { continue }
            var command = String(line)
            // A remark stands behind two spaces.
            for end in ["  ", " | ", " >", " && ", "; "] { command = command.components(separatedBy: end)[0] }
            commands.append(command)
        }
        return commands
    }

    /// The code blocks and indented lines of all pages.
    private static func pages() throws -> [String] {
        let root = URL(filePath: Sources.root)
        let names = FileManager.default.enumerator(atPath: root.path + "/docs")?.compactMap { $0 as? String } ?? []
        let followed = ["tutorial.md", "howto/", "demonstrations/"]
        var commands: [String] = []
        for name in names where name.hasSuffix(".md") && !followed.contains(where: name.hasPrefix) {
            let text = try String(contentsOf: root.appending(path: "docs/\(name)"), encoding: .utf8)
            var isCode = false
            for line in text.split(separator: "\n") {
                if line.hasPrefix("```") {
                    isCode.toggle()
                } else if isCode || line.hasPrefix("    ") {
                    commands += Self.commands(in: String(line))
                }
            }
        }
        return commands
    }

    @Test("Those in the middle of a sentence have verbs and options that there are")
    func inline() throws {
        let root = URL(filePath: Sources.root)
        let names = FileManager.default.enumerator(atPath: root.path + "/docs")?.compactMap { $0 as? String } ?? []
        let verbs = try Set(
            ["help"] + ManualPageTests.verbs() + ManualPageTests.groups.flatMap { try ManualPageTests.verbs([$0]) }
        )
        var options: [String: Set<String>] = [:]
        var count = 0
        for name in names.filter({ $0.hasSuffix(".md") }).map({ "docs/" + $0 }) + ["README.md"] {
            let text = try String(contentsOf: root.appending(path: name), encoding: .utf8)
            for match in text.matches(of: /`torpor ([a-z][^`\n]*)`/) {
                let call = match.1.components(separatedBy: " -- ")[0]
                let words = call.split { " []…|".contains($0) }.map(String.init)
                guard let first = words.first else { continue }
                let pair = words.prefix(2).joined(separator: " ")
                let verb = verbs.contains(pair) ? pair : first
                guard verbs.contains(verb) else {
                    Issue.record("\(name): there is no verb \(verb)")
                    continue
                }
                count += 1
                let known = try options[verb] ?? ManualPageTests.options(verb)
                options[verb] = known
                for word in words where word.hasPrefix("-") && word.count > 1 {
                    #expect(known.contains(word), "\(name): \(word) in torpor \(call)")
                }
            }
        }
        #expect(count > 100)
    }

    private static func help() throws -> [String] {
        let groups = try ManualPageTests.groups.flatMap { try ManualPageTests.verbs([$0]) }
        return try (ManualPageTests.verbs() + groups).flatMap { verb in
            let words = verb.components(separatedBy: " ") + ["--help"]
            let text = try Spawn.run([Built.path("torpor")] + words).output
            return commands(in: text.components(separatedBy: "\nExamples:\n").dropFirst().joined())
        }
    }

    private static let files = [
        "Procfile": "web: python3 -m http.server\n", "news.json": "{\"n\": 1}",
        "supervisord.conf": "[program:a]\ncommand=/bin/sleep 1\n",
        "docker-compose.yml": "services:\n  a:\n    command: sleep 1\n",
        "etc/supervisor/supervisord.conf": "[program:a]\ncommand=/bin/sleep 1\n",
        "etc/s6/services/a/run": "#!/bin/sh\nexec sleep 1\n", "etc/sv/a/run": "#!/bin/sh\nexec sleep 1\n",
        "torpor.toml": "[apps.a]\nexec = [\"/bin/sleep\", \"1\"]\n", "shop/Procfile": "web: sleep 1\n",
    ]

    private static let apps = ["web", "db", "notes", "editor", "kiosk"].map { name in
        Apps.sleeper(name) + "\ntags = [\"shop\", \"office\"]\ntopics = { \"*\" = \"all\" }\n"
            + "snapshot = [\"/bin/echo\", \"hello\"]\n"
            + (name == "web" ? "signals = { settingsDidChange = \"SIGHUP\" }\n" : "")
    }.joined(separator: "\n")

    @Test("do what they say: none is refused, or names what is not there")
    func all() throws {
        let commands = try Self.pages() + Self.help()
        var seen: Set<String> = []
        let wanted = commands.filter { command in
            seen.insert(command).inserted && !Self.elsewhere.contains { command.hasPrefix("torpor \($0)") }
        }
        #expect(wanted.count > 60, "\(wanted)")
        let policy = Built.path("libServerPolicy.so")
        let mobile = "path = \"\(Built.path("libMobilePolicy.so"))\"\nmode = \"advise\"\n"
        let toml = Governed.toml([("mobile", mobile)], apps: Self.apps)
        try withDaemon(toml) { daemon in
            for app in ["web", "db", "notes", "editor", "kiosk"] { try daemon.waitFor(app, "active") }
            let folder = daemon.directory + "/reader"
            for (name, text) in Self.files {
                let path = folder + "/" + name
                let parent = (path as NSString).deletingLastPathComponent
                try FileManager.default.createDirectory(atPath: parent, withIntermediateDirectories: true)
                try File.write(path, text)
            }
            for name in ["libQuietNightsPolicy.so", "liboffice.so", "libServerPolicy.so"] {
                try FileManager.default.createSymbolicLink(atPath: "\(folder)/\(name)", withDestinationPath: policy)
            }
            let torpor = Built.path("torpor")
            let record = "cd \(folder) && \(torpor) events --record day.trace --for 200ms && cp day.trace night.jsonl"
            let variables = ["TORPOR_MANAGER_SOCKET": daemon.socket, "TERM": "dumb", "HOME": folder]
            #expect(try Spawn.run(["/bin/bash", "-c", record], environment: variables).code == 0)
            for command in wanted {
                var line = command.replacingOccurrences(of: "/etc/", with: folder + "/etc/")
                    .replacingOccurrences(of: "web@", with: "web")
                    .replacingOccurrences(of: "/run/torpor-lab/io.torpor", with: daemon.socket)
                    // What is simulated was recorded before.
                    .replacingOccurrences(of: "--record ", with: "--record new-")
                line = torpor + line.dropFirst("torpor".count)
                let goesOn = Self.goesOn(command)
                // Without --foreground it would run in the background of the terminal, where what wants it is stopped.
                if goesOn { line = "timeout --foreground -s INT 0.4 \(line)" }
                if command.hasPrefix("torpor top"), goesOn { line = "TERM=xterm script -qec '\(line)' /dev/null" }
                if command.hasPrefix("torpor snapshot ") {
                    line = "\(torpor) background web kiosk && \(torpor) suspend web kiosk && \(line)"
                }
                if command == "torpor interrupt web" { line = "\(torpor) foreground web && \(line)" }
                // What was written by the one before it is in the way of the next.
                let script = "cd \(folder) && rm -rf quiet-nights policy night-shift office && \(line)"
                let forced = script.contains(" --output ") || script.contains(" init") ? script + " --force" : script
                let (code, output) = try Spawn.run(["/bin/bash", "-c", forced], environment: variables)
                // What goes on is ended; the rest are numbers and files of the reader's own machine.
                let isOther =
                    goesOn && [124, 130].contains(code)
                    || output.hasPrefix("torpor: nothing of the number 17 waits for web")
                    // The system's for root, the reader's own else.
                    || output.contains("/torpor/torpor.toml: there is no such file")
                #expect(code == 0 || isOther, "\(command): \(code), \(output)")
                #expect(!output.contains("see ‘torpor "), "\(command): \(output)")
                if command.hasPrefix("torpor stop") || command.hasPrefix("torpor kill") {
                    #expect(try Spawn.run([torpor, "start", "*"], environment: variables).code == 0)
                }
            }
        }
    }
}
