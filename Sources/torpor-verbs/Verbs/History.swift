// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CommandLinePages
import EverydayVerbs
import Linux
import TorporAPI
import Varlink

struct History: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "history",
        abstract: "Shows what happened to apps and why, across restarts and boots, newest last."
    )
    .examples(
        "torpor history",
        "torpor history web",
        "torpor history web --since '2 days ago' -n 50"
    )
    @OptionGroup var app: AppOrAllArgument

    @Option(
        name: [.customShort("n", allowingJoined: true), .long],
        help: "Show only this many of the last events; 100 without -n and --since."
    )
    var lines: Int64?

    @Option(help: ArgumentHelp("Show events from this time on: \(PointInTime.help)", valueName: "time"))
    var since: PointInTime?

    @Option(help: ArgumentHelp("Show events before this time.", valueName: "time"))
    var until: PointInTime?
    @OptionGroup var times: TimeOptions
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if let lines, lines < 0 { throw ValidationError("-n wants a number from 0") }
        if let since, let until, since.microseconds > until.microseconds {
            throw ValidationError("--since is later than --until")
        }
    }

    package func run() throws {
        var request = EventsRequest()
        request.app = app.app
        request.since = since?.microseconds
        request.until = until?.microseconds
        request.limit = lines ?? (since == nil ? 100 : nil)
        var events: [JSON] = []
        func take(_ reply: JSON) {
            events += reply["events"]?.arrayValue ?? []
            request.after = reply["sequence"]?.intValue
            EventText.warn(of: reply)
        }
        take(try Manager(options).call(.events(request), onReply: take))
        if options.json { return Output.document(.array(events)) }
        Output.page(events.isEmpty ? "no events\n" : text(events))
    }

    private func text(_ events: [JSON]) -> String {
        var text = ""
        for json in events {
            guard let event = try? EventRecord(json: json) else { continue }
            let time = Times.timestamp(event.at)
            let run = event.incarnation.map { $0 > 0 ? "run \($0)" : "-" } ?? "-"
            let column = "  " + run + String(repeating: " ", count: max(0, 8 - run.count))
            text += Terminal.coloured(time, .dim) + column
            var sentence = EventText.sentence(event)
            if let name = event.app, name != app.app {
                sentence = Terminal.coloured(Terminal.harmless(name), .bold) + ": " + sentence
            }
            text += Terminal.wrapped(sentence, behind: time.count + column.count) + "\n"
        }
        return text
    }
}

/// Renders events as sentences.
enum EventText {
    static func sentence(_ event: EventRecord) -> String {
        var text = Terminal.coloured(Terminal.harmless(event.text), Terminal.colour(ofEvent: event))
        // Add the reason only if the sentence does not contain it.
        if let reason = event.reason, !event.text.contains(reason) { text += " (\(Terminal.harmless(reason)))" }
        return text
    }

    /// Warns if events are missing from a reply, with the reason.
    static func warn(of reply: JSON) {
        if let reason = reply["incomplete"]?.stringValue {
            Complaint.say(reason, .warning)
        }
    }
}

extension Terminal {
    /// The colour of an event that records the end of an app which no user asked for; nil for other events.
    fileprivate static func colour(ofEvent event: EventRecord) -> Colour? {
        switch event.kind {
        case "state": colour(ofState: event.to ?? "")
        case "exit":
            switch event.reason {
            case "stopped", "exit-success", "shutdown", "evicted", "exits-on-suspend", "replaced", "permission-changed",
                "protected-data-open":
                .dim
            default: .red
            }
        case "notice": .yellow
        default: nil
        }
    }
}
