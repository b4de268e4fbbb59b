// SPDX-License-Identifier: Apache-2.0

import Linux

/// Limits the rate of all transfers together. It is a token bucket that holds at most the bytes of a quarter of a
/// second. libcurl's own limit applies to each handle, and checks the clock only after a hundred buffers.
struct Pace {
    /// The rate limit in bytes per second.
    let rate: Int64
    private var available: Int64 = 0
    private var last: Duration

    init(_ rate: Int64, now: Duration) {
        self.rate = max(1, rate)
        last = now
    }

    /// Whether bytes may be moved now. One move may use more than the available tokens; later moves then wait longer.
    var isOpen: Bool { available > 0 }

    mutating func take(_ bytes: Int) { available -= Int64(bytes) }

    /// After how many milliseconds bytes may be moved again, 1 to 1000.
    var wait: Int {
        let missing = Double(1 - available) / Double(rate) * 1000
        return Int(min(max(missing, 1), 1000))
    }

    mutating func refill(now: Duration) {
        let elapsed = now - last
        let seconds = Double(elapsed.components.seconds) + Double(elapsed.components.attoseconds) * 1e-18
        let more = Int64(min(seconds * Double(rate), Double(Int64.max / 4)))
        // A fraction of a byte is kept for the next call.
        guard more > 0 else { return }
        last = now
        available = min(available + more, max(rate / 4, 1))
    }
}
