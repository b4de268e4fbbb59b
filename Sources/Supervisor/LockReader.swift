import EventLoop
import Linux

/// Reads the machine's table of locks beside the loop: the kernel may take 10 ms for it (``LockTable``). Questions that
/// come while it is being read are answered together by the next reading.
///
/// Of the loop's thread.
final class LockReader {
    typealias Completion = (LockTable) -> Void

    private let loop: EventLoop
    private let answers = Monitor<[LockTable]>([])
    private var doorbell: EventCounter?
    private var source: IOSource?
    private var waiting: [(question: LockTable.Question, completion: Completion)] = []
    private var underWay: [Completion] = []

    init(_ loop: EventLoop) { self.loop = loop }

    /// Answers later, never at once. A table that cannot be read has no locks.
    func ask(_ question: LockTable.Question, _ completion: @escaping Completion) {
        waiting.append((question, completion))
        if underWay.isEmpty { read() }
    }

    private func read() {
        guard let first = waiting.first else { return }
        let question = waiting.dropFirst().reduce(into: first.question) { $0.formUnion($1.question) }
        underWay = waiting.map(\.completion)
        waiting = []
        do throws(Errno) {
            let doorbell = try bell()
            let answers = self.answers
            try WorkerThread.start(named: "locks") {
                let table = (try? LockTable.read(question)) ?? LockTable()
                answers.withLock { $0.append(table) }
                doorbell.signal()
            }
        } catch {
            // No room for a thread: then the loop waits this once.
            loop.later { [weak self] in self?.answer((try? LockTable.read(question)) ?? LockTable()) }
        }
    }

    private func bell() throws(Errno) -> EventCounter {
        if let doorbell { return doorbell }
        let doorbell = try EventCounter()
        source = try loop.watch(doorbell.raw, .readable) { [weak self] _ in self?.answered() }
        self.doorbell = doorbell
        return doorbell
    }

    private func answered() {
        doorbell?.drain()
        let tables = answers.withLock { state in
            defer { state = [] }
            return state
        }
        for table in tables { answer(table) }
    }

    private func answer(_ table: LockTable) {
        let completions = underWay
        underWay = []
        for completion in completions { completion(table) }
        read()
    }
}
