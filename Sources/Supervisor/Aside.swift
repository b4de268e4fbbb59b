import EventLoop
import Linux

/// Something that is read beside the loop, since it may take a while: the questions of all who ask while it is being read
/// are answered together by the next reading. Of the loop's thread.
final class Aside<Question: Sendable, Answer: Sendable> {
    typealias Completion = (Answer) -> Void

    private let loop: EventLoop
    private let name: String
    private let join: (inout Question, Question) -> Void
    private let read: @Sendable (Question) -> Answer
    private let answers = Monitor<[Answer]>([])
    private var doorbell: EventCounter?
    private var source: IOSource?
    private var waiting: [(question: Question, completion: Completion)] = []
    private var underWay: [Completion] = []

    /// - Parameters:
    ///   - name: of the thread; at most 15 bytes.
    ///   - join: makes two questions one.
    init(
        _ loop: EventLoop,
        named name: String,
        joining join: @escaping (inout Question, Question) -> Void,
        _ read: @escaping @Sendable (Question) -> Answer
    ) {
        self.loop = loop
        self.name = name
        self.join = join
        self.read = read
    }

    /// Answers later, never at once.
    func ask(_ question: Question, _ completion: @escaping Completion) {
        waiting.append((question, completion))
        if underWay.isEmpty { begin() }
    }

    private func begin() {
        // Who was just answered may have asked again, and begun the next reading with that.
        guard underWay.isEmpty, let first = waiting.first else { return }
        let question = waiting.dropFirst().reduce(into: first.question) { join(&$0, $1.question) }
        underWay = waiting.map(\.completion)
        waiting = []
        let read = self.read
        do throws(Errno) {
            let doorbell = try bell()
            let answers = self.answers
            try WorkerThread.start(named: name) {
                let answer = read(question)
                answers.withLock { $0.append(answer) }
                doorbell.signal()
            }
        } catch {
            // No room for a thread: then the loop waits this once.
            loop.later { [weak self] in self?.answer(read(question)) }
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

extension Aside where Question == Void {
    /// Of what is always read whole.
    convenience init(_ loop: EventLoop, named name: String, _ read: @escaping @Sendable () -> Answer) {
        self.init(loop, named: name, joining: { _, _ in }) { _ in read() }
    }

    /// Answers later, never at once.
    func ask(_ completion: @escaping Completion) { ask((), completion) }
}
