// SPDX-License-Identifier: Apache-2.0

import CommandLinePages
import Linux
import TorporAPI
import Varlink

/// Which lines of what apps wrote are wanted.
struct LogChoice: Sendable {
    /// So many of the last ones; nil: 100, or with `since` all.
    var lines: Int64?
    /// Microseconds since 1970.
    var since: Int64?
    /// Only lines that contain this.
    var grep: String?
    /// Go on with what comes.
    var follow = false

    /// How many of the last ones are shown; nil: all.
    package var count: Int? { (lines ?? (since == nil ? 100 : nil)).map { Int(clamping: $0) } }
}

/// What one app wrote, wherever that is kept.
struct AppLog {
    let app: String
    let manager: Manager
    let choice: LogChoice

    /// Some lines, and whether there is more of what there was at the call.
    struct Page {
        /// Objects of LogLine.
        var lines: [JSON]
        var more = false
    }

    /// Hands over what is wanted, some lines at a time, until there are no more or `show` says that it is enough.
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
                // Another supervisor goes on behind the last line shown.
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

    /// What is in the journal, chosen as the supervisor chooses of a file.
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
        // Its time says nothing about lines to come.
        output.since = nil
        try output.follow(after: cursor) { show(Page(lines: [$0.json])) }
    }
}
