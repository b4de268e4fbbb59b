// SPDX-License-Identifier: Apache-2.0

import Foundation
package import Testing

/// What `torpor list --json` says of an app.
package struct AppLine: Decodable {
    package struct Exit: Decodable {
        package let reason: String?
    }
    package let name: String
    package let state: String
    package let transition: String?
    package let pid: Int?
    package let incarnation: Int?
    package let restarts: Int?
    package let failed: Bool?
    package let memory: Int?
    package let lastExit: Exit?

    enum CodingKeys: String, CodingKey {
        case name, state, transition, pid, incarnation, restarts, failed
        case memory = "memory_bytes"
        case lastExit = "last_exit"
    }
}

/// A process that is known by more than its number.
package struct Identity: Equatable, CustomStringConvertible {
    package let pid: Int
    package let start: String
    package var description: String { "\(pid) started at \(start)" }
}

extension Machine {
    /// All apps of a supervisor.
    package func apps(_ options: String = "") throws -> [AppLine] {
        let answer = try run("torpor \(options) list --json 2>/dev/null")
        guard answer.ok else { throw Trouble("torpor list: \(answer.status)") }
        return try JSONDecoder().decode([AppLine].self, from: Data(answer.output.utf8))
    }

    package func app(_ name: String, _ options: String = "") throws -> AppLine {
        guard let app = try apps(options).first(where: { $0.name == name }) else {
            throw Trouble("there is no \(name)")
        }
        return app
    }

    /// Waits until it is so of an app; a supervisor that does not answer yet is waited for.
    @discardableResult
    package func waitFor(
        _ name: String,
        _ what: String,
        _ options: String = "",
        at location: SourceLocation = #_sourceLocation,
        _ isSo: (AppLine) -> Bool
    ) throws -> AppLine {
        var last: AppLine?
        try eventually("\(name) \(what); it is \(String(describing: last))", at: location) {
            last = try? app(name, options)
            return last.map(isSo) ?? false
        }
        return last!
    }

    /// Waits until an app is in a state and on its way to no other.
    @discardableResult
    package func waitFor(
        _ name: String,
        in state: String,
        at location: SourceLocation = #_sourceLocation
    ) throws
        -> AppLine
    {
        try waitFor(name, "is \(state)", at: location) { $0.state == state && $0.transition == nil }
    }

    /// The identities of the main processes of apps.
    package func identities(_ names: [String], _ options: String = "") throws -> [String: Identity] {
        var found: [String: Identity] = [:]
        let apps = try apps(options)
        for name in names {
            guard let pid = apps.first(where: { $0.name == name })?.pid else { throw Trouble("\(name) has no process") }
            found[name] = try identity(pid)
        }
        return found
    }

    package func identity(_ pid: Int) throws -> Identity {
        let stat = try done("cat /proc/\(pid)/stat")
        // After the name, in parentheses, the start time is the twentieth.
        let fields = stat.split(separator: ")").last?.split(separator: " ") ?? []
        guard fields.count > 19 else { throw Trouble("what is \(stat)?") }
        return Identity(pid: pid, start: String(fields[19]))
    }

    /// The state letter of a process; nothing when there is none.
    package func letter(_ pid: Int) throws -> String {
        try run("sed 's/.*) //; s/ .*//' /proc/\(pid)/stat 2>/dev/null").text
    }

    /// The first process of a unit: the keeper where it is torpord's.
    package func mainPid(_ unit: String) throws -> Int {
        Int(try done("systemctl show -P MainPID \(unit)")) ?? 0
    }

    /// torpord below a keeper.
    package func torpord(below keeper: Int) throws -> Int? {
        try run("grep -l '^PPid:[[:space:]]*\(keeper)$' /proc/[0-9]*/status 2>/dev/null").lines
            .compactMap { $0.split(separator: "/").dropFirst().first.flatMap { Int($0) } }
            .first { (try? self.run("readlink /proc/\($0)/exe").text.hasSuffix("/torpord")) ?? false }
    }
}
