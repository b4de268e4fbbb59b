// SPDX-License-Identifier: Apache-2.0

public import Configuration
import Linux

/// The gateway's log, for any thread: a line on standard error per message, with the prefix of sd-daemon(3) if a
/// journal reads it.
public final class GatewayLog: Sendable {
    private struct Repeated {
        var saidAt: Duration
        var left = 0
    }

    private let level: LogLevel
    private let isJournal: Bool
    private let repeated = Monitor([String: Repeated]())
    /// The least interval of equal messages.
    private static let interval = Duration.seconds(30)

    /// Logs messages of at least this severity.
    public init(level: LogLevel) {
        self.level = level
        isJournal = JournalSocket.isStream(2, named: ThisProcess.environment("JOURNAL_STREAM"))
    }

    /// Logs a sentence, without control characters that may come from outside.
    public func say(_ level: LogLevel, _ sentence: String) {
        guard level >= self.level else { return }
        let scalars = sentence.unicodeScalars.map { $0.value < 32 || $0.value == 127 ? "?" : $0 }
        let plain = String(String.UnicodeScalarView(scalars))
        ThisProcess.complain((isJournal ? "<\(Self.priority(level))>" : "torpor-gateway: ") + plain)
    }

    /// For events that may come with every message: logs each `what` at most every 30 s, then with the number of
    /// occurrences.
    public func sayOften(_ level: LogLevel, _ what: String, _ sentence: String) {
        guard level >= self.level else { return }
        let now = Clock.monotonic()
        let left: Int? = repeated.withLock { repeated in
            // Names from outside must not fill the memory.
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
