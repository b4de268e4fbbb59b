// SPDX-License-Identifier: Apache-2.0

/// The edges between locked and unlocked data, for all apps with protected data together. Pure: the shell performs the
/// actions, and tells what came of them.
///
///     locked ──unlock──▶ opening ──opened──▶ unlocked ──lock──▶ warning ──answered, deadline──▶ closing ──closed──▶ locked
///                           ▲                   ▲                  │                            │   ▲
///                           │                   └────── unlock ────┘             busy, not late ▼   │ 1 s
///                           └───────────────── unlock ◀──────────────────────────────────── retrying
///
/// Only one run of torpor-protect is under way at a time: a wish that comes during a run is carried out after it.
public struct ProtectionEdge: Hashable, Sendable {
    /// What an earlier torpord wrote down.
    public enum Recorded: UInt32, Sendable, CaseIterable {
        /// Nothing: the machine was booted since.
        case nothing
        case locked
        case unlocked
        /// It was locking: apps were told, or the folders were being closed.
        case locking
    }

    /// What happened.
    public enum Event: Hashable, Sendable {
        /// torpord has started, or the first app with protected data was added.
        case begun(Recorded)
        case lock
        case unlock
        /// No app that was told is still awaited.
        case answered
        /// The timer of ``Action/arm(_:)`` has fired.
        case timeout
        /// A run that opens is over; whether it opened any folder, or there was none.
        case opened(Bool)
        /// A run that closes is over; whether files are still in use, or it did not come to its end.
        case closed(isBusy: Bool)
    }

    /// What the shell does.
    public enum Action: Hashable, Sendable {
        /// Write down for the next torpord.
        case record(Recorded)
        /// Take apps out of the foreground, tell them, and report ``Event/answered`` when none is awaited.
        case warn
        /// Call ``Event/timeout`` after this time, and no earlier one.
        case arm(Duration)
        case disarm
        case open
        case close
        /// Data can be read: tell apps, uncover and launch them.
        case announceUnlocked
        /// The lock is over; whether files are still in use.
        case announceLocked(isBusy: Bool)
        /// The folders stay closed: nobody has given the kernel their keys.
        case stayLocked
    }

    enum Phase: Hashable, Sendable {
        case idle
        case locked
        /// `wasUnlocked`: a run for keys that were added while data was unlocked.
        case opening(wasUnlocked: Bool)
        case unlocked
        case warning
        /// `until`: when retries end; nil before the first run is over.
        case closing(until: Duration?)
        case retrying(until: Duration)
    }

    private(set) var phase = Phase.idle
    private var asked = Asked.nothing

    /// What was asked for during a run.
    private enum Asked: Hashable, Sendable { case nothing, lock, unlock }

    /// How long removal is retried.
    public static let retryTime = Duration.seconds(10)
    /// The time between two tries.
    public static let retryInterval = Duration.seconds(1)

    /// The time that apps have to answer.
    public var deadline = Duration.seconds(10)

    /// Creates an edge that was not begun.
    public init() {}

    /// Whether data can be read, and nobody is locking it.
    public var isUnlocked: Bool { phase == .unlocked || phase == .opening(wasUnlocked: true) }
    /// Whether data is locked, and no edge is under way.
    public var isLocked: Bool { phase == .locked }
    /// Whether ``Event/begun(_:)`` has come.
    public var hasBegun: Bool { phase != .idle }
    /// Whether apps were told that data is about to go, and are awaited.
    public var isWarning: Bool { phase == .warning }
    /// Whether data is being locked.
    public var isLocking: Bool {
        switch phase {
        case .warning, .closing, .retrying: true
        case .idle, .locked, .opening, .unlocked: false
        }
    }

    /// Applies an event and returns what follows, in order. An event that comes too late changes nothing.
    public mutating func handle(_ event: Event, now: Duration) -> [Action] {
        switch event {
        case .begun(let recorded): begin(recorded)
        case .lock: lock(now: now)
        case .unlock: unlock()
        case .answered: stopWaiting(event)
        case .timeout: phase == .warning ? stopWaiting(event) : retry()
        case .opened(let any): opened(any, now: now)
        case .closed(let isBusy): closed(isBusy, now: now)
        }
    }

    private mutating func begin(_ recorded: Recorded) -> [Action] {
        guard phase == .idle else { return [] }
        switch recorded {
        case .unlocked:
            phase = .opening(wasUnlocked: false)
            return [.open]
        // A machine that lost its power may have left doors open.
        case .nothing, .locked, .locking: return close([])
        }
    }

    private mutating func close(_ before: [Action]) -> [Action] {
        phase = .closing(until: nil)
        return before + [.record(.locking), .close]
    }

    private mutating func open(_ before: [Action], wasUnlocked: Bool = false) -> [Action] {
        phase = .opening(wasUnlocked: wasUnlocked)
        return before + [.open]
    }

    private mutating func lock(now: Duration) -> [Action] {
        switch phase {
        case .unlocked:
            phase = .warning
            return [.record(.locking), .warn, .arm(deadline)]
        case .opening, .closing: asked = .lock
        case .idle, .locked, .warning, .retrying: break
        }
        return []
    }

    private mutating func unlock() -> [Action] {
        switch phase {
        case .locked: return open([])
        case .unlocked: return open([], wasUnlocked: true)
        case .warning:
            phase = .unlocked
            return [.disarm, .record(.unlocked), .announceUnlocked]
        case .retrying: return open([.disarm])
        case .opening, .closing: asked = .unlock
        case .idle: break
        }
        return []
    }

    private mutating func stopWaiting(_ event: Event) -> [Action] {
        guard phase == .warning else { return [] }
        phase = .closing(until: nil)
        return event == .answered ? [.disarm, .close] : [.close]
    }

    private mutating func retry() -> [Action] {
        guard case .retrying(let until) = phase else { return [] }
        phase = .closing(until: until)
        return [.close]
    }

    private mutating func opened(_ any: Bool, now: Duration) -> [Action] {
        guard case .opening(let wasUnlocked) = phase else { return [] }
        defer { asked = .nothing }
        if asked == .lock {
            guard wasUnlocked else { return close([]) }
            // Apps that use their data already must hear of it.
            phase = .unlocked
            return lock(now: now)
        }
        // Keys that were added during the run count too.
        if asked == .unlock { return open([], wasUnlocked: wasUnlocked) }
        guard any || wasUnlocked else {
            phase = .locked
            return [.record(.locked), .stayLocked]
        }
        phase = .unlocked
        return [.record(.unlocked), .announceUnlocked]
    }

    private mutating func closed(_ isBusy: Bool, now: Duration) -> [Action] {
        guard case .closing(let known) = phase else { return [] }
        defer { asked = .nothing }
        if asked == .unlock { return open([]) }
        let until = known ?? now + Self.retryTime
        if isBusy, now < until {
            phase = .retrying(until: until)
            return [.arm(Self.retryInterval)]
        }
        phase = .locked
        return [.record(.locked), .announceLocked(isBusy: isBusy)]
    }
}
