// SPDX-License-Identifier: Apache-2.0

package import EventLoop

/// Reads something that may take long, on a thread outside the event loop. Questions that arrive during a reading are
/// merged, and the next reading answers them together. Use it only on the thread of the event loop.
package final class CoalescingReader<Question: Sendable, Answer: Sendable> {
    package typealias Completion = (Answer) -> Void

    private let work: BackgroundWorker
    private let join: (inout Question, Question) -> Void
    private let read: @Sendable (Question) -> Answer
    private var waiting: [(question: Question, completion: Completion)] = []
    private var underWay: [Completion] = []

    /// - Parameters:
    ///   - name: the name of the thread; at most 15 bytes.
    ///   - join: merges the second question into the first.
    package init(
        _ loop: EventLoop,
        named name: String,
        joining join: @escaping (inout Question, Question) -> Void,
        _ read: @escaping @Sendable (Question) -> Answer
    ) {
        work = BackgroundWorker(loop, named: name)
        self.join = join
        self.read = read
    }

    /// Calls `completion` with the answer later, never before this function returns.
    package func ask(_ question: Question, _ completion: @escaping Completion) {
        waiting.append((question, completion))
        if underWay.isEmpty { begin() }
    }

    private func begin() {
        // A completion may have requested another reading, which has then begun already.
        guard underWay.isEmpty, let first = waiting.first else { return }
        let question = waiting.dropFirst().reduce(into: first.question) { join(&$0, $1.question) }
        underWay = waiting.map(\.completion)
        waiting = []
        work.ask({ [read] in read(question) }, { [weak self] in self?.answer($0) })
    }

    private func answer(_ answer: Answer) {
        let completions = underWay
        underWay = []
        for completion in completions { completion(answer) }
        begin()
    }
}

extension CoalescingReader where Question == Void {
    /// Creates a reader that always reads everything, so that there are no questions to merge.
    package convenience init(_ loop: EventLoop, named name: String, _ read: @escaping @Sendable () -> Answer) {
        self.init(loop, named: name, joining: { _, _ in }) { _ in read() }
    }

    /// Calls `completion` with the answer later, never before this function returns.
    package func ask(_ completion: @escaping Completion) { ask((), completion) }
}
