// SPDX-License-Identifier: Apache-2.0

public import Configuration
import Linux

/// What the gateway has to say, from any thread: a line on standard error each, with the prefix of sd-daemon(3) where a
/// journal reads it.
public final class GatewayLog: Sendable {
    private struct Repeated {
        var saidAt: Duration
        var left = 0
    }

    private let level: LogLevel
    private let isJournal: Bool
    private let repeated = Monitor([String: Repeated]())
    /// The same is said no more often than that.
    private static let interval = Duration.seconds(30)

    /// One for what is at least that severe.
    public init(level: LogLevel) {
        self.level = level
        isJournal = JournalSocket.isStream(2, named: ThisProcess.environment("JOURNAL_STREAM"))
    }

    /// Says it, with the control characters of whatever came from outside taken out.
    public func say(_ level: LogLevel, _ sentence: String) {
        guard level >= self.level else { return }
        let scalars = sentence.unicodeScalars.map { $0.value < 32 || $0.value == 127 ? "?" : $0 }
        let plain = String(String.UnicodeScalarView(scalars))
        ThisProcess.complain((isJournal ? "<\(Self.priority(level))>" : "torpor-gateway: ") + plain)
    }

    /// Says what may happen with every message: each `what` at most every 30 s, and then how often it was.
    public func sayOften(_ level: LogLevel, _ what: String, _ sentence: String) {
        guard level >= self.level else { return }
        let now = Clock.monotonic()
        let left: Int? = repeated.withLock { repeated in
            // What outsiders name is not remembered without end.
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
