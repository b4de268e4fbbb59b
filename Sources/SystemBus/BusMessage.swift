// SPDX-License-Identifier: Apache-2.0

import CSystemd
package import Linux
import WireText

/// An argument of a method call.
package enum BusArgument {
    case text(String)
    case number(UInt32)
    /// A signed number.
    case signed(Int32)
    case texts([String])
    /// A number of 16 bits, such as a port.
    case short(UInt16)
    /// A list of byte strings (`aay`).
    case byteStrings([[UInt8]])
    /// A dictionary of texts and variants (`a{sv}`).
    case variants([(name: String, value: BusVariant)])

    fileprivate static func code(_ character: Unicode.Scalar) -> CChar { CChar(UInt8(ascii: character)) }

    private static func append(_ texts: [String], to message: OpaquePointer?) -> Int32 {
        var result = sd_bus_message_open_container(message, code("a"), "s")
        for text in texts where result >= 0 {
            result = text.withCString { sd_bus_message_append_basic(message, code("s"), $0) }
        }
        return result < 0 ? result : sd_bus_message_close_container(message)
    }

    private static func append(_ strings: [[UInt8]], to message: OpaquePointer?) -> Int32 {
        var result = sd_bus_message_open_container(message, code("a"), "ay")
        for string in strings where result >= 0 {
            result = sd_bus_message_append_array(message, code("y"), string, string.count)
        }
        return result < 0 ? result : sd_bus_message_close_container(message)
    }

    private static func append(_ entries: [(name: String, value: BusVariant)], to message: OpaquePointer?) -> Int32 {
        var result = sd_bus_message_open_container(message, code("a"), "{sv}")
        for (name, value) in entries where result >= 0 {
            result = sd_bus_message_open_container(message, code("e"), "sv")
            if result >= 0 { result = name.withCString { sd_bus_message_append_basic(message, code("s"), $0) } }
            if result >= 0 { result = value.append(to: message) }
            if result >= 0 { result = sd_bus_message_close_container(message) }
        }
        return result < 0 ? result : sd_bus_message_close_container(message)
    }

    func append(to message: OpaquePointer?) -> Int32 {
        switch self {
        case .text(let text): text.withCString { sd_bus_message_append_basic(message, Self.code("s"), $0) }
        case .number(var number): sd_bus_message_append_basic(message, Self.code("u"), &number)
        case .signed(var number): sd_bus_message_append_basic(message, Self.code("i"), &number)
        case .texts(let texts): Self.append(texts, to: message)
        case .short(var number): sd_bus_message_append_basic(message, Self.code("q"), &number)
        case .byteStrings(let strings): Self.append(strings, to: message)
        case .variants(let entries): Self.append(entries, to: message)
        }
    }
}

/// A value in a variant.
package enum BusVariant: Hashable, Sendable {
    case text(String)
    case byte(UInt8)
    case boolean(Bool)
    /// A signed number of 64 bits.
    case integer(Int64)

    fileprivate func append(to message: OpaquePointer?) -> Int32 {
        func fill(_ type: Unicode.Scalar, _ value: UnsafeRawPointer) -> Int32 {
            let code = BusArgument.code(type)
            var result = sd_bus_message_open_container(message, BusArgument.code("v"), String(type))
            if result >= 0 { result = sd_bus_message_append_basic(message, code, value) }
            return result < 0 ? result : sd_bus_message_close_container(message)
        }
        switch self {
        case .text(let text): return text.withCString { fill("s", $0) }
        case .byte(var value): return fill("y", &value)
        case .boolean(let value):
            // sd-bus takes a boolean as a C int.
            var number: Int32 = value ? 1 : 0
            return fill("b", &number)
        case .integer(var value): return fill("x", &value)
        }
    }
}

/// A received message, readable once from front to back within its handler. A value that is missing or has another
/// type reads as nil.
package struct BusMessage {
    let message: OpaquePointer

    init(_ message: OpaquePointer) { self.message = message }

    /// The unique name of the sender, guaranteed by the bus.
    package var sender: String? { sd_bus_message_get_sender(message).map { String(terminatedWire: $0) } }
    /// The name of a signal.
    package var member: String? { sd_bus_message_get_member(message).map { String(terminatedWire: $0) } }

    /// The destination: a unique or well-known name.
    package var destination: String? { sd_bus_message_get_destination(message).map { String(terminatedWire: $0) } }
    /// The object path.
    package var object: String? { sd_bus_message_get_path(message).map { String(terminatedWire: $0) } }

    /// The error, if it is an error reply.
    package var error: BusError? {
        guard sd_bus_message_is_method_error(message, nil) > 0, let error = sd_bus_message_get_error(message) else {
            return nil
        }
        let name = error.pointee.name.map { String(terminatedWire: $0) }
        let text = error.pointee.message.map { String(terminatedWire: $0) }
        return BusError(text ?? name ?? "an error without a name", name: name)
    }

    // MARK: Reading

    private static func code(_ character: Unicode.Scalar) -> CChar { BusArgument.code(character) }

    package func text() -> String? { string("s") }

    package func path() -> String? { string("o") }

    private func string(_ type: Unicode.Scalar) -> String? {
        var value: UnsafePointer<CChar>?
        guard sd_bus_message_read_basic(message, Self.code(type), &value) > 0 else { return nil }
        return value.map { String(terminatedWire: $0) }
    }

    package func boolean() -> Bool? {
        var value: Int32 = 0
        guard sd_bus_message_read_basic(message, Self.code("b"), &value) > 0 else { return nil }
        return value != 0
    }

    package func number() -> UInt64? {
        var value: UInt64 = 0
        guard sd_bus_message_read_basic(message, Self.code("t"), &value) > 0 else { return nil }
        return value
    }

    package func smallNumber() -> UInt32? {
        var value: UInt32 = 0
        guard sd_bus_message_read_basic(message, Self.code("u"), &value) > 0 else { return nil }
        return value
    }

    /// A descriptor, duplicated for this process.
    package func descriptor() -> Descriptor? {
        var value: Int32 = -1
        guard sd_bus_message_read_basic(message, Self.code("h"), &value) > 0, value >= 0 else { return nil }
        return try? Descriptor.duplicate(value)
    }

    /// The content of a variant; nil if its type is not `contents`.
    package func variant<Value>(_ contents: String, _ read: (BusMessage) -> Value?) -> Value? {
        container("v", contents) { read(self) }
    }

    /// An id and an object path, read from a variant in which logind writes both; nil if there is none.
    package func reference() -> (id: String, path: String)? {
        variant("(so)") { message in
            message.container("r", "so") {
                guard let id = message.text(), let path = message.path(), !id.isEmpty else { return nil }
                return (id, path)
            }
        }
    }

    /// A user's number, read from a variant in which logind writes it beside the user's object path; nil if there is
    /// none.
    package func userNumber() -> UInt32? {
        variant("(uo)") { message in message.container("r", "uo") { message.smallNumber() } }
    }

    /// Whether a PropertiesChanged signal names a property, as changed or as invalidated. If the signal contains the
    /// property's value, and the value is a boolean, also returns the value.
    package func change(of property: String) -> (isNamed: Bool, value: Bool?) {
        guard text() != nil else { return (false, nil) }
        var found: (isNamed: Bool, value: Bool?) = (false, nil)
        container("a", "{sv}") {
            while !found.isNamed, next(of: property, into: &found) {}
            return ()
        }
        if found.isNamed { return found }
        container("a", "s") {
            while let name = text() { if name == property { found.isNamed = true } }
            return ()
        }
        return found
    }

    /// Reads one entry of the dictionary; false at the end.
    private func next(of property: String, into found: inout (isNamed: Bool, value: Bool?)) -> Bool {
        let isThere: Void? = container("e", "sv") {
            found.isNamed = text() == property
            if found.isNamed { found.value = variant("b") { $0.boolean() } }
            // Skip the value of another property.
            if found.value == nil { sd_bus_message_skip(message, "v") }
            return ()
        }
        return isThere != nil
    }

    @discardableResult
    private func container<Value>(_ kind: Unicode.Scalar, _ contents: String, _ body: () -> Value?) -> Value? {
        guard sd_bus_message_enter_container(message, Self.code(kind), contents) > 0 else { return nil }
        defer { sd_bus_message_exit_container(message) }
        return body()
    }
}
