// SPDX-License-Identifier: Apache-2.0

import WireText

extension JSON {
    /// The value as compact JSON text in UTF-8. Numbers that JSON cannot represent (NaN, infinity) become `null`;
    /// characters that control terminals are escaped.
    public func serialised() -> [UInt8] {
        var bytes: [UInt8] = []
        append(to: &bytes)
        return bytes
    }

    /// The value as indented JSON text.
    public func serialisedPretty() -> [UInt8] {
        var bytes: [UInt8] = []
        appendPretty(to: &bytes, indent: 0)
        return bytes
    }

    /// Appends the result of ``serialised()``.
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
            var index = 0
            while index < utf8.count {
                guard let (code, length) = escaped(utf8, at: index) else {
                    index += 1
                    continue
                }
                bytes.append(contentsOf: UnsafeBufferPointer(rebasing: utf8[start..<index]))
                appendEscape(of: code, to: &bytes)
                index += length
                start = index
            }
            bytes.append(contentsOf: UnsafeBufferPointer(rebasing: utf8[start...]))
        }
        bytes.append(UInt8(ascii: "\""))
    }

    /// The code and length of a character that must be escaped: by JSON's rules, or since it controls terminals,
    /// where users read JSON.
    private static func escaped(_ utf8: UnsafeBufferPointer<UInt8>, at index: Int) -> (code: UInt16, length: Int)? {
        let first = utf8[index]
        let code: UInt16
        switch first {
        case ..<0x20, UInt8(ascii: "\""), UInt8(ascii: "\\"), 0x7f: return (UInt16(first), 1)
        // First bytes of other characters that control terminals.
        case 0xc2, 0xd8: code = UInt16(first & 0x1f) << 6 | UInt16(utf8[index + 1] & 0x3f)
        case 0xe2: code = 0x2000 | UInt16(utf8[index + 1] & 0x3f) << 6 | UInt16(utf8[index + 2] & 0x3f)
        default: return nil
        }
        guard let scalar = Unicode.Scalar(code), scalar.steersTerminals else { return nil }
        return (code, first == 0xe2 ? 3 : 2)
    }

    private static func appendEscape(of code: UInt16, to bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: "\\"))
        switch code {
        case 0x08: bytes.append(UInt8(ascii: "b"))
        case 0x09: bytes.append(UInt8(ascii: "t"))
        case 0x0a: bytes.append(UInt8(ascii: "n"))
        case 0x0c: bytes.append(UInt8(ascii: "f"))
        case 0x0d: bytes.append(UInt8(ascii: "r"))
        case 0x22, 0x5c: bytes.append(UInt8(code))
        default:
            bytes.append(UInt8(ascii: "u"))
            for shift in [12, 8, 4, 0] {
                let digit = UInt8(code >> UInt16(shift) & 15)
                bytes.append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
            }
        }
    }
}
