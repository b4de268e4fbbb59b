// SPDX-License-Identifier: Apache-2.0

public import Linux

/// A clock for tests that stands still until a test advances it. So tests do not wait, and do not depend on how busy
/// the machine is.
///
/// Use it only on the thread of the event loop.
public final class ManualTime {
    /// The current time, instead of CLOCK_MONOTONIC.
    public private(set) var now: Duration
    private var armed: [ObjectIdentifier: (at: Duration, number: UInt64, fire: () -> Void)] = [:]
    private var count: UInt64 = 0

    /// Creates a clock that shows this time until it is advanced.
    public init(_ now: Duration = .seconds(1000)) { self.now = now }

    /// The time at which the next timer fires; nil if none is armed.
    public var next: Duration? { armed.values.map(\.at).min() }

    func arm(_ timer: ObjectIdentifier, at time: Duration, _ fire: @escaping () -> Void) {
        count += 1
        armed[timer] = (time, count, fire)
    }

    func disarm(_ timer: ObjectIdentifier) { armed[timer] = nil }

    /// Advances to the earliest timer due by `time` and fires it. If none is due, advances to `time` and returns
    /// false.
    fileprivate func fire(until time: Duration) -> Bool {
        let due = armed.filter { $0.value.at <= time }.min {
            ($0.value.at, $0.value.number) < ($1.value.at, $1.value.number)
        }
        guard let due else {
            now = max(now, time)
            return false
        }
        now = max(now, due.value.at)
        armed[due.key] = nil
        due.value.fire()
        return true
    }
}

extension EventLoop {
    /// Advances the ``ManualTime`` by `time`. Each timer fires at its time, and all its effects are complete before the
    /// next timer fires.
    ///
    /// - Throws: `Errno` when a turn of the loop fails.
    public func pass(_ time: Duration) throws(Errno) {
        guard let manual else { return }
        let end = manual.now + time
        repeat { try settle() } while manual.fire(until: end)
        try settle()
    }

    /// Handles everything that is ready now: descriptors and deferred work.
    ///
    /// - Throws: `Errno` when a turn of the loop fails.
    public func settle() throws(Errno) {
        while try runOnce(timeout: .zero) {}
    }
}
