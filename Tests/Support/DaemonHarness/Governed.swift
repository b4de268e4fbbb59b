// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
import PolicyLibraries
package import Testing
package import TorporAPI
import Varlink

/// What scenarios with policies have in common.
package enum Governed {
    /// A configuration with policies, and apps that only sleep.
    package static func toml(_ policies: [(name: String, lines: String)], apps: String) -> String {
        let names = policies.map { "\"\($0.name)\"" }.joined(separator: ", ")
        let tables = policies.map { "[policies.\($0.name)]\n\($0.lines)" }.joined(separator: "\n")
        return "policies = [\(names)]\n\(tables)\n\(apps)"
    }

    /// An app that only sleeps.
    package static func sleeper(_ name: String, _ lines: String = "") -> String {
        """
        [apps.\(name)]
        exec = ["sleep", "1000"]
        log = "null"
        \(lines)

        """
    }

    /// A policy that does harm.
    package static func hostile(_ harm: String, at: String = "decide", _ lines: String = "") throws -> String {
        """
        path = "\(try Libraries.path("hostile.c"))"
        options = { does = "\(harm)", at = "\(at)" }
        \(lines)
        """
    }

    /// A policy that advises what the rules say.
    package static func advisor(_ rules: String, _ lines: String = "") throws -> String {
        """
        path = "\(try Libraries.path("advisor.c"))"
        options = { rules = [\(rules)] }
        deadline = "5s"
        \(lines)
        """
    }
}

extension Daemon {
    package func policies() throws -> [PolicyStatus] {
        try (call(.policies)["policies"]?.arrayValue ?? []).map { try PolicyStatus(json: $0) }
    }

    package func policy(_ name: String) throws -> PolicyStatus {
        guard let found = try policies().first(where: { $0.name == name }) else { throw Trouble("no policy \(name)") }
        return found
    }

    package func waitForPolicy(
        _ name: String,
        _ what: String,
        at location: SourceLocation = #_sourceLocation,
        _ isSo: (PolicyStatus) -> Bool
    ) throws {
        try eventually("policy \(name) \(what)", at: location) { isSo(try policy(name)) }
    }

    /// The texts of what is told about policies.
    package func policyEvents(_ app: String? = nil) throws -> [String] {
        try events(app).filter { $0.kind == "policy" }.map(\.text)
    }

    /// The living processes that policies run in.
    package func hosts() throws -> [Int32] {
        let torpord = try torpord()
        return try ProcFS.children(pid).filter { child in
            child != torpord && ((try? ProcFS.cmdline(child).first)?.contains("torpor-policy-host") ?? false)
        }
    }
}
