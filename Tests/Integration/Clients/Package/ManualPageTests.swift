// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Testing

/// torpor(1), whose source is `docs/man/torpor.1.md`: a verb is a term of a definition.
@Suite("The manual page torpor(1)") struct ManualPageTests {
    static let page: String = {
        (try? String(contentsOfFile: Sources.root + "/docs/man/torpor.1.md", encoding: .utf8)) ?? ""
    }()

    /// The help of every verb by its words, such as `app task run`; that of `torpor` itself has none.
    static let helps: [String: String] = {
        var helps: [String: String] = [:]
        var waiting = [""]
        while let verb = waiting.popLast() {
            let words = verb.split(separator: " ").map(String.init)
            let asked = words.isEmpty ? ["help", "--all"] : words + ["--help"]
            guard let help = try? Spawn.run([Built.path("torpor")] + asked).output else { continue }
            helps[verb] = help
            waiting += subcommands(help).map { (words + [$0]).joined(separator: " ") }
        }
        return helps
    }()

    /// Every verb, those with verbs of their own too.
    static let verbs = helps.keys.filter { !$0.isEmpty }.sorted()

    /// Verbs with verbs of their own.
    static let groups = verbs.filter { group in verbs.contains { $0.hasPrefix(group + " ") } }

    /// What a help lists as subcommands; `list, ls` are two.
    private static func subcommands(_ help: String) -> [String] {
        // Behind the options; the main help has its verbs in groups.
        guard let options = help.range(of: "OPTIONS:\n"),
            let start = help.range(of: "\n\n", range: options.upperBound..<help.endIndex)
        else { return [] }
        var verbs: [String] = []
        for line in help[start.upperBound...].split(separator: "\n", omittingEmptySubsequences: false) {
            guard line.hasPrefix("  "), !line.hasPrefix("   "), !line.hasPrefix("  See ") else { continue }
            // What it does begins in column 26, or behind two spaces.
            let names = line.dropFirst(2).components(separatedBy: "  ")[0].components(separatedBy: ", ")
            verbs += names.map { $0.hasSuffix(" (default)") ? String($0.dropLast(10)) : $0 }
        }
        return verbs
    }

    static func options(_ verb: String) -> Set<String> {
        guard let help = helps[verb], let start = help.range(of: "OPTIONS:\n") else { return [] }
        let lines = help[start.upperBound...].split(separator: "\n")
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

    @Test("has every verb that torpor help --all lists, with each of its options")
    func allVerbs() {
        // One that does something by itself too has an entry.
        let verbs = Self.verbs.filter { !Self.groups.contains($0) || Self.entry($0) != nil }
        #expect(verbs.count > 50)
        let common =
            Self.page.components(separatedBy: "## Options\n").last?.components(separatedBy: "\n## ").first ?? ""
        for verb in verbs {
            guard let entry = Self.entry(verb) else {
                Issue.record("torpor(1) says nothing of torpor \(verb)")
                continue
            }
            for option in Self.options(verb) where !common.contains("`\(option)`") {
                // A short form stands for the long one.
                guard option.hasPrefix("--") else { continue }
                let short = ["--follow": "-f", "--lines": "-n", "--times": "-t"][option]
                let isThere = entry.contains("`\(option)`") || short.map { entry.contains("`\($0)`") } ?? false
                #expect(isThere, "\(option) of torpor \(verb)")
            }
        }
    }

    @Test("has no verb that there is not")
    func noOther() {
        for line in Self.page.components(separatedBy: "\n") where line.hasPrefix("`torpor ") {
            guard line != "`torpor` *VERB* [*APP*...] [*OPTIONS*]" else { continue }
            let name = line.dropFirst("`torpor ".count).prefix { $0 != "`" }
            #expect(Self.verbs.contains(String(name)), "\(name)")
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
                var words = span.1.split(separator: " ").map(String.init)[...]
                // `app task run/begin` is two verbs of a group in a group.
                var names = words.popFirst().map { [$0] } ?? []
                while let first = names.first, Self.groups.contains(first), let next = words.popFirst() {
                    names = names.flatMap { name in next.split(separator: "/").map { "\(name) \($0)" } }
                }
                named.formUnion(names)
            }
        }
        let verbs = Set(Self.verbs.filter { !Self.groups.contains($0) || Self.entry($0) != nil })
        #expect(verbs.subtracting(named) == [], "these have no row")
        #expect(named.subtracting(verbs) == [], "these are no verbs")
    }
}
