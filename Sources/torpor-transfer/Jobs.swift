// SPDX-License-Identifier: Apache-2.0

import Linux

/// Work that may wait for a disk, each on a thread of its own, a few at a time.
final class Jobs {
    private static let most = 4

    private struct Waiting {
        let work: @Sendable () -> DiskResult
        let then: (DiskResult) -> Void
    }

    /// Readable when some are done.
    let news: EventCounter
    private let done = Monitor<[(Int, DiskResult)]>([])
    private var queue: [Waiting] = []
    private var running: [Int: (DiskResult) -> Void] = [:]
    private var number = 0

    init() throws(Errno) { news = try EventCounter() }

    /// Whether some wait for a thread that there was none for.
    var isShortOfThreads: Bool { running.isEmpty && !queue.isEmpty }

    /// Does `work` beside the loop, and `then` on it.
    func run(_ work: @escaping @Sendable () -> DiskResult, then: @escaping (DiskResult) -> Void) {
        queue.append(Waiting(work: work, then: then))
        start()
    }

    /// Begins what waits, as far as it may.
    func start() {
        while running.count < Self.most, let next = queue.first {
            number += 1
            let (number, work, done, news) = (number, next.work, done, news)
            do throws(Errno) {
                try WorkerThread.start(named: "disk") {
                    let result = work()
                    done.withLock { $0.append((number, result)) }
                    news.signal()
                }
            } catch {
                // Out of threads: when another one is over, or a second later.
                return
            }
            queue.removeFirst()
            running[number] = next.then
        }
    }

    /// Tells what is done.
    func drain() {
        news.drain()
        let results = done.withLock { list in
            let all = list
            list = []
            return all
        }
        for (number, result) in results { running.removeValue(forKey: number)?(result) }
        start()
    }
}
