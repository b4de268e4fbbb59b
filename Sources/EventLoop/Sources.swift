// SPDX-License-Identifier: Apache-2.0

import CSystemd
public import Linux

/// The user data of sd-event callbacks. The source object owns it; during a call it stays alive even if the source
/// goes.
final class HandlerBox<Value> {
    private var handler: ((Value) -> Void)?

    init(_ handler: @escaping (Value) -> Void) { self.handler = handler }

    func run(_ value: Value) { handler?(value) }

    /// Releases the handler and what it captures.
    func clear() { handler = nil }
}

/// A watched descriptor. Keep a reference: the watch ends with the last one.
public final class IOSource {
    enum Backing {
        case table(WatchTable, UInt64)
        case source(OpaquePointer?, HandlerBox<IOEvents>)
    }

    private var backing: Backing?

    init(_ backing: Backing) { self.backing = backing }

    deinit { cancel() }

    /// Changes the watched events. With none, only hangup and error are reported.
    public func setEvents(_ events: IOEvents) {
        switch backing {
        case .table(let table, let tag): table.setEvents(tag, events)
        case .source(let source, _): sd_event_source_set_io_events(source, events.rawValue)
        case nil: break
        }
    }

    /// Ends the watch; may be called from its own handler. A second call does nothing.
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

/// A timer on CLOCK_MONOTONIC. Keep a reference: the timer ends with the last one.
public final class TimerSource {
    private let loop: EventLoop
    private var source: OpaquePointer?
    private let box: HandlerBox<Void>
    /// When it fires; nil while disarmed. In its handler it is still set, unless the handler re-arms or disarms it.
    public private(set) var deadline: Duration?

    init(loop: EventLoop, source: OpaquePointer?, box: HandlerBox<Void>) {
        self.loop = loop
        self.source = source
        self.box = box
    }

    deinit { cancel() }

    /// Fires once at that time of CLOCK_MONOTONIC, immediately if it has passed; replaces an earlier `arm`.
    public func arm(at time: Duration) {
        guard let source else { return }
        deadline = time
        // Rounded up, so that it never fires early.
        if let manual = loop.manual { return manual.arm(ObjectIdentifier(self), at: time) { [box] in box.run(()) } }
        let microseconds = time.microseconds
        let exact = Duration.microseconds(microseconds) >= time || microseconds == .max
        sd_event_source_set_time(source, UInt64(max(0, exact ? microseconds : microseconds + 1)))
        sd_event_source_set_enabled(source, CInt(SD_EVENT_ONESHOT))
    }

    /// Fires once after `delay`.
    public func arm(after delay: Duration) { arm(at: loop.now + delay) }

    /// The timer does not fire until it is armed again.
    public func disarm() {
        deadline = nil
        guard let source else { return }
        if let manual = loop.manual { return manual.disarm(ObjectIdentifier(self)) }
        sd_event_source_set_enabled(source, CInt(SD_EVENT_OFF))
    }

    /// Ends the timer; may be called from its own handler. A second call does nothing.
    public func cancel() {
        deadline = nil
        guard let source else { return }
        self.source = nil
        loop.manual?.disarm(ObjectIdentifier(self))
        sd_event_source_disable_unref(source)
        box.clear()
    }
}

/// A signal to this process as an event. Keep a reference: it ends with the last one.
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

    /// Ends the source; the signal stays blocked in this thread. A second call does nothing.
    public func cancel() {
        guard let source else { return }
        self.source = nil
        sd_event_source_disable_unref(source)
        box.clear()
    }
}
