// SPDX-License-Identifier: Apache-2.0

import CommandLinePages
import Linux
import Policies
import TorporAPI
import TorporPolicyABI

/// What advice asks for, of an app by its name: two are the same if they would change the same.
package struct SimulatedChange: Hashable {
    /// A word of ``PolicyWords/advice``.
    package let kind: String
    /// The app; of an order of eviction all of them, the first one first.
    package let apps: [String]
    /// The state, of a goal or a profile.
    var state: UInt32 = 0
    /// Microseconds.
    package var time: Int64 = 0

    package init(kind: String, app: String, value: UInt32, time: Int64) {
        self.kind = kind
        apps = [app]
        switch kind {
        case "goal", "profile": state = value
        case "grant", "delay", "restart": self.time = time
        default: break
        }
    }

    package init(order: [String]) {
        kind = "order"
        apps = order
    }

    /// What it is about: of two changes in one matter only one can be made.
    var matter: String {
        let subject =
            switch kind {
            case "admit", "delay", "refuse": "admission"
            case "restart", "give-up": "restart"
            default: kind
            }
        return kind == "order" ? subject : subject + " " + apps[0]
    }

    /// In words.
    package var text: String {
        let app = apps.first ?? "no app"
        switch kind {
        case "goal": return "\(app) → \(PolicyWords.state(state))"
        case "grant": return "\(app) may stay in the background for \(Self.duration(time))"
        case "delay": return "\(app) waits \(Self.duration(time)) to be launched"
        case "refuse": return "\(app) is not launched"
        case "admit": return "\(app) is launched"
        case "restart": return "\(app) is restarted in \(Self.duration(time))"
        case "give-up": return "\(app) is given up"
        case "profile": return "\(app) gets the share of an app that is \(PolicyWords.state(state))"
        case "order":
            return apps.isEmpty ? "no app would be evicted" : "evicted in the order \(apps.joined(separator: ", "))"
        default: return "\(app): advice of kind \(kind)"
        }
    }

    private static func duration(_ microseconds: Int64) -> String {
        microseconds < 0 ? "\(microseconds) us" : Times.duration(seconds: Double(microseconds) / 1_000_000)
    }
}

/// A decision of the policy under simulation, or of those of the recording that it does not take.
package struct SimulatedDecision {
    package enum Difference: String {
        /// It was taken then too.
        case same
        /// It was not.
        case new
        /// It was taken then, and the policy does not take it.
        case missing
        /// The policy takes it, and a supervisor would not follow.
        case refused
    }

    /// Microseconds of the recording's monotonic clock, and since 1970.
    package let at: Int64
    package let realtime: Int64
    /// The line of the recording that was read last.
    package let line: Int
    package let change: SimulatedChange
    package let reason: String
    package var difference: Difference
    /// What else there is to say of the difference.
    package var note: String?
    /// Who advised the same, or (of one that is missing) this, in the recording.
    package var then: String?
}

/// A piece of advice of the recording.
struct RecordedDecision {
    let at: Int64
    let realtime: Int64
    let line: Int
    let change: SimulatedChange
    let policy: String
    let reason: String
    let outcome: String
    let why: String?
    /// The policy under simulation advises the same.
    var isMatched = false

    var isTaken: Bool { outcome == "taken" }
}
