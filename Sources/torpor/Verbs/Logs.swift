import ArgumentParser
import Linux
import TorporAPI
import Varlink

struct Logs: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "logs",
        abstract: "Shows what an app wrote."
    )
    @OptionGroup var app: AppArgument

    @Flag(name: .shortAndLong, help: "Go on with what comes from now on.")
    var follow = false

    @Option(name: [.customShort("n"), .long], help: "So many of the last lines.")
    var lines: Int64?

    @Option(help: ArgumentHelp("From that time: \(PointInTime.help)", valueName: "time"))
    var since: PointInTime?

    @Option(help: ArgumentHelp("Only lines that contain this.", valueName: "text"))
    var grep: String?

    @Flag(name: [.customShort("t"), .long], help: "With the time of each line, in UTC.")
    var times = false
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if let lines, lines < 0 { throw ValidationError("-n wants a number from 0") }
    }

    func run() throws {
        var request = LogsRequest(app: app.app)
        request.lines = lines
        request.follow = follow
        request.since = since?.microseconds
        request.grep = grep
        var place: JournalPlace?
        do throws(Failure) {
            // Another supervisor goes on behind the last line shown.
            let last = try Manager(options).call(
                .logs(request),
                onReply: { reply in
                    show(reply: reply)
                    request.cursor = reply["cursor"]?.stringValue
                },
                onError: { name, parameters in
                    guard name == ManagerInterface.ErrorName.inJournal else { return nil }
                    place = parameters["journal"].flatMap { try? JournalPlace(json: $0) }
                    return nil
                }
            )
            show(reply: last)
        } catch {
            guard let place else { throw error }
            try showJournal(place)
        }
    }

    /// What is in the journal, chosen as the supervisor chooses of a file.
    private func showJournal(_ place: JournalPlace) throws {
        var output = JournalOutput(place)
        output.since = since?.microseconds
        output.grep = grep
        let cursor: String?
        if let count = lines ?? (since == nil ? 100 : nil) {
            let page = try output.last(Int(clamping: count))
            for line in page.lines where !show(line: line.json) { return }
            cursor = page.cursor
        } else {
            var isRead = true
            cursor = try output.all { line in
                isRead = show(line: line.json)
                return isRead
            }
            guard isRead else { return }
        }
        guard follow else { return }
        // Its time says nothing about lines to come.
        output.since = nil
        try output.follow(after: cursor) { show(line: $0.json) }
    }

    private func show(reply: JSON) {
        let text = (reply["lines"]?.arrayValue ?? []).map(text(of:)).joined()
        // Nobody reads on: that is the reader's choice.
        if !ThisProcess.write(text) { ThisProcess.exit(0) }
    }

    /// One line; false when nobody reads it.
    private func show(line: JSON) -> Bool { ThisProcess.write(text(of: line)) }

    private func text(of line: JSON) -> String {
        if options.json { return line.description + "\n" }
        var text = ""
        if times, let at = line["at"]?.intValue { text = Terminal.coloured(Times.timestamp(at), .dim) + " " }
        return text + (line["text"]?.stringValue ?? "") + "\n"
    }
}
