// SPDX-License-Identifier: Apache-2.0

import WireText

/// Limits how many messages are logged: each message at most once per ``interval``, and at most ``most`` different ones
/// per interval, since names in them may come from outside.
struct LogThrottle: Sendable {
    /// What to log.
    enum Verdict: Sendable, Hashable {
        /// Log the message, and how many times it was left out before.
        case message(left: Int)
        /// Log first how many other messages were left out in the last interval, then this message.
        case others(Int, left: Int)
        case nothing
    }

    private struct Repeated: Sendable {
        var saidAt: Duration
        var left = 0
    }

    /// The shortest time between two equal messages, and the interval in which different messages are counted.
    static let interval = Duration.seconds(30)
    /// The most messages in an interval.
    static let most = 50
    /// The most kinds of message that are remembered.
    private static let known = 1000

    private var repeated: [WireText: Repeated] = [:]
    private var beganAt: Duration?
    private var count = 0
    private var others = 0

    /// Decides about a message of the kind `what` at this time (CLOCK_MONOTONIC).
    mutating func take(_ what: String, at now: Duration) -> Verdict {
        let what = WireText(what)
        if repeated.count > Self.known { repeated = [:] }
        if let before = repeated[what], now - before.saidAt < Self.interval {
            repeated[what]?.left += 1
            return .nothing
        }
        if beganAt.map({ now - $0 >= Self.interval }) ?? true {
            beganAt = now
            count = 0
        }
        guard count < Self.most else {
            others += 1
            return .nothing
        }
        count += 1
        let left = repeated[what]?.left ?? 0
        repeated[what] = Repeated(saidAt: now)
        guard others > 0 else { return .message(left: left) }
        defer { others = 0 }
        return .others(others, left: left)
    }
}
