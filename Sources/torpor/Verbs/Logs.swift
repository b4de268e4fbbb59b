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
        // Another supervisor goes on behind the last line shown.
        let last = try Manager(options).call(.logs(request)) { reply in
            show(reply)
            request.cursor = reply["cursor"]?.stringValue
        }
        show(last)
    }

    private func show(_ reply: JSON) {
        var text = ""
        for line in reply["lines"]?.arrayValue ?? [] {
            if options.json {
                text += line.description + "\n"
                continue
            }
            if times, let at = line["at"]?.intValue {
                text += Terminal.coloured(Times.timestamp(at), .dim) + " "
            }
            text += (line["text"]?.stringValue ?? "") + "\n"
        }
        // Nobody reads on: that is the reader's choice.
        if !ThisProcess.write(text) { ThisProcess.exit(0) }
    }
}
