// SPDX-License-Identifier: Apache-2.0

import Engine
package import EventLoop

/// Limits how many snapshots are taken at once. When the session is locked, all apps enter the background at the same
/// moment, and each snapshot may take several megabytes of memory. Snapshots above the limit wait in a queue, while
/// their deadlines continue to run.
///
/// Use it only on the thread of the event loop.
package final class SnapshotQueue {
    /// The most snapshots at once: enough to keep a machine busy, and together at most 64 MiB.
    private static let most = 16

    private struct Waiting {
        weak var run: SnapshotRun?
        let begin: (SnapshotRun) -> Void
    }

    private let loop: EventLoop
    private var underWay = 0
    private var waiting: [Waiting] = []

    package init(_ loop: EventLoop) { self.loop = loop }

    /// Calls `begin` when there is a place for `run`, but always after this function has returned. ``leave()`` frees
    /// the place.
    package func enter(_ run: SnapshotRun, _ begin: @escaping (SnapshotRun) -> Void) {
        waiting.removeAll { $0.run == nil }
        waiting.append(Waiting(run: run, begin: begin))
        if underWay < Self.most { nextSoon() }
    }

    /// Called when a snapshot that had begun is over: lets the next snapshot in the queue begin.
    package func leave() {
        underWay -= 1
        if !waiting.isEmpty { nextSoon() }
    }

    private func nextSoon() { loop.later { [weak self] in self?.next() } }

    private func next() {
        while underWay < Self.most, !waiting.isEmpty {
            let first = waiting.removeFirst()
            // The snapshot may have been cancelled, for example because the app left the background.
            guard let run = first.run else { continue }
            underWay += 1
            first.begin(run)
        }
    }
}
