// SPDX-License-Identifier: Apache-2.0

package import EventLoop
import Linux

/// Runs work that may block on a disk, a driver or a server, on threads outside the event loop. A thread exists only
/// while it has work. Pieces of work run one after the other, or, with `isInOrder: false`, in parallel.
///
/// Use it only on the thread of the event loop.
package final class BackgroundWorker {
    private struct Piece {
        let work: @Sendable () -> any Sendable
        let completion: (any Sendable) -> Void
    }

    private let loop: EventLoop
    private let name: String
    private let isInOrder: Bool
    private let answers = Monitor<[Answer]>([])
    private var doorbell: EventCounter?
    private var source: IOSource?
    private var waiting: [Piece] = []
    private var underWay: [UInt64: Piece] = [:]
    private var count: UInt64 = 0

    private struct Answer: Sendable {
        let number: UInt64
        let result: any Sendable
    }

    /// - Parameters:
    ///   - name: the name of the threads; at most 15 bytes.
    ///   - isInOrder: whether pieces run one at a time, in order. If not, the caller limits how many run at once.
    package init(_ loop: EventLoop, named name: String, isInOrder: Bool = true) {
        self.loop = loop
        self.name = name
        self.isInOrder = isInOrder
    }

    /// Runs `work` on a thread. `completion` is called later on the event loop, never before this function returns.
    package func ask<Result: Sendable>(
        _ work: @escaping @Sendable () -> Result,
        _ completion: @escaping (Result) -> Void
    ) {
        waiting.append(Piece(work: work, completion: { if let result = $0 as? Result { completion(result) } }))
        next()
    }

    private func next() {
        guard !isInOrder || underWay.isEmpty, !waiting.isEmpty else { return }
        let piece = waiting.removeFirst()
        count += 1
        let (number, work) = (count, piece.work)
        underWay[number] = piece
        do throws(Errno) {
            let (answers, doorbell) = (answers, try bell())
            try WorkerThread.start(named: name) {
                let result = work()
                answers.withLock { $0.append(Answer(number: number, result: result)) }
                doorbell.signal()
            }
        } catch {
            // No thread could be created: run the work on the event loop, although that blocks the loop.
            loop.later { [weak self] in self?.answer(Answer(number: number, result: work())) }
        }
    }

    private func bell() throws(Errno) -> EventCounter {
        if let doorbell { return doorbell }
        let doorbell = try EventCounter()
        source = try loop.watch(doorbell.raw, .readable) { [weak self] _ in
            guard let self else { return }
            self.doorbell?.drain()
            let results = self.answers.withLock { state in
                defer { state = [] }
                return state
            }
            for result in results { self.answer(result) }
        }
        self.doorbell = doorbell
        return doorbell
    }

    private func answer(_ answer: Answer) {
        underWay.removeValue(forKey: answer.number)?.completion(answer.result)
        next()
    }
}
