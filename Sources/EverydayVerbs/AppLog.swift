// SPDX-License-Identifier: Apache-2.0

import CommandLinePages
import Linux
import TorporAPI
import Varlink

/// Which lines of apps' output to show.
package struct LogChoice: Sendable {
    /// The number of last lines to show; nil for the default: 100, or all lines with `since`.
    var lines: Int64?
    /// Only lines from this time on are shown, in microseconds since 1970; nil for no limit.
    var since: Int64?
    /// A text that each shown line must contain; nil for no condition.
    var grep: String?
    /// Whether to continue with new lines as they are written.
    var follow = false

    package init(lines: Int64? = nil, since: Int64? = nil, grep: String? = nil, follow: Bool = false) {
        self.lines = lines
        self.since = since
        self.grep = grep
        self.follow = follow
    }

    /// How many of the last lines to show; nil means all.
    var count: Int? { (lines ?? (since == nil ? 100 : nil)).map { Int(clamping: $0) } }
}

/// The output of one app, from the supervisor's log files or the journal.
struct AppLog {
    let app: String
    let manager: Manager
    let choice: LogChoice

    /// A batch of lines, and whether more of the lines that existed at the time of the call follow in the next batch.
    struct Page {
        /// The lines, as objects of the type LogLine.
        var lines: [JSON]
        var more = false
    }

    /// Calls `show` with the selected lines in batches, until there are no more or `show` returns false.
    func read(_ show: (Page) -> Bool) throws {
        var request = LogsRequest(app: app)
        request.lines = choice.lines
        request.follow = choice.follow
        request.since = choice.since
        request.grep = choice.grep
        var place: JournalPlace?
        do throws(Failure) {
            func take(_ reply: JSON) {
                _ = show(Page(lines: reply["lines"]?.arrayValue ?? [], more: reply["more"]?.boolValue ?? false))
                // If the supervisor is replaced, continue after the last line that was shown.
                request.cursor = reply["cursor"]?.stringValue.flatMap { $0.isEmpty ? nil : $0 }
            }
            let last = try manager.call(
                .logs(request),
                onReply: take,
                onError: { name, parameters in
                    guard name == ManagerInterface.ErrorName.inJournal else { return nil }
                    place = parameters["journal"].flatMap { try? JournalPlace(json: $0) }
                    return nil
                }
            )
            take(last)
        } catch {
            guard let place else { throw error }
            try readJournal(place, show)
        }
    }

    /// Selects lines of the journal by the rules by which the supervisor selects lines of a log file.
    private func readJournal(_ place: JournalPlace, _ show: (Page) -> Bool) throws {
        var output = JournalOutput(place)
        output.since = choice.since
        output.grep = choice.grep
        let cursor: String?
        if let count = choice.count {
            let page = try output.last(count)
            guard show(Page(lines: page.lines.map(\.json))) else { return }
            cursor = page.cursor
        } else {
            var isRead = true
            cursor = try output.all { line in
                isRead = show(Page(lines: [line.json], more: true))
                return isRead
            }
            guard isRead, show(Page(lines: [])) else { return }
        }
        guard choice.follow else { return }
        // `since` selects only existing lines. New lines are all shown.
        output.since = nil
        try output.follow(after: cursor) { show(Page(lines: [$0.json])) }
    }
}
