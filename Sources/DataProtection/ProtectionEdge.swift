// SPDX-License-Identifier: Apache-2.0

/// The edges between locked and unlocked data, for all apps with protected data together. Pure: the shell performs the
/// actions, and tells what came of them.
///
///     locked ──unlock──▶ opening ──opened──▶ unlocked ──lock──▶ warning ──answered, deadline──▶ closing ──closed──▶ locked
///                           ▲                   ▲                  │                            │   ▲
///                           │                   └────── unlock ────┘             busy, not late ▼   │ 1 s
///                           └───────────────── unlock ◀──────────────────────────────────── retrying
///
/// Only one run of torpor-protect is under way at a time: a wish that comes during a run is carried out after it. Two
/// rules hold whatever happens. Data counts as locked only after a run that came to its end and left no folder open. A
/// wish to lock is recorded when it comes, so that a torpord that is killed then leaves it to the next one.
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
        /// Lock, and warn apps no longer than this: the machine is about to sleep, and does not wait for ever.
        case lockSoon(Duration)
        case unlock
        /// No app that was told is still awaited.
        case answered
        /// The timer of ``Action/arm(_:)`` has fired.
        case timeout
        /// A run that opens is over; whether data counts as unlocked by it. Otherwise it may still have opened folders.
        case opened(Bool)
        /// A run that closes is over.
        case closed(Closed)
    }

    /// What a run that closes has achieved.
    public enum Closed: Hashable, Sendable {
        /// All folders are closed, and no file is in use.
        case whole
        /// All folders are closed. Files are still in use, or it is not known whether any is.
        case busy
        /// A folder may still be open, or the kernel may still have its key.
        case failed
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
        /// Folders could not be closed in ``retryTime``, which is tried again and again.
        case announceFailure
        /// The folders stay closed: nobody has given the kernel their keys.
        case stayLocked
    }

    enum Phase: Hashable, Sendable {
        case idle
        case locked
        case opening(Origin)
        case unlocked
        /// `until`: when the time of apps is over.
        case warning(until: Duration)
        case closing(Closing)
        case retrying(Closing)
    }

    /// What data was before a run that opens.
    enum Origin: Hashable, Sendable {
        case locked
        /// A run for keys that were added while data was unlocked.
        case unlocked
        /// An earlier torpord had unlocked it, and apps use it; whether the kernel still has the keys shows this run.
        case takenOver
    }

    struct Closing: Hashable, Sendable {
        /// When retries end; nil before the first run is over.
        var until: Duration?
        /// Nobody has locked: what an unlock without keys has opened is closed again.
        var isUndoing = false
        /// Whether ``Action/announceFailure`` was performed.
        var isOverdue = false
    }

    private(set) var phase = Phase.idle
    private var asked = Asked.nothing

    /// What was asked for during a run.
    private enum Asked: Hashable, Sendable {
        case nothing
        /// `by`: when the time of apps is over at the latest.
        case lock(by: Duration?)
        case unlock

        var isLock: Bool { if case .lock = self { true } else { false } }
    }

    /// How long removal is retried.
    public static let retryTime = Duration.seconds(10)
    /// The time between two tries.
    public static let retryInterval = Duration.seconds(1)
    /// The time between two tries of what could not be locked in ``retryTime``.
    public static let slowInterval = Duration.seconds(10)

    /// The time that apps have to answer.
    public var deadline = Duration.seconds(10)

    /// Creates an edge that was not begun.
    public init() {}

    /// Whether data can be read, and nobody is locking it.
    public var isUnlocked: Bool { phase == .unlocked || phase == .opening(.unlocked) && !asked.isLock }
    /// Whether data is locked, and no edge is under way.
    public var isLocked: Bool { phase == .locked }
    /// Whether ``Event/begun(_:)`` has come.
    public var hasBegun: Bool { phase != .idle }
    /// Whether apps were told that data is about to go, and are awaited.
    public var isWarning: Bool { if case .warning = phase { true } else { false } }
    /// When the time of apps that were told is over; nil if none is told.
    public var warnsUntil: Duration? { if case .warning(let until) = phase { until } else { nil } }
    /// Whether data is being locked, or will be as soon as a run is over.
    public var isLocking: Bool {
        switch phase {
        case .warning, .closing, .retrying: true
        case .opening: asked.isLock
        case .idle, .locked, .unlocked: false
        }
    }
    /// Whether data should be locked, and could not be.
    public var isOverdue: Bool {
        switch phase {
        case .closing(let closing), .retrying(let closing): closing.isOverdue
        default: false
        }
    }

    /// Applies an event and returns what follows, in order. An event that comes too late changes nothing.
    public mutating func handle(_ event: Event, now: Duration) -> [Action] {
        switch event {
        case .begun(let recorded): begin(recorded)
        case .lock: lock(by: nil, now: now)
        case .lockSoon(let time): lock(by: now + time, now: now)
        case .unlock: unlock()
        case .answered: stopWaiting(event)
        case .timeout: isWarning ? stopWaiting(event) : retry()
        case .opened(let isUnlocked): opened(isUnlocked, now: now)
        case .closed(let outcome): closed(outcome, now: now)
        }
    }

    private mutating func begin(_ recorded: Recorded) -> [Action] {
        guard phase == .idle else { return [] }
        switch recorded {
        case .unlocked: return open([], .takenOver)
        // A machine that lost its power may have left doors open.
        case .nothing, .locked, .locking: return close()
        }
    }

    private mutating func close(isUndoing: Bool = false) -> [Action] {
        phase = .closing(Closing(isUndoing: isUndoing))
        return [.record(.locking), .close]
    }

    private mutating func open(_ before: [Action], _ origin: Origin) -> [Action] {
        phase = .opening(origin)
        return before + [.open]
    }

    private mutating func lock(by time: Duration?, now: Duration) -> [Action] {
        switch phase {
        case .unlocked:
            let until = time.map { min($0, now + deadline) } ?? now + deadline
            phase = .warning(until: until)
            return [.record(.locking), .warn, .arm(max(.zero, until - now))]
        case .warning(let until):
            guard let time, time < until else { break }
            phase = .warning(until: time)
            return [.arm(max(.zero, time - now))]
        case .opening:
            asked = .lock(by: time)
            return [.record(.locking)]
        case .closing: asked = .lock(by: time)
        case .retrying(var closing):
            closing.isUndoing = false
            phase = .retrying(closing)
        case .idle, .locked: break
        }
        return []
    }

    private mutating func unlock() -> [Action] {
        switch phase {
        case .locked: return open([], .locked)
        case .unlocked: return open([], .unlocked)
        case .warning:
            phase = .unlocked
            return [.disarm, .record(.unlocked), .announceUnlocked]
        case .retrying: return open([.disarm], .locked)
        case .opening(let origin):
            defer { asked = .unlock }
            guard asked.isLock else { break }
            return [.record(origin == .locked ? .locked : .unlocked)]
        case .closing: asked = .unlock
        case .idle: break
        }
        return []
    }

    private mutating func stopWaiting(_ event: Event) -> [Action] {
        guard isWarning else { return [] }
        phase = .closing(Closing())
        return event == .answered ? [.disarm, .close] : [.close]
    }

    private mutating func retry() -> [Action] {
        guard case .retrying(let closing) = phase else { return [] }
        phase = .closing(closing)
        return [.close]
    }

    private mutating func opened(_ isUnlocked: Bool, now: Duration) -> [Action] {
        guard case .opening(let origin) = phase else { return [] }
        let wish = asked
        asked = .nothing
        let isInUse = origin == .unlocked || origin == .takenOver && isUnlocked
        switch wish {
        case .lock(let time):
            guard isInUse else { return close() }
            // Apps that use their data already must hear of the lock.
            phase = .unlocked
            return lock(by: time, now: now)
        // Keys that were added during the run count too.
        case .unlock: return open([], origin)
        case .nothing:
            // An app's own folder may be open although the keys of others are missing: it must not stay so.
            guard isUnlocked || isInUse else { return close(isUndoing: true) }
            phase = .unlocked
            return [.record(.unlocked), .announceUnlocked]
        }
    }

    private mutating func closed(_ outcome: Closed, now: Duration) -> [Action] {
        guard case .closing(var closing) = phase else { return [] }
        let wish = asked
        asked = .nothing
        if wish == .unlock { return open([], .locked) }
        if wish.isLock { closing.isUndoing = false }
        let until = closing.until ?? now + Self.retryTime
        closing.until = until
        if outcome != .whole, now < until {
            phase = .retrying(closing)
            return [.arm(Self.retryInterval)]
        }
        if outcome == .failed {
            let wasOverdue = closing.isOverdue
            closing.isOverdue = true
            phase = .retrying(closing)
            return (wasOverdue ? [] : [.announceFailure]) + [.arm(Self.slowInterval)]
        }
        phase = .locked
        return [.record(.locked), closing.isUndoing ? .stayLocked : .announceLocked(isBusy: outcome == .busy)]
    }
}
