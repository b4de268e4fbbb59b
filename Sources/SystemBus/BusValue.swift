// SPDX-License-Identifier: Apache-2.0

import CSystemd
import WireText

/// Any D-Bus value, read completely (D-Bus Specification, "Type System").
package enum BusValue: Sendable, Hashable {
    /// A string, signature or object path.
    case text(String)
    /// A boolean.
    case boolean(Bool)
    /// An integer of any type, including a byte; clamped to Int64.
    case integer(Int64)
    /// A floating-point number.
    case double(Double)
    /// An array of bytes.
    case bytes([UInt8])
    /// Any other array, or a structure.
    case list([BusValue])
    /// A dictionary whose keys are strings; with other keys it is empty.
    case dictionary([String: BusValue])
    /// A descriptor, which is skipped.
    case descriptor

    package var text: String? { if case .text(let value) = self { value } else { nil } }
    package var boolean: Bool? { if case .boolean(let value) = self { value } else { nil } }
    package var bytes: [UInt8]? { if case .bytes(let value) = self { value } else { nil } }
    package var list: [BusValue]? { if case .list(let value) = self { value } else { nil } }
    package var dictionary: [String: BusValue]? { if case .dictionary(let value) = self { value } else { nil } }
}

extension BusMessage {
    /// The remaining values, up to the first invalid one. The bus limits their nesting.
    package func values() -> [BusValue] {
        var values: [BusValue] = []
        while let value = value() { values.append(value) }
        return values
    }

    private func value() -> BusValue? {
        var type: CChar = 0
        var contents: UnsafePointer<CChar>?
        guard sd_bus_message_peek_type(message, &type, &contents) > 0 else { return nil }
        let inside = contents.map { String(terminatedWire: $0) } ?? ""
        switch UInt8(bitPattern: type) {
        case UInt8(ascii: "s"), UInt8(ascii: "o"), UInt8(ascii: "g"):
            var text: UnsafePointer<CChar>?
            guard sd_bus_message_read_basic(message, type, &text) > 0, let text else { return nil }
            return .text(String(terminatedWire: text))
        case UInt8(ascii: "b"): return number(type, Int32.self).map { .boolean($0 != 0) }
        case UInt8(ascii: "y"): return number(type, UInt8.self).map { .integer(Int64($0)) }
        case UInt8(ascii: "n"): return number(type, Int16.self).map { .integer(Int64($0)) }
        case UInt8(ascii: "q"): return number(type, UInt16.self).map { .integer(Int64($0)) }
        case UInt8(ascii: "i"): return number(type, Int32.self).map { .integer(Int64($0)) }
        case UInt8(ascii: "u"): return number(type, UInt32.self).map { .integer(Int64($0)) }
        case UInt8(ascii: "x"): return number(type, Int64.self).map { .integer($0) }
        case UInt8(ascii: "t"): return number(type, UInt64.self).map { .integer(Int64(clamping: $0)) }
        case UInt8(ascii: "d"):
            var value = 0.0
            return sd_bus_message_read_basic(message, type, &value) > 0 ? .double(value) : nil
        case UInt8(ascii: "h"): return sd_bus_message_skip(message, "h") >= 0 ? .descriptor : nil
        case UInt8(ascii: "v"):
            return inner(type, inside) { value() }
        case UInt8(ascii: "a") where inside == "y": return bytes()
        case UInt8(ascii: "a") where inside.hasPrefix("{"): return dictionary(inside)
        case UInt8(ascii: "a"), UInt8(ascii: "r"):
            return inner(type, inside) { .list(values()) }
        default: return nil
        }
    }

    private func number<Number: FixedWidthInteger>(_ type: CChar, _ kind: Number.Type) -> Number? {
        var value: Number = 0
        return sd_bus_message_read_basic(message, type, &value) > 0 ? value : nil
    }

    private func bytes() -> BusValue? {
        var start: UnsafeRawPointer?
        var count = 0
        guard sd_bus_message_read_array(message, CChar(UInt8(ascii: "y")), &start, &count) > 0 else { return nil }
        return .bytes(start.map { [UInt8](UnsafeRawBufferPointer(start: $0, count: count)) } ?? [])
    }

    private func dictionary(_ entry: String) -> BusValue? {
        let members = String(entry.dropFirst().dropLast())
        return inner(CChar(UInt8(ascii: "a")), entry) {
            var found: [String: BusValue] = [:]
            while let pair = inner(CChar(UInt8(ascii: "e")), members, { values() }) {
                if pair.count == 2, let key = pair[0].text { found[key] = pair[1] }
            }
            return .dictionary(found)
        }
    }

    private func inner<Value>(_ type: CChar, _ contents: String, _ body: () -> Value?) -> Value? {
        guard sd_bus_message_enter_container(message, type, contents) > 0 else { return nil }
        defer { sd_bus_message_exit_container(message) }
        return body()
    }
}
