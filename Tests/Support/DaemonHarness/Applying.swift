// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
package import Testing
package import TorporAPI
import Varlink

extension Daemon {
    /// Writes another configuration; `@D` in it becomes the folder.
    ///
    /// Whole or not at all: a SIGHUP may still be under way.
    package func configure(_ toml: String) throws {
        let draft = directory + "/draft"
        try FileManager.default.createDirectory(atPath: draft, withIntermediateDirectories: true)
        let path = try Daemon.writeConfiguration(toml, in: draft)
        let text = try String(contentsOfFile: path, encoding: .utf8).replacing(draft, with: directory)
        try text.write(toFile: directory + "/torpor.toml", atomically: true, encoding: .utf8)
    }

    /// Has the configuration on disk applied, another one if it is given, and waits until that is done.
    @discardableResult
    package func apply(_ toml: String? = nil, _ change: (inout ApplyRequest) -> Void = { _ in }) throws -> ApplyReply {
        if let toml { try configure(toml) }
        var request = ApplyRequest()
        request.force = true
        change(&request)
        return try ApplyReply(json: call(.apply(request)))
    }

    /// The diagnostics of a configuration that must be refused.
    package func refused(_ toml: String, at location: SourceLocation = #_sourceLocation) throws -> [String] {
        try configure(toml)
        do {
            let reply = try apply()
            Issue.record("it was applied: \(reply)", sourceLocation: location)
            return []
        } catch VarlinkClientError.service(ManagerInterface.ErrorName.invalidConfiguration, let parameters) {
            return try Fields(parameters).list("diagnostics") { json throws(FieldError) in
                try DiagnosticInfo(json: json)
            }
            .map(\.message)
        }
    }

    /// The one living process of an app.
    package func process(of app: String, at location: SourceLocation = #_sourceLocation) throws -> Int32 {
        let pids = processes(of: app)
        guard pids.count == 1 else { throw Trouble("\(app) has processes \(pids)") }
        return pids[0]
    }

    package func words(of app: String) throws -> [String] { try ProcFS.cmdline(process(of: app)) }

    /// The endings and launches of some apps in their order, as `web launch` and `web exit replaced`.
    package func story(_ apps: [String], after sequence: Int64) throws -> [String] {
        try events().filter { $0.sequence > sequence && apps.contains($0.app ?? "") }.compactMap { event in
            switch event.kind {
            case "launch": "\(event.app ?? "") launch"
            case "exit": "\(event.app ?? "") exit \(event.reason ?? "")"
            default: nil
            }
        }
    }

    package func lastEvent() throws -> Int64 { try events().last?.sequence ?? 0 }
}

extension ApplyReply {
    /// The lines that people see.
    package var lines: [String] { apps.map { "\($0.app): \($0.message)" } }
}

/// Parts of configurations.
package enum Apps {
    /// An app that sleeps, with further keys.
    package static func sleeper(_ name: String, _ keys: String = "", seconds: Int = 1000) -> String {
        "[apps.\(name)]\nexec = [\"/bin/sleep\", \"\(seconds)\"]\n\(keys)\n"
    }
}
