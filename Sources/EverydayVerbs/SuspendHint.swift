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

    /// Warns of apps that no event will wake, because only a user can bring these back. On a terminal, also names the
    /// expected events that will not wake an app.
    package static func show(_ results: [VerbResult], _ options: PlainOptions) {
        let suspended = results.filter { $0.state == "suspended" }
        let asleep = suspended.filter { $0.isNeverWoken == true }.map(\.app)
        let namesEvents = !options.json && ThisProcess.isTerminal(2) && suspended.count <= 3
        // Ask only for what the results do not say.
        let unknown = suspended.filter { namesEvents || $0.isNeverWoken == nil }.prefix(mostAsked).map(\.app)
        let asked = unknown.isEmpty && asleep.count == 1 ? asleep : unknown
        guard let statuses = statuses(of: asked, options) else { return }
        for status in statuses where namesEvents && !status.notWokenBy.isEmpty {
            let events = status.notWokenBy.joined(separator: ", ")
            Complaint.say("\(status.summary.name) is not woken by \(events)", .remark)
        }
        warn(of: asleep.count > 1 ? asleep : statuses.filter(\.wokenBy.isEmpty).map(\.summary.name), statuses)
    }

    private static func statuses(of apps: [String], _ options: PlainOptions) -> [AppStatus]? {
        guard !apps.isEmpty else { return [] }
        guard let manager = try? Manager(options) else { return nil }
        return try? apps.map { app in
            try AppStatus(json: manager.call(.status(app: app))["status"] ?? .null)
        }
    }

    private static func warn(of names: [String], _ statuses: [AppStatus]) {
        guard let first = names.first else { return }
        if names.count > 1 {
            let more = names.count > 5 ? " and \(names.count - 5) more" : ""
            let shown = names.prefix(5).joined(separator: ", ")
            return Complaint.say("no event wakes \(shown)\(more): ‘torpor resume NAME’ brings one back", .warning)
        }
        let users = statuses.first { $0.summary.name == first }?.requiredBy.joined(separator: " or ") ?? ""
        let more = users.isEmpty ? "" : ", and so does using \(users)"
        Complaint.say("no event wakes \(first): ‘torpor resume \(first)’ brings it back\(more)", .warning)
    }
}
