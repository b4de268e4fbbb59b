// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Testing

@Suite("The help of torpor") struct HelpTests {
    @Test("of each verb has examples of it; CommandTests carries them out")
    func examples() {
        for verb in ManualPageTests.verbs where !["ls", "kill"].contains(verb) {
            let parts = ManualPageTests.helps[verb]?.components(separatedBy: "\nExamples:\n") ?? []
            guard parts.count == 2 else {
                Issue.record("torpor \(verb) --help has no examples")
                continue
            }
            let examples = parts[1].components(separatedBy: "\n\n")[0].split(separator: "\n").map(String.init)
            #expect(examples.contains { $0.contains("torpor \(verb)") }, "\(verb)")
            for example in examples { #expect(example.count <= 80, "\(example)") }
        }
    }

    @Test("and no other verb takes time for a word of very many combining marks, which a stranger may have chosen")
    func marks() throws {
        let marks = "a" + String(repeating: "\u{301}\u{323}", count: 20_000)
        for words in [["help", marks], ["status", marks], ["start", "web", marks]] {
            let (code, output) = try Spawn.run([Built.path("torpor")] + words, within: .seconds(60))
            #expect(code == 2 && output.contains("combining marks") && output.utf8.count < 500, "\(output)")
        }
    }

    @Test("shows defaults as they are written")
    func defaults() throws {
        let all = ManualPageTests.helps.values.joined()
        let defaults = all.matches(of: /default:\s+([^)]*\)?)/).map { String($0.1) }
        #expect(defaults.contains("2s)") && defaults.contains("50ms)"), "\(defaults)")
        #expect(!defaults.contains { $0.contains("(") }, "\(defaults)")
    }

    @Test(
        "Who comes from another supervisor is told what its verbs are called here",
        arguments: [
            ("tail", "torpor logs"), ("reread", "torpor apply --diff"), ("update", "torpor apply"),
            ("monit", "torpor top"), ("shutdown", "SIGTERM"), ("suspnd", "did you mean ‘torpor suspend’?"),
            ("frobnicate", "torpor help --all"), ("freeze", "did you mean ‘torpor suspend APP’"),
            ("pause", "did you mean ‘torpor suspend APP’"), ("sleep", "did you mean ‘torpor suspend APP’"),
            ("wake", "did you mean ‘torpor foreground APP’"), ("save", "did you mean ‘torpor app state save FILE’"),
            ("launch", "did you mean ‘torpor start APP’"), ("terminate", "did you mean ‘torpor stop APP’"),
            ("resurrect", "did you mean ‘torpor start APP’"), ("flush", "log_max_size"),
            ("is-active", "did you mean ‘torpor health APP’"), ("version", "did you mean ‘torpor --version’"),
            ("avail", "torpor list"), ("fg", "torpor logs APP -f"), ("pid", "torpor list"), ("clear", "log_max_size"),
            ("maintail", "torpor events -f"), ("reload", "torpor apply"), ("add", "torpor apply"),
            ("startup", "did you mean ‘systemctl enable torpord’"),
        ]
    )
    func habits(verb: String, hint: String) throws {
        let (code, output) = try Spawn.run([Built.path("torpor"), verb])
        #expect(code == 2 && output.hasPrefix("torpor: there is no verb \(verb): "), "\(output)")
        #expect(output.contains(hint) && output.split(separator: "\n").count == 1, "\(output)")
    }

    @Test("of a verb that there is not says so")
    func unknownVerb() throws {
        let (code, output) = try Spawn.run([Built.path("torpor"), "help", "suspnd"])
        #expect(
            code == 2
                && output
                    == "torpor: there is no verb suspnd, and no page has the word: did you mean ‘torpor suspend’?\n"
        )
    }

    @Test("as JSON, an experiment of the parser, is refused")
    func asJSON() throws {
        let (code, output) = try Spawn.run([Built.path("torpor"), "list", "--experimental-dump-help"])
        #expect(code == 2 && output.hasPrefix("torpor: unknown option '--experimental-dump-help'"), "\(output)")
    }

    @Test("has each verb in one of its groups, which say what they are")
    func groups() throws {
        let (code, output) = try Spawn.run([Built.path("torpor"), "help", "--all"])
        let heads = ["SEE WHAT APPS DO:", "CONTROL APPS:", "CONFIGURE:", "FROM WITHIN AN APP:"]
        #expect(code == 0 && heads.allSatisfy { output.contains("\n\($0)\n") } && !output.contains("SUBCOMMANDS"))
        #expect(ManualPageTests.verbs.count { !$0.contains(" ") } > 35)
    }

    @Test("fits a terminal of 80 by 24, and names commands and topics that there are")
    func brief() throws {
        let pages = try [["--help"], ["-h"], ["help"]].map { words in
            let (code, output) = try Spawn.run([Built.path("torpor")] + words)
            #expect(code == 0)
            return output
        }
        let page = try #require(pages.first)
        #expect(pages.allSatisfy { $0 == page })
        let lines = page.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
        #expect(lines.count <= 24 && lines.allSatisfy { $0.count <= 80 }, "\(lines.count) lines")
        let verbs = page.matches(of: /\n {2}torpor ([a-z]+)/).map { String($0.1) }.filter { $0 != "help" }
        #expect(verbs.count == 10 && verbs.allSatisfy(ManualPageTests.verbs.contains), "\(verbs)")
        #expect(try Self.topics().count == 10)
    }

    /// What the page names as topics, in its last lines.
    private static func topics() throws -> [String] {
        let page = try Spawn.run([Built.path("torpor"), "help"]).output
        let last = page.components(separatedBy: "one of these:\n").last ?? ""
        return last.split { " ,\n".contains($0) }.map(String.init)
    }

    @Test("opens the page of a topic in man, or else as it is in the sources")
    func topics() throws {
        let folder = try Spawn.run(["/usr/bin/mktemp", "-d"]).output.trimmingCharacters(in: .newlines)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let generator = try String(contentsOfFile: Sources.root + "/packaging/man/generate", encoding: .utf8)
        let man = "#!/bin/sh\n[ \"$1\" = -w ] && exit \"${MISSING:-0}\"\necho \"page $2($1)\"\n"
        try man.write(toFile: folder + "/man", atomically: false, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: folder + "/man")
        for topic in try Self.topics() {
            let words = [Built.path("torpor"), "help", topic]
            let (code, output) = try Spawn.run(words, environment: ["PATH": folder])
            let page = try #require(output.wholeMatch(of: /page ([a-z.-]+)\((\d)\)\n/), "\(output)")
            #expect(code == 0 && generator.contains("(\"\(page.1)\", \"\(page.2)\", "), "\(output)")
            let plain = try Spawn.run(words, environment: ["PATH": folder, "MISSING": "16"])
            #expect(plain.code == 0 && plain.output.hasPrefix("# "), "\(plain.output.prefix(80))")
        }
    }

    @Test("of a topic and a word that no page has says so; what is neither topic nor verb is told both")
    func noTopic() throws {
        let more = try Spawn.run([Built.path("torpor"), "help", "scenes", "frobnication"])
        #expect(
            more.code == 2 && more.output.hasPrefix("torpor: no page has “scenes frobnication”: "),
            "\(more.output)"
        )
        let verb = try Spawn.run([Built.path("torpor"), "help", "memory", "rehearse"])
        #expect(verb.code == 0 && verb.output.contains("USAGE: torpor memory rehearse"), "\(verb.output)")
        let nonsense = try Spawn.run([Built.path("torpor"), "help", "lifecylce"])
        #expect(nonsense.code == 2 && nonsense.output.contains("‘torpor help lifecycle’"), "\(nonsense.output)")
    }

    @Test("says where to read a page that is not installed")
    func missing() throws {
        let folder = try Spawn.run(["/usr/bin/mktemp", "-d"]).output.trimmingCharacters(in: .newlines)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try FileManager.default.createDirectory(atPath: folder + "/bin", withIntermediateDirectories: false)
        // Links, so that they find no sources around them; copies where folders are on different disks.
        for name in ["torpor", "torpor-verbs"] where link(Built.path(name), folder + "/bin/" + name) != 0 {
            try FileManager.default.copyItem(atPath: Built.path(name), toPath: folder + "/bin/" + name)
        }
        let (code, output) = try Spawn.run(
            [folder + "/bin/torpor", "help", "lifecycle"],
            environment: ["PATH": "/none"]
        )
        #expect(code == 1 && output.contains("torpor-lifecycle(7) is not installed"), "\(output)")
        #expect(output.contains("docs/lifecycle.md"), "\(output)")
    }

    @Test("An app where a signal belongs is told the order")
    func signalFirst() throws {
        let (code, output) = try Spawn.run([Built.path("torpor"), "signal", "web", "HUP"])
        #expect(code == 2 && output.contains("the signal comes first: torpor signal HUP web"), "\(output)")
    }
}
