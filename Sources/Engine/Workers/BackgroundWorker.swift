// SPDX-License-Identifier: Apache-2.0

package import EventLoop
import Linux

/// Work that may wait for a disk, a driver or a server, done beside the loop by threads that are there only while there is
/// something to do: one piece after the other, or each at once.
///
/// Of the loop's thread.
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
    ///   - name: of the threads; at most 15 bytes.
    ///   - isInOrder: one piece waits for the one before. Else whoever asks bounds how many there are.
    package init(_ loop: EventLoop, named name: String, isInOrder: Bool = true) {
        self.loop = loop
        self.name = name
        self.isInOrder = isInOrder
    }

    /// Has something done; its result is told later, never at once.
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
            // No room for a thread: then the loop waits this once.
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
