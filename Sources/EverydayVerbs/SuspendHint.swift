// SPDX-License-Identifier: Apache-2.0

import CommandLinePages
import Linux
package import TorporAPI
import Varlink

/// What a user should know after `torpor suspend`: which apps no event will wake.
package enum SuspendHint {
    /// The maximum number of suspended apps for which an older supervisor, whose results do not say it, is asked what
    /// wakes them.
    private static let mostAsked = 64

    /// An app that only a user can bring back, and the apps whose use does that too.
    private typealias Asleep = (name: String, requiredBy: [String])

    /// Warns of apps that no event will wake, because only a user can bring these back. On a terminal, also names the
    /// expected events that will not wake an app.
    package static func show(_ results: [VerbResult], _ options: PlainOptions) {
        let suspended = results.filter { $0.state == "suspended" }
        let namesEvents = !options.json && ThisProcess.isTerminal(2) && suspended.count <= 3
        var asleep: [Asleep] = []
        for result in suspended where result.isNeverWoken == true {
            asleep.append((result.app, result.requiredBy ?? []))
        }
        // Ask only for what the results do not say.
        let isComplete = suspended.allSatisfy {
            $0.isNeverWoken == false || $0.isNeverWoken == true && $0.requiredBy != nil
        }
        guard namesEvents || !isComplete else { return warn(of: asleep) }
        let unknown = suspended.filter { namesEvents || $0.isNeverWoken == nil }.prefix(mostAsked).map(\.app)
        let asked = unknown.isEmpty && asleep.count == 1 ? asleep.map(\.name) : unknown
        guard let statuses = statuses(of: asked, options) else { return }
        for status in statuses where namesEvents && !status.notWokenBy.isEmpty {
            let events = status.notWokenBy.joined(separator: ", ")
            Complaint.say("\(status.summary.name) is not woken by \(events)", .remark)
        }
        let found = statuses.filter(\.wokenBy.isEmpty).map { ($0.summary.name, $0.requiredBy) }
        warn(of: asleep.count > 1 ? asleep : found)
    }

    private static func statuses(of apps: [String], _ options: PlainOptions) -> [AppStatus]? {
        guard !apps.isEmpty else { return [] }
        guard let manager = try? Manager(options) else { return nil }
        return try? apps.map { app in
            try AppStatus(json: manager.call(.status(app: app))["status"] ?? .null)
        }
    }

    private static func warn(of apps: [Asleep]) {
        guard let first = apps.first else { return }
        let name = first.name
        if apps.count > 1 {
            let more = apps.count > 5 ? " and \(apps.count - 5) more" : ""
            let shown = apps.prefix(5).map(\.name).joined(separator: ", ")
            return Complaint.say("no event wakes \(shown)\(more): ‘torpor resume NAME’ brings one back", .warning)
        }
        let users = first.requiredBy.joined(separator: " or ")
        let more = users.isEmpty ? "" : ", and so does using \(users)"
        Complaint.say("no event wakes \(name): ‘torpor resume \(name)’ brings it back\(more)", .warning)
    }
}
