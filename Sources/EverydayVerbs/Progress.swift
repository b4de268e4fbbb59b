// SPDX-License-Identifier: Apache-2.0

import CommandLinePages
import Linux

/// A line on standard error, on a terminal, that shows progress. The next output overwrites the line.
package final class Progress {
    private let isShown: Bool
    private var width = 0

    package init(isShown: Bool) { self.isShown = isShown && ThisProcess.isTerminal(2) }

    package func show(_ text: String) {
        guard isShown else { return }
        let rest = String(repeating: " ", count: max(0, width - text.count))
        try? ThisProcess.write("\r\(text)\(rest)", to: 2)
        width = text.count
    }

    package func clear() {
        guard isShown, width > 0 else { return }
        try? ThisProcess.write("\r" + String(repeating: " ", count: width) + "\r", to: 2)
        width = 0
    }
}

/// Shows on a terminal what the verb waits for, and for how long, once the wait takes half a second. There is only one
/// line for this: if several objects wait, the first one that reaches half a second uses the line.
package final class Waiting: Sendable {
    private struct Row {
        var owner: ObjectIdentifier?
        let progress = Progress(isShown: true)
    }

    private static let row = Monitor(Row())

    private let isOver = Monitor(false)
    private let isShown: Bool

    private static let silence = Duration.milliseconds(500)
    private static let interval = Duration.seconds(1)

    /// Starts the wait. If `isShown` is false, nothing is ever shown.
    package init(for text: String, isShown: Bool = true) {
        self.isShown = isShown && ThisProcess.isTerminal(2)
        guard self.isShown else { return }
        let began = Clock.monotonic()
        let owner = ObjectIdentifier(self)
        let isOver = isOver
        // If no thread can be started, nothing is shown, and the wait continues.
        try? WorkerThread.start(named: "waiting") {
            var next = began + Self.silence
            while isOver.wait(until: next, for: { isOver, _ in isOver ? true : nil }) == nil {
                let now = Clock.monotonic()
                let line = Self.line(text, Times.duration(seconds: (now - began).inSeconds))
                isOver.withLock { isOver in if !isOver { Self.show(line, owner) } }
                next = now + Self.interval
            }
        }
    }

    /// Ends the wait and clears the line. Must be called before anything else is written to the terminal.
    package func end() {
        guard isShown else { return }
        isOver.withLock { $0 = true }
        isOver.wake()
        Self.row.withLock { row in
            guard row.owner == ObjectIdentifier(self) else { return }
            row.progress.clear()
            row.owner = nil
        }
    }

    /// Writes to standard error, above the line that shows what the verb waits for.
    package static func above(_ write: () -> Void) {
        row.withLock { row in
            row.progress.clear()
            write()
        }
    }

    private static func show(_ line: String, _ owner: ObjectIdentifier) {
        row.withLock { row in
            guard row.owner == nil || row.owner == owner else { return }
            row.owner = owner
            row.progress.show(line)
        }
    }

    /// The text and the time, shortened so that they fit on one line of the terminal.
    private static func line(_ text: String, _ time: String) -> String {
        let room = (Terminal.columns(of: 2) ?? 80) - time.count - 5
        return (text.count > room ? text.prefix(max(0, room - 1)) + "…" : text) + " … " + time
    }
}
