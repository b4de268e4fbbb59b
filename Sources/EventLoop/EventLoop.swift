// SPDX-License-Identifier: Apache-2.0

import CSystemd
public import Linux

/// The event loop that everything runs on: descriptors, timers, signals and deferred work, over sd-event(3).
///
/// Each turn handles at most one batch, chosen by priority: input from outside first (descriptors, signals), then
/// timers, then `later` work. So a waiting datagram is read before a deadline is judged. A flood of events does not
/// starve the rest: after 32 turns in a row of descriptors alone, the timers that are due come next; and in every 32
/// turns of any kind, watches of priority `last` and `later` work get a turn.
///
/// All I/O watches of normal priority share one epoll descriptor, and so do those of priority `last`. sd-event
/// handles one source per turn, which is quadratic if many are ready. A turn handles all normal watches that are
/// ready, but of the `last` ones only about a millisecond's worth.
///
/// Not thread-safe, and not for use across fork(2): sd-event returns ECHILD there.
public final class EventLoop {
    /// The order in which ready events are handled.
    public enum Priority: Sendable {
        /// Before everything else.
        case first
        /// The default for descriptors.
        case normal
        /// Descriptors whose frequent events may be delayed by up to 4 ms, to be handled together.
        case gathered
        /// A few descriptors for which microseconds count: after the other descriptors, before timers.
        case answer
        /// Timers.
        case timer
        /// After timers, before `later` work.
        case last

        var value: Int64 {
            switch self {
            case .first: -100
            case .normal, .gathered: 0
            case .answer: 25
            case .timer: 50
            case .last: 100
            }
        }
    }

    /// Runs just before the loop waits.
    public var beforeSleep: (() -> Void)?
    /// Runs just after the loop has waited.
    public var afterWake: (() -> Void)?
    /// Runs before a turn that does not wait: a busy loop may not wait for a long time.
    public var whileBusy: (() -> Void)?

    /// An answer is expected within microseconds: until it comes, the loop waits without ``beforeSleep`` and
    /// ``afterWake``, and runs ``whileBusy`` instead. Whoever sets it needs a timer that wakes the loop within 0.1 s
    /// if no answer comes.
    public var wakesSoon = false

    /// The sd-event loop, for sources that libsystemd adds itself.
    package let event: OpaquePointer
    /// The I/O watches of normal priority.
    let watches: WatchTable
    /// The I/O watches of priority `last`.
    let lastWatches: WatchTable
    private var gathered: GatheredWatches?
    private var watchSource: OpaquePointer?
    private var lastWatchSource: OpaquePointer?
    /// Turns since watches of priority `last` and `later` work last got one.
    private var turns = 0
    /// Turns in a row for descriptors of normal priority.
    private var watchTurns = 0
    private var turnsWhileAside = 0

    /// Replaces the clock in tests.
    let manual: ManualTime?

    private var deferred: [() -> Void] = []
    private var deferSource: OpaquePointer?
    private var isStopping = false

    /// Creates a loop.
    ///
    /// - Parameter manual: replaces the clock, in tests.
    /// - Throws: `Errno` without descriptors or memory.
    public init(_ manual: ManualTime? = nil) throws(Errno) {
        self.manual = manual
        var made: OpaquePointer?
        try check(sd_event_new(&made))
        guard let made else { throw .noMemory }
        event = made
        do throws(Errno) {
            watches = try WatchTable()
            lastWatches = try WatchTable()
        } catch {
            sd_event_unref(made)
            throw error
        }
        let me = Unmanaged.passUnretained(self).toOpaque()
        try check(
            sd_event_add_io(
                event,
                &watchSource,
                watches.poller.descriptor.raw,
                IOEvents.readable.rawValue,
                { _, _, _, loop in
                    Unmanaged<EventLoop>.fromOpaque(loop!).takeUnretainedValue().drainWatches()
                    return 0
                },
                me
            )
        )
        try check(sd_event_source_set_priority(watchSource, Priority.normal.value))
        try check(
            sd_event_add_io(
                event,
                &lastWatchSource,
                lastWatches.poller.descriptor.raw,
                IOEvents.readable.rawValue,
                { _, _, _, loop in
                    Unmanaged<EventLoop>.fromOpaque(loop!).takeUnretainedValue().lastWatches.drain(atMost: lastPortion)
                    return 0
                },
                me
            )
        )
        try check(sd_event_source_set_priority(lastWatchSource, Priority.last.value))
        try check(
            sd_event_add_defer(
                event,
                &deferSource,
                { _, loop in
                    Unmanaged<EventLoop>.fromOpaque(loop!).takeUnretainedValue().runDeferred()
                    return 0
                },
                me
            )
        )
        try check(sd_event_source_set_priority(deferSource, Self.deferPriority))
        try check(sd_event_source_set_enabled(deferSource, CInt(SD_EVENT_OFF)))
    }

    deinit {
        sd_event_source_disable_unref(watchSource)
        sd_event_source_disable_unref(lastWatchSource)
        sd_event_source_disable_unref(deferSource)
        sd_event_unref(event)
    }

    private static let deferPriority: Int64 = 200
    /// The lower priority of normal watches after 32 turns in a row: after timers, before `last`.
    private static let asidePriority: Int64 = 75
    private static let turnsInARow = 32
    /// How many turns timers may have before normal watches get theirs back.
    private static let mostTurnsAside = 256

    /// The current time, CLOCK_MONOTONIC: read at each call, not the time at which the turn began.
    public var now: Duration { manual?.now ?? Clock.monotonic() }

    // MARK: Turning

    /// Runs turns until `stop()`.
    public func run() throws(Errno) {
        isStopping = false
        while !isStopping { try turn(timeout: .max) }
    }

    /// Makes `run()` return after the handler that runs now.
    public func stop() { isStopping = true }

    /// One turn: waits at most `timeout` (nil: without limit) and handles one batch. Returns false if nothing
    /// happened.
    @discardableResult
    public func runOnce(timeout: Duration?) throws(Errno) -> Bool {
        try turn(timeout: timeout.map { UInt64(max(0, $0.microseconds)) } ?? .max)
    }

    /// Does what sd_event_run(3) does, with the hooks around the wait.
    @discardableResult
    private func turn(timeout: UInt64) throws(Errno) -> Bool {
        var result = try check(sd_event_prepare(event))
        if result == 0 {
            if wakesSoon { whileBusy?() } else { beforeSleep?() }
            let isAwake = wakesSoon
            let waited = sd_event_wait(event, timeout)
            if !isAwake { afterWake?() }
            result = try check(waited)
        } else {
            whileBusy?()
        }
        guard result > 0 else {
            watchTurns = 0
            return false
        }
        let before = watchTurns
        try check(sd_event_dispatch(event))
        if watchTurns == before { watchTurns = 0 }
        if turnsWhileAside > 0 {
            turnsWhileAside -= 1
            if turnsWhileAside == 0 { sd_event_source_set_priority(watchSource, Priority.normal.value) }
        }
        turns += 1
        if turns == Self.turnsInARow {
            turns = 0
            lastWatches.drain(atMost: lastPortion)
            runDeferred()
        }
        return true
    }

    private func drainWatches() {
        if turnsWhileAside > 0 {
            turnsWhileAside = 0
            watchTurns = 0
            sd_event_source_set_priority(watchSource, Priority.normal.value)
        }
        watches.drain()
        watchTurns += 1
        if watchTurns >= Self.turnsInARow {
            watchTurns = 0
            turnsWhileAside = Self.mostTurnsAside
            sd_event_source_set_priority(watchSource, Self.asidePriority)
        }
    }

    // MARK: Deferred work

    /// Runs `work` once, after everything that is ready. Work added by `work` runs one turn later.
    public func later(_ work: @escaping () -> Void) {
        deferred.append(work)
        if deferred.count == 1 { sd_event_source_set_enabled(deferSource, CInt(SD_EVENT_ONESHOT)) }
    }

    private func runDeferred() {
        let work = deferred
        deferred = []
        for item in work { item() }
    }

    // MARK: Sources

    private func gatheredTable() throws(Errno) -> WatchTable {
        if let gathered { return gathered.table }
        let made = try GatheredWatches(self)
        gathered = made
        return made.table
    }

    /// Watches a descriptor, which stays the caller's; cancel the watch before closing it.
    ///
    /// - Throws: EPERM for regular files, EEXIST if the descriptor is watched already.
    public func watch(
        _ fd: Int32,
        _ events: IOEvents,
        priority: Priority = .normal,
        _ handler: @escaping (IOEvents) -> Void
    ) throws(Errno) -> IOSource {
        let table: WatchTable? =
            switch priority {
            case .normal: watches
            case .last: lastWatches
            case .gathered: try gatheredTable()
            case .first, .answer, .timer: nil
            }
        if let table { return IOSource(.table(table, try table.add(fd, events, handler))) }
        let box = HandlerBox(handler)
        var source: OpaquePointer?
        try check(
            sd_event_add_io(
                event,
                &source,
                fd,
                events.rawValue,
                { _, _, revents, box in
                    Unmanaged<HandlerBox<IOEvents>>.fromOpaque(box!).takeUnretainedValue().run(
                        IOEvents(rawValue: revents)
                    )
                    return 0
                },
                Unmanaged.passUnretained(box).toOpaque()
            )
        )
        sd_event_source_set_priority(source, priority.value)
        return IOSource(.source(source, box))
    }

    /// A timer, disarmed at first; it fires once per `arm`.
    public func timer(_ handler: @escaping () -> Void) throws(Errno) -> TimerSource {
        let box = HandlerBox<Void>(handler)
        var source: OpaquePointer?
        // An accuracy of 0 would mean 250 ms (sd_event_add_time(3)).
        try check(
            sd_event_add_time(
                event,
                &source,
                Int32(1),
                .max,
                1,
                { _, _, box in
                    Unmanaged<HandlerBox<Void>>.fromOpaque(box!).takeUnretainedValue().run(())
                    return 0
                },
                Unmanaged.passUnretained(box).toOpaque()
            )
        )
        sd_event_source_set_enabled(source, CInt(SD_EVENT_OFF))
        sd_event_source_set_priority(source, Priority.timer.value)
        return TimerSource(loop: self, source: source, box: box)
    }

    /// Calls `handler` for a signal to this process. The signal is blocked in this thread from now on, even after the
    /// source is cancelled. Several signals of one kind may arrive as one.
    public func signal(_ number: Int32, _ handler: @escaping () -> Void) throws(Errno) -> SignalSource {
        try Signal.block(number)
        let box = HandlerBox<Void>(handler)
        var source: OpaquePointer?
        try check(
            sd_event_add_signal(
                event,
                &source,
                number,
                { _, _, box in
                    Unmanaged<HandlerBox<Void>>.fromOpaque(box!).takeUnretainedValue().run(())
                    return 0
                },
                Unmanaged.passUnretained(box).toOpaque()
            )
        )
        sd_event_source_set_priority(source, Priority.first.value)
        return SignalSource(loop: self, source: source, box: box)
    }
}

/// How long watches of priority `last` may use a turn.
private let lastPortion = Duration.milliseconds(1)

/// Negative results of sd-event are errno values.
@discardableResult
func check(_ result: Int32) throws(Errno) -> Int32 {
    if result < 0 { throw Errno(rawValue: -result) }
    return result
}
