// SPDX-License-Identifier: Apache-2.0

import Foundation
import Policies
import Testing

@Suite("docs/policies.md")
struct DocumentationTests {
    @Test("has the options of each policy as it describes them itself", arguments: ["Mobile", "Server", "Jetsam"])
    func options(name: String) throws {
        let text = try String(contentsOfFile: Workshop.sources + "/docs/policies.md", encoding: .utf8)
        let section = try #require(text.components(separatedBy: "\n## ").first { $0.hasPrefix(name + "\n") })
        let rows = section.split(separator: "\n").filter { $0.hasPrefix("| `") }.map(String.init)
        let options = try PolicyBench(name + "Policy").description.options
        #expect(!options.isEmpty)
        #expect(rows == options.map(row))
    }

    private func row(_ option: PolicyOptionDescription) -> String {
        // Words are as they are, values as they are written in TOML.
        func cell(_ text: String) -> String {
            let isValue = text.first.map { "\"[0123456789".contains($0) } ?? false
            return isValue || ["true", "false"].contains(text) ? "`\(text)`" : text
        }
        let type = option.type.split(separator: " ").map { $0.hasPrefix("\"") ? quoted($0) : String($0) }
        return "| `\(option.key)` | \(type.joined(separator: " ")) | \(cell(option.defaultValue)) | \(option.meaning) |"
    }

    private func quoted(_ word: Substring) -> String {
        word.hasSuffix(",") ? "`\(word.dropLast())`," : "`\(word)`"
    }

    @Test("says what a flood is")
    func flood() throws {
        let text = try String(contentsOfFile: Workshop.sources + "/docs/policies.md", encoding: .utf8)
        let few = PolicyAnswer.limit(events: 1, apps: 1)
        let each = PolicyAnswer.limit(events: 1, apps: 1_000) / 1_000
        let phrase =
            "more than \(few) pieces of advice to one event, or more than \(each) for each app where there are more than "
            + "\(few / each) apps"
        #expect(text.contains(phrase))
    }

    @Test("has the example in Swift that torpor policy new writes, but for its names")
    func example() throws {
        let workshop = try Workshop()
        let written = try workshop.run(BuiltProducts.path("torpor"), ["policy", "new", "night-shift"])
        try #require(written.status == 0, "\(written.output)")
        let source = try workshop.text("night-shift/Sources/NightShiftPolicy/NightShiftPolicy.swift")
        let text = try String(contentsOfFile: Workshop.sources + "/docs/policies.md", encoding: .utf8)
        for line in [
            "@c(torpor_policy_entry)", "        events: [.started, .timeUsed],",
            "        keep = try options.selectors(\"keep\")",
        ] {
            #expect(source.contains(line) && text.contains(line), "\(line)")
        }
    }
}
