// SPDX-License-Identifier: Apache-2.0

import Engine
package import EventLoop

/// Bounds how many snapshots are being taken at once: a locked session sends every app into the background in one moment,
/// and each that is taken may have some megabytes in memory. The others wait their turn, within their deadlines.
///
/// Of the loop's thread.
package final class SnapshotQueue {
    /// As many commands as keep a machine busy, and 64 MiB at most.
    private static let most = 16

    private struct Waiting {
        weak var run: SnapshotRun?
        let begin: (SnapshotRun) -> Void
    }

    private let loop: EventLoop
    private var underWay = 0
    private var waiting: [Waiting] = []

    package init(_ loop: EventLoop) { self.loop = loop }

    /// Begins a run when it is its turn, never at once. It gives its place back by ``leave()``.
    package func enter(_ run: SnapshotRun, _ begin: @escaping (SnapshotRun) -> Void) {
        waiting.removeAll { $0.run == nil }
        waiting.append(Waiting(run: run, begin: begin))
        if underWay < Self.most { nextSoon() }
    }

    /// One that has begun is over.
    package func leave() {
        underWay -= 1
        if !waiting.isEmpty { nextSoon() }
    }

    private func nextSoon() { loop.later { [weak self] in self?.next() } }

    private func next() {
        while underWay < Self.most, !waiting.isEmpty {
            let first = waiting.removeFirst()
            // Its app may have left the background meanwhile.
            guard let run = first.run else { continue }
            underWay += 1
            first.begin(run)
        }
    }
}
