import EventLoop
import Linux

/// Something that is read beside the loop, since it may take a while: who asks while it is being read is answered by the
/// next reading. Of the loop's thread.
final class Aside<Answer: Sendable> {
    private let loop: EventLoop
    private let name: String
    private let read: @Sendable () -> Answer
    private let answers = Monitor<[Answer]>([])
    private var doorbell: EventCounter?
    private var source: IOSource?
    private var waiting: [(Answer) -> Void] = []
    private var underWay: [(Answer) -> Void] = []

    /// - Parameter name: of the thread; at most 15 bytes.
    init(_ loop: EventLoop, named name: String, _ read: @escaping @Sendable () -> Answer) {
        self.loop = loop
        self.name = name
        self.read = read
    }

    /// Answers later, never at once.
    func ask(_ completion: @escaping (Answer) -> Void) {
        waiting.append(completion)
        if underWay.isEmpty { begin() }
    }

    private func begin() {
        guard !waiting.isEmpty else { return }
        underWay = waiting
        waiting = []
        let read = self.read
        do throws(Errno) {
            let doorbell = try bell()
            let answers = self.answers
            try WorkerThread.start(named: name) {
                let answer = read()
                answers.withLock { $0.append(answer) }
                doorbell.signal()
            }
        } catch {
            // No room for a thread: then the loop waits this once.
            loop.later { [weak self] in self?.answer(read()) }
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
        let all = answers.withLock { state in
            defer { state = [] }
            return state
        }
        for one in all { answer(one) }
    }

    private func answer(_ answer: Answer) {
        let completions = underWay
        underWay = []
        for completion in completions { completion(answer) }
        begin()
    }
}
