// SPDX-License-Identifier: Apache-2.0

import Engine
import EventLoop
import Linux

/// Looks up again, on a background thread, the groups that give rights: while torpord runs, a group may be made, removed
/// or given another number. A network directory that hangs holds up only clients that would otherwise be refused, and
/// these no longer than ``patience``.
final class GroupLookups {
    /// How long a client waits for a lookup.
    static let patience = Duration.seconds(5)
    /// How long after a lookup the next one begins, so that users without rights cannot keep a processor busy.
    private static let spacing = Duration.seconds(1)

    private let loop: EventLoop
    private let worker: BackgroundWorker
    /// Gets the result of each lookup before the completions are called.
    var adopt: ((Authority) -> Void)?
    /// What the next lookup is to look up.
    private var question: Authority?
    /// Called when the next lookup has ended.
    private var waiting: [() -> Void] = []
    /// Called when the lookup in flight has ended, or takes too long.
    private var underWay: [() -> Void] = []
    private var isRunning = false
    /// Whether the lookup in flight takes longer than ``patience``.
    private var hangs = false
    /// When the last lookup ended.
    private var last: Duration?
    /// Begins the next lookup.
    private var beginning: TimerSource?
    /// Ends the patience with the lookup in flight.
    private var limit: TimerSource?

    init(_ loop: EventLoop) {
        self.loop = loop
        worker = BackgroundWorker(loop, named: "groups")
    }

    /// Whether the last lookup ended longer ago than this.
    func isOlder(than age: Duration) -> Bool { last.map { loop.now - $0 > age } ?? true }

    /// Calls `completion` when the groups of `authority` are looked up again, or if that takes too long.
    func ask(_ authority: Authority, _ completion: @escaping () -> Void) {
        guard !hangs else { return completion() }
        do throws(Errno) {
            if beginning == nil { beginning = try loop.timer { [weak self] in self?.begin() } }
            if limit == nil { limit = try loop.timer { [weak self] in self?.giveUp() } }
        } catch {
            // Without timers nothing bounds the wait.
            return completion()
        }
        question = authority
        waiting.append(completion)
        begin()
    }

    private func begin() {
        guard !isRunning, !waiting.isEmpty, let question else { return }
        if let last, loop.now < last + Self.spacing {
            beginning?.arm(at: last + Self.spacing)
            return
        }
        isRunning = true
        underWay = waiting
        waiting = []
        limit?.arm(after: Self.patience)
        worker.ask({ question.lookedUpAgain() }) { [weak self] found in
            guard let self else { return }
            limit?.disarm()
            isRunning = false
            hangs = false
            last = loop.now
            adopt?(found)
            let due = underWay
            underWay = []
            for completion in due { completion() }
            begin()
        }
    }

    private func giveUp() {
        hangs = true
        let due = underWay + waiting
        underWay = []
        waiting = []
        for completion in due { completion() }
    }
}
