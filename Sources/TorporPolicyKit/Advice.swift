// SPDX-License-Identifier: Apache-2.0

/// Takes what a policy advises. Each piece can have a reason in words for people, which `torpor events` shows: one line
/// of at most 200 bytes; more is cut off.
public struct Advice {
    /// Whether there is no room for more: what comes is lost.
    public private(set) var isFull = false
    private let reply: UnsafePointer<torpor_policy_reply>

    init(_ reply: UnsafePointer<torpor_policy_reply>) { self.reply = reply }

    /// The app should go to that state. From `not-running` it is launched, to `not-running` it is ended; `inactive` is
    /// refused, since apps only pass through it.
    public mutating func send(_ app: App, to state: State, because reason: String = "") {
        give(TORPOR_ADVISE_GOAL, app, value: state.rawValue, reason: reason)
    }

    /// The app may stay in the background for that long from now.
    public mutating func grant(_ app: App, _ time: Duration, because reason: String = "") {
        give(TORPOR_ADVISE_GRANT, app, time: time.microseconds, reason: reason)
    }

    /// To ``Event/eviction``: the app is that number; the lowest is ended first.
    public mutating func order(_ app: App, _ number: UInt32, because reason: String = "") {
        give(TORPOR_ADVISE_ORDER, app, value: number, reason: reason)
    }

    /// To ``Event/launch(_:_:)``: the app is launched now, as it is if nothing is advised.
    public mutating func admit(_ app: App, because reason: String = "") {
        give(TORPOR_ADVISE_ADMIT, app, reason: reason)
    }

    /// To ``Event/launch(_:_:)``: the question comes again after that time.
    public mutating func delay(_ app: App, by time: Duration, because reason: String = "") {
        give(TORPOR_ADVISE_DELAY, app, time: time.microseconds, reason: reason)
    }

    /// To ``Event/launch(_:_:)``: the app is not launched.
    public mutating func refuse(_ app: App, because reason: String = "") {
        give(TORPOR_ADVISE_REFUSE, app, reason: reason)
    }

    /// To ``Event/ended(_:_:restartsAfter:)``: the app is started again after that time.
    public mutating func restart(_ app: App, after time: Duration, because reason: String = "") {
        give(TORPOR_ADVISE_RESTART, app, time: time.microseconds, reason: reason)
    }

    /// To ``Event/ended(_:_:restartsAfter:)``: the app is marked failed and not started again.
    public mutating func giveUp(_ app: App, because reason: String = "") {
        give(TORPOR_ADVISE_GIVE_UP, app, reason: reason)
    }

    /// The app gets the share of the machine that a state has, whatever state it is in.
    public mutating func profile(_ app: App, of state: State, because reason: String = "") {
        give(TORPOR_ADVISE_PROFILE, app, value: state.rawValue, reason: reason)
    }

    /// ``Event/timer`` should come after that time, or earlier if earlier advice says so; after 100 ms at least.
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

    /// The reason as it may be: no line breaks, whole characters in 200 bytes.
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
