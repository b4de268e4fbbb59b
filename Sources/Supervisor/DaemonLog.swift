import Configuration
import Linux

/// The daemon's own log: lines on standard error, with the priority prefix of sd-daemon(3) when a journal reads them.
final class DaemonLog {
    /// Lines below it are dropped.
    var level: LogLevel
    private let isJournal: Bool

    init(level: LogLevel) {
        self.level = level
        isJournal = ThisProcess.environment("JOURNAL_STREAM") != nil
    }

    func error(_ line: String) { write(line, .error, 3) }
    func warning(_ line: String) { write(line, .warning, 4) }
    func info(_ line: String) { write(line, .info, 6) }
    func debug(_ line: String) { write(line, .debug, 7) }

    private func write(_ line: String, _ level: LogLevel, _ priority: Int) {
        guard level >= self.level else { return }
        let text = isJournal ? "<\(priority)>\(line)\n" : "torpord: \(line)\n"
        // A log that cannot be written must not stop the daemon.
        _ = try? Descriptor.write(2, Array(text.utf8))
    }
}
