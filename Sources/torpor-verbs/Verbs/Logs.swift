// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import EverydayVerbs

struct Logs: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "logs",
        abstract: "Shows what apps wrote; all of them if none is named.",
        discussion: """
            Lines of several apps are merged in the order of their times, each with the name of its app; with -f, new \
            lines follow as they come, also those of apps that are added later, unless each app is named.
            """
    )
    .examples(
        "torpor logs web",
        "torpor logs -f",
        "torpor logs -f web db",
        "torpor logs -f tag:shop --grep ERROR",
        "torpor logs web --since '2 hours ago' -t"
    )
    @OptionGroup package var apps: AnyAppsArgument

    @Flag(name: .shortAndLong, help: "Keep showing new lines as they come.")
    var follow = false

    @Option(
        name: [.customShort("n", allowingJoined: true), .long],
        help: "Show only this many of the last lines, of all apps together; 100 without --since."
    )
    var lines: Int64?

    @Option(help: ArgumentHelp("Show lines from this time on: \(PointInTime.help)", valueName: "time"))
    var since: PointInTime?

    @Option(help: ArgumentHelp("Show only lines that contain this text.", valueName: "text"))
    var grep: String?

    @Flag(name: [.customShort("t"), .long], help: "Show the time of each line.")
    var times = false
    @OptionGroup var zone: TimeOptions
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if let lines, lines < 0 { throw ValidationError("-n wants a number from 0") }
    }

    package func run() throws {
        let choice = LogChoice(lines: lines, since: since?.microseconds, grep: grep, follow: follow)
        let options = PlainOptions(options)
        try PlainLogs(apps: apps.apps, choice: choice, showsTimes: times, options: options).run()
    }
}
