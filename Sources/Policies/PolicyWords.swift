// SPDX-License-Identifier: Apache-2.0

internal import TorporPolicyABI

/// The words that recordings and the command line use for the numbers of `torpor_policy.h`. A number without a word,
/// from a newer supervisor or a faulty policy, is written in digits.
public enum PolicyWords {
    /// The words for `enum torpor_policy_event_kind`, in its order.
    public static let events = [
        "started", "apps", "state", "goal", "time-used", "launch", "ended", "timer", "pressure", "eviction",
    ]
    /// The words for `enum torpor_policy_state`, in its order.
    public static let states = ["not-running", "inactive", "active", "background", "suspended"]
    /// The words for `enum torpor_policy_launch`, which starts at 1.
    public static let launches = ["user", "boot", "restart", "dependency", "event", "policy"]
    /// The words for `TORPOR_PRESSURE_…`, in its order.
    public static let pressures = ["none", "warning", "critical"]
    /// The words for `enum torpor_policy_advice_kind`, which starts at 1.
    public static let advice = [
        "goal", "grant", "order", "admit", "delay", "refuse", "restart", "give-up", "profile", "ask-again",
    ]
    /// The words for `enum torpor_policy_reason`, in its order; empty for unused numbers.
    public static let reasons = [
        "none", "exit-success", "exit-failure", "signal", "core-dump", "launch-deadline", "background-deadline",
        "watchdog", "task-expired", "lock-while-suspending", "oom-kill", "unknown", "dependency-failed", "replaced",
        "memory-limit", "unresponsive", "", "wake-storm", "", "", "evicted", "stopped", "exits-on-suspend", "shutdown",
        "force-quit", "launch-failed", "permission-changed", "gpu-in-background", "protected-data-open",
        "no-purpose-string",
    ]

    /// The word for an event kind: `state` for 2.
    public static func event(_ kind: UInt32) -> String { word(events, kind) }
    /// The event kind that a word means: 2 for `state`.
    public static func event(named word: String) -> UInt32? { number(events, word) }
    /// The word for a state: `background` for 3.
    public static func state(_ state: UInt32) -> String { word(states, state) }
    /// The word for an advice kind: `goal` for 1.
    public static func advice(_ kind: UInt32) -> String { kind == 0 ? "0" : word(advice, kind - 1, kind) }
    /// The advice kind that a word means: 1 for `goal`.
    public static func advice(named word: String) -> UInt32? {
        guard let index = advice.firstIndex(of: word) else { return UInt32(word) }
        return UInt32(index) + 1
    }
    /// The word for a reason: `watchdog` for 7.
    public static func reason(_ reason: UInt32) -> String { word(reasons, reason) }
    /// The word for the reason of a launch: `boot` for 2.
    public static func launch(_ reason: UInt32) -> String { reason == 0 ? "0" : word(launches, reason - 1, reason) }
    /// The word for a memory pressure: `warning` for 1.
    public static func pressure(_ pressure: UInt32) -> String { word(pressures, pressure) }

    private static func word(_ words: [String], _ index: UInt32, _ number: UInt32? = nil) -> String {
        index < words.count && !words[Int(index)].isEmpty ? words[Int(index)] : String(number ?? index)
    }

    private static func number(_ words: [String], _ word: String) -> UInt32? {
        words.firstIndex(of: word).map(UInt32.init) ?? UInt32(word)
    }
}
