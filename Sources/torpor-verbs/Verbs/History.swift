// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import EverydayVerbs
import TorporAPI

struct History: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "history",
        abstract: "Shows what happened to apps and why, across restarts and boots, newest last."
    )
    .examples(
        "torpor history",
        "torpor history web",
        "torpor history web db",
        "torpor history web --since '2 days ago' -n 50"
    )
    @OptionGroup package var apps: AnyAppsArgument

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
        request.since = since?.microseconds
        request.until = until?.microseconds
        request.limit = lines
        try PlainHistory(request, of: apps.apps, options: PlainOptions(options)).run()
    }
}
