// SPDX-License-Identifier: Apache-2.0

import Glibc
import WireText

/// Memory that grows with the JSON text written into it.
///
/// Text that is sent often is written here directly: a ``JSON`` value of it would take several times as long.
public struct JSONWriter: ~Copyable {
    private var base: UnsafeMutablePointer<UInt8>?
    private var capacity = 0
    /// The number of bytes written, without those that ``outlet`` took.
    public private(set) var count = 0
    /// Called when the memory is full and has from one to four times ``portion`` bytes: takes as many of the first
    /// bytes as it can, and returns how many. So a long text needs little memory, and its reader can begin before its
    /// end is written. The last byte is never given. If more than four portions wait for a slow reader, this is not
    /// called, since moving the rest forward again and again would take long.
    public var outlet: ((UnsafeRawBufferPointer) -> Int)?

    /// The least size, in bytes, at which ``outlet`` is asked.
    public static let portion = 64 << 10

    /// Creates a writer without memory.
    public init() {}

    deinit { free(base) }

    /// Calls `body` with the bytes of the text.
    public func withBytes<T, E: Error>(_ body: (UnsafeRawBufferPointer) throws(E) -> T) throws(E) -> T {
        try body(UnsafeRawBufferPointer(start: base, count: count))
    }

    /// Removes all text and frees its memory.
    public mutating func clear() {
        free(base)
        base = nil
        capacity = 0
        count = 0
    }

    /// Removes the first bytes.
    public mutating func removeFirst(_ number: Int) {
        precondition(number >= 0 && number <= count)
        guard number > 0, let base else { return }
        base.update(from: base + number, count: count - number)
        count -= number
    }

    /// Where to write the next byte. Makes sure that there is memory for at least `bytes` bytes from there on.
    @inline(__always)
    private mutating func room(_ bytes: Int) -> UnsafeMutablePointer<UInt8> {
        if let base, capacity - count >= bytes { return base + count }
        return grown(bytes)
    }

    @inline(never)
    private mutating func grown(_ bytes: Int) -> UnsafeMutablePointer<UInt8> {
        if count >= Self.portion, count <= 4 * Self.portion, let outlet {
            // Keep the last byte: it shows whether the next text needs a comma before it.
            let taken = outlet(UnsafeRawBufferPointer(start: base, count: count - 1))
            removeFirst(taken)
            // If only a few bytes are taken at a time, allocating more memory costs less than moving the remaining
            // bytes.
            if taken >= Self.portion / 4, let base, capacity - count >= bytes { return base + count }
        }
        // realloc(3) moves the pages of large memory, and copies nothing.
        let more = max(256, capacity * 2, count + bytes)
        guard let memory = realloc(base, more) else { fatalError("no memory for \(more) bytes") }
        let start = memory.assumingMemoryBound(to: UInt8.self)
        base = start
        capacity = more
        return start + count
    }

    // MARK: Text

    /// Appends a byte.
    public mutating func append(_ byte: UInt8) {
        room(1).pointee = byte
        count += 1
    }

    /// Appends text as it is.
    public mutating func append(_ text: StaticString) {
        room(text.utf8CodeUnitCount).update(from: text.utf8Start, count: text.utf8CodeUnitCount)
        count += text.utf8CodeUnitCount
    }

    private mutating func append(_ bytes: UnsafePointer<UInt8>, _ number: Int) {
        guard number > 0 else { return }
        room(number).update(from: bytes, count: number)
        count += number
    }

    /// Appends JSON text that was written before.
    public mutating func append(written bytes: UnsafeRawBufferPointer) {
        guard let start = bytes.baseAddress else { return }
        append(start.assumingMemoryBound(to: UInt8.self), bytes.count)
    }

    /// A value of at most six bytes, of which most members of a list have one.
    struct ShortValue {
        /// The bytes, the first one lowest.
        fileprivate let bytes: UInt64
        fileprivate let count: Int

        static var nothing: ShortValue { ShortValue(bytes: 0, count: 0) }
        static var null: ShortValue { ShortValue(bytes: 0x6c6c_756e, count: 4) }
        static var `true`: ShortValue { ShortValue(bytes: 0x6575_7274, count: 4) }
        static var `false`: ShortValue { ShortValue(bytes: 0x65_736c_6166, count: 5) }
        static var emptyArray: ShortValue { ShortValue(bytes: 0x5d5b, count: 2) }
        static var emptyObject: ShortValue { ShortValue(bytes: 0x7d7b, count: 2) }
    }

    /// Begins a member of an object: its name and the colon, after a comma unless it is the first. Adds its value too
    /// if that is short, in the same word as the end of the name.
    mutating func begin(_ name: StaticString, _ value: ShortValue = .nothing) {
        let length = name.utf8CodeUnitCount
        var place = room(length + 10)
        if count > 0, (place - 1).pointee != UInt8(ascii: "{") {
            place.pointee = UInt8(ascii: ",")
            place += 1
            count += 1
        }
        place.pointee = UInt8(ascii: "\"")
        Self.copyShort(name.utf8Start, length, to: place + 1)
        let end = (value.bytes << 16 | 0x3a22).littleEndian
        UnsafeMutableRawPointer(place + length + 1).storeBytes(of: end, as: UInt64.self)
        count += length + 3 + value.count
    }

    /// Copies a few bytes in two words, which may overlap, because a call of memcpy(3) would take longer.
    @inline(__always)
    private static func copyShort(
        _ source: UnsafePointer<UInt8>,
        _ count: Int,
        to target: UnsafeMutablePointer<UInt8>
    ) {
        let (from, to) = (UnsafeRawPointer(source), UnsafeMutableRawPointer(target))
        guard count >= 8, count <= 16 else {
            if count > 16 { return target.update(from: source, count: count) }
            guard count >= 4 else {
                for index in 0..<count { target[index] = source[index] }
                return
            }
            to.storeBytes(of: from.loadUnaligned(as: UInt32.self), as: UInt32.self)
            let end = from.loadUnaligned(fromByteOffset: count - 4, as: UInt32.self)
            return to.storeBytes(of: end, toByteOffset: count - 4, as: UInt32.self)
        }
        to.storeBytes(of: from.loadUnaligned(as: UInt64.self), as: UInt64.self)
        let end = from.loadUnaligned(fromByteOffset: count - 8, as: UInt64.self)
        to.storeBytes(of: end, toByteOffset: count - 8, as: UInt64.self)
    }

    // MARK: Values

    /// Appends `true` or `false`.
    public mutating func append(_ value: Bool) {
        if value { append("true" as StaticString) } else { append("false" as StaticString) }
    }

    /// Appends an integer.
    public mutating func append(_ value: Int64) {
        let place = room(20)
        guard value < 0 || value > 9 else {
            place.pointee = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: value)
            count += 1
            return
        }
        if value < 0 { place.pointee = UInt8(ascii: "-") }
        let sign = value < 0 ? 1 : 0
        count += sign + Self.writeDigits(value.magnitude, place + sign)
    }

    /// Writes a number in decimal; returns how many digits it has.
    private static func writeDigits(_ value: UInt64, _ place: UnsafeMutablePointer<UInt8>) -> Int {
        var digits = 1
        var rest = value
        while rest >= 10 {
            rest /= 10
            digits += 1
        }
        rest = value
        for index in (0..<digits).reversed() {
            let (quotient, digit) = rest.quotientAndRemainder(dividingBy: 10)
            place[index] = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: digit)
            rest = quotient
        }
        return digits
    }

    /// Appends a number as Swift describes it; `null` for what JSON cannot represent (NaN, infinity).
    public mutating func append(_ value: Double) {
        guard value.isFinite else { return append("null" as StaticString) }
        if appendDecimals(value) { return }
        var text = value.description
        text.withUTF8 { append($0.baseAddress!, $0.count) }
    }

    /// Appends a number that has at most nine decimals and at most 15 digits, as most measured numbers do. Returns
    /// false if the number has more digits, or is so small that Swift writes an exponent.
    private mutating func appendDecimals(_ value: Double) -> Bool {
        guard value >= 0.0001, value < 1e6 else { return false }
        // A quotient of two integers that a Double represents is rounded correctly, so it is the number that these
        // digits denote. Two different numbers of at most 15 digits never denote the same Double, so these digits are
        // the shortest.
        let scaled = UInt64(value * 1e9 + 0.5)
        guard Double(scaled) / 1e9 == value else { return false }
        let (whole, decimals) = scaled.quotientAndRemainder(dividingBy: 1_000_000_000)
        var rest = decimals
        let place = room(32)
        var length = Self.writeDigits(whole, place)
        place[length] = UInt8(ascii: ".")
        length += 1
        var digits = 9
        while digits > 1, rest % 10 == 0 {
            rest /= 10
            digits -= 1
        }
        for index in (0..<digits).reversed() {
            place[length + index] = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: rest % 10)
            rest /= 10
        }
        count += length + digits
        return true
    }

    /// Appends a string with its quotation marks. Characters that control terminals are escaped.
    public mutating func append(_ text: String) {
        var text = text
        text.withUTF8 { utf8 in
            let place = room(utf8.count + 2)
            place.pointee = UInt8(ascii: "\"")
            let plain = Self.copyPlain(utf8, to: place + 1)
            count += 1 + plain
            if plain < utf8.count { appendEscaped(utf8, from: plain) }
            append(UInt8(ascii: "\""))
        }
    }

    /// Copies the first bytes that need no inspection, eight at a time; returns how many.
    private static func copyPlain(_ utf8: UnsafeBufferPointer<UInt8>, to place: UnsafeMutablePointer<UInt8>) -> Int {
        let all = utf8.count
        guard let start = utf8.baseAddress else { return 0 }
        let source = UnsafeRawPointer(start)
        let target = UnsafeMutableRawPointer(place)
        var index = 0
        while index + 8 <= all {
            let word = source.loadUnaligned(fromByteOffset: index, as: UInt64.self)
            guard !hasSpecial(word) else { return index }
            target.storeBytes(of: word, toByteOffset: index, as: UInt64.self)
            index += 8
        }
        while index < all {
            let byte = utf8[index]
            guard byte >= 0x20, byte < 0x7f, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\") else { break }
            place[index] = byte
            index += 1
        }
        return index
    }

    /// Whether one of the bytes is not printable ASCII, or a quotation mark or backslash. (Subtracting from a byte
    /// borrows if the byte is less. After a special byte, the borrow may also make the bytes above it look special,
    /// which does not change the result.)
    static func hasSpecial(_ word: UInt64) -> Bool {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let high: UInt64 = 0x8080_8080_8080_8080
        let quote = word ^ (ones &* 0x22)
        let backslash = word ^ (ones &* 0x5c)
        let delete = word ^ (ones &* 0x7f)
        let isBelow = (word &- ones &* 0x20) | (quote &- ones) | (backslash &- ones) | (delete &- ones)
        return (word | isBelow) & high != 0
    }

    private mutating func appendEscaped(_ utf8: UnsafeBufferPointer<UInt8>, from first: Int) {
        var start = first
        var index = first
        while index < utf8.count {
            guard let (code, length) = Self.escaped(utf8, at: index) else {
                index += 1
                continue
            }
            append(utf8.baseAddress! + start, index - start)
            appendEscape(of: code)
            index += length
            start = index
        }
        append(utf8.baseAddress! + start, index - start)
    }

    /// The code and length of a character that must be escaped: by JSON's rules, or since it controls terminals,
    /// where users read JSON.
    static func escaped(_ utf8: UnsafeBufferPointer<UInt8>, at index: Int) -> (code: UInt16, length: Int)? {
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

    private mutating func appendEscape(of code: UInt16) {
        append(UInt8(ascii: "\\"))
        switch code {
        case 0x08: append(UInt8(ascii: "b"))
        case 0x09: append(UInt8(ascii: "t"))
        case 0x0a: append(UInt8(ascii: "n"))
        case 0x0c: append(UInt8(ascii: "f"))
        case 0x0d: append(UInt8(ascii: "r"))
        case 0x22, 0x5c: append(UInt8(code))
        default:
            append(UInt8(ascii: "u"))
            for shift in [12, 8, 4, 0] {
                let digit = UInt8(code >> UInt16(shift) & 15)
                append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
            }
        }
    }
}
