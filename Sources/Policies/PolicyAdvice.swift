// SPDX-License-Identifier: Apache-2.0

/// A piece of advice as a policy gave it. Nothing of it is believed but the text: kind, app, value and time are what
/// the policy wrote, whether they make sense or not.
public struct PolicyAdvice: Hashable, Sendable {
    /// Which of the question's events it answers, counted from 0; always one of them.
    public var event: Int
    /// `TORPOR_ADVISE_…`, or a number that has no meaning here.
    public var kind: UInt32
    /// The place of the app in the view, `TORPOR_NO_APP` where it concerns none.
    public var app: UInt32
    /// What the kind says that it is.
    public var value: UInt32
    /// Microseconds.
    public var time: Int64
    /// Why, in words for people: one line without control characters, empty for none.
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
    /// Bit n: the policy has decided about event n of the question; nobody else is asked about it.
    public var decided: UInt64
    /// What it advises, in the order in which it did.
    public var advice: [PolicyAdvice]

    /// How many pieces of advice a question about so many events may get, with so many apps in view: more is a flood.
    public static func limit(events: Int, apps: Int) -> Int { events * max(64, 4 * apps) }

    /// An answer.
    public init(decided: UInt64 = 0, advice: [PolicyAdvice] = []) {
        self.decided = decided
        self.advice = advice
    }

    /// Whether the policy has decided about that event.
    public func hasDecided(_ event: Int) -> Bool { decided >> UInt64(event) & 1 != 0 }
}
