// SPDX-License-Identifier: Apache-2.0

import DaemonHarness

/// Pseudo-random choices that depend on their seed alone: SplitMix64 (Steele, Lea and Flood, 2014).
struct Dice: RandomNumberGenerator {
    private var state: UInt64

    /// The choices of one round: any round can be played again without those before it.
    init(seed: UInt64, round: Int) {
        state = seed ^ (UInt64(bitPattern: Int64(round)) &* 0xd134_2543_de82_ef95)
        _ = next()
    }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var z = state
        z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
        z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
        return z ^ (z >> 31)
    }

    /// True in so many of a hundred cases.
    mutating func percent(_ share: Int) -> Bool { Int.random(in: 0..<100, using: &self) < share }

    /// One of these, each as often as its weight says.
    mutating func pick<Choice>(_ choices: [(Choice, weight: Int)]) -> Choice {
        var rest = Int.random(in: 0..<choices.reduce(0) { $0 + $1.weight }, using: &self)
        for (choice, weight) in choices {
            rest -= weight
            if rest < 0 { return choice }
        }
        return choices[choices.count - 1].0
    }
}
