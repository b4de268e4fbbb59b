// SPDX-License-Identifier: Apache-2.0

import Glibc

/// That a parser takes time linear in the size of its input: so much, and so much for each byte, of this thread's
/// processor time. What others do with the machine counts little in it, and the bound is far from what is usual, so that
/// only what grows faster than its input crosses it.
struct TimeBound {
    let perByte: Int

    /// Unoptimised code takes so much longer, and a sanitizer twice as long.
    private static let slowness: Int = {
        var factor = 1
        assert(
            {
                factor = 25
                return true
            }()
        )
        return factor
    }()

    /// So often it has to be too slow: page faults and a cold cache come once.
    private static let attempts = 3

    func run(_ bytes: [UInt8], _ body: ([UInt8]) throws(Finding) -> Void) throws(Finding) {
        let bound = (100_000_000 + perByte * bytes.count) * Self.slowness
        var shortest = Int.max
        for _ in 0..<Self.attempts {
            let begin = Self.now
            try body(bytes)
            shortest = min(shortest, Self.now - begin)
            if shortest <= bound { return }
        }
        throw Finding(
            "\(bytes.count) bytes take \(shortest / 1_000_000) ms, more than \(bound / 1_000_000): is it not linear?"
        )
    }

    /// Nanoseconds that this thread has had of a processor.
    private static var now: Int {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return time.tv_sec * 1_000_000_000 + time.tv_nsec
    }
}
