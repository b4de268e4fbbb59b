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
    var count: Int? { (lines ?? (since == nil ? 100 : nil)).map { Int(clamping: $0) } }
}

/// What one app wrote, wherever that is kept.
struct AppLog {
    let app: String
    let manager: Manager
    let choice: LogChoice

    /// Hands over what is wanted, some lines at a time, until there are no more or `show` says that it is enough.
    ///
    /// - Parameter show: gets objects of LogLine; the first time what there was at the call, unless the app's journal has
    ///   all lines since a time, which come as they are read.
    func read(_ show: ([JSON]) -> Bool) throws {
        var request = LogsRequest(app: app)
        request.lines = choice.lines
        request.follow = choice.follow
        request.since = choice.since
        request.grep = choice.grep
        var place: JournalPlace?
        do throws(Failure) {
            // Another supervisor goes on behind the last line shown.
            let last = try manager.call(
                .logs(request),
                onReply: { reply in
                    _ = show(reply["lines"]?.arrayValue ?? [])
                    request.cursor = reply["cursor"]?.stringValue
                },
                onError: { name, parameters in
                    guard name == ManagerInterface.ErrorName.inJournal else { return nil }
                    place = parameters["journal"].flatMap { try? JournalPlace(json: $0) }
                    return nil
                }
            )
            _ = show(last["lines"]?.arrayValue ?? [])
        } catch {
            guard let place else { throw error }
            try readJournal(place, show)
        }
    }

    /// What is in the journal, chosen as the supervisor chooses of a file.
    private func readJournal(_ place: JournalPlace, _ show: ([JSON]) -> Bool) throws {
        var output = JournalOutput(place)
        output.since = choice.since
        output.grep = choice.grep
        let cursor: String?
        if let count = choice.count {
            let page = try output.last(count)
            guard show(page.lines.map(\.json)) else { return }
            cursor = page.cursor
        } else {
            var isRead = true
            cursor = try output.all { line in
                isRead = show([line.json])
                return isRead
            }
            guard isRead else { return }
        }
        guard choice.follow else { return }
        // Its time says nothing about lines to come.
        output.since = nil
        try output.follow(after: cursor) { show([$0.json]) }
    }
}
