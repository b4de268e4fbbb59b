// SPDX-License-Identifier: Apache-2.0

import WireText

/// Parses a file of the time zone database (TZif, RFC 9636, versions 1 to 4).
struct ZoneFile {
    private let bytes: [UInt8]
    private var position = 0

    /// Returns nil if the bytes are not such a file, or if the file counts leap seconds, which system time does not
    /// count.
    static func zone(_ bytes: [UInt8]) -> TimeZone? {
        var file = ZoneFile(bytes: bytes)
        guard let version = file.header() else { return nil }
        guard version.isFirst else {
            // A second block repeats the data with 8-byte times.
            file.position += version.counts.size(timeSize: 4)
            guard let again = file.header() else { return nil }
            return file.body(again.counts, timeSize: 8)
        }
        return file.body(version.counts, timeSize: 4)
    }

    private init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// The numbers of entries, from the header.
    private struct Counts {
        var universal: Int
        var standard: Int
        var leapSeconds: Int
        var times: Int
        var types: Int
        var characters: Int

        /// The size of the data after the header, in bytes.
        func size(timeSize: Int) -> Int {
            times * (timeSize + 1) + types * 6 + characters + leapSeconds * (timeSize + 4) + standard + universal
        }
    }

    private mutating func header() -> (isFirst: Bool, counts: Counts)? {
        guard bytes.count - position >= 44, bytes[position..<(position + 4)].elementsEqual("TZif".utf8) else {
            return nil
        }
        let version = bytes[position + 4]
        position += 20
        var counts: [Int] = []
        for _ in 0..<6 { counts.append(Int(UInt32(truncatingIfNeeded: number(4)))) }
        // Larger counts cannot fit into the file.
        guard counts.allSatisfy({ $0 <= bytes.count }) else { return nil }
        let found = Counts(
            universal: counts[0],
            standard: counts[1],
            leapSeconds: counts[2],
            times: counts[3],
            types: counts[4],
            characters: counts[5]
        )
        return (version == 0, found)
    }

    private mutating func body(_ counts: Counts, timeSize: Int) -> TimeZone? {
        guard bytes.count - position >= counts.size(timeSize: timeSize), counts.types > 0 else { return nil }
        guard counts.leapSeconds == 0 else { return nil }
        var times: [Int64] = []
        for _ in 0..<counts.times { times.append(number(timeSize)) }
        let indices = bytes[position..<(position + counts.times)]
        position += counts.times
        let types = position
        let names = types + counts.types * 6
        var kinds: [TimeZone.Kind] = []
        for index in 0..<counts.types {
            position = types + index * 6
            let offset = Int(number(4))
            let name = names + Int(bytes[position + 1])
            guard name < names + counts.characters, abs(offset) < 26 * 3_600 else { return nil }
            let text = bytes[name..<(names + counts.characters)].prefix { $0 != 0 }
            kinds.append(
                TimeZone.Kind(
                    offset: offset,
                    isDaylight: bytes[position] != 0,
                    name: String(wire: text)
                )
            )
        }
        guard indices.allSatisfy({ $0 < kinds.count }), zip(times, times.dropFirst()).allSatisfy({ $0 < $1 }) else {
            return nil
        }
        position = types + counts.size(timeSize: timeSize) - counts.times * (timeSize + 1)
        let changes = zip(times, indices).map { TimeZone.Change(at: $0, to: kinds[Int($1)]) }
        return TimeZone(initial: kinds[0], changes: changes, rule: footer())
    }

    /// The rule at the end of the file, between two newlines.
    private func footer() -> ZoneRule? {
        guard position < bytes.count, bytes[position] == UInt8(ascii: "\n") else { return nil }
        let text = bytes[(position + 1)...].prefix { $0 != UInt8(ascii: "\n") }
        return ZoneRule(String(wire: text))
    }

    /// The next number, big endian, signed.
    private mutating func number(_ size: Int) -> Int64 {
        var value: UInt64 = bytes[position] & 0x80 == 0 ? 0 : .max
        for byte in bytes[position..<(position + size)] { value = value << 8 | UInt64(byte) }
        position += size
        return Int64(bitPattern: value)
    }
}
