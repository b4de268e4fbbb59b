// SPDX-License-Identifier: Apache-2.0

package import EventLoop

/// Reads something outside the loop that may take a while. Questions that arrive during a reading are answered
/// together by the next one. Use it only on the loop's thread.
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

    /// Calls `completion` later, never before this returns.
    package func ask(_ question: Question, _ completion: @escaping Completion) {
        waiting.append((question, completion))
        if underWay.isEmpty { begin() }
    }

    private func begin() {
        // A completion may have asked again and so begun the next reading already.
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
    /// A reader without questions: each reading reads everything.
    package convenience init(_ loop: EventLoop, named name: String, _ read: @escaping @Sendable () -> Answer) {
        self.init(loop, named: name, joining: { _, _ in }) { _ in read() }
    }

    /// Calls `completion` later, never before this returns.
    package func ask(_ completion: @escaping Completion) { ask((), completion) }
}
