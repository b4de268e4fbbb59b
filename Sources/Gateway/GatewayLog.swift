// SPDX-License-Identifier: Apache-2.0

public import Configuration
import Linux
import WireText

/// The gateway's log, for any thread. Writes a line on standard error for each message, with the prefix of
/// sd-daemon(3) if a journal reads it.
public final class GatewayLog: Sendable {
    private struct Repeated {
        var saidAt: Duration
        var left = 0
    }

    private let level: LogLevel
    private let isJournal: Bool
    private let repeated = Monitor([String: Repeated]())
    /// The minimum interval between equal messages.
    private static let interval = Duration.seconds(30)

    /// Creates a log for messages of at least this severity.
    public init(level: LogLevel) {
        self.level = level
        isJournal = JournalSocket.isStream(2, named: ThisProcess.environment("JOURNAL_STREAM"))
    }

    /// Logs a sentence. Replaces control characters, since the sentence may quote text from outside.
    public func say(_ level: LogLevel, _ sentence: String) {
        guard level >= self.level else { return }
        ThisProcess.complain((isJournal ? "<\(Self.priority(level))>" : "torpor-gateway: ") + sentence.onOneLine)
    }

    /// Logs something that may happen with every message: each `what` at most every 30 s, then with the number of
    /// times that it happened.
    public func sayOften(_ level: LogLevel, _ what: String, _ sentence: String) {
        guard level >= self.level else { return }
        let now = Clock.monotonic()
        let left: Int? = repeated.withLock { repeated in
            // Names from outside must not fill up the memory.
            if repeated.count > 1000 { repeated = [:] }
            if let before = repeated[what], now - before.saidAt < Self.interval {
                repeated[what]?.left += 1
                return nil
            }
            let left = repeated[what]?.left ?? 0
            repeated[what] = Repeated(saidAt: now)
            return left
        }
        guard let left else { return }
        say(level, left == 0 ? sentence : "\(sentence) (and \(left) times before)")
    }

    private static func priority(_ level: LogLevel) -> Int {
        switch level {
        case .debug: 7
        case .info: 6
        case .notice: 5
        case .warning: 4
        case .error: 3
        }
    }
}
