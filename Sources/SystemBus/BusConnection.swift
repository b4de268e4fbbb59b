// SPDX-License-Identifier: Apache-2.0

import CSystemd
package import EventLoop
import Linux

/// Why a bus operation failed, as half a sentence.
package struct BusError: Error, CustomStringConvertible {
    /// The name of a D-Bus error, such as `org.freedesktop.DBus.Error.NameHasNoOwner`; nil for a local error.
    package let name: String?
    package let description: String

    package init(_ description: String, name: String? = nil) {
        self.description = description
        self.name = name
    }

    package init(_ what: String, _ result: Int32) {
        self.init("\(what): \(Errno(rawValue: -result))")
    }
}

/// A connection to a message bus (sd-bus(3)) whose descriptor and timeouts the event loop watches. Nothing blocks: the
/// connection waits for the socket of the bus by itself, and answers come later, on the event loop.
///
/// Releasing the last reference closes the connection. A connection that has reported its loss cannot be used any
/// longer.
package final class BusConnection {
    /// Called when the bus is gone, or violated the protocol.
    package var onLost: ((BusError) -> Void)?

    private let loop: EventLoop
    private let bus: OpaquePointer
    private var watch: IOSource?
    private var watched: (fd: Int32, events: Int32) = (-1, 0)
    private var timer: TimerSource?
    private var isLost = false

    /// How long to wait for an answer. logind may have to ask polkit before it answers, so this is long.
    private static let patience = Duration.seconds(20)
    /// The most messages that are handled per turn, so that a flood does not block the loop.
    private static let mostMessages = 32

    /// Starts to connect. `address`: a D-Bus address of a Unix socket, which need not exist yet.
    ///
    /// - Parameters:
    ///   - monitors: whether to become a monitor (``BusMonitor``).
    ///   - takesDescriptors: whether the bus passes on messages with descriptors. Every program on the bus can send such
    ///     messages, and to close what comes with them may block.
    package init(
        _ loop: EventLoop,
        address: String,
        monitors: Bool = false,
        takesDescriptors: Bool = false
    ) throws(BusError) {
        // For other kinds of addresses, sd-bus would resolve names or start a bus, and block.
        guard address.hasPrefix("unix:") else {
            throw BusError("\(address) is not the address of a Unix socket")
        }
        self.loop = loop
        var made: OpaquePointer?
        try Self.check(sd_bus_new(&made), "connecting")
        guard let made else { throw BusError("connecting: out of memory") }
        // From here on all properties are initialised: on an error, deinit releases the bus.
        bus = made
        try Self.check(sd_bus_set_address(bus, address), "its address \(address)")
        try Self.check(sd_bus_set_bus_client(bus, 1), "connecting")
        try Self.check(sd_bus_negotiate_fds(bus, takesDescriptors ? 1 : 0), "connecting")
        try Self.check(sd_bus_set_watch_bind(bus, 1), "connecting")
        if monitors { try Self.check(sd_bus_set_monitor(bus, 1), "connecting") }
        try Self.check(sd_bus_set_method_call_timeout(bus, UInt64(Self.patience.microseconds)), "connecting")
        try Self.check(sd_bus_start(bus), address)
        timer = try? loop.timer { [weak self] in self?.process() }
        arrange()
    }

    deinit {
        watch?.cancel()
        timer?.cancel()
        sd_bus_close_unref(bus)
    }

    /// Whether the connection is established.
    package var isReady: Bool { sd_bus_is_ready(bus) > 0 }

    // MARK: On the loop

    private func process() {
        guard !isLost else { return }
        // Until the connection is established, watch the descriptor again each time: libsystemd may replace it, perhaps
        // by one with the same number.
        if !isReady { unwatch() }
        var result: Int32 = 1
        var count = 0
        while result > 0, count < Self.mostMessages {
            result = sd_bus_process(bus, nil)
            count += 1
        }
        guard result >= 0, sd_bus_is_open(bus) > 0 else {
            return lose(result < 0 ? BusError("the bus", result) : BusError("the bus is gone"))
        }
        arrange()
    }

    private func lose(_ error: BusError) {
        isLost = true
        unwatch()
        timer?.disarm()
        // Copy the handler first, since it may release this object.
        let onLost = onLost
        self.onLost = nil
        onLost?(error)
    }

    private func unwatch() {
        watch?.cancel()
        watch = nil
        watched = (-1, 0)
    }

    /// Watches for the events that the connection waits for now.
    private func arrange() {
        guard !isLost else { return }
        let fd = sd_bus_get_fd(bus)
        let events = sd_bus_get_events(bus)
        guard fd >= 0, events >= 0 else { return later(BusError("the bus", min(fd, events))) }
        let interest = IOEvents(rawValue: UInt32(bitPattern: events))
        if watched.fd != fd || watch == nil {
            unwatch()
            do throws(Errno) {
                watch = try loop.watch(fd, interest) { [weak self] _ in self?.process() }
            } catch {
                return later(BusError("the bus cannot be watched: \(error)"))
            }
        } else if watched.events != events {
            watch?.setEvents(interest)
        }
        watched = (fd, events)
        var until = UInt64.max
        let result = sd_bus_get_timeout(bus, &until)
        if result > 0, until != .max {
            timer?.arm(at: .microseconds(Int64(clamping: until)))
        } else {
            timer?.disarm()
        }
    }

    /// Reports the loss later, since the caller may still be using this object.
    private func later(_ error: BusError) {
        loop.later { [weak self] in
            guard let self, !self.isLost else { return }
            self.lose(error)
        }
    }

    // MARK: Speaking

    /// Calls a method; the answer or error comes later, unless the handle is released before.
    ///
    /// - Parameter isPatient: whether to wait for the answer as long as the receiver is on the bus, instead of some
    ///   seconds.
    package func call(
        _ destination: String,
        _ path: String,
        _ interface: String,
        _ member: String,
        _ arguments: [BusArgument] = [],
        isPatient: Bool = false,
        _ answer: @escaping (Result<BusMessage, BusError>) -> Void
    ) -> BusSlot? {
        let slot = BusSlot { message in
            if let error = message.error { answer(.failure(error)) } else { answer(.success(message)) }
        }
        var message: OpaquePointer?
        defer { sd_bus_message_unref(message) }
        var result = sd_bus_message_new_method_call(bus, &message, destination, path, interface, member)
        // Do not let the bus start a service for this call.
        if result >= 0 { result = sd_bus_message_set_auto_start(message, 0) }
        for argument in arguments where result >= 0 { result = argument.append(to: message) }
        if result >= 0 {
            // sd-bus takes 0 as the default timeout of the connection.
            let timeout: UInt64 = isPatient ? .max : 0
            result = slot.fill { sd_bus_call_async(bus, &$0, message, BusSlot.callback, $1, timeout) }
        }
        guard result >= 0 else {
            later(BusError("\(interface).\(member)", result))
            return nil
        }
        arrange()
        return slot
    }

    /// Sends a signal to all clients that subscribe to it.
    package func emit(_ path: String, _ interface: String, _ member: String, _ arguments: [BusArgument]) {
        var message: OpaquePointer?
        defer { sd_bus_message_unref(message) }
        var result = sd_bus_message_new_signal(bus, &message, path, interface, member)
        for argument in arguments where result >= 0 { result = argument.append(to: message) }
        if result >= 0 { result = sd_bus_send(bus, message, nil) }
        guard result >= 0 else { return later(BusError("\(interface).\(member)", result)) }
        arrange()
    }

    /// Requests a property.
    package func get(
        _ destination: String,
        _ path: String,
        _ interface: String,
        _ property: String,
        _ answer: @escaping (Result<BusMessage, BusError>) -> Void
    ) -> BusSlot? {
        call(
            destination,
            path,
            "org.freedesktop.DBus.Properties",
            "Get",
            [.text(interface), .text(property)],
            answer
        )
    }

    /// Subscribes to signals until the returned handle is released. The handler must check the sender: any client may
    /// send a signal to this connection directly, bypassing match rules.
    package func subscribe(_ rule: String, _ handler: @escaping (BusMessage) -> Void) -> BusSlot? {
        let slot = BusSlot(handler)
        let result = slot.fill { sd_bus_add_match_async(bus, &$0, rule, BusSlot.callback, nil, $1) }
        guard result >= 0 else {
            later(BusError(rule, result))
            return nil
        }
        arrange()
        return slot
    }

    /// Calls `handler` for every message that this connection receives as a monitor, until the returned handle is
    /// released.
    func filter(_ handler: @escaping (BusMessage) -> Void) -> BusSlot? {
        let slot = BusSlot(handler)
        let result = slot.fill { sd_bus_add_filter(bus, &$0, BusSlot.lastCallback, $1) }
        guard result >= 0 else {
            later(BusError("monitoring", result))
            return nil
        }
        return slot
    }

    private static func check(_ result: Int32, _ what: String) throws(BusError) {
        if result < 0 { throw BusError(what, result) }
    }
}

/// A pending answer or a subscription; releasing it cancels it.
package final class BusSlot {
    private var slot: OpaquePointer?
    private let handler: (BusMessage) -> Void

    fileprivate init(_ handler: @escaping (BusMessage) -> Void) { self.handler = handler }

    deinit { sd_bus_slot_unref(slot) }

    fileprivate func fill(_ make: (inout OpaquePointer?, UnsafeMutableRawPointer) -> Int32) -> Int32 {
        make(&slot, Unmanaged.passUnretained(self).toOpaque())
    }

    fileprivate static let callback: sd_bus_message_handler_t = { message, slot, _ in
        guard let message, let slot else { return 0 }
        let me = Unmanaged<BusSlot>.fromOpaque(slot).takeUnretainedValue()
        me.handler(BusMessage(message))
        return 0
    }

    /// Marks every message as handled: sd-bus would answer unhandled calls, and a monitor must not send anything.
    fileprivate static let lastCallback: sd_bus_message_handler_t = { message, slot, _ in
        guard let message, let slot else { return 1 }
        Unmanaged<BusSlot>.fromOpaque(slot).takeUnretainedValue().handler(BusMessage(message))
        return 1
    }
}
