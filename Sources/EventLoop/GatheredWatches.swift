// SPDX-License-Identifier: Apache-2.0

import Linux

/// Watches whose events may be delayed by a few milliseconds, to be handled together. So a thousand descriptors that
/// are ready once a second do not wake the process a thousand times. The first event after a pause is handled at
/// once; later events that follow closely are gathered.
final class GatheredWatches {
    let table: WatchTable
    private var source: IOSource?
    private var timer: TimerSource?
    private var drainedAt = Duration.zero

    /// The longest time by which an event is delayed.
    private static let gathering = Duration.milliseconds(4)
    /// Events that are closer together than this are gathered.
    private static let pause = Duration.milliseconds(8)
    private static let mostPasses = 16

    init(_ loop: EventLoop) throws(Errno) {
        table = try WatchTable()
        source = try loop.watch(table.poller.descriptor.raw, .readable) { [unowned self] _ in self.areReady() }
        timer = try loop.timer { [unowned self] in self.source?.setEvents(.readable) }
    }

    private func areReady() {
        // A handler reads one item per call, so drain the descriptors several times. If events still come after that,
        // return without a pause: to gather them would have no benefit.
        var passes = 0
        while passes < Self.mostPasses, table.drain() > 0 { passes += 1 }
        guard passes < Self.mostPasses else { return }
        let now = Clock.monotonic()
        defer { drainedAt = now }
        guard now - drainedAt < Self.pause else { return }
        source?.setEvents([])
        timer?.arm(at: now + Self.gathering)
    }
}
