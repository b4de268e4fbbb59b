// SPDX-License-Identifier: Apache-2.0

package import EventLoop

/// Something that is read beside the loop, since it may take a while: the questions of all who ask while it is being read
/// are answered together by the next reading. Of the loop's thread.
package final class CoalescingReader<Question: Sendable, Answer: Sendable> {
    package typealias Completion = (Answer) -> Void

    private let work: BackgroundWorker
    private let join: (inout Question, Question) -> Void
    private let read: @Sendable (Question) -> Answer
    private var waiting: [(question: Question, completion: Completion)] = []
    private var underWay: [Completion] = []

    /// - Parameters:
    ///   - name: of the thread; at most 15 bytes.
    ///   - join: makes two questions one.
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

    /// Answers later, never at once.
    package func ask(_ question: Question, _ completion: @escaping Completion) {
        waiting.append((question, completion))
        if underWay.isEmpty { begin() }
    }

    private func begin() {
        // Who was just answered may have asked again, and begun the next reading with that.
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
    /// Of what is always read whole.
    package convenience init(_ loop: EventLoop, named name: String, _ read: @escaping @Sendable () -> Answer) {
        self.init(loop, named: name, joining: { _, _ in }) { _ in read() }
    }

    /// Answers later, never at once.
    package func ask(_ completion: @escaping Completion) { ask((), completion) }
}
