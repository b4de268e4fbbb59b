// SPDX-License-Identifier: Apache-2.0

/// Inputs made of others at random: the same ones for the same number.
struct Mutations: RandomNumberGenerator {
    private var state: UInt64

    init(_ number: UInt64) { state = number &* 0x9e37_79b9_7f4a_7c15 }

    /// SplitMix64.
    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }

    /// What parsers stumble over: ends of numbers, lengths and texts, and combining marks.
    private static let telling: [[UInt8]] = [
        [0], [0xff], [0x7f], [0x80], [0xff, 0xff, 0xff, 0xff], [0, 0, 0, 0x80], [0xff, 0xff, 0xff, 0x7f],
        Array("-9223372036854775808".utf8), Array("18446744073709551616".utf8), Array("1e999".utf8), Array("-0".utf8),
        Array("\u{301}\u{323}".utf8), Array("\r\n".utf8), [0xed, 0xa0, 0x80], Array("\"\\".utf8), Array("[[[{".utf8),
        Array("%00%2e".utf8), Array("../".utf8),
    ]

    /// One of these, changed in up to six places.
    mutating func one(of inputs: [[UInt8]]) -> [UInt8] {
        var bytes = inputs.randomElement(using: &self) ?? []
        for _ in 0..<Int.random(in: 1...6, using: &self) { change(&bytes, with: inputs) }
        return Array(bytes.prefix(4_096))
    }

    private mutating func change(_ bytes: inout [UInt8], with inputs: [[UInt8]]) {
        let place = Int.random(in: 0...bytes.count, using: &self)
        let part = place..<min(bytes.count, place + Int.random(in: 1...16, using: &self))
        switch Int.random(in: 0..<6, using: &self) {
        case 0: if !part.isEmpty { bytes[place] ^= 1 << UInt8.random(in: 0..<8, using: &self) }
        case 1: if !part.isEmpty { bytes[place] = .random(in: 0...255, using: &self) }
        case 2: bytes.removeSubrange(part)
        case 3: bytes.insert(contentsOf: bytes[part], at: place)
        case 4: bytes.insert(contentsOf: Self.telling.randomElement(using: &self) ?? [], at: place)
        default:
            let other = inputs.randomElement(using: &self) ?? []
            bytes = Array(bytes[..<place] + other.dropFirst(Int.random(in: 0...other.count, using: &self)))
        }
    }
}
