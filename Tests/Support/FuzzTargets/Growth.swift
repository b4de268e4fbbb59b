// SPDX-License-Identifier: Apache-2.0

/// Long inputs made of short ones, to see whether time grows faster than they do.
enum Growth {
    /// Bytes of a long one, about: what takes quadratic time takes a second with it, what takes linear time milliseconds.
    static let size = 64 << 10

    /// Whether a fuzzer's input is grown.
    static func isChosen(_ bytes: [UInt8]) -> Bool { !bytes.isEmpty && hash(bytes) % 256 == 0 }

    /// The whole of it again and again, or a part of it.
    static func one(of bytes: [UInt8]) -> [UInt8] {
        var choice = hash(bytes) / 256
        func choose(_ count: Int) -> Int {
            defer { choice /= UInt64(count) }
            return Int(choice % UInt64(count))
        }
        let isNumbered = choose(2) == 1
        guard choose(3) > 0 else { return repeating(0..<bytes.count, of: bytes, isNumbered: isNumbered) }
        let start = choose(bytes.count)
        return repeating(start..<start + 1 + choose(min(64, bytes.count - start)), of: bytes, isNumbered: isNumbered)
    }

    /// The whole of it, its first and last byte, and its middle, each again and again; the whole and the middle also with
    /// names that are others each time.
    static func all(of bytes: [UInt8]) -> [[UInt8]] {
        guard !bytes.isEmpty else { return [] }
        let count = bytes.count
        let parts = [0..<count, 0..<1, count - 1..<count, count / 3..<max(count / 3 + 1, count * 2 / 3)]
        return parts.map { repeating($0, of: bytes, isNumbered: false) }
            + [parts[0], parts[3]].map { repeating($0, of: bytes, isNumbered: true) }
    }

    /// With a part of it repeated; numbered with three letters behind the part's first one, which makes other names of the
    /// same names.
    private static func repeating(_ place: Range<Int>, of bytes: [UInt8], isNumbered: Bool) -> [UInt8] {
        let part = bytes[place]
        let letter = part.firstIndex { ($0 | 0x20) >= UInt8(ascii: "a") && ($0 | 0x20) <= UInt8(ascii: "z") }
        var result = Array(bytes[..<place.lowerBound])
        for number in 0..<max(1, size / part.count) {
            guard isNumbered, let letter else {
                result += part
                continue
            }
            result += part[...letter]
            for digit in [number / 676, number / 26, number] { result.append(UInt8(ascii: "a") + UInt8(digit % 26)) }
            result += part[(letter + 1)...]
        }
        return result + bytes[place.upperBound...]
    }

    /// FNV-1a, with its high bits mixed in.
    private static func hash(_ bytes: [UInt8]) -> UInt64 {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        return hash ^ hash >> 32
    }
}
