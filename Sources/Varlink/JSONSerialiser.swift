// SPDX-License-Identifier: Apache-2.0

extension JSON {
    /// The value as compact JSON text in UTF-8. Numbers that JSON cannot represent (NaN, infinity) become `null`;
    /// characters that control terminals are escaped.
    public func serialised() -> [UInt8] {
        var writer = JSONWriter()
        append(to: &writer)
        return writer.withBytes { Array($0) }
    }

    /// The value as indented JSON text.
    public func serialisedPretty() -> [UInt8] {
        var writer = JSONWriter()
        appendPretty(to: &writer, indent: 0)
        return writer.withBytes { Array($0) }
    }

    /// Appends the result of ``serialised()``.
    public func append(to writer: inout JSONWriter) {
        switch self {
        case .null: writer.append("null" as StaticString)
        case .bool(let value): writer.append(value)
        case .int(let value): writer.append(value)
        case .double(let value): writer.append(value)
        case .string(let value): writer.append(value)
        case .array(let elements):
            writer.append(UInt8(ascii: "["))
            var first = true
            for element in elements {
                if !first { writer.append(UInt8(ascii: ",")) }
                first = false
                element.append(to: &writer)
            }
            writer.append(UInt8(ascii: "]"))
        case .object(let object):
            writer.append(UInt8(ascii: "{"))
            var first = true
            for member in object.members {
                if !first { writer.append(UInt8(ascii: ",")) }
                first = false
                writer.append(member.name)
                writer.append(UInt8(ascii: ":"))
                member.value.append(to: &writer)
            }
            writer.append(UInt8(ascii: "}"))
        }
    }

    private func appendPretty(to writer: inout JSONWriter, indent: Int) {
        func newLine(_ writer: inout JSONWriter, _ indent: Int) {
            writer.append(0x0a as UInt8)
            for _ in 0..<indent { writer.append(0x20 as UInt8) }
        }
        switch self {
        case .array(let elements) where !elements.isEmpty:
            writer.append(UInt8(ascii: "["))
            for (index, element) in elements.enumerated() {
                if index > 0 { writer.append(UInt8(ascii: ",")) }
                newLine(&writer, indent + 2)
                element.appendPretty(to: &writer, indent: indent + 2)
            }
            newLine(&writer, indent)
            writer.append(UInt8(ascii: "]"))
        case .object(let object) where !object.members.isEmpty:
            writer.append(UInt8(ascii: "{"))
            for (index, member) in object.members.enumerated() {
                if index > 0 { writer.append(UInt8(ascii: ",")) }
                newLine(&writer, indent + 2)
                writer.append(member.name)
                writer.append(": " as StaticString)
                member.value.appendPretty(to: &writer, indent: indent + 2)
            }
            newLine(&writer, indent)
            writer.append(UInt8(ascii: "}"))
        default: append(to: &writer)
        }
    }
}
