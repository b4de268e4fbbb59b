// SPDX-License-Identifier: Apache-2.0

import WireText

// The sizes of texts and values as JSON, where a control character takes six bytes. Bounds of replies count these bytes:
// apps determine many texts, so the number of their characters says little about the size of a reply.

extension JSON {
    /// The number of bytes of ``serialised()``. Much quicker than building them.
    public var serialisedSize: Int {
        switch self {
        case .null: 4
        case .bool(let value): value ? 4 : 5
        case .int(let value): value.description.utf8.count
        case .double(let value): value.isFinite ? value.description.utf8.count : 4
        case .string(let text): text.serialisedSize
        case .array(let elements): elements.reduce(2 + max(0, elements.count - 1)) { $0 + $1.serialisedSize }
        case .object(let object):
            object.members.reduce(2 + max(0, object.members.count - 1)) { size, member in
                size + member.name.serialisedSize + 1 + member.value.serialisedSize
            }
        }
    }

    /// The value with each string shortened that takes more than `bytes` bytes, and with at most `elements` elements in
    /// each array: the first ones. Names of members stay as they are.
    public func shortened(stringsTo bytes: Int, arraysTo elements: Int) -> JSON {
        switch self {
        case .null, .bool, .int, .double: return self
        case .string(let text): return .string(text.shortened(toSerialised: bytes))
        case .array(let all):
            return .array(all.prefix(elements).map { $0.shortened(stringsTo: bytes, arraysTo: elements) })
        case .object(let object):
            let members = object.members.map { member in
                let value = member.value.shortened(stringsTo: bytes, arraysTo: elements)
                return JSONObject.Member(name: member.name, value: value)
            }
            return .object(JSONObject(members: members))
        }
    }
}

extension String {
    /// The number of bytes that the text takes as a JSON string, with its quotation marks.
    public var serialisedSize: Int {
        var text = self
        return 2 + text.withUTF8 { JSONWriter.measure($0, most: .max).size }
    }

    /// The text, or if it takes more than `most` bytes as a JSON string, its beginning and `…`.
    public func shortened(toSerialised most: Int) -> String {
        guard utf8.count > (most - 2) / JSONWriter.longestEscape else { return self }
        var text = self
        return text.withUTF8 { utf8 in
            guard JSONWriter.measure(utf8, most: most - 2).length < utf8.count else { return self }
            // In UTF-8, the ellipsis has three bytes.
            let length = JSONWriter.measure(utf8, most: max(0, most - 2 - 3)).length
            return String(wire: utf8[..<length]) + "…"
        }
    }
}

extension JSONWriter {
    /// The number of bytes of the longest escape, such as `\u0001`.
    static let longestEscape = 6

    /// Counts the bytes that a text takes as JSON, without quotation marks, up to at most `most` bytes and to the end of
    /// a character. Returns that size, and how many bytes of the text were counted.
    static func measure(_ utf8: UnsafeBufferPointer<UInt8>, most: Int) -> (size: Int, length: Int) {
        guard let start = utf8.baseAddress else { return (0, 0) }
        let source = UnsafeRawPointer(start)
        var (size, index) = (0, 0)
        while index < utf8.count {
            if index + 8 <= utf8.count, size <= most - 8,
                !hasSpecial(source.loadUnaligned(fromByteOffset: index, as: UInt64.self))
            {
                size += 8
                index += 8
                continue
            }
            let (written, length) = sizeOfCharacter(utf8, at: index)
            guard size <= most - written else { break }
            size += written
            index += length
        }
        return (size, index)
    }

    /// The bytes that a character takes as JSON, and those that it has in UTF-8.
    private static func sizeOfCharacter(
        _ utf8: UnsafeBufferPointer<UInt8>,
        at index: Int
    ) -> (written: Int, length: Int) {
        if let (code, length) = escaped(utf8, at: index) {
            switch code {
            case 0x08, 0x09, 0x0a, 0x0c, 0x0d, 0x22, 0x5c: return (2, length)
            default: return (longestEscape, length)
            }
        }
        let length =
            switch utf8[index] {
            case ..<0x80: 1
            case ..<0xe0: 2
            case ..<0xf0: 3
            default: 4
            }
        return (length, length)
    }
}
