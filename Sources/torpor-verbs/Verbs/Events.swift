// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import EverydayVerbs
import Telemetry
import TorporAPI
import Varlink

struct Events: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "events",
        abstract: "Shows what happened and why.",
        discussion: """
            With --record, writes what the policies are asked, what they see and what they advise to a file, until \
            Ctrl-C; ‘torpor policy simulate’ then shows what another policy would have decided.
            """
    )
    .examples(
        "torpor events",
        "torpor events --utc",
        "torpor events -f web",
        "torpor events --since 10min --json",
        "torpor events --otlp -f >>spans.jsonl",
        "torpor events --record day.trace --for 1h"
    )

    @OptionGroup var app: AppOrAllArgument

    @Option(name: [.customShort("n", allowingJoined: true), .long], help: "Show only this many of the last events.")
    var lines: Int64?

    @Flag(name: .shortAndLong, help: "Keep showing events as they happen.")
    var follow = false

    @Option(help: ArgumentHelp("Show events from this time on: \(PointInTime.help)", valueName: "time"))
    var since: PointInTime?

    @Flag(
        help: "Print OpenTelemetry traces (OTLP/JSON, one a line): each run of an app is a trace, its states are spans."
    )
    var otlp = false

    @Option(
        help: ArgumentHelp("Record for policies to this file; - is standard output.", valueName: "file"),
        completion: .file()
    )
    var record: String?

    @Option(name: .customLong("for"), help: ArgumentHelp("End the recording after this time.", valueName: "duration"))
    var time: TimeLimit?

    @Option(
        help: ArgumentHelp("Record measurements at this interval; 1s if none is named.", valueName: "duration")
    )
    var every: TimeLimit?
    @OptionGroup var times: TimeOptions
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if let lines, lines < 0 { throw ValidationError("-n wants a number from 0") }
        guard !otlp || !options.json else { throw ValidationError("--otlp is JSON already: leave out --json") }
        if record == nil {
            guard time == nil, every == nil else { throw ValidationError("--for and --every go with --record") }
            return
        }
        guard app.app == nil, !follow, since == nil, lines == nil, !otlp else {
            throw ValidationError(
                "--record records everything from now on: leave out the app, -f, -n, --since and --otlp"
            )
        }
        if let every, every.milliseconds < RecordRequest.shortest {
            throw ValidationError("--every must be at least \(RecordRequest.shortest)ms")
        }
        guard record != "-" || !options.json else {
            throw ValidationError("--json and --record - both write to standard output: choose one")
        }
    }

    package func run() throws {
        if let record {
            let recording = TraceRecording(path: record, every: every, limit: time, isQuiet: options.json)
            return try recording.run(options)
        }
        var request = EventsRequest()
        request.app = app.app
        request.follow = follow
        request.since = since?.microseconds
        request.limit = lines
        let events = PlainEvents(request, options: PlainOptions(options))
        guard otlp else { return try events.run() }
        var spans = TransitionSpans()
        try events.run { json in
            guard let event = try? EventRecord(json: json) else { return "" }
            return spans.add(event).map { $0 + "\n" }.joined()
        }
    }
}
