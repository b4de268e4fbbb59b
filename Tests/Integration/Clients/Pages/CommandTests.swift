// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

/// What the pages of reference and the help of verbs show is carried out, each command by itself; the pages that are
/// followed from the first line to the last are those of ``PagesTests``.
@Suite("Commands that pages and help show") struct CommandTests {
    /// Commands that go on until somebody ends them.
    private static func goesOn(_ command: String) -> Bool {
        let words = command.split(separator: " ")
        return words.contains("-f") || words.contains("--record") || words.contains("delegate")
            || words.contains("top") && !words.contains("--once")
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
        let verbs = Set(["help"] + ManualPageTests.verbs)
        var count = 0
        for name in names.filter({ $0.hasSuffix(".md") }).map({ "docs/" + $0 }) + ["README.md"] {
            let text = try String(contentsOf: root.appending(path: name), encoding: .utf8)
            for match in text.matches(of: /`torpor ([a-z][^`\n]*)`/) {
                let call = match.1.components(separatedBy: " -- ")[0]
                let words = call.split { " []…|".contains($0) }.map(String.init)
                guard let first = words.first else { continue }
                let named = (1...3).reversed().map { words.prefix($0).joined(separator: " ") }
                guard let verb = named.first(where: verbs.contains) else {
                    Issue.record("\(name): there is no verb \(first)")
                    continue
                }
                count += 1
                let known = verb == "help" ? ["--all"] : ManualPageTests.options(verb)
                for word in words where word.hasPrefix("-") && word.count > 1 {
                    #expect(known.contains(word), "\(name): \(word) in torpor \(call)")
                }
            }
        }
        #expect(count > 100)
    }

    /// The examples of all verbs' help, as they are written.
    private static func examples() -> [String] {
        ManualPageTests.verbs.flatMap { verb in
            let parts = ManualPageTests.helps[verb]?.components(separatedBy: "\nExamples:\n") ?? []
            let examples = parts.dropFirst().first?.components(separatedBy: "\n\n")[0] ?? ""
            return examples.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
        }
    }

    private static let files = [
        "Procfile": "web: python3 -m http.server\n", "news.json": "{\"n\": 1}", "notes.txt": "one\n",
        "supervisord.conf": "[program:a]\ncommand=/bin/sleep 1\n",
        "docker-compose.yml": "services:\n  a:\n    image: a\n",
        "compose.yml": "services:\n  a:\n    image: a\n", "start.sh": "docker run a\n",
        "compose.prod.yml": "services:\n  a:\n    profiles: [tools]\n",
        "etc/containers/systemd/web.container": "[Container]\nImage=a\n",
        "etc/supervisor/supervisord.conf": "[program:a]\ncommand=/bin/sleep 1\n",
        "etc/s6/services/a/run": "#!/bin/sh\nexec sleep 1\n", "etc/sv/a/run": "#!/bin/sh\nexec sleep 1\n",
        "torpor.toml": "[apps.a]\nexec = [\"/bin/sleep\", \"1\"]\n", "shop/Procfile": "web: sleep 1\n",
        "letter.md": "hello\n", "screen.png": "GIF89a", "notes.db": "notes\n",
        "notes/manifest.toml": "name = \"notes\"\nversion = \"1.0\"\n[app]\nexec = [\"bin/notes\"]\n",
        "notes/bin/notes": "#!/bin/sh\nexec sleep 1000\n",
        "two/manifest.toml": "name = \"notes\"\nversion = \"2.0\"\n[app]\nexec = [\"sleep\", \"1\"]\n",
        // Another machine, which has the same apps and owns none.
        "bin/ssh": "#!/bin/sh\ncat >/dev/null\necho '{\"owner\": \"none\"}'\n",
        "web.settings": "# Of the shop.\nport=8002\ntheme=dark\n",
    ]

    /// Those that commands are about, and one whose processes carry out what is only for processes of an app. It has
    /// ended once, and so is given back what it had saved.
    private static let apps =
        ["web", "db", "notes", "editor", "kiosk"].map { name in
            // One that is told by SIGHUP that its settings have changed must live on.
            Apps.sleeper(name).replacing("\"/bin/sleep\"", with: "\"/usr/bin/env\", \"--ignore-signal=HUP\", \"sleep\"")
                + "\ntags = [\"shop\", \"office\"]\ntopics = { \"*\" = \"all\" }\n"
                + "snapshot = [\"/bin/echo\", \"hello\"]\n"
                + (name == "web"
                    ? "signals = { settingsDidChange = \"SIGHUP\" }\ndata_folders = true\n" + settings : "")
                + (name == "notes" ? opening : "")
        }.joined(separator: "\n") + """

            [apps.code]
            exec = ["/bin/sleep", "1000"]
            scenes = {}

            [apps.desk]
            exec = ["\(Built.path("torpor"))", "app", "delegate", "--on", "willTerminate=/bin/true"]
            ready = "delegate"
            scenes = { inside = true }

            [apps.author]
            exec = ["/bin/bash", "@D/author.sh", "\(Built.path("torpor"))"]
            launch = "background"
            restart_backoff = { initial = "10ms" }
            may_open = ["notes"]

            [apps.orders]
            exec = ["/bin/sleep", "1000"]
            launch = "on-demand"
            owner = "external"

            [apps.door]
            exec = ["/bin/sleep", "1000"]
            launch = "on-demand"
            sandbox = true
            [apps.door.permissions]
            camera = { purpose = "Shows who is at the door" }
            network = { purpose = "Sends pictures" }
            """

    private static let opening = """
        signals = { openURL = "SIGURG" }
        url_schemes = ["notes"]
        url_hosts = ["notes.example.org"]
        opens = ["*.md"]

        """

    private static let settings = """
        settings.port = { type = "integer", default = 8000 }
        settings.theme = { type = "choice", values = ["light", "dark"], default = "light" }
        settings.api_key = { type = "secret" }

        """

    private static let author = """
        #!/bin/bash
        [ "$TORPOR_INCARNATION" != 1 ] || { echo saved | "$1" app state save -; exit 1; }
        while :; do
            if [ -e @D/job ]; then
                mv @D/job @D/running
                /bin/bash @D/running >@D/output 2>&1 </dev/null
                echo $? >@D/status.new
                mv @D/status.new @D/status
            fi
            sleep 0.02
        done
        """

    /// What verbs find that are only for apps in a certain state.
    private static let before = [
        // It is saved beside what the verbs wait for.
        "snapshot": "torpor background web kiosk && torpor suspend web kiosk && for app in web kiosk; do "
            + "for i in {1..600}; do torpor snapshot $app >/dev/null 2>&1 && break; sleep 0.1; done; done",
        "interrupt": "torpor foreground web",
        "resume": "torpor suspend web", "wait": "torpor foreground web", "app task end": "torpor app task begin index",
        "alerts": "torpor notify web A --id standup && torpor notify web B --id disk --action clean=C",
        "bundle sign": "{ tar -xf notes-1.0.torpor manifest.toml.minisig 2>/dev/null || true; }",
        "rollback": "torpor bundle build two --output two.torpor && torpor bundle sign two.torpor --key notes.key "
            + "&& torpor install two.torpor --keys . --bundles test",
        "app alerts": "torpor app notify A --id standup", "signal": "torpor own orders && torpor start '*'",
        "move": "torpor own orders",
        "state import": "torpor disown orders --stop && "
            + "torpor state export orders >orders.state",
        "scene disconnect": "torpor scene open code@alice && torpor background code",
    ]

    /// Stands for all programs of the reader's own.
    private static let program = "#!/bin/sh\ncat >/dev/null\n"

    /// The programs that a line calls besides torpor: behind a pipe, another command, or `--`, and files of the folder.
    private static func programs(in line: String) -> [String] {
        let called = line.matches(of: /(?:\| |&& |; | -- )([a-z][\w-]*)/).map { String($0.1) }
        return called.filter { $0 != "torpor" } + line.matches(of: /\.\/[\w-]+(?:\.sh)?(?![\w.])/).map { String($0.0) }
    }

    @Test("do what they say: none is refused, or names what is not there")
    func all() throws {
        var seen: Set<String> = []
        // What pages have the reader build in Swift takes minutes: PolicyNewTests see to it.
        let pages = try Self.pages().filter { !$0.contains(" .build/") }
        let wanted = (Self.examples() + pages).filter { seen.insert($0).inserted }
        #expect(wanted.count > 100, "\(wanted)")
        let mobile = "path = \"\(Built.path("libMobilePolicy.so"))\"\nmode = \"advise\"\n"
        let toml = Governed.toml([("mobile", mobile)], apps: Self.apps)
        try withDaemon(toml, files: ["author.sh": Self.author]) { daemon in
            for app in ["web", "db", "notes", "editor", "kiosk"] { try daemon.waitFor(app, "active") }
            try daemon.waitFor("author", "background")
            let reader = try Reader(daemon)
            for command in wanted { try reader.carryOut(command) }
        }
    }

    /// Whoever reads the pages, at a shell of their own.
    private struct Reader {
        let daemon: Daemon
        var folder: String { daemon.directory + "/reader" }

        private var variables: [String: String] {
            ["TORPOR_MANAGER_SOCKET": daemon.socket, "TERM": "dumb", "HOME": folder, "KEY": "k"]
        }

        init(_ daemon: Daemon) throws {
            self.daemon = daemon
            for (name, text) in CommandTests.files.merging(["bin/none": ""], uniquingKeysWith: { one, _ in one }) {
                let path = folder + "/" + name
                let parent = (path as NSString).deletingLastPathComponent
                try FileManager.default.createDirectory(atPath: parent, withIntermediateDirectories: true)
                try File.write(path, text)
            }
            let torpor = Built.path("torpor")
            try FileManager.default.createSymbolicLink(atPath: folder + "/bin/torpor", withDestinationPath: torpor)
            for name in ["liboffice.so", "libServerPolicy.so"] {
                let policy = Built.path("libServerPolicy.so")
                try FileManager.default.createSymbolicLink(atPath: "\(folder)/\(name)", withDestinationPath: policy)
            }
            let before = """
                chmod +x bin/ssh && torpor policy new --c quiet-nights made && make -C made && cp made/*.so . &&
                torpor events --record day.trace --for 200ms && cp day.trace night.jsonl
                """
            let (code, output) = try run(before)
            #expect(code == 0, "\(output)")
        }

        /// Runs a line in the folder.
        private func run(_ line: String) throws -> (code: Int32, output: String) {
            try Spawn.run(["/bin/bash", "-c", script(line)], environment: variables)
        }

        /// Runs it as a process of an app.
        private func runInApp(_ line: String) throws -> (code: Int32, output: String) {
            // Some of it is only for one in the background.
            try daemon.done(.background, "author")
            let saved = "echo saved | torpor app state save - && " + line
            try File.replace(daemon.directory + "/job", Array(script(saved).utf8))
            let status = daemon.directory + "/status"
            try daemon.eventually("‘\(line)’ has ended") { File.exists(status) }
            defer { try? FileManager.default.removeItem(atPath: status) }
            let code = try File.readString(status).trimmingCharacters(in: .whitespacesAndNewlines)
            return (Int32(code) ?? -1, try File.readString(daemon.directory + "/output"))
        }

        private func script(_ line: String) -> String {
            // What was written by the one before it is in the way of the next.
            "set -o pipefail; cd \(folder); PATH=\(folder)/bin:$PATH; rm -rf quiet-nights policy night-shift office; \(line)"
        }

        func carryOut(_ command: String) throws {
            for program in CommandTests.programs(in: command) {
                let path = folder + (program.hasPrefix("./") ? program.dropFirst() : "/bin/" + program)
                if !File.exists(path) { try makeProgram(path) }
            }
            var line = command.replacingOccurrences(of: "/etc/", with: folder + "/etc/")
                .replacingOccurrences(of: "web@", with: "web")
                .replacingOccurrences(of: "/run/torpor-lab/io.torpor", with: daemon.socket)
                // What is simulated was recorded before.
                .replacingOccurrences(of: "--record ", with: "--record new-")
            // Nobody listens there.
            if command.contains("app transfer") {
                line = line.replacingOccurrences(of: "https://", with: "http://127.0.0.1:9/")
            }
            let goesOn = CommandTests.goesOn(command)
            // Without --foreground it would run in the background of the terminal, where what wants it is stopped.
            if goesOn { line = "timeout --foreground -s INT 0.4 \(line)" }
            if goesOn, command.contains("torpor top") { line = "TERM=xterm script -qec '\(line)' /dev/null" }
            for (verb, before) in CommandTests.before where command.hasPrefix("torpor \(verb) ") {
                if !command.contains("--save"), !command.contains("--end") { line = before + " && " + line }
            }
            if command.hasPrefix("torpor interrupt"), command.contains("--end") {
                line = "torpor foreground web && torpor interrupt web && " + line
            }
            // Without a folder, root's entries would be those of the machine.
            if command.contains("desktop sync"), !command.contains("--folder") { line += " --folder applications" }
            if command.contains(" --output ") || command.contains("torpor init") { line += " --force" }
            // A million questions take minutes, and a busy machine some time for each.
            if command.contains("policy check") { line += " --questions 300 --deadline 20s" }
            var (code, output) = command.contains("torpor app ") ? try runInApp(line) : try run(line)
            if output.contains("this verb is for the processes of an app") { (code, output) = try runInApp(line) }
            // What goes on is ended; the rest are numbers and files of the reader's own machine.
            let isOther =
                goesOn && [124, 130].contains(code)
                || output.hasPrefix("torpor: web is running: stop it first")
                || output.hasPrefix("torpor: theme must be one of \"light\", \"dark\", not \"drak\"")
                || output.hasPrefix("torpor: no message 17 waits for web")
                // No user is doing anything.
                || output.contains("no app has the activity org.example.note")
                || output.contains("notes has no activity") || output.contains("is no exported activity")
                || output.contains("author is not in the foreground")
                || output.hasPrefix("torpor: there is no transfer 17")
                || output.contains("is not a transfer of author")
                || output.contains("author has no scenes inside")
                || output.contains("no app has protected data")
                || output.hasPrefix("torpor: there is no unhandled message 1764158733000017:")
                || output.hasPrefix("torpor: there is no unhandled message 1764158733000017")
                || output.hasPrefix("torpor: there is no unhandled message 1764158735000020")
                // The system's for root, the reader's own else.
                || output.contains("/torpor/torpor.toml: there is no configuration yet: name a file")
                || output.contains("/torpor/torpor.toml: you have no configuration of your own: name a file")
            #expect(code == 0 || isOther, "\(command): \(code), \(output)")
            #expect(!output.contains("see ‘torpor "), "\(command): \(output)")
            // The apps that other commands bring to the foreground must not stay interrupted.
            if command.hasPrefix("torpor interrupt") { #expect(try run("torpor interrupt --end '*'").code == 0) }
            if ["stop", "kill", "force-quit"].contains(where: { command.hasPrefix("torpor " + $0) }) {
                #expect(try run("torpor own orders && torpor start '*'").code == 0)
            }
        }

        private func makeProgram(_ path: String) throws {
            try File.write(path, CommandTests.program)
            chmod(path, 0o755)
        }
    }
}
