// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Testing

@Suite("torpor help WORD") struct HelpSearchTests {
    private static func help(_ words: [String], program: String = Built.path("torpor")) throws -> (Int32, String) {
        let (code, output) = try Spawn.run([program, "help"] + words, environment: ["PATH": "/none"])
        return (code, output)
    }

    @Test(
        "leads to what Torpor calls it",
        arguments: [
            ("ready", "configuration  ready"), ("retry", "configuration  restart_backoff"),
            ("swap", "configuration  page_out_after"), ("cron", "configuration  timers"),
            ("orphan", "configuration  orphans"), ("zombie", "torpor help containers"),
            ("environment", "configuration  environment"),
            ("environment variables", "configuration  environment_file"),
            ("memory_limit", "configuration  memory_limit"),
            ("memory limit", "configuration  memory_limit"), ("wake_on_connect", "configuration  wake_on_connect"),
            ("idle", "configuration  background_time"), ("crash", "configuration  restart"),
            ("oom", "configuration  memory_limit"),
            ("backoff", "configuration  restart_backoff"), ("log_max_size", "configuration  log_max_size"),
            ("limits", "configuration  limits"),
            ("user", "configuration  user"), ("container", "configuration  container"),
            ("docker", "configuration  container"),
            ("health check", "configuration  health"), ("log rotation", "configuration  log_max_size"),
            ("core dump", "configuration  limits"), ("inet_http_server", "torpor help web"),
            ("web ui", "torpor help web"),
            ("supervisord", "torpor help from-supervisord"), ("reload", "‘torpor apply’ reloads"),
        ]
    )
    func words(word: String, hint: String) throws {
        let (code, output) = try Self.help([word])
        #expect(code == 0 && (output.contains(hint + "\n") || output.contains(hint + " ")), "\(output)")
        let lines = output.split(separator: "\n")
        #expect(lines.count <= 22 && lines.allSatisfy { $0.count <= 80 || $0.hasPrefix("There is") }, "\(output)")
        // Words apart are the phrase.
        guard word.contains(" ") else { return }
        #expect(try Self.help(word.split(separator: " ").map(String.init)).1 == output)
    }

    @Test("shows the key of the configuration first, with what it means")
    func keyFirst() throws {
        let lines = try Self.help(["ready"]).1.split(separator: "\n").map(String.init)
        #expect(lines.first == "torpor help configuration  ready (Keys of an app: start, dependencies, restart)")
        #expect(lines.dropFirst().first?.hasPrefix("    When the launch is complete") == true, "\(lines)")
    }

    @Test("names commands that open their pages")
    func commands() throws {
        let output =
            try Self.help(["sandbox", "agent"]).1 + Self.help(["docker"]).1 + Self.help(["import", "compose"]).1
        let names = Set(output.matches(of: /(?m)^torpor help (\S+)\s/).map { String($0.1) })
        #expect(names.count > 2, "\(output)")
        for name in names {
            let (code, page) = try Self.help([name])
            #expect(code == 0 && page.hasPrefix("# "), "\(name): \(page.prefix(80))")
        }
    }

    @Test(
        "opens a page by its name",
        arguments: [
            "protection", "tutorial", "podman", "torpord", "torpor.toml", "torpor.toml(5)", "torpor-memory",
            "howto/sandbox", "from-supervisord", "import.md", "Tutorial",
        ]
    )
    func pages(name: String) throws {
        let (code, output) = try Self.help([name])
        #expect(code == 0 && output.hasPrefix("# "), "\(output.prefix(80))")
    }

    @Test("says that there is nothing, and names the nearest verb")
    func nothing() throws {
        let (code, output) = try Self.help(["frobnication"])
        let said =
            "torpor: there is no verb frobnication, and no page has the word: ‘torpor help --all’ shows all of them\n"
        #expect(code == 2 && output == said, "\(output)")
        let two = try Self.help(["frobnication", "zorkmid"])
        #expect(two.0 == 2 && two.1.contains("no page has the words"), "\(two.1)")
        #expect(try Self.help(["..."]).0 == 2)
        #expect(try Self.help([String(repeating: "ready ", count: 50)]).0 == 2)
    }

    @Test("Each of Torpor's words for those of others is in a page")
    func synonyms() throws {
        let source = try String(
            contentsOfFile: Sources.root + "/Sources/torpor-verbs/Shared/HelpWords.swift",
            encoding: .utf8
        )
        let table = source.components(separatedBy: "] = [\n").dropFirst().first?.components(separatedBy: "\n    ]")
            .first
        let rows = try #require(table).split(separator: "\n")
        #expect(rows.count > 30)
        let folder = Sources.root + "/docs/"
        let names = FileManager.default.enumerator(atPath: folder)?.compactMap { $0 as? String } ?? []
        let pages = try names.filter { $0.hasSuffix(".md") }.map {
            try String(contentsOfFile: folder + $0, encoding: .utf8).lowercased()
        }
        for row in rows {
            let words = row.matches(of: /"([^"]+)"/).map { String($0.1) }
            #expect(words.count >= 2, "\(row)")
            for word in words.dropFirst() { #expect(pages.contains { $0.contains(word) }, "\(word)") }
        }
    }

    // MARK: An installed program

    /// Runs `body` with a program in a folder as the package installs it, and its folder of pages.
    private static func installed(_ body: (_ program: String, _ pages: String) throws -> Void) throws {
        let folder = try Daemon.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let pages = folder + "/share/doc/torpor"
        for each in ["/bin", "/share/doc/torpor/howto", "/outside"] {
            try FileManager.default.createDirectory(atPath: folder + each, withIntermediateDirectories: true)
        }
        // Links, so that they find no sources around them; copies where folders are on different disks.
        for name in ["torpor", "torpor-verbs"] where link(Built.path(name), folder + "/bin/" + name) != 0 {
            try FileManager.default.copyItem(atPath: Built.path(name), toPath: folder + "/bin/" + name)
        }
        try body(folder + "/bin/torpor", pages)
    }

    private static func write(_ text: String, _ path: String) throws {
        try text.write(toFile: path, atomically: false, encoding: .utf8)
    }

    @Test("reads the pages beside the program, and nothing that a link leads to", .timeLimit(.minutes(2)))
    func folder() throws {
        try Self.installed { program, pages in
            try Self.write("# Birds\n\nA wren\u{1b}[31m sings.\n", pages + "/birds.md")
            try Self.write("# How\n\n## Feed a wren\n\nSeeds.\n", pages + "/howto/feed.md")
            try Self.write("# Out\n\nA heron.\n", pages + "/../../../outside/out.md")
            try FileManager.default.createSymbolicLink(
                atPath: pages + "/linked",
                withDestinationPath: "../../../outside"
            )
            try FileManager.default.createSymbolicLink(
                atPath: pages + "/linked.md",
                withDestinationPath: "../../../outside/out.md"
            )
            #expect(mkfifo(pages + "/fifo.md", 0o644) == 0)
            try Self.write("# Large\n\nA heron.\n" + String(repeating: "x\n", count: 1 << 20), pages + "/large.md")
            let (code, output) = try Self.help(["wrens"], program: program)
            #expect(
                code == 0
                    && output == """
                        torpor help feed  Feed a wren
                            Seeds.
                        torpor help birds  Birds
                            A wren\u{fffd}[31m sings.

                        """,
                "\(output)"
            )
            for word in ["heron", "linked", "fifo"] {
                let (code, output) = try Self.help([word], program: program)
                #expect(code == 2 && output.contains("no page has the word"), "\(output)")
            }
            #expect(try Self.help(["feed"], program: program).1.hasPrefix("# How\n"))
        }
    }

    @Test("says which folder is missing")
    func missing() throws {
        try Self.installed { program, pages in
            try FileManager.default.removeItem(atPath: pages)
            let (code, output) = try Self.help(["cron"], program: program)
            #expect(
                code == 2 && output.contains("there is no verb cron, and there are no pages to search in "),
                "\(output)"
            )
            #expect(output.contains(pages) && output.hasSuffix("shows all of them\n"), "\(output)")
        }
    }
}
