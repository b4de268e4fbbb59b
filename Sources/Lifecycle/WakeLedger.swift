// SPDX-License-Identifier: Apache-2.0

/// `wake_storm`: how often events may wake an app, and what happens if they wake it more often.
public struct WakeStormRules: Sendable, Hashable {
    /// More wakes than this within `window` are a storm; 0 means no limit.
    public var limit = 300
    /// The time within which wakes count towards `limit`, in monotonic time.
    public var window: Duration = .seconds(300)
    /// How long after a storm events do not wake the app.
    public var hold: Duration = .seconds(60)
    /// Whether torpord also terminates the app after a storm, with the reason `wake-storm`.
    public var ends = false

    /// The rules of an app with an empty configuration.
    public init() {}
}

/// Counts how often events have recently woken an app. An event counts only if it resumed or launched the app.
public struct WakeLedger: Sendable, Hashable {
    private var times: [Duration] = []
    /// Until this time, events do not wake the app; nil if they may.
    public private(set) var heldUntil: Duration?
    /// How many times in a row a policy has undone the effect of an event. `undoneAt` is the time of the last of them.
    private var undoneCount = 0
    private var undoneAt = Duration.zero
    /// Whether events are held back (may not wake the app) because a policy undid the effect of an earlier event.
    public private(set) var isHeldForPolicy = false

    /// Whether the next event may wake the app.
    public enum Verdict: Sendable, Hashable {
        /// The event may wake the app.
        case allowed
        /// The event may not wake the app: events have woken the app too often within the window, and are held back
        /// from now on.
        case storm(count: Int, until: Duration)
        /// The event may not wake the app, because events are still held back.
        case heldBack(until: Duration)
    }

    /// Creates the ledger of an app that no event has woken.
    public init() {}

    /// Decides whether an event may wake the app now; if so, the wake is counted.
    public mutating func wake(_ rules: WakeStormRules, now: Duration) -> Verdict {
        if let heldUntil {
            if now < heldUntil { return .heldBack(until: heldUntil) }
            self.heldUntil = nil
            if !isHeldForPolicy { times = [] }
            isHeldForPolicy = false
        }
        guard rules.limit > 0 else { return .allowed }
        times.removeAll { $0 + rules.window <= now }
        guard times.count < rules.limit else {
            let until = now + rules.hold
            heldUntil = until
            return .storm(count: times.count, until: until)
        }
        times.append(now)
        return .allowed
    }

    /// Holds events back, because a policy has terminated the app right after an event launched it, or has refused
    /// the launch for that event. The event is still queued and would launch the app again at once. The first pause
    /// is one second; each further pause is twice as long, up to `hold`. Returns the time until which events are held
    /// back.
    public mutating func undone(_ rules: WakeStormRules, now: Duration) -> Duration {
        let longest = max(rules.hold, Self.firstPause)
        // If no policy has undone an event for a while, start again with the shortest pause.
        if now - undoneAt > longest * 2 { undoneCount = 0 }
        let pause = min(Self.firstPause * (1 << min(undoneCount, 20)), longest)
        undoneCount += 1
        undoneAt = now
        let until = now + pause
        if heldUntil.map({ $0 < until }) ?? true {
            heldUntil = until
            isHeldForPolicy = true
        }
        return until
    }

    private static let firstPause = Duration.seconds(1)

    /// Resets all counts and stops holding events back, because a user started the app.
    public mutating func forget() { self = WakeLedger() }
}
