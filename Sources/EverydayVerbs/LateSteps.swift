// SPDX-License-Identifier: Apache-2.0

import Linux

/// Says on standard error, if that is not a terminal, what a verb waits for, once the wait has taken some time. Steps
/// before that are not said at once, because most verbs are done by then.
///
/// Of a wait for many apps, only the steps of a few are said.
package final class LateSteps: Sendable {
    private struct State {
        /// Each app's latest step before the time was over, in the order of their first steps; nil if it explains no
        /// wait.
        var early: [(app: String, line: String?)] = []
        /// The last line of each app of which a step was said.
        var said: [String: String] = [:]
        var isLate = false
        var saidThatMore = false
        var isOver = false
        /// Whether a thread waits for the time.
        var isWatched = false

        mutating func say(_ app: String, _ line: String) {
            guard said[app] != nil || said.count < LateSteps.most else { return }
            if said.updateValue(line, forKey: app) != line { Complaint.say(line, .remark) }
        }

        /// Says that the verb waits for apps whose steps are not said.
        mutating func sayThatMore(_ words: String) {
            guard !saidThatMore else { return }
            saidThatMore = true
            Complaint.say(words, .remark)
        }
    }

    /// The number of apps whose steps are said.
    private static let most = 5

    private let state = Monitor(State())

    private let deadline: Duration

    package init(after silence: Duration) { deadline = Clock.monotonic() + silence }

    /// Starts the thread that says the steps once the time is over. There is none before the first step: most verbs
    /// are done without one.
    private func watch() {
        let (state, deadline) = (state, deadline)
        // If no thread can be started, nothing is said, and the wait continues.
        try? WorkerThread.start(named: "steps") {
            guard state.wait(until: deadline, for: { state, _ in state.isOver ? true : nil }) == nil else { return }
            state.withLock { state in
                guard !state.isOver else { return }
                state.isLate = true
                let early = state.early.compactMap { app, line in line.map { (app, $0) } }
                for (app, line) in early { state.say(app, line) }
                if early.count > Self.most { state.sayThatMore("and \(early.count - Self.most) more") }
                state.early = []
            }
        }
    }

    /// Notes an app's step, or says it if the wait has taken long already.
    ///
    /// - Parameter line: what the verb waits for; nil if the step explains no wait, or was said.
    package func note(_ app: String, _ line: String?) {
        let isFirst = state.withLock { state in
            guard !state.isOver, line != nil, !state.isWatched else { return false }
            state.isWatched = true
            return true
        }
        if isFirst { watch() }
        state.withLock { state in
            guard !state.isOver else { return }
            if state.isLate {
                guard let line else { return }
                state.say(app, line)
                if state.said[app] == nil { state.sayThatMore("other apps wait too: ‘torpor status’ says for what") }
            } else if let index = state.early.firstIndex(where: { $0.app == app }) {
                state.early[index].line = line
            } else {
                state.early.append((app, line))
            }
        }
    }

    /// Ends the wait. Must be called before the results are written.
    package func end() {
        state.withLock { $0.isOver = true }
        state.wake()
    }
}
