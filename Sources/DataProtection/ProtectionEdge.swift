// SPDX-License-Identifier: Apache-2.0

/// The state machine that locks and unlocks the data of all apps with protected data together. It does no I/O: the
/// caller carries out the actions, and reports the results as events.
///
///     locked ──unlock──▶ opening ──opened──▶ unlocked ──lock──▶ warning ──answered, deadline──▶ closing ──closed──▶ locked
///                           ▲                   ▲                  │                            │   ▲
///                           │                   └────── unlock ────┘             busy, not late ▼   │ 1 s
///                           └───────────────── unlock ◀──────────────────────────────────── retrying
///
/// Only one run of torpor-protect is in progress at a time: a request that comes during a run is carried out after it.
/// Two rules always hold. Data counts as locked only after a complete run that left no folder open. A request to lock
/// is recorded at once, so that if torpord is killed, the next torpord locks the data.
public struct ProtectionEdge: Hashable, Sendable {
    /// The state that an earlier torpord has recorded.
    public enum Recorded: UInt32, Sendable, CaseIterable {
        /// No state applies, because the machine was booted since.
        case nothing
        case locked
        case unlocked
        /// Locking was in progress: apps were notified, or the folders were being closed.
        case locking
    }

    /// What happened.
    public enum Event: Hashable, Sendable {
        /// torpord has started, or the first app with protected data was added.
        case begun(Recorded)
        case lock
        /// Lock, but wait for apps at most this long: the machine is about to sleep and does not wait longer.
        case lockSoon(Duration)
        case unlock
        /// Every app that was notified of the lock has answered or need not answer.
        case answered
        /// The timer of ``Action/arm(_:)`` has fired.
        case timeout
        /// A run that opens folders has ended. The value says whether data counts as unlocked now; even if not, the run
        /// may have opened some folders.
        case opened(Bool)
        /// A run that closes folders has ended.
        case closed(Closed)
    }

    /// The result of locking protected folders.
    public enum Closed: Hashable, Sendable {
        /// All folders are closed, and no file is in use.
        case whole
        /// All folders are closed. Files are still in use, or it is not known whether any is.
        case busy
        /// A folder may still be open, or the kernel may still have a key.
        case failed
    }

    /// An action that the caller of ``handle(_:now:)`` must carry out.
    public enum Action: Hashable, Sendable {
        /// Persist this state for the next torpord.
        case record(Recorded)
        /// Take apps out of the foreground, and notify them of the lock. Report ``Event/answered`` when no answer is
        /// pending.
        case warn
        /// Set the timer for ``Event/timeout``. This replaces an earlier time.
        case arm(Duration)
        case disarm
        case open
        case close
        /// Data can be read: notify apps, remove the pictures that cover them, and launch the apps that wait for data.
        case announceUnlocked
        /// Locking has ended. `isBusy`: whether files are still in use.
        case announceLocked(isBusy: Bool)
        /// Folders could not be closed within ``retryTime``. Further retries follow.
        case announceFailure
        /// The folders stay closed, because no user has given their keys to the kernel.
        case stayLocked
    }

    enum Phase: Hashable, Sendable {
        case idle
        case locked
        case opening(Origin)
        case unlocked
        /// Apps were notified. `until`: the time until which torpord waits for their answers.
        case warning(until: Duration)
        case closing(Closing)
        case retrying(Closing)
    }

    /// The state of data before a run that opens folders.
    enum Origin: Hashable, Sendable {
        case locked
        /// Data was unlocked; the run opens folders whose keys were added since.
        case unlocked
        /// An earlier torpord had unlocked data, and apps use it. The run shows whether the kernel still has the keys.
        case takenOver
    }

    struct Closing: Hashable, Sendable {
        /// When retries end; nil before the first run is over.
        var until: Duration?
        /// Whether the folders are closed only because an unlock failed: it opened some folders before a key was found
        /// to be missing. False if a lock was requested.
        var isUndoing = false
        /// Whether ``Action/announceFailure`` was performed.
        var isOverdue = false
    }

    private(set) var phase = Phase.idle
    private var asked = Asked.nothing

    /// A request that came while torpor-protect was running. It is carried out after that run.
    private enum Asked: Hashable, Sendable {
        case nothing
        /// `by`: the latest time until which to wait for apps.
        case lock(by: Duration?)
        case unlock

        var isLock: Bool { if case .lock = self { true } else { false } }
    }

    /// For this long, an attempt to close the folders that has failed is repeated every ``retryInterval``.
    public static let retryTime = Duration.seconds(10)
    /// The time between two attempts to close the folders.
    public static let retryInterval = Duration.seconds(1)
    /// The interval of retries after ``retryTime`` is over.
    public static let slowInterval = Duration.seconds(10)

    /// How long to wait for the answers of apps.
    public var deadline = Duration.seconds(10)

    /// Creates a machine that has not received ``Event/begun(_:)``.
    public init() {}

    /// Whether data can be read and is not being locked.
    public var isUnlocked: Bool { phase == .unlocked || phase == .opening(.unlocked) && !asked.isLock }
    /// Whether data is locked, and no unlock is in progress.
    public var isLocked: Bool { phase == .locked }
    /// Whether ``Event/begun(_:)`` has come.
    public var hasBegun: Bool { phase != .idle }
    /// Whether apps were notified of the lock, and torpord waits for their answers.
    public var isWarning: Bool { if case .warning = phase { true } else { false } }
    /// The time until which torpord waits for apps that were notified of the lock; nil if none was.
    public var warnsUntil: Duration? { if case .warning(let until) = phase { until } else { nil } }
    /// Whether data is being locked, or will be as soon as a run is over.
    public var isLocking: Bool {
        switch phase {
        case .warning, .closing, .retrying: true
        case .opening: asked.isLock
        case .idle, .locked, .unlocked: false
        }
    }
    /// Whether a requested lock has failed so far.
    public var isOverdue: Bool {
        switch phase {
        case .closing(let closing), .retrying(let closing): closing.isOverdue
        default: false
        }
    }

    /// Handles an event, and returns the actions that follow, in order. Events that come too late have no effect.
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
        // Folders may be open, for example after a power failure, so close them.
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
            // Apps use the data already, so notify them of the lock first.
            phase = .unlocked
            return lock(by: time, now: now)
        // More keys may have been added during the run, so open the folders once more.
        case .unlock: return open([], origin)
        case .nothing:
            // The kernel lacks some keys, so data does not count as unlocked. But some folders may have been opened:
            // close them again.
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
