// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import TorporAPI

@Suite("What is written of metrics") struct DocumentationTests {
    private static func text(_ path: String) throws -> String {
        let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..")
        return try String(contentsOf: root.appending(path: path).standardized, encoding: .utf8)
    }

    @Test("docs/metrics.md has every metric as it describes itself, and no other")
    func table() throws {
        let rows = try Self.text("docs/metrics.md").split(separator: "\n").filter { $0.hasPrefix("| `") }
        let expected = Metric.allCases.map { metric in
            let labels = metric.labels.map { "`\($0)`" }.joined(separator: ", ")
            let cell = labels.isEmpty ? " " : " \(labels) "
            return "| `\(metric.rawValue)` | \(metric.kind.rawValue) |\(cell)| \(metric.help) |"
        }
        #expect(rows.map(String.init) == expected)
    }

    @Test(
        "Dashboard and alerts ask for metrics that there are, by labels that they have",
        arguments: ["config/grafana/torpor.json", "config/prometheus/torpor.rules.yml"]
    )
    func used(_ path: String) throws {
        let text = try Self.text(path)
        let names = text.matches(of: /torpor_[a-z_]+(?={|\[| |"|\)|,)/).map { String($0.output) }
        #expect(names.count > 8)
        for name in Set(names) {
            let family = ["_total", "_info", "_bucket"].first { name.hasSuffix($0) }.map { name.dropLast($0.count) }
            let metric = Metric(rawValue: name) ?? family.flatMap { Metric(rawValue: String($0)) }
            #expect(metric != nil, "\(name)")
        }
        for match in text.matches(of: /(torpor_[a-z_]+){([^}]*)}/) {
            let name = String(match.output.1)
            let family = ["_total", "_info", "_bucket"].first { name.hasSuffix($0) }.map { name.dropLast($0.count) }
            let metric = try #require(Metric(rawValue: name) ?? family.flatMap { Metric(rawValue: String($0)) })
            for label in match.output.2.matches(of: /([a-z_]+)\s*(=~|!~|!=|=)/) {
                let label = String(label.output.1)
                #expect(label == "instance" || metric.labels.contains(label), "\(label) of \(name)")
            }
        }
    }
}
