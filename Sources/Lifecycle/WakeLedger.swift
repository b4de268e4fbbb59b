// SPDX-License-Identifier: Apache-2.0

/// `wake_storm`: how often events may wake an app, and what happens if it is woken more often.
public struct WakeStormRules: Sendable, Hashable {
    /// More wakes than this within `window` are a storm; 0 for no limit.
    public var limit = 300
    /// The window of `limit`, in monotonic time.
    public var window: Duration = .seconds(300)
    /// After a storm, events do not wake the app for this long; they wait.
    public var hold: Duration = .seconds(60)
    /// Whether the app is also terminated, with the reason `wake-storm`.
    public var ends = false

    /// The rules of an app with an empty configuration.
    public init() {}
}

/// When events woke an app recently. Only events that resumed or launched the app count.
public struct WakeLedger: Sendable, Hashable {
    private var times: [Duration] = []
    /// Until when events do not wake it.
    public private(set) var heldUntil: Duration?
    /// How often in a row a policy undid what an event did, and when last.
    private var undoneCount = 0
    private var undoneAt = Duration.zero
    /// Whether it is held back because a policy undid an event.
    public private(set) var isHeldForPolicy = false

    /// What one more event may do.
    public enum Verdict: Sendable, Hashable {
        /// It may wake the app.
        case allowed
        /// It was woken so often within the window that events are held back from now on.
        case storm(count: Int, until: Duration)
        /// Events are held back.
        case heldBack(until: Duration)
    }

    /// An app that no event has woken.
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

    /// A policy terminated the app right after an event had launched it, or refused that launch. The event still
    /// waits and would launch the app again at once. So events are held back for a second, and twice as long each
    /// further time, up to `hold`. Returns until when.
    public mutating func undone(_ rules: WakeStormRules, now: Duration) -> Duration {
        let longest = max(rules.hold, Self.firstPause)
        // After a quiet time the pauses start again with the shortest.
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

    /// A user started the app: forgets everything.
    public mutating func forget() { self = WakeLedger() }
}
