// SPDX-License-Identifier: Apache-2.0

import Linux

/// Runs blocking disk work. Each job has its own thread; only a few run at a time.
final class Jobs {
    private static let most = 4

    private struct Waiting {
        let work: @Sendable () -> DiskResult
        let then: (DiskResult) -> Void
    }

    /// Becomes readable when jobs are done.
    let news: EventCounter
    private let done = Monitor<[(Int, DiskResult)]>([])
    private var queue: [Waiting] = []
    private var running: [Int: (DiskResult) -> Void] = [:]
    private var number = 0

    init() throws(Errno) { news = try EventCounter() }

    /// Whether jobs are queued because no thread could be started.
    var isShortOfThreads: Bool { running.isEmpty && !queue.isEmpty }

    /// Runs `work` on a thread, then calls `then` on the event loop.
    func run(_ work: @escaping @Sendable () -> DiskResult, then: @escaping (DiskResult) -> Void) {
        queue.append(Waiting(work: work, then: then))
        start()
    }

    /// Starts queued jobs up to the limit.
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
                // No thread can be started now: retry when another job ends, or at the next tick.
                return
            }
            queue.removeFirst()
            running[number] = next.then
        }
    }

    /// Calls `then` for finished jobs.
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
