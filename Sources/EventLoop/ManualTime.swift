// SPDX-License-Identifier: Apache-2.0

public import Linux

/// Time that stands still until it is moved on. A loop that goes by it is for tests: nothing has to be waited for, and on a
/// busy machine the same comes out.
///
/// Of the loop's thread.
public final class ManualTime {
    /// The time, as CLOCK_MONOTONIC would have it.
    public private(set) var now: Duration
    private var armed: [ObjectIdentifier: (at: Duration, number: UInt64, fire: () -> Void)] = [:]
    private var count: UInt64 = 0

    /// Stands still at that time.
    public init(_ now: Duration = .seconds(1000)) { self.now = now }

    /// When the next timer fires; nil while none is armed.
    public var next: Duration? { armed.values.map(\.at).min() }

    func arm(_ timer: ObjectIdentifier, at time: Duration, _ fire: @escaping () -> Void) {
        count += 1
        armed[timer] = (time, count, fire)
    }

    func disarm(_ timer: ObjectIdentifier) { armed[timer] = nil }

    /// Fires the timer that is due first, of those that are due then; returns false where none is.
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
    /// Lets so much time pass, of a loop that goes by ``ManualTime``: each timer fires when its time has come, and whatever
    /// it caused is done before the next one.
    ///
    /// - Throws: what a turn of the loop throws.
    public func pass(_ time: Duration) throws(Errno) {
        guard let manual else { return }
        let end = manual.now + time
        repeat { try settle() } while manual.fire(until: end)
        try settle()
    }

    /// Does what is to be done at once: descriptors that are ready, and deferred work.
    ///
    /// - Throws: what a turn of the loop throws.
    public func settle() throws(Errno) {
        while try runOnce(timeout: .zero) {}
    }
}
