// SPDX-License-Identifier: Apache-2.0

import CommandLinePages
import Linux
import Policies
import TorporAPI
import TorporPolicyABI

/// A change that advice asks for, with names of apps. Two changes are equal if they have the same effect.
package struct SimulatedChange: Hashable {
    /// A word of ``PolicyWords/advice``.
    package let kind: String
    /// The name of the app; for an order of eviction, the names of all apps, the first to be evicted first.
    package let apps: [String]
    /// If the advice sets a goal or a profile: the state that the advice names.
    var state: UInt32 = 0
    /// The time of the advice in microseconds, whose meaning depends on the kind.
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

    /// The matter of the decision, such as a restart of an app. Two decisions in the same matter exclude each other.
    var matter: String {
        let subject =
            switch kind {
            case "admit", "delay", "refuse": "admission"
            case "restart", "give-up": "restart"
            default: kind
            }
        return kind == "order" ? subject : subject + " " + apps[0]
    }

    /// The decision in words.
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

/// A decision of the simulated policy, or one of the recording that the policy does not make.
package struct SimulatedDecision {
    package enum Difference: String {
        /// The recording has the same decision.
        case same
        /// The recording does not contain the decision.
        case new
        /// The recording contains the decision, but the simulated policy does not make it.
        case missing
        /// The simulated policy makes the decision, but a supervisor would not follow it.
        case refused
    }

    /// The time of the decision in microseconds: `at` on the recording's monotonic clock, `realtime` since 1970.
    package let at: Int64
    package let realtime: Int64
    /// The number of the last line of the recording that was read before the decision.
    package let line: Int
    package let change: SimulatedChange
    package let reason: String
    package var difference: Difference
    /// Further details of the difference.
    package var note: String?
    /// The name of the recorded policy that gave the same advice; for ``Difference/missing``, of the recorded policy
    /// that gave the missing advice.
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
    /// Whether the simulated policy has given the same advice.
    var isMatched = false

    var isTaken: Bool { outcome == "taken" }
}
