// SPDX-License-Identifier: Apache-2.0

/// `wake_storm`: how often events may wake an app, and what becomes of one that is woken too often.
public struct WakeStormRules: Sendable, Hashable {
    /// More wakes than this within `window` are a storm; 0 for no limit.
    public var limit = 300
    /// The window of `limit`, in monotonic time.
    public var window: Duration = .seconds(300)
    /// For so long no event wakes it after that; what comes meanwhile waits.
    public var hold: Duration = .seconds(60)
    /// Whether it is ended as well, with the reason `wake-storm`.
    public var ends = false

    /// The rules of an app whose configuration says nothing.
    public init() {}
}

/// When events woke an app, in the last while: only what took it out of its sleep, or launched it, counts.
public struct WakeLedger: Sendable, Hashable {
    private var times: [Duration] = []
    /// Until when no event wakes it.
    public private(set) var heldUntil: Duration?
    /// How often in a row a policy undid what an event had done, and when last.
    private var undoneCount = 0
    private var undoneAt = Duration.zero
    /// Whether it is held back for that.
    public private(set) var isHeldForPolicy = false

    /// What follows from one more event.
    public enum Verdict: Sendable, Hashable {
        /// It may be woken.
        case allowed
        /// It was woken so often within the window that it is held back from now on.
        case storm(count: Int, until: Duration)
        /// It is held back.
        case heldBack(until: Duration)
    }

    /// An app that was never woken.
    public init() {}

    /// Whether one more wake is allowed now; one that is, counts.
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

    /// A policy ended the app right after an event had launched it, or did not let the event launch it: what the event was
    /// about still waits, and would launch it again at once. Events wait for a second, twice as long each time after that,
    /// up to `hold`. Returns until when.
    public mutating func undone(_ rules: WakeStormRules, now: Duration) -> Duration {
        let longest = max(rules.hold, Self.firstPause)
        // One that was left alone for so long begins anew.
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

    /// A person started the app: what was is forgotten.
    public mutating func forget() { self = WakeLedger() }
}
