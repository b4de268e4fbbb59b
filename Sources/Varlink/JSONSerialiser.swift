// SPDX-License-Identifier: Apache-2.0

extension JSON {
    /// The value as compact JSON text in UTF-8. Numbers that JSON cannot write (NaN, infinity) become `null`.
    public func serialised() -> [UInt8] {
        var bytes: [UInt8] = []
        append(to: &bytes)
        return bytes
    }

    /// The value as JSON text over several lines, for people.
    public func serialisedPretty() -> [UInt8] {
        var bytes: [UInt8] = []
        appendPretty(to: &bytes, indent: 0)
        return bytes
    }

    /// Appends what ``serialised()`` gives.
    public func append(to bytes: inout [UInt8]) {
        switch self {
        case .null: bytes.append(contentsOf: "null".utf8)
        case .bool(let value): bytes.append(contentsOf: value ? "true".utf8 : "false".utf8)
        case .int(let value): Self.append(value, to: &bytes)
        case .double(let value): bytes.append(contentsOf: value.isFinite ? value.description.utf8 : "null".utf8)
        case .string(let value): Self.append(value, to: &bytes)
        case .array(let elements):
            bytes.append(UInt8(ascii: "["))
            var first = true
            for element in elements {
                if !first { bytes.append(UInt8(ascii: ",")) }
                first = false
                element.append(to: &bytes)
            }
            bytes.append(UInt8(ascii: "]"))
        case .object(let object):
            bytes.append(UInt8(ascii: "{"))
            var first = true
            for member in object.members {
                if !first { bytes.append(UInt8(ascii: ",")) }
                first = false
                Self.append(member.name, to: &bytes)
                bytes.append(UInt8(ascii: ":"))
                member.value.append(to: &bytes)
            }
            bytes.append(UInt8(ascii: "}"))
        }
    }

    private func appendPretty(to bytes: inout [UInt8], indent: Int) {
        func newLine(_ indent: Int) {
            bytes.append(0x0a)
            bytes.append(contentsOf: repeatElement(0x20, count: indent))
        }
        switch self {
        case .array(let elements) where !elements.isEmpty:
            bytes.append(UInt8(ascii: "["))
            for (index, element) in elements.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                newLine(indent + 2)
                element.appendPretty(to: &bytes, indent: indent + 2)
            }
            newLine(indent)
            bytes.append(UInt8(ascii: "]"))
        case .object(let object) where !object.members.isEmpty:
            bytes.append(UInt8(ascii: "{"))
            for (index, member) in object.members.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                newLine(indent + 2)
                Self.append(member.name, to: &bytes)
                bytes.append(contentsOf: ": ".utf8)
                member.value.appendPretty(to: &bytes, indent: indent + 2)
            }
            newLine(indent)
            bytes.append(UInt8(ascii: "}"))
        default: append(to: &bytes)
        }
    }

    private static func append(_ value: Int64, to bytes: inout [UInt8]) {
        if value >= 0, value < 10 {
            bytes.append(UInt8(ascii: "0") + UInt8(value))
            return
        }
        if value < 0 { bytes.append(UInt8(ascii: "-")) }
        var rest = value.magnitude
        let start = bytes.count
        while rest > 0 {
            bytes.append(UInt8(ascii: "0") + UInt8(rest % 10))
            rest /= 10
        }
        bytes[start...].reverse()
    }

    private static func append(_ text: String, to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "\""))
        var text = text
        text.withUTF8 { utf8 in
            var start = 0
            for index in 0..<utf8.count {
                let byte = utf8[index]
                guard byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") else { continue }
                bytes.append(contentsOf: utf8[start..<index])
                start = index + 1
                appendEscape(of: byte, to: &bytes)
            }
            bytes.append(contentsOf: utf8[start...])
        }
        bytes.append(UInt8(ascii: "\""))
    }

    private static func appendEscape(of byte: UInt8, to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "\\"))
        switch byte {
        case 0x08: bytes.append(UInt8(ascii: "b"))
        case 0x09: bytes.append(UInt8(ascii: "t"))
        case 0x0a: bytes.append(UInt8(ascii: "n"))
        case 0x0c: bytes.append(UInt8(ascii: "f"))
        case 0x0d: bytes.append(UInt8(ascii: "r"))
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes.append(byte)
        default:
            bytes.append(contentsOf: "u00".utf8)
            for digit in [byte >> 4, byte & 15] {
                bytes.append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
            }
        }
    }
}
