// SPDX-License-Identifier: Apache-2.0

import CSystemd
public import Linux

/// What sd-event's callbacks point at. The source object keeps it; within a call it keeps itself.
final class HandlerBox<Value> {
    private var handler: ((Value) -> Void)?

    init(_ handler: @escaping (Value) -> Void) { self.handler = handler }

    func run(_ value: Value) { handler?(value) }

    /// Lets go of what the handler holds.
    func clear() { handler = nil }
}

/// A watched descriptor. Keep it: the watch ends with the last reference.
public final class IOSource {
    enum Backing {
        case table(WatchTable, UInt64)
        case source(OpaquePointer?, HandlerBox<IOEvents>)
    }

    private var backing: Backing?

    init(_ backing: Backing) { self.backing = backing }

    deinit { cancel() }

    /// Watches for other events from now on. With none, only hangup and error are reported.
    public func setEvents(_ events: IOEvents) {
        switch backing {
        case .table(let table, let tag): table.setEvents(tag, events)
        case .source(let source, _): sd_event_source_set_io_events(source, events.rawValue)
        case nil: break
        }
    }

    /// Ends the watch, also within its own handler. A second call does nothing.
    public func cancel() {
        guard let backing else { return }
        self.backing = nil
        switch backing {
        case .table(let table, let tag): table.remove(tag)
        case .source(let source, let box):
            sd_event_source_disable_unref(source)
            box.clear()
        }
    }
}

/// A timer on CLOCK_MONOTONIC. Keep it: it ends with the last reference.
public final class TimerSource {
    private let loop: EventLoop
    private var source: OpaquePointer?
    private let box: HandlerBox<Void>
    /// When it fires; nil while disarmed. Still set within its handler unless that re-arms or disarms it.
    public private(set) var deadline: Duration?

    init(loop: EventLoop, source: OpaquePointer?, box: HandlerBox<Void>) {
        self.loop = loop
        self.source = source
        self.box = box
    }

    deinit { cancel() }

    /// Fires once at that time of CLOCK_MONOTONIC, at once if it is past; replaces an earlier `arm`.
    public func arm(at time: Duration) {
        guard let source else { return }
        deadline = time
        // Rounded up: never before its time.
        if let manual = loop.manual { return manual.arm(ObjectIdentifier(self), at: time) { [box] in box.run(()) } }
        let microseconds = time.microseconds
        let exact = Duration.microseconds(microseconds) >= time || microseconds == .max
        sd_event_source_set_time(source, UInt64(max(0, exact ? microseconds : microseconds + 1)))
        sd_event_source_set_enabled(source, CInt(SD_EVENT_ONESHOT))
    }

    /// Fires once after `delay`.
    public func arm(after delay: Duration) { arm(at: loop.now + delay) }

    /// Fires no more until it is armed again.
    public func disarm() {
        deadline = nil
        guard let source else { return }
        if let manual = loop.manual { return manual.disarm(ObjectIdentifier(self)) }
        sd_event_source_set_enabled(source, CInt(SD_EVENT_OFF))
    }

    /// Ends the timer, also within its own handler. A second call does nothing.
    public func cancel() {
        deadline = nil
        guard let source else { return }
        self.source = nil
        loop.manual?.disarm(ObjectIdentifier(self))
        sd_event_source_disable_unref(source)
        box.clear()
    }
}

/// A signal to this process as an event. Keep it: it ends with the last reference.
public final class SignalSource {
    private let loop: EventLoop
    private var source: OpaquePointer?
    private let box: HandlerBox<Void>

    init(loop: EventLoop, source: OpaquePointer?, box: HandlerBox<Void>) {
        self.loop = loop
        self.source = source
        self.box = box
    }

    deinit { cancel() }

    /// Ends it; the signal stays blocked in this thread. A second call does nothing.
    public func cancel() {
        guard let source else { return }
        self.source = nil
        sd_event_source_disable_unref(source)
        box.clear()
    }
}
