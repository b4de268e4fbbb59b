import DaemonHarness
import Foundation
import Testing

/// torpor(1), whose source is `docs/man/torpor.1.md`: a verb is a term of a definition.
@Suite("The manual page torpor(1)") struct ManualPageTests {
    static let page: String = {
        (try? String(contentsOfFile: Sources.root + "/docs/man/torpor.1.md", encoding: .utf8)) ?? ""
    }()

    /// Verbs with verbs of their own.
    static let groups = ["memory", "policy", "state", "task"]

    /// What `torpor WORDS --help` lists as subcommands; `list, ls` are two.
    static func verbs(_ words: [String] = []) throws -> [String] {
        let (_, output) = try Spawn.run([Built.path("torpor")] + words + ["--help"])
        // Behind the options; the main help has its verbs in groups.
        guard let options = output.range(of: "OPTIONS:\n"),
            let start = output.range(of: "\n\n", range: options.upperBound..<output.endIndex)
        else { return [] }
        var verbs: [String] = []
        for line in output[start.upperBound...].split(separator: "\n", omittingEmptySubsequences: false) {
            guard line.hasPrefix("  "), !line.hasPrefix("   "), !line.hasPrefix("  See ") else { continue }
            // What it does begins in column 26, or behind two spaces.
            let names = line.dropFirst(2).components(separatedBy: "  ")[0]
            verbs += names.components(separatedBy: ", ").map { (words + [$0]).joined(separator: " ") }
        }
        return verbs
    }

    static func options(_ verb: String) throws -> Set<String> {
        let (_, output) = try Spawn.run([Built.path("torpor")] + verb.components(separatedBy: " ") + ["--help"])
        guard let start = output.range(of: "OPTIONS:\n") else { return [] }
        let lines = output[start.upperBound...].split(separator: "\n")
        let heads = lines.filter { $0.hasPrefix("  -") }.map { $0.dropFirst(2).components(separatedBy: "  ")[0] }
        return Set(
            heads.flatMap { $0.components(separatedBy: ", ") }.map { $0.components(separatedBy: " ")[0] }
        )
    }

    /// A verb's term and what is said of it.
    static func entry(_ verb: String) -> String? {
        let paragraphs = page.components(separatedBy: "\n\n").filter { $0.hasPrefix("`torpor ") && $0.contains("\n: ") }
        return paragraphs.first { paragraph in
            paragraph.components(separatedBy: "\n")[0].contains("`torpor \(verb)`")
        }
    }

    @Test("has every verb that torpor --help lists, with each of its options")
    func allVerbs() throws {
        // One that does something by itself too has an entry.
        let single = try Self.verbs().filter { !Self.groups.contains($0) || Self.entry($0) != nil }
        let verbs = try single + Self.groups.flatMap { try Self.verbs([$0]) }
        #expect(verbs.count > 25)
        let common =
            Self.page.components(separatedBy: "## Options\n").last?.components(separatedBy: "\n## ").first ?? ""
        for verb in verbs {
            guard let entry = Self.entry(verb) else {
                Issue.record("torpor(1) says nothing of torpor \(verb)")
                continue
            }
            for option in try Self.options(verb) where !common.contains("`\(option)`") {
                // A short form stands for the long one.
                guard option.hasPrefix("--") else { continue }
                let short = ["--follow": "-f", "--lines": "-n", "--times": "-t"][option]
                let isThere = entry.contains("`\(option)`") || short.map { entry.contains("`\($0)`") } ?? false
                #expect(isThere, "\(option) of torpor \(verb)")
            }
        }
    }

    @Test("has no verb that there is not")
    func noOther() throws {
        let verbs = Set(try Self.verbs() + Self.groups.flatMap { try Self.verbs([$0]) })
        for line in Self.page.components(separatedBy: "\n") where line.hasPrefix("`torpor ") {
            guard line != "`torpor` *VERB* [*APP*...] [*OPTIONS*]" else { continue }
            let name = line.dropFirst("`torpor ".count).prefix { $0 != "`" }
            #expect(verbs.contains(String(name)), "\(name)")
        }
    }

    @Test("docs/interfaces.md has a row for every verb, and for no other")
    func table() throws {
        let text = try String(contentsOfFile: Sources.root + "/docs/interfaces.md", encoding: .utf8)
        let rows =
            text.components(separatedBy: "\n| verb | does |\n|---|---|\n").last?
            .components(separatedBy: "\n\n").first?.components(separatedBy: "\n") ?? []
        var named: Set<String> = []
        for row in rows {
            let cell = row.replacing("\\|", with: "/").components(separatedBy: " | ")[0]
            for span in cell.matches(of: /`([^`]+)`/) {
                let words = span.1.split(separator: " ").map(String.init)
                guard let verb = words.first else { continue }
                guard Self.groups.contains(verb), words.count > 1 else {
                    named.insert(verb)
                    continue
                }
                for second in words[1].split(separator: "/") { named.insert("\(verb) \(second)") }
            }
        }
        let single = try Self.verbs().filter { !Self.groups.contains($0) || Self.entry($0) != nil }
        let verbs = try Set(single + Self.groups.flatMap { try Self.verbs([$0]) })
        #expect(verbs.subtracting(named) == [], "these have no row")
        #expect(named.subtracting(verbs) == [], "these are no verbs")
    }
}
