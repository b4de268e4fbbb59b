import Linux

/// A line on a terminal's standard error that says how far something is, and is overwritten by what comes next.
final class Progress {
    private let isShown: Bool
    private var width = 0

    init(isShown: Bool) { self.isShown = isShown && ThisProcess.isTerminal(2) }

    func show(_ text: String) {
        guard isShown else { return }
        let rest = String(repeating: " ", count: max(0, width - text.count))
        ThisProcess.write("\r\(text)\(rest)", to: 2)
        width = text.count
    }

    func clear() {
        guard isShown, width > 0 else { return }
        ThisProcess.write("\r" + String(repeating: " ", count: width) + "\r", to: 2)
        width = 0
    }
}

/// Says on a terminal what is waited for, and how long it has been, once that is more than half a second.
final class Waiting: Sendable {
    private struct State {
        var isOver = false
        let progress: Progress
    }

    private let state: Monitor<State>
    private let isShown: Bool

    private static let silence = Duration.milliseconds(500)
    private static let interval = Duration.seconds(1)

    /// Begins; `isShown` false for one that says nothing.
    init(for text: String, isShown: Bool = true) {
        self.isShown = isShown && ThisProcess.isTerminal(2)
        state = Monitor(State(progress: Progress(isShown: isShown)))
        guard self.isShown else { return }
        let began = Clock.monotonic()
        let state = state
        // Whoever cannot have a thread hears nothing.
        try? WorkerThread.start(named: "waiting") {
            var next = began + Self.silence
            while state.wait(until: next, for: { state, _ in state.isOver ? true : nil }) == nil {
                let now = Clock.monotonic()
                let line = Self.line(text, Times.duration(seconds: (now - began).inSeconds))
                state.withLock { state in if !state.isOver { state.progress.show(line) } }
                next = now + Self.interval
            }
        }
    }

    /// A line of its own above that.
    func say(_ line: String) {
        guard isShown else { return ThisProcess.complain(line) }
        state.withLock { state in
            state.progress.clear()
            ThisProcess.complain(line)
        }
    }

    /// It is over. To be called before anything else is written.
    func end() {
        guard isShown else { return }
        state.withLock { state in
            state.isOver = true
            state.progress.clear()
        }
        state.wake()
    }

    /// What is waited for, and the time, in what one line of the terminal holds.
    private static func line(_ text: String, _ time: String) -> String {
        let room = (TerminalDevice.size(2)?.columns ?? 80) - time.count - 5
        return (text.count > room ? text.prefix(max(0, room - 1)) + "…" : text) + " … " + time
    }
}
