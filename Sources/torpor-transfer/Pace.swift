// SPDX-License-Identifier: Apache-2.0

import Linux

/// How many bytes all transfers together may move now: so many each second, of which a quarter of a second's worth may be saved
/// up. libcurl's own limit is for one handle, and lets a hundred buffers through before it looks at the clock.
struct Pace {
    /// Bytes a second.
    let rate: Int64
    private var available: Int64 = 0
    private var last: Duration

    init(_ rate: Int64, now: Duration) {
        self.rate = max(1, rate)
        last = now
    }

    /// Whether something may be moved; what is moved then may be more than there is.
    var isOpen: Bool { available > 0 }

    mutating func take(_ bytes: Int) { available -= Int64(bytes) }

    /// Milliseconds until something may be moved again, at least 1.
    var wait: Int {
        let missing = Double(1 - available) / Double(rate) * 1000
        return Int(min(max(missing, 1), 1000))
    }

    mutating func refill(now: Duration) {
        let elapsed = now - last
        let seconds = Double(elapsed.components.seconds) + Double(elapsed.components.attoseconds) * 1e-18
        let more = Int64(min(seconds * Double(rate), Double(Int64.max / 4)))
        // Less than a byte is not lost.
        guard more > 0 else { return }
        last = now
        available = min(available + more, max(rate / 4, 1))
    }
}
