// SPDX-License-Identifier: Apache-2.0

import Glibc
import WireText

/// Why a text is not valid JSON, and where.
public struct JSONError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What is wrong, as part of a sentence.
    public var message: String
    /// The offset in the text, in bytes.
    public var offset: Int

    /// Memberwise initializer.
    public init(_ message: String, offset: Int) {
        self.message = message
        self.offset = offset
    }

    /// A sentence for users.
    public var description: String { "not valid JSON at byte \(offset): \(message)" }
}

extension JSON {
    /// The maximum nesting of arrays and objects.
    public static let depthLimit = 64

    /// The maximum nesting of a message's payload. This is less than ``depthLimit``, since the payload is delivered
    /// inside other objects.
    public static let payloadDepthLimit = 32
    /// The maximum size of a message's payload in bytes.
    public static let payloadSizeLimit = 64 << 10

    /// Parses one JSON text, strictly: only white space around it, no duplicate names, valid UTF-8.
    ///
    /// Integers beyond 64 bits become doubles; numbers beyond a double are refused.
    public static func parse(_ bytes: [UInt8]) throws(JSONError) -> JSON {
        try parse(bytes[...])
    }

    /// Parses a part of a buffer. Errors count offsets from the start of this part, not of the buffer.
    public static func parse(_ bytes: ArraySlice<UInt8>) throws(JSONError) -> JSON {
        let result: Result<JSON, JSONError> = bytes.withUnsafeBufferPointer { buffer in
            var parser = JSONParser(bytes: buffer)
            do throws(JSONError) {
                return .success(try parser.document())
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }

    /// Parses a string.
    public static func parse(_ text: String) throws(JSONError) -> JSON {
        try parse(Array(text.utf8))
    }
}

/// A recursive-descent parser for one buffer; it never reads outside the buffer.
private struct JSONParser {
    let bytes: UnsafeBufferPointer<UInt8>
    var at = 0

    static let notText =
        "the string is not valid UTF-8, or has more than \(WireText.mostMarks) combining marks in a row"

    init(bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

    /// The next byte, or 0 at the end (0 is never valid in JSON).
    var next: UInt8 { at < bytes.count ? bytes[at] : 0 }

    func failure(_ message: String) -> JSONError { JSONError(message, offset: at) }

    var unexpected: JSONError {
        guard at < bytes.count else { return failure("it ends too early") }
        let byte = bytes[at]
        if byte > 0x20, byte < 0x7f {
            return failure("unexpected “\(Character(Unicode.Scalar(byte)))”")
        }
        return failure("unexpected byte 0x\(String(byte, radix: 16))")
    }

    @inline(__always)
    mutating func skipSpace() {
        if at < bytes.count, bytes[at] > 0x20 { return }
        skipAllSpace()
    }

    @inline(never)
    mutating func skipAllSpace() {
        while at < bytes.count {
            switch bytes[at] {
            case 0x20, 0x09, 0x0a, 0x0d: at += 1
            default: return
            }
        }
    }

    mutating func document() throws(JSONError) -> JSON {
        skipSpace()
        var known: [KnownName]?
        let value = try value(depth: 0, &known)
        skipSpace()
        guard at == bytes.count else { throw failure("there is more after the value") }
        return value
    }

    /// - Parameter known: the names of the first object in the array that the value is an element of; nil if the value
    ///   is no element of an array.
    mutating func value(depth: Int, _ known: inout [KnownName]?) throws(JSONError) -> JSON {
        switch next {
        case UInt8(ascii: "{"): return try object(depth: depth + 1, &known)
        case UInt8(ascii: "["): return try array(depth: depth + 1)
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"): return try literal("true", .bool(true))
        case UInt8(ascii: "f"): return try literal("false", .bool(false))
        case UInt8(ascii: "n"): return try literal("null", .null)
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return try number()
        default: throw unexpected
        }
    }

    mutating func literal(_ text: StaticString, _ value: JSON) throws(JSONError) -> JSON {
        // Most members of a list are `null` or `false`: compare four bytes at a time, after the first.
        let skipped = text.utf8CodeUnitCount - 4
        if at + text.utf8CodeUnitCount <= bytes.count,
            UnsafeRawPointer(text.utf8Start + skipped).loadUnaligned(as: UInt32.self)
                == UnsafeRawBufferPointer(bytes).loadUnaligned(fromByteOffset: at + skipped, as: UInt32.self)
        {
            at += text.utf8CodeUnitCount
            return value
        }
        for index in 0..<text.utf8CodeUnitCount {
            guard next == text.utf8Start[index] else { throw unexpected }
            at += 1
        }
        return value
    }

    mutating func object(depth: Int, _ known: inout [KnownName]?) throws(JSONError) -> JSON {
        guard depth <= JSON.depthLimit else { throw failure("nested deeper than \(JSON.depthLimit)") }
        at += 1
        skipSpace()
        if next == UInt8(ascii: "}") {
            at += 1
            return .object(JSONObject())
        }
        var members: [JSONObject.Member] = []
        var names = NameFilter()
        let learns = known?.isEmpty == true
        if let known, !known.isEmpty {
            if try readKnown(known, depth: depth, into: &members) { return Self.object(of: members) }
            for member in members { names.mark(member.name) }
        }
        var ofNoArray: [KnownName]?
        while true {
            skipSpace()
            guard next == UInt8(ascii: "\"") else { throw unexpected }
            let start = at
            let name = try string()
            guard names.insert(name, members) else {
                let shown = name.utf8.count <= 64 ? "the name “\(name)”" : "a name of \(name.utf8.count) bytes"
                throw JSONError("\(shown) appears twice", offset: start)
            }
            skipSpace()
            guard next == UInt8(ascii: ":") else { throw unexpected }
            at += 1
            if learns, members.count < NameFilter.many {
                known?.append(KnownName(text: name, start: start, length: at - start))
            }
            skipSpace()
            members.append(JSONObject.Member(name: name, value: try value(depth: depth, &ofNoArray)))
            if try endsObject() { return Self.object(of: members) }
        }
    }

    /// Reads the members of an object as long as they are named as the known ones, which are distinct and so are not
    /// compared with one another. Returns true if the object ends with them.
    private mutating func readKnown(
        _ names: [KnownName],
        depth: Int,
        into members: inout [JSONObject.Member]
    ) throws(JSONError) -> Bool {
        members.reserveCapacity(names.count)
        var ofNoArray: [KnownName]?
        for name in names {
            guard isWritten(name) else { return false }
            at += name.length
            skipSpace()
            members.append(JSONObject.Member(name: name.text, value: try value(depth: depth, &ofNoArray)))
            if try endsObject() { return true }
            skipSpace()
        }
        return false
    }

    /// Makes an object of its members. Those that have much less than the room that ``readKnown(_:depth:into:)`` has made
    /// are copied: otherwise a short text with many small objects could take hundreds of megabytes.
    private static func object(of members: [JSONObject.Member]) -> JSON {
        guard members.capacity > 2 * members.count + 4 else { return .object(JSONObject(members: members)) }
        return .object(JSONObject(members: members.withUnsafeBufferPointer { Array($0) }))
    }

    /// Reads what is behind a member: a comma, or the end of the object, for which it returns true.
    @inline(__always)
    private mutating func endsObject() throws(JSONError) -> Bool {
        skipSpace()
        switch next {
        case UInt8(ascii: ","):
            at += 1
            return false
        case UInt8(ascii: "}"):
            at += 1
            return true
        default: throw unexpected
        }
    }

    /// A name of the first object in an array. The other objects mostly have the same names in the same order, so that
    /// comparing their bytes replaces making a string of them and looking whether the object has it already.
    struct KnownName {
        let text: String
        /// Where the name is written, with its quotation marks and the colon behind it.
        let start: Int
        let length: Int
    }

    /// Whether a known name is written here, with its colon.
    @inline(__always)
    private func isWritten(_ name: KnownName) -> Bool {
        guard let base = bytes.baseAddress, name.length <= bytes.count - at else { return false }
        return memcmp(base + name.start, base + at, name.length) == 0
    }

    /// Finds a name that an object has twice.
    private struct NameFilter {
        /// A set of 256 bits, one for each hash of a name's length and some of its bytes. Most names set a new bit, and
        /// so are known to be new without any comparison.
        private var sums = SIMD4<UInt64>(repeating: 0)
        /// All names of an object that has many: comparing each name with every other would take quadratic time.
        private var names: Set<WireText> = []

        /// More than the status of an app has: the first such set of a process costs as much as reading the whole object.
        static let many = 128

        /// Adds the name of the next member, which follows `members`; returns false if one of these has the same name.
        mutating func insert(_ name: String, _ members: [JSONObject.Member]) -> Bool {
            if members.count >= Self.many {
                if names.isEmpty { names = Set(members.map { WireText($0.name) }) }
                return names.insert(WireText(name)).inserted
            }
            let (word, bit) = Self.place(of: name)
            if sums[word] & bit != 0 {
                if members.contains(where: { $0.isNamed(name) }) { return false }
            }
            sums[word] |= bit
            return true
        }

        /// Adds the name of a member that is known to be the only one with that name.
        mutating func mark(_ name: String) {
            let (word, bit) = Self.place(of: name)
            sums[word] |= bit
        }

        private static func place(of name: String) -> (word: Int, bit: UInt64) {
            var text = name
            let sum = text.withUTF8 { utf8 -> UInt8 in
                guard !utf8.isEmpty else { return 0 }
                let ends = UInt32(utf8[0]) << 8 | UInt32(utf8[utf8.count - 1])
                let middle = UInt32(utf8[utf8.count / 2]) << 8 | UInt32(truncatingIfNeeded: utf8.count)
                // The factor of Fibonacci hashing, 2^32 divided by the golden ratio.
                return UInt8(((ends << 16 ^ middle) &* 0x9e37_79b1) >> 24)
            }
            return (Int(sum / 64), UInt64(1) << UInt64(sum % 64))
        }
    }

    mutating func array(depth: Int) throws(JSONError) -> JSON {
        guard depth <= JSON.depthLimit else { throw failure("nested deeper than \(JSON.depthLimit)") }
        at += 1
        var elements: [JSON] = []
        var known: [KnownName]? = []
        skipSpace()
        if next == UInt8(ascii: "]") {
            at += 1
            return .array(elements)
        }
        while true {
            skipSpace()
            elements.append(try value(depth: depth, &known))
            skipSpace()
            switch next {
            case UInt8(ascii: ","): at += 1
            case UInt8(ascii: "]"):
                at += 1
                return .array(elements)
            default: throw unexpected
            }
        }
    }

    mutating func digits() throws(JSONError) {
        guard isDigit(next) else { throw unexpected }
        while isDigit(next) { at += 1 }
    }

    mutating func number() throws(JSONError) -> JSON {
        let start = at
        let negative = next == UInt8(ascii: "-")
        if negative { at += 1 }
        if next == UInt8(ascii: "0") {
            at += 1
            if isDigit(next) { throw failure("a number begins with 0") }
        } else {
            try digits()
        }
        var whole = true
        if next == UInt8(ascii: ".") {
            whole = false
            at += 1
            try digits()
        }
        if next == UInt8(ascii: "e") || next == UInt8(ascii: "E") {
            whole = false
            at += 1
            if next == UInt8(ascii: "+") || next == UInt8(ascii: "-") { at += 1 }
            try digits()
        }
        if whole, let value = integer(from: start + (negative ? 1 : 0), negative: negative) { return .int(value) }
        if let value = decimal(from: start + (negative ? 1 : 0), negative: negative) { return .double(value) }
        let text = String(wire: bytes[start..<at])
        guard let value = Double(text), value.isFinite else {
            throw JSONError("the number is out of range", offset: start)
        }
        return .double(value)
    }

    /// Parses the digits from `start` on as an integer; nil for −0 and on overflow.
    func integer(from start: Int, negative: Bool) -> Int64? {
        var value: Int64 = 0
        for index in start..<at {
            let digit = Int64(bytes[index] &- UInt8(ascii: "0"))
            let (product, tooLarge) = value.multipliedReportingOverflow(by: 10)
            let (sum, overflow) = product.subtractingReportingOverflow(digit)
            if tooLarge || overflow { return nil }
            value = sum
        }
        if negative { return value == 0 ? nil : value }
        return value == .min ? nil : -value
    }

    /// Parses a number without an exponent that has at most 15 digits, as most measured numbers do; nil for others. Its
    /// digits and a power of ten are exact as doubles, so that their quotient is rounded correctly.
    func decimal(from start: Int, negative: Bool) -> Double? {
        guard at - start <= 16 else { return nil }
        var digits: UInt64 = 0
        var scale: Double = 1
        var isDecimal = false
        for index in start..<at {
            let digit = bytes[index] &- UInt8(ascii: "0")
            if digit > 9 {
                guard bytes[index] == UInt8(ascii: ".") else { return nil }
                isDecimal = true
                continue
            }
            digits = digits &* 10 &+ UInt64(digit)
            if isDecimal { scale *= 10 }
        }
        guard isDecimal else { return nil }
        let value = Double(digits) / scale
        return negative ? -value : value
    }

    func isDigit(_ byte: UInt8) -> Bool { byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9") }

    mutating func string() throws(JSONError) -> String {
        at += 1
        let start = at
        var isASCII = true
        // Most bytes are plain: look at eight at a time until the first that is not.
        let raw = UnsafeRawBufferPointer(bytes)
        while at + 8 <= raw.count, !JSONWriter.hasSpecial(raw.loadUnaligned(fromByteOffset: at, as: UInt64.self)) {
            at += 8
        }
        while at < bytes.count {
            let byte = bytes[at]
            if byte == UInt8(ascii: "\"") {
                let text = try decoded(bytes[start..<at], isASCII: isASCII, from: start)
                at += 1
                return text
            }
            if byte == UInt8(ascii: "\\") { return try escapedString(from: start) }
            if byte < 0x20 { throw failure("a control character in a string must be escaped") }
            if byte >= 0x80 { isASCII = false }
            at += 1
        }
        throw unexpected
    }

    func decoded(_ part: Slice<UnsafeBufferPointer<UInt8>>, isASCII: Bool, from start: Int) throws(JSONError) -> String
    {
        if isASCII { return String(wireASCII: UnsafeBufferPointer(rebasing: part)) }
        guard let text = String(validWire: part) else {
            throw JSONError(Self.notText, offset: start)
        }
        return text
    }

    /// The string that begins at `start` and whose first backslash is at the current position.
    mutating func escapedString(from start: Int) throws(JSONError) -> String {
        var text = Array(bytes[start..<at])
        while at < bytes.count {
            let byte = bytes[at]
            switch byte {
            case UInt8(ascii: "\""):
                guard let string = String(validWire: text) else {
                    throw JSONError(Self.notText, offset: start)
                }
                at += 1
                return string
            case UInt8(ascii: "\\"):
                at += 1
                try escape(into: &text)
            case 0..<0x20:
                throw failure("a control character in a string must be escaped")
            default:
                text.append(byte)
                at += 1
            }
        }
        throw unexpected
    }

    mutating func escape(into text: inout [UInt8]) throws(JSONError) {
        let kind = next
        switch kind {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(kind)
        case UInt8(ascii: "b"): text.append(0x08)
        case UInt8(ascii: "f"): text.append(0x0c)
        case UInt8(ascii: "n"): text.append(0x0a)
        case UInt8(ascii: "r"): text.append(0x0d)
        case UInt8(ascii: "t"): text.append(0x09)
        case UInt8(ascii: "u"):
            at += 1
            let scalar = try unicodeEscape()
            text.append(contentsOf: Unicode.UTF8.encode(scalar)!)
            return
        default: throw unexpected
        }
        at += 1
    }

    mutating func unicodeEscape() throws(JSONError) -> Unicode.Scalar {
        let start = at
        let first = try fourHexDigits()
        if let scalar = Unicode.Scalar(first) { return scalar }
        // A surrogate: only a high one followed by a low one is valid.
        guard first < 0xdc00, next == UInt8(ascii: "\\") else {
            throw JSONError("half a surrogate pair", offset: start)
        }
        at += 1
        guard next == UInt8(ascii: "u") else { throw JSONError("half a surrogate pair", offset: start) }
        at += 1
        let second = try fourHexDigits()
        guard (0xdc00...0xdfff).contains(second),
            let scalar = Unicode.Scalar(0x10000 + ((UInt32(first) - 0xd800) << 10) + (UInt32(second) - 0xdc00))
        else { throw JSONError("half a surrogate pair", offset: start) }
        return scalar
    }

    mutating func fourHexDigits() throws(JSONError) -> UInt16 {
        var value: UInt16 = 0
        for _ in 0..<4 {
            let byte = next
            let digit: UInt8
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = byte - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = byte - UInt8(ascii: "a") + 10
            case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = byte - UInt8(ascii: "A") + 10
            default: throw unexpected
            }
            value = value << 4 | UInt16(digit)
            at += 1
        }
        return value
    }
}
