// SPDX-License-Identifier: Apache-2.0

import Foundation
import Lifecycle
import Testing

@testable import Configuration

/// torpor.toml(5), whose source is `docs/man/torpor.toml.5.md`: a key is a term of a definition.
@Suite("The manual page torpor.toml(5)")
struct ManualTests {
    struct Section {
        let title: String
        /// What stands behind the first colon of each term: type, default, and when a change counts.
        var terms: [String: String] = [:]
        var text = ""
    }

    static let sections: [Section] = {
        let page = SchemaTests.folder.deletingLastPathComponent().appending(path: "docs/man/torpor.toml.5.md")
        let text = (try? String(contentsOf: page, encoding: .utf8)) ?? ""
        var sections: [Section] = []
        var term: String?
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.hasPrefix("## ") {
                sections.append(Section(title: String(line.dropFirst(3))))
            } else if !sections.isEmpty {
                sections[sections.count - 1].text += line + "\n"
                if let name = term, line.hasPrefix(": ") {
                    sections[sections.count - 1].terms[name] = String(line.dropFirst(2))
                }
                term = line.hasPrefix("`") && line.hasSuffix("`") ? String(line.dropFirst().dropLast()) : nil
            }
        }
        return sections
    }()

    /// What the sections whose title begins so define.
    static func terms(_ title: String) -> [String: String] {
        sections.filter { $0.title.hasPrefix(title) }.reduce(into: [:]) { $0.merge($1.terms) { first, _ in first } }
    }

    static func text(_ title: String) -> String {
        sections.filter { $0.title.hasPrefix(title) }.map(\.text).joined()
    }

    @Test("has each key of a configuration, and none that is not one")
    func allKeys() {
        let tables = ["supervisor": "[supervisor]", "defaults": "[defaults]"]
        let several = ["policies": "[policies.NAME]", "apps": "[apps.NAME]"]
        let top = FileReader.keys.map { tables[$0] ?? several[$0] ?? $0 }
        #expect(Self.terms("Top level").keys.sorted() == top.sorted())
        let supervisor =
            SupervisorKeys.all.map(\.name) + MemorySpecification.keys.map { "memory." + $0.name }
            + TransferReader.supervisor.map { "transfers." + $0.name }
            + AlertReader.keys.map { "alerts." + $0.name }
            + ProtectionReader.supervisor.map { "protected." + $0.name }
        #expect(Self.terms("Keys of the supervisor").keys.sorted() == supervisor.sorted())
        #expect(Self.terms("Keys of a policy").keys.sorted() == SupervisorKeys.policy.map(\.name).sorted())
        let app =
            AppKeys.all.map { $0.name == "resources" ? "resources.STATE" : $0.name }
            + TableReader.backoff.map { "restart_backoff." + $0.name }
            + ReadyReader.keys.map { "ready." + $0 } + ReadyReader.healthKeys.map { "health." + $0 }
            + TopicRule.keys.map { "topics.TOPIC." + $0.name }
            + TransferReader.app.map { "transfers." + $0.name }
            + SceneReader.keys.map { "scenes." + $0.name }
            + ContainerReader.keys.map { "container." + $0.name }
            + SubscriptionReader.keys.map { "subscriptions." + $0.name }
            + WakeStormReader.keys.map { "wake_storm." + $0.name }
            + TableReader.profile.map { "resources.STATE." + $0.name }
            + SocketReader.names.map { "sockets." + $0 }
        #expect(Self.terms("Keys of an app").keys.sorted() == app.sorted())
    }

    @Test("names each limit, state, message and key of a hook")
    func allMembers() {
        let text = Self.text("Keys of an app")
        let names =
            TableReader.limitNames.map(\.name) + TableReader.states.map(\.rawValue)
            + Message.allCases.filter { !$0.isAboutScenes }.map(\.rawValue)
            + TableReader.hookKeys.map(\.name) + TimerReader.keys.map(\.name)
        for name in names { #expect(text.contains("`\(name)`"), "\(name)") }
    }

    @Test("has the defaults that the schema has")
    func defaults() throws {
        func check(_ path: [String], _ terms: [String: String], _ prefix: String = "") throws {
            var here = try SchemaTests.schema()
            for key in path { here = try #require(here[key] as? [String: Any]) }
            let properties = try #require(here["properties"] as? [String: [String: Any]])
            for (key, property) in properties {
                guard let value = property["default"], let term = terms[prefix + key] else { continue }
                let written: String
                if let text = value as? String {
                    written = "\"\(text)\""
                } else if property["type"] as? String == "boolean" {
                    written = value as? Bool == true ? "true" : "false"
                } else {
                    written = "\(value)"
                }
                #expect(term.contains("default `\(written)`"), "\(prefix + key): \(term)")
            }
        }
        let app = Self.terms("Keys of an app")
        try check(["properties", "supervisor"], Self.terms("Keys of the supervisor"))
        let memory = ["properties", "supervisor", "properties", "memory"]
        try check(memory, Self.terms("Keys of the supervisor"), "memory.")
        try check(["$defs", "policy"], Self.terms("Keys of a policy"))
        try check(["$defs", "app"], app)
        try check(["$defs", "app", "properties", "restart_backoff"], app, "restart_backoff.")
        try check(["$defs", "app", "properties", "scenes"], app, "scenes.")
        try check(["$defs", "app", "properties", "container"], app, "container.")
        try check(["$defs", "probe"], app, "ready.")
        try check(["$defs", "socket"], app, "sockets.")
    }

    @Test("says of each key of an app when a change counts, as applies do")
    func effects() {
        let terms = Self.terms("Keys of an app")
        let app = AppSpecification(name: "web")
        for key in AppKeyEffects.all {
            let term = terms[key.name == "resources" ? "resources.STATE" : key.name] ?? ""
            switch key.effect(app, app) {
            case .live: #expect(term.contains("at once"), "\(key.name): \(term)")
            case .launch: #expect(term.hasSuffix("; at the next launch"), "\(key.name): \(term)")
            case .restart: #expect(term.hasSuffix("; at a restart"), "\(key.name): \(term)")
            case .apps: #expect(!term.contains(";"), "\(key.name): \(term)")
            case .supervisor: Issue.record("\(key.name) belongs to no app")
            }
        }
    }
}
