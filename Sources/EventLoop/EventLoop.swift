// SPDX-License-Identifier: Apache-2.0

import CSystemd
public import Linux

/// The event loop of the process, over sd-event(3): descriptors, timers, signals and deferred work.
///
/// Each turn handles at most one batch of events, chosen by priority: first input from outside (descriptors, signals),
/// then timers, then `later` work. So a waiting datagram is read before a deadline is checked. A flood of events does
/// not starve other events: after 32 turns in a row with only descriptors, due timers come next. And within every 32
/// turns of any kind, watches of priority `last` and `later` work get a turn.
///
/// All I/O watches of normal priority share one epoll descriptor, and all watches of priority `last` share another.
/// With one sd-event source for each watch, a turn would handle a single one, and the cost would be quadratic if many
/// are ready. A turn handles all normal watches that are ready, but `last` watches only for about a millisecond.
///
/// The loop is not thread-safe, and cannot be used after fork(2): sd-event returns ECHILD there.
public final class EventLoop {
    /// The order in which ready events are handled, first to last.
    public enum Priority: Sendable {
        /// Handled before everything else.
        case first
        /// The default for descriptors.
        case normal
        /// For descriptors whose frequent events may be delayed by up to 4 ms, so that they are handled together.
        case gathered
        /// For a few descriptors for which each microsecond counts: each has a source of its own, handled after the
        /// normal descriptors and before timers.
        case answer
        /// The priority of timers.
        case timer
        /// Handled after timers, before `later` work.
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

    /// Called just before the loop waits for events.
    public var beforeSleep: (() -> Void)?
    /// Called just after the loop has waited for events.
    public var afterWake: (() -> Void)?
    /// Called before a turn that does not wait, because events are ready already. While a loop is busy, only this
    /// function is called, and ``beforeSleep`` is not.
    public var whileBusy: (() -> Void)?

    /// Whether an answer is expected within microseconds. Until it comes, the loop waits without calling
    /// ``beforeSleep`` and ``afterWake``, and calls ``whileBusy`` instead. The code that sets this needs a timer that
    /// wakes the loop within 0.1 s if no answer comes.
    public var wakesSoon = false

    /// Whether the next wait without a limit begins with ``Memory/releaseCode(waitingFor:)``, after which this is false
    /// again. Set by code that has just released memory: the rest of the turn brings back the pages of what it runs.
    public var releasesCode = false

    /// The sd-event loop, for sources that libsystemd itself adds.
    package let event: OpaquePointer
    /// The I/O watches of normal priority.
    let watches: WatchTable
    /// The I/O watches of priority `last`.
    let lastWatches: WatchTable
    private var gathered: GatheredWatches?
    private var watchSource: OpaquePointer?
    private var lastWatchSource: OpaquePointer?
    /// Turns since `last` watches and `later` work were last handled.
    private var turns = 0
    /// Turns in a row that handled descriptors of normal priority.
    private var watchTurns = 0
    private var turnsWhileAside = 0

    /// The clock that tests set; nil for the real one.
    let manual: ManualTime?

    private var deferred: [() -> Void] = []
    private var deferSource: OpaquePointer?
    private var isStopping = false

    /// Creates an event loop.
    ///
    /// - Parameter manual: a clock that tests set; nil for the real one.
    /// - Throws: `Errno` when descriptors or memory are exhausted.
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
    /// The priority of normal watches after 32 turns in a row that handled only normal watches: below timers, above
    /// `last`.
    private static let asidePriority: Int64 = 75
    private static let turnsInARow = 32
    /// Normal watches get their own priority back once they were handled at the low priority, or after this many turns.
    private static let mostTurnsAside = 256

    /// The current time on CLOCK_MONOTONIC, read at each call: not the time at which the turn began.
    public var now: Duration { manual?.now ?? Clock.monotonic() }

    // MARK: Turning

    /// Runs turns of the loop until `stop()` is called.
    public func run() throws(Errno) {
        isStopping = false
        while !isStopping { try turn(timeout: .max) }
    }

    /// Makes `run()` return after the current handler.
    public func stop() { isStopping = true }

    /// Runs one turn: waits at most `timeout` (nil for no limit) and handles one batch of events. Returns false if
    /// there was no event.
    @discardableResult
    public func runOnce(timeout: Duration?) throws(Errno) -> Bool {
        try turn(timeout: timeout.map { UInt64(max(0, $0.microseconds)) } ?? .max)
    }

    /// Runs one turn like sd_event_run(3), and calls the callbacks before and after the wait.
    @discardableResult
    private func turn(timeout: UInt64) throws(Errno) -> Bool {
        var result = try check(sd_event_prepare(event))
        if result == 0 {
            if wakesSoon { whileBusy?() } else { beforeSleep?() }
            let isAwake = wakesSoon
            if releasesCode, !isAwake, timeout == .max {
                releasesCode = false
                Memory.releaseCode(waitingFor: sd_event_get_fd(event))
            }
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

    /// Calls `work` once: when all events that are ready now were handled, or after 32 turns at the latest. Work that
    /// `work` itself adds is called one turn later.
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

    /// Watches a descriptor. The caller still owns it, and must cancel the watch before closing it.
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

    /// Creates a timer that is not armed. It fires once per `arm`.
    public func timer(_ handler: @escaping () -> Void) throws(Errno) -> TimerSource {
        let box = HandlerBox<Void>(handler)
        var source: OpaquePointer?
        // The accuracy is 1 µs, because 0 would mean 250 ms (sd_event_add_time(3)).
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

    /// Calls `handler` for a signal to this process. This thread blocks the signal from now on, even after the source
    /// is cancelled. Several signals of the same number may arrive as one.
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

/// How long watches of priority `last` may take in one turn.
private let lastPortion = Duration.milliseconds(1)

/// Throws for a negative result of sd-event, which is an errno value.
@discardableResult
func check(_ result: Int32) throws(Errno) -> Int32 {
    if result < 0 { throw Errno(rawValue: -result) }
    return result
}
