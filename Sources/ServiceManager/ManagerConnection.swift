// SPDX-License-Identifier: Apache-2.0

import CSystemd
import Linux
import WireText

/// Why a request to systemd failed, as half a sentence.
public struct ServiceManagerError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The reason, as half a sentence.
    public let description: String

    /// Creates an error with a description.
    public init(_ description: String) { self.description = description }
}

/// A connection to systemd's private socket for a few requests: it needs no bus daemon, and is closed after use.
///
/// Each request waits for ``patience`` at most.
final class ManagerConnection {
    static let patience = Duration.seconds(2)
    private static let destination = "org.freedesktop.systemd1"
    private let bus: OpaquePointer

    init(isUser: Bool) throws(ServiceManagerError) {
        let place = isUser ? ThisProcess.environment("XDG_RUNTIME_DIR") : "/run"
        guard let place, File.exists(place + "/systemd/private") else {
            throw ServiceManagerError("its socket \(place ?? "$XDG_RUNTIME_DIR")/systemd/private is not there")
        }
        var made: OpaquePointer?
        try Self.check(sd_bus_new(&made), "connecting")
        guard let made else { throw ServiceManagerError("connecting: out of memory") }
        bus = made
        do throws(ServiceManagerError) {
            try Self.check(
                sd_bus_set_address(bus, "unix:path=" + Self.escaped(place) + "/systemd/private"),
                "connecting"
            )
            try Self.check(
                sd_bus_set_method_call_timeout(bus, UInt64(Self.patience.microseconds)),
                "connecting"
            )
            try Self.check(sd_bus_start(bus), "connecting")
        } catch {
            sd_bus_unref(made)
            throw error
        }
    }

    deinit { sd_bus_close_unref(bus) }

    // MARK: Questions

    /// A string property.
    func text(_ path: String, _ interface: String, _ name: String) throws(ServiceManagerError) -> String {
        var error = sd_bus_error()
        defer { sd_bus_error_free(&error) }
        var value: UnsafeMutablePointer<CChar>?
        let result = sd_bus_get_property_string(
            bus,
            Self.destination,
            path,
            Self.destination + "." + interface,
            name,
            &error,
            &value
        )
        try Self.check(result, name, error)
        guard let value else { return "" }
        defer { Memory.free(value) }
        return String(terminatedWire: value)
    }

    /// A 32-bit integer property.
    func number(_ path: String, _ interface: String, _ name: String) throws(ServiceManagerError) -> UInt32 {
        var error = sd_bus_error()
        defer { sd_bus_error_free(&error) }
        var value: UInt32 = 0
        let result = sd_bus_get_property_trivial(
            bus,
            Self.destination,
            path,
            Self.destination + "." + interface,
            name,
            &error,
            CChar(UInt8(ascii: "u")),
            &value
        )
        try Self.check(result, name, error)
        return value
    }

    /// A unit's `Job`: the object path; nil if there is none.
    func job(ofUnitAt path: String) throws(ServiceManagerError) -> String? {
        var error = sd_bus_error()
        defer { sd_bus_error_free(&error) }
        var reply: OpaquePointer?
        defer { sd_bus_message_unref(reply) }
        let result = sd_bus_get_property(
            bus,
            Self.destination,
            path,
            Self.destination + ".Unit",
            "Job",
            &error,
            &reply,
            "(uo)"
        )
        try Self.check(result, "Job", error)
        var number: UInt32 = 0
        var job: UnsafePointer<CChar>?
        try Self.check(sd_bus_message_enter_container(reply, Self.structure, "uo"), "Job")
        try Self.check(sd_bus_message_read_basic(reply, CChar(UInt8(ascii: "u")), &number), "Job")
        try Self.check(sd_bus_message_read_basic(reply, CChar(UInt8(ascii: "o")), &job), "Job")
        return number == 0 ? nil : job.map { String(terminatedWire: $0) }
    }

    /// Creates a transient unit that lives as long as it has processes (`StartTransientUnit`). Success means that the
    /// job was queued; the unit's state shows when the unit is active.
    func startTransient(_ unit: String, _ properties: [(name: String, value: Value)]) throws(ServiceManagerError) {
        var made: OpaquePointer?
        try Self.check(
            sd_bus_message_new_method_call(
                bus,
                &made,
                Self.destination,
                "/org/freedesktop/systemd1",
                Self.destination + ".Manager",
                "StartTransientUnit"
            ),
            unit
        )
        let message = MessageWriter(made)
        message.add(unit)
        message.add("fail")
        message.container(Self.array, "(sv)") {
            for (name, value) in properties {
                message.container(Self.structure, "sv") {
                    message.add(name)
                    message.add(value)
                }
            }
        }
        message.container(Self.array, "(sa(sv))") {}
        try Self.check(message.result, unit)
        var error = sd_bus_error()
        defer { sd_bus_error_free(&error) }
        var reply: OpaquePointer?
        defer { sd_bus_message_unref(reply) }
        try Self.check(sd_bus_call(bus, message.message, 0, &error, &reply), unit, error)
    }

    /// The object path of a unit.
    static func path(of unit: String) throws(ServiceManagerError) -> String {
        var path: UnsafeMutablePointer<CChar>?
        try check(sd_bus_path_encode("/org/freedesktop/systemd1/unit", unit, &path), unit)
        guard let path else { throw ServiceManagerError("\(unit): out of memory") }
        defer { Memory.free(path) }
        return String(terminatedWire: path)
    }

    // MARK: Parts

    static let array = CChar(UInt8(ascii: "a"))
    static let structure = CChar(UInt8(ascii: "r"))

    /// The value of a property.
    enum Value {
        case text(String)
        case texts([String])
        case boolean(Bool)
        case number(UInt64)
        case processes([UInt32])
    }

    private static func check(
        _ result: Int32,
        _ what: String,
        _ error: sd_bus_error = sd_bus_error()
    ) throws(ServiceManagerError) {
        guard result < 0 else { return }
        let said = error.message.map { String(terminatedWire: $0) }
        throw ServiceManagerError("\(what): \(said ?? Errno(rawValue: -result).description)")
    }

    /// Escapes a path for a D-Bus address: all except a few plain characters as hexadecimal codes.
    private static func escaped(_ path: String) -> String {
        var text = ""
        for byte in path.utf8 {
            let character = Character(UnicodeScalar(byte))
            let isPlain = byte < 128 && (character.isLetter || character.isNumber || "-_/.\\*".contains(character))
            let hexadecimal = String(byte, radix: 16)
            text += isPlain ? String(character) : "%" + (hexadecimal.count == 1 ? "0" : "") + hexadecimal
        }
        return text
    }
}

/// Appends values to a message. After the first error, skips all further values and keeps that error.
private final class MessageWriter {
    let message: OpaquePointer?
    private(set) var result: Int32 = 0

    /// Takes ownership of the message.
    init(_ message: OpaquePointer?) { self.message = message }

    deinit { sd_bus_message_unref(message) }

    private func step(_ body: () -> Int32) {
        if result >= 0 { result = min(0, body()) }
    }

    func container(_ kind: CChar, _ contents: String, _ body: () -> Void) {
        step { sd_bus_message_open_container(message, kind, contents) }
        body()
        step { sd_bus_message_close_container(message) }
    }

    func add(_ text: String) {
        step { text.withCString { sd_bus_message_append_basic(message, CChar(UInt8(ascii: "s")), $0) } }
    }

    private func add<Number: FixedWidthInteger>(_ number: Number, as type: Unicode.Scalar) {
        var number = number
        step { sd_bus_message_append_basic(message, CChar(UInt8(ascii: type)), &number) }
    }

    func add(_ value: ManagerConnection.Value) {
        let variant = CChar(UInt8(ascii: "v"))
        switch value {
        case .text(let text): container(variant, "s") { add(text) }
        case .texts(let texts):
            container(variant, "as") { container(ManagerConnection.array, "s") { texts.forEach { add($0) } } }
        case .boolean(let flag): container(variant, "b") { add(Int32(flag ? 1 : 0), as: "b") }
        case .number(let number): container(variant, "t") { add(number, as: "t") }
        case .processes(let pids):
            container(variant, "au") { container(ManagerConnection.array, "u") { pids.forEach { add($0, as: "u") } } }
        }
    }
}
