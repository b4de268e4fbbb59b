// SPDX-License-Identifier: Apache-2.0

/// Collects a policy's advice. A piece of advice can have a reason for users, which `torpor events` shows: one line
/// of at most 200 bytes. A longer reason is cut off.
public struct Advice {
    /// Whether the supervisor accepts no further advice. If so, advice is lost.
    public private(set) var isFull = false
    private let reply: UnsafePointer<torpor_policy_reply>

    init(_ reply: UnsafePointer<torpor_policy_reply>) { self.reply = reply }

    /// Advises that the app should go to `state`. An app in `not-running` is launched; an app that should go to
    /// `not-running` is terminated. `inactive` is refused, since apps only pass through that state.
    public mutating func send(_ app: App, to state: State, because reason: String = "") {
        give(TORPOR_ADVISE_GOAL, app, value: state.rawValue, reason: reason)
    }

    /// Advises that the app may stay in the background for `time` from now on.
    public mutating func grant(_ app: App, _ time: Duration, because reason: String = "") {
        give(TORPOR_ADVISE_GRANT, app, time: time.microseconds, reason: reason)
    }

    /// Answers ``Event/eviction``: apps with lower numbers are evicted first.
    public mutating func order(_ app: App, _ number: UInt32, because reason: String = "") {
        give(TORPOR_ADVISE_ORDER, app, value: number, reason: reason)
    }

    /// Answers ``Event/launch(_:_:)``: the app is launched now, which is also the default without advice.
    public mutating func admit(_ app: App, because reason: String = "") {
        give(TORPOR_ADVISE_ADMIT, app, reason: reason)
    }

    /// Answers ``Event/launch(_:_:)``: the policy is asked again after `time`.
    public mutating func delay(_ app: App, by time: Duration, because reason: String = "") {
        give(TORPOR_ADVISE_DELAY, app, time: time.microseconds, reason: reason)
    }

    /// Answers ``Event/launch(_:_:)``: the app is not launched.
    public mutating func refuse(_ app: App, because reason: String = "") {
        give(TORPOR_ADVISE_REFUSE, app, reason: reason)
    }

    /// Answers ``Event/ended(_:_:restartsAfter:)``: the app is restarted after `time`.
    public mutating func restart(_ app: App, after time: Duration, because reason: String = "") {
        give(TORPOR_ADVISE_RESTART, app, time: time.microseconds, reason: reason)
    }

    /// Answers ``Event/ended(_:_:restartsAfter:)``: the app is marked failed and not restarted.
    public mutating func giveUp(_ app: App, because reason: String = "") {
        give(TORPOR_ADVISE_GIVE_UP, app, reason: reason)
    }

    /// Advises that the app gets the resource profile of `state`, whatever state the app is in.
    public mutating func profile(_ app: App, of state: State, because reason: String = "") {
        give(TORPOR_ADVISE_PROFILE, app, value: state.rawValue, reason: reason)
    }

    /// Requests ``Event/timer`` after `time`, at least 100 ms. Of several requests, the earliest counts.
    public mutating func askAgain(after time: Duration, because reason: String = "") {
        give(TORPOR_ADVISE_ASK_AGAIN, nil, time: time.microseconds, reason: reason)
    }

    private mutating func give(
        _ kind: torpor_policy_advice_kind,
        _ app: App?,
        value: UInt32 = 0,
        time: Int64 = 0,
        reason: String
    ) {
        guard !isFull, reply.pointee.size >= MemoryLayout<torpor_policy_reply>.size else { return }
        var advice = torpor_policy_advice(
            size: UInt32(MemoryLayout<torpor_policy_advice>.size),
            kind: kind.rawValue,
            app: app?.place ?? UInt32.max,
            value: value,
            time: time,
            reason: nil
        )
        guard !reason.isEmpty else {
            isFull = reply.pointee.advise(reply, &advice) != 0
            return
        }
        Self.line(reason).withCString { text in
            advice.reason = text
            isFull = reply.pointee.advise(reply, &advice) != 0
        }
    }

    /// The reason in one line, cut off after the last character that fits into 200 bytes.
    private static func line(_ reason: String) -> String {
        var reason = reason
        let fits = reason.withUTF8 { $0.count <= reasonLimit && $0.allSatisfy { $0 >= 0x20 } }
        if fits { return reason }
        var text = ""
        for character in reason.unicodeScalars {
            let fit: Unicode.Scalar = character.value < 0x20 ? " " : character
            guard text.utf8.count + UTF8.width(fit) <= reasonLimit else { break }
            text.unicodeScalars.append(fit)
        }
        return text
    }

    private static let reasonLimit = 200
}
