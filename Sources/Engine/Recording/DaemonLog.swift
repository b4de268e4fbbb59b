// SPDX-License-Identifier: Apache-2.0

package import Configuration
import Linux
import Output
import WireText

/// The log of torpord itself.
///
/// A sentence may quote text from an app or a client. So each sentence is written as one line, without control
/// characters. Fields for the journal keep the text unchanged, because the journal stores their length, and
/// journalctl(1) escapes them.
///
/// If standard error is a stream of systemd's journal, entries go to the journal directly, with fields that can be
/// queried. An entry that cannot be sent goes to standard error as a line with the prefix of sd-daemon(3). Without a
/// journal, all entries are lines. Writing never blocks, even if no process reads standard error.
package final class DaemonLog {
    /// The lowest level that is logged.
    package var level: LogLevel
    private let journal: JournalSocket?
    /// Whether entries go to a journal.
    package var isJournal: Bool { journal != nil }
    /// Where lines are written: standard error, except in tests.
    private let descriptor: Int32
    private let kind: FileStatus.Kind
    /// How many entries were lost because no process read them.
    private var lost = 0
    /// The entries that ``holdingBack(_:)`` holds back; nil if it is not running.
    private var heldBack: [HeldBack]?

    /// An entry that is formatted and waits to be written.
    private enum HeldBack {
        case line(String)
        /// An entry for the journal; `line` is written if the journal does not take it.
        case entry(JournalEntry, line: String, LogLevel)
    }

    /// Holds back at most so many entries.
    private static let mostHeldBack = 64

    /// The longest write, in bytes. If poll(2) says that a pipe is writable, at least this much fits (PIPE_BUF).
    private static let longestLine = 4096

    package init(
        level: LogLevel,
        descriptor: Int32 = 2,
        stream: String? = ThisProcess.environment("JOURNAL_STREAM"),
        journal path: String = JournalSocket.path
    ) {
        self.level = level
        self.descriptor = descriptor
        kind = (try? File.status(descriptor: descriptor).kind) ?? .other
        journal = JournalSocket.isStream(descriptor, named: stream) ? JournalSocket(path: path) : nil
    }

    package func error(_ line: String) { write(line, .error) }
    package func warning(_ line: String) { write(line, .warning) }
    package func notice(_ line: String) { write(line, .notice) }
    package func info(_ line: String) { write(line, .info) }
    package func debug(_ line: String) { write(line, .debug) }

    /// Writes a sentence to the log; only a journal gets the `fields`.
    package func write(
        _ line: String,
        _ level: LogLevel,
        _ fields: @autoclosure () -> [(name: String, value: String)] = []
    ) {
        guard level >= self.level else { return }
        let line = line.onOneLine
        if let journal {
            var entry = JournalEntry(message: line, priority: level.priority)
            entry.add("SYSLOG_IDENTIFIER", "torpord")
            for field in fields() { entry.add(field.name, field.value) }
            if heldBack == nil { return send(entry, line, level, journal) }
            heldBack?.append(.entry(entry, line: line, level))
        } else {
            if heldBack == nil { return write("torpord: \(line)\n") }
            heldBack?.append(.line("torpord: \(line)\n"))
        }
        // Problems do not wait: they may be the last that this torpord writes.
        if level >= .warning || heldBack?.count == Self.mostHeldBack { writeHeldBack() }
    }

    /// Runs `work`, and writes the entries that it logs only afterwards, in their order: what an exit leads to, such as
    /// the next launch, does not wait for the log. The history has the events of these entries already. Warnings and
    /// errors are written at once, with all entries before them.
    package func holdingBack(_ work: () -> Void) {
        guard heldBack == nil else { return work() }
        heldBack = []
        work()
        writeHeldBack()
        heldBack = nil
    }

    private func writeHeldBack() {
        guard let held = heldBack, !held.isEmpty else { return }
        heldBack = []
        // A regular file gets all lines by one call. Anything else may take some of them and not the others.
        var (lines, count) = ("", 0)
        for entry in held {
            switch entry {
            case .line(let line) where kind == .regular:
                lines += line
                count += 1
            case .line(let line): write(line)
            case .entry(let entry, let line, let level):
                if let journal { send(entry, line, level, journal) }
            }
        }
        if count > 0 { write(lines, count) }
    }

    private func send(_ entry: JournalEntry, _ line: String, _ level: LogLevel, _ journal: JournalSocket) {
        if !journal.send(entry.bytes) { writeLines(line, level) }
    }

    /// Writes a text of torpord's own to the journal's stream. Each line of the text gets the prefix for `level`.
    package func writeLines(_ text: String, _ level: LogLevel) {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: true)
        write(lines.map { "<\(level.priority)>\(String($0).onOneLine)\n" }.joined())
    }

    private func write(_ text: String, _ count: Int = 1) {
        if lost > 0, put("torpord: \(lost) lines of the log were lost: no process read them\n", prefix: .warning) {
            lost = 0
        }
        if lost > 0 || !put(text, prefix: nil) { lost += count }
    }

    private func put(_ text: String, prefix: LogLevel?) -> Bool {
        let mark = journal == nil ? "" : prefix.map { "<\($0.priority)>" } ?? ""
        let bytes = Array((mark + text).utf8)
        do throws(Errno) {
            // Poll instead of setting O_NONBLOCK: that flag would also affect other processes that share the open
            // file.
            switch kind {
            case .socket: return try Sockets.send(descriptor, bytes) != nil
            case .regular: return try Descriptor.write(descriptor, bytes) != nil
            case .directory, .link, .fifo, .character, .block, .other: break
            }
            var rest = bytes[...]
            repeat {
                guard try Descriptor.wait(descriptor, writable: true, timeout: .zero) else { return false }
                guard let count = try Descriptor.write(descriptor, Array(rest.prefix(Self.longestLine))) else {
                    return false
                }
                rest = rest.dropFirst(count)
            } while !rest.isEmpty
            return true
        } catch {
            return false
        }
    }
}

extension LogLevel {
    /// The priority of syslog(3).
    package var priority: Int {
        switch self {
        case .debug: 7
        case .info: 6
        case .notice: 5
        case .warning: 4
        case .error: 3
        }
    }
}
