// SPDX-License-Identifier: Apache-2.0

public import Configuration
import Linux
import WireText

/// The gateway's log, for any thread. Writes a line on standard error for each message, with the prefix of
/// sd-daemon(3) if a journal reads it.
public final class GatewayLog: Sendable {
    private let level: LogLevel
    private let isJournal: Bool
    /// The longest line, in characters.
    private static let longest = 2000
    private let throttle = Monitor(LogThrottle())

    /// Creates a log for messages of at least this severity.
    public init(level: LogLevel) {
        self.level = level
        isJournal = JournalSocket.isStream(2, named: ThisProcess.environment("JOURNAL_STREAM"))
    }

    /// Logs a sentence. Replaces control characters, since the sentence may quote text from outside.
    public func say(_ level: LogLevel, _ sentence: String) {
        guard level >= self.level else { return }
        // Cut the sentence, since a subject that it quotes may be 64 KiB long.
        let line = String(sentence.unicodeScalars.prefix(Self.longest)).onOneLine
        ThisProcess.complain((isJournal ? "<\(Self.priority(level))>" : "torpor-gateway: ") + line)
    }

    /// Logs a sentence about something that may happen with every message. Each `what` is logged at most once in 30 s,
    /// with the number of times that it happened, and at most 50 different ones are logged in 30 s. Returns whether the
    /// sentence was logged.
    @discardableResult
    public func sayOften(_ level: LogLevel, _ what: String, _ sentence: String) -> Bool {
        guard level >= self.level else { return false }
        let now = Clock.monotonic()
        let count: Int
        switch throttle.withLock({ $0.take(what, at: now) }) {
        case .nothing: return false
        case .message(let left): count = left
        case .others(let others, let left):
            say(.warning, "\(others) other messages were too many to log")
            count = left
        }
        say(level, count == 0 ? sentence : "\(sentence) (and \(count) times before)")
        return true
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
