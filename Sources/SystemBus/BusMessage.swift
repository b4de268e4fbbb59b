// SPDX-License-Identifier: Apache-2.0

import CSystemd
package import Linux
import WireText

/// What a method is given.
package enum BusArgument {
    case text(String)
    case number(UInt32)
    case texts([String])

    fileprivate static func code(_ character: Unicode.Scalar) -> CChar { CChar(UInt8(ascii: character)) }

    private static func append(_ texts: [String], to message: OpaquePointer?) -> Int32 {
        var result = sd_bus_message_open_container(message, code("a"), "s")
        for text in texts where result >= 0 {
            result = text.withCString { sd_bus_message_append_basic(message, code("s"), $0) }
        }
        return result < 0 ? result : sd_bus_message_close_container(message)
    }

    func append(to message: OpaquePointer?) -> Int32 {
        switch self {
        case .text(let text): text.withCString { sd_bus_message_append_basic(message, Self.code("s"), $0) }
        case .number(var number): sd_bus_message_append_basic(message, Self.code("u"), &number)
        case .texts(let texts): Self.append(texts, to: message)
        }
    }
}

/// A message that came, to be read from front to back within the handler that it is given to. What is not there, or of
/// another type than it is asked for, reads as nil.
package struct BusMessage {
    let message: OpaquePointer

    init(_ message: OpaquePointer) { self.message = message }

    /// The unique name of whoever sent it, which the bus vouches for.
    package var sender: String? { sd_bus_message_get_sender(message).map { String(terminatedWire: $0) } }
    /// What a signal is called.
    package var member: String? { sd_bus_message_get_member(message).map { String(terminatedWire: $0) } }

    /// The unique name, or the name, of whoever it is sent to.
    package var destination: String? { sd_bus_message_get_destination(message).map { String(terminatedWire: $0) } }
    /// The object that it is of, or for.
    package var object: String? { sd_bus_message_get_path(message).map { String(terminatedWire: $0) } }

    /// What went wrong, where it is an error.
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

    /// A descriptor, of this process's own from now on.
    package func descriptor() -> Descriptor? {
        var value: Int32 = -1
        guard sd_bus_message_read_basic(message, Self.code("h"), &value) > 0, value >= 0 else { return nil }
        return try? Descriptor.duplicate(value)
    }

    /// What is in a variant, if it is of that type.
    package func variant<Value>(_ contents: String, _ read: (BusMessage) -> Value?) -> Value? {
        container("v", contents) { read(self) }
    }

    /// An identifier and the path of its object, as logind writes both, in a variant; nil when there is none.
    package func reference() -> (id: String, path: String)? {
        variant("(so)") { message in
            message.container("r", "so") {
                guard let id = message.text(), let path = message.path(), !id.isEmpty else { return nil }
                return (id, path)
            }
        }
    }

    /// Whether a PropertiesChanged names that property, as changed or as one to be asked for; its value then, if it is
    /// a boolean that stands there.
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

    /// Reads one entry of the dictionary; false when there is no more.
    private func next(of property: String, into found: inout (isNamed: Bool, value: Bool?)) -> Bool {
        let isThere: Void? = container("e", "sv") {
            found.isNamed = text() == property
            if found.isNamed { found.value = variant("b") { $0.boolean() } }
            // The whole value, where it is another's.
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
