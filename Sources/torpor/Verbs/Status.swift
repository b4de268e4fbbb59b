import ArgumentParser
import Linux
import TorporAPI
import Varlink

struct Status: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Shows everything about one app; 3 if it is not running."
    )
    .examples(
        "torpor status web"
    )
    @OptionGroup var app: AppArgument
    @OptionGroup var options: GlobalOptions

    func run() throws { try PlainStatus(app: app.app, options: PlainOptions(options)).run() }
}

/// `status` without the argument parser.
struct PlainStatus {
    var app: String
    var options: PlainOptions

    func run() throws {
        let manager = try Manager(options)
        let reply = try manager.call(.status(app: app))
        var status = try Manager.read { () throws(FieldError) in try AppStatus(json: reply["status"] ?? .null) }
        var reading = JournalReading()
        reading.complete(&status)
        if options.json {
            Output.document(reading.isChanged ? status.json : reply["status"] ?? .null)
        } else {
            var page = StatusPage(status)
            page.events = events(manager)
            Output.write(page.text)
        }
        if status.summary.state == "not-running", status.summary.transition == nil {
            throw Failure(status: .notRunning, message: nil)
        }
    }

    /// What happened to it last; none where that cannot be had, which is no reason not to show the rest.
    private func events(_ manager: Manager) -> [EventRecord] {
        var request = EventsRequest()
        request.app = app
        request.limit = 5
        let reply = try? manager.call(.events(request))
        return (reply?["events"]?.arrayValue ?? []).compactMap { try? EventRecord(json: $0) }
    }
}
