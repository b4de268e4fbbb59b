// SPDX-License-Identifier: Apache-2.0

/// A piece of advice as a policy gave it. Only the text is checked and cleaned: kind, app, value and time may be
/// invalid.
public struct PolicyAdvice: Hashable, Sendable {
    /// The index, in the question, of the event that the advice answers; always valid.
    public var event: Int
    /// The kind of advice, `TORPOR_ADVISE_…`, or any other number.
    public var kind: UInt32
    /// The app's index in the view; `TORPOR_NO_APP` if the advice concerns no app.
    public var app: UInt32
    /// The value of the advice, whose meaning depends on the kind.
    public var value: UInt32
    /// The time of the advice in microseconds, whose meaning depends on the kind.
    public var time: Int64
    /// The policy's reason, for people: one line without control characters; may be empty.
    public var reason: String

    /// Creates a piece of advice from its parts.
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
    /// If bit n is set, the policy has decided event n of the question, and no other policy is asked about that
    /// event.
    public var decided: UInt64
    /// The policy's advice, in the order in which it was given.
    public var advice: [PolicyAdvice]

    /// The maximum number of pieces of advice in the answer to a question with `events` events, while the view has
    /// `apps` apps. A policy that gives more advice fails (``PolicyFailure/flooded(limit:)``).
    public static func limit(events: Int, apps: Int) -> Int { events * max(64, 4 * apps) }

    /// Creates an answer from its parts.
    public init(decided: UInt64 = 0, advice: [PolicyAdvice] = []) {
        self.decided = decided
        self.advice = advice
    }

    /// Whether the policy has decided event number `event` of the question.
    public func hasDecided(_ event: Int) -> Bool { decided >> UInt64(event) & 1 != 0 }
}
