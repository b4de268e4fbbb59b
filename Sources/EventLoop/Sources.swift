// SPDX-License-Identifier: Apache-2.0

import CSystemd
public import Linux

/// The handler of an sd-event source, in a box that the source object owns. During a call the handler stays alive,
/// even if the source object is released.
final class HandlerBox<Value> {
    private var handler: ((Value) -> Void)?

    init(_ handler: @escaping (Value) -> Void) { self.handler = handler }

    func run(_ value: Value) { handler?(value) }

    /// Releases the handler and everything that it captures.
    func clear() { handler = nil }
}

/// A watched descriptor. The watch ends when the last reference to this object is released.
public final class IOSource {
    enum Backing {
        case table(WatchTable, UInt64)
        case source(OpaquePointer?, HandlerBox<IOEvents>)
    }

    private var backing: Backing?

    init(_ backing: Backing) { self.backing = backing }

    deinit { cancel() }

    /// Changes the events to watch for. If empty, only hangups and errors are reported.
    public func setEvents(_ events: IOEvents) {
        switch backing {
        case .table(let table, let tag): table.setEvents(tag, events)
        case .source(let source, _): sd_event_source_set_io_events(source, events.rawValue)
        case nil: break
        }
    }

    /// Ends the watch. May be called from the watch's own handler; a second call does nothing.
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

/// A timer on CLOCK_MONOTONIC. The timer ends when the last reference to this object is released.
public final class TimerSource {
    private let loop: EventLoop
    private var source: OpaquePointer?
    private let box: HandlerBox<Void>
    /// When the timer fires; nil while it is disarmed. Within its handler, this is still the old deadline until the
    /// handler re-arms or disarms the timer.
    public private(set) var deadline: Duration?

    init(loop: EventLoop, source: OpaquePointer?, box: HandlerBox<Void>) {
        self.loop = loop
        self.source = source
        self.box = box
    }

    deinit { cancel() }

    /// Fires the timer once at this time of CLOCK_MONOTONIC, or at once if that time has passed. Replaces an earlier
    /// `arm`.
    public func arm(at time: Duration) {
        guard let source else { return }
        deadline = time
        // Rounded up to microseconds, so that the timer never fires early.
        if let manual = loop.manual { return manual.arm(ObjectIdentifier(self), at: time) { [box] in box.run(()) } }
        let microseconds = time.microseconds
        let exact = Duration.microseconds(microseconds) >= time || microseconds == .max
        sd_event_source_set_time(source, UInt64(max(0, exact ? microseconds : microseconds + 1)))
        sd_event_source_set_enabled(source, CInt(SD_EVENT_ONESHOT))
    }

    /// Fires the timer once after `delay`. Replaces an earlier `arm`.
    public func arm(after delay: Duration) { arm(at: loop.now + delay) }

    /// Prevents the timer from firing until it is armed again.
    public func disarm() {
        deadline = nil
        guard let source else { return }
        if let manual = loop.manual { return manual.disarm(ObjectIdentifier(self)) }
        sd_event_source_set_enabled(source, CInt(SD_EVENT_OFF))
    }

    /// Ends the timer. May be called from the timer's own handler; a second call does nothing.
    public func cancel() {
        deadline = nil
        guard let source else { return }
        self.source = nil
        loop.manual?.disarm(ObjectIdentifier(self))
        sd_event_source_disable_unref(source)
        box.clear()
    }
}

/// Delivers a signal to this process as an event, until the last reference to this object is released.
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

    /// Ends the source. The signal stays blocked in this thread. A second call does nothing.
    public func cancel() {
        guard let source else { return }
        self.source = nil
        sd_event_source_disable_unref(source)
        box.clear()
    }
}
