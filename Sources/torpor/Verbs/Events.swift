import ArgumentParser
import Linux
import TorporAPI
import Varlink

struct Events: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "events",
        abstract: "Shows what happened and why."
    )

    @Argument(
        help: ArgumentHelp("Only what concerns this app.", valueName: "app"),
        completion: .custom { words, _, _ in Completion.apps(words) }
    )
    var app: String?

    @Flag(name: .shortAndLong, help: "Go on with what happens from now on.")
    var follow = false

    @Option(help: ArgumentHelp("From that time: \(PointInTime.help)", valueName: "time"))
    var since: PointInTime?
    @OptionGroup var options: GlobalOptions

    func run() throws {
        var request = EventsRequest()
        request.app = app
        request.follow = follow
        request.since = since?.microseconds
        // Another supervisor goes on behind the last event that this one knew of.
        let last = try Manager(options).call(.events(request)) { reply in
            show(reply)
            request.after = reply["sequence"]?.intValue
        }
        show(last)
    }

    private func show(_ reply: JSON) {
        var text = ""
        for event in reply["events"]?.arrayValue ?? [] {
            if options.json {
                text += event.description + "\n"
            } else if let event = try? EventRecord(json: event) {
                text += Terminal.coloured(Times.timestamp(event.at), .dim) + " "
                if let app = event.app { text += Terminal.coloured(Terminal.harmless(app), .bold) + ": " }
                text += EventText.sentence(event) + "\n"
            }
        }
        EventText.warn(of: reply)
        if !ThisProcess.write(text) { ThisProcess.exit(0) }
    }
}
