// SPDX-License-Identifier: Apache-2.0

/// A piece of advice as a policy gave it. Only the text is cleaned: kind, app, value and time are what the policy
/// wrote, valid or not.
public struct PolicyAdvice: Hashable, Sendable {
    /// The index of the event in the question that it answers; always valid.
    public var event: Int
    /// `TORPOR_ADVISE_…`, or any other number.
    public var kind: UInt32
    /// The app's place in the view; `TORPOR_NO_APP` if it is not about an app.
    public var app: UInt32
    /// Its meaning depends on the kind.
    public var value: UInt32
    /// Microseconds.
    public var time: Int64
    /// The reason for people: one line without control characters; may be empty.
    public var reason: String

    /// A piece of advice.
    public init(event: Int = 0, kind: UInt32, app: UInt32, value: UInt32 = 0, time: Int64 = 0, reason: String = "") {
        self.event = event
        self.kind = kind
        self.app = app
        self.value = value
        self.time = time
        self.reason = reason
    }
}

/// A policy's answer to a question about up to 64 events.
public struct PolicyAnswer: Hashable, Sendable {
    /// Bit n: the policy has decided event n of the question, so no other policy is asked about it.
    public var decided: UInt64
    /// The advice, in the order in which it was given.
    public var advice: [PolicyAdvice]

    /// The most pieces of advice for a question about that many events, with that many apps in the view; more are a
    /// flood.
    public static func limit(events: Int, apps: Int) -> Int { events * max(64, 4 * apps) }

    /// An answer.
    public init(decided: UInt64 = 0, advice: [PolicyAdvice] = []) {
        self.decided = decided
        self.advice = advice
    }

    /// Whether the policy has decided about that event.
    public func hasDecided(_ event: Int) -> Bool { decided >> UInt64(event) & 1 != 0 }
}
