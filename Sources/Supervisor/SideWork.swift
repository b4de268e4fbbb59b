import EventLoop
import Linux

/// Work that may wait for a disk, a driver or a server, done beside the loop, one piece after the other, by a thread that
/// is there only while there is something to do.
///
/// Of the loop's thread.
final class SideWork {
    private struct Piece {
        let work: @Sendable () -> any Sendable
        let completion: (any Sendable) -> Void
    }

    private let loop: EventLoop
    private let name: String
    private let answers = Monitor<[any Sendable]>([])
    private var doorbell: EventCounter?
    private var source: IOSource?
    private var waiting: [Piece] = []
    private var underWay: Piece?

    /// - Parameter name: of the thread; at most 15 bytes.
    init(_ loop: EventLoop, named name: String) {
        self.loop = loop
        self.name = name
    }

    /// Has something done; its result is told later, never at once.
    func ask<Result: Sendable>(_ work: @escaping @Sendable () -> Result, _ completion: @escaping (Result) -> Void) {
        waiting.append(Piece(work: work, completion: { if let result = $0 as? Result { completion(result) } }))
        next()
    }

    private func next() {
        guard underWay == nil, !waiting.isEmpty else { return }
        let piece = waiting.removeFirst()
        underWay = piece
        let work = piece.work
        do throws(Errno) {
            let (answers, doorbell) = (answers, try bell())
            try WorkerThread.start(named: name) {
                let result = work()
                answers.withLock { $0.append(result) }
                doorbell.signal()
            }
        } catch {
            // No room for a thread: then the loop waits this once.
            loop.later { [weak self] in self?.answer(work()) }
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

    private func answer(_ result: any Sendable) {
        let piece = underWay
        underWay = nil
        piece?.completion(result)
        next()
    }
}
