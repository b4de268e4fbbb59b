// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CommandLinePages
import EverydayVerbs
import Linux
import TorporAPI
import Varlink

struct Logs: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "logs",
        abstract: "Shows what apps wrote; all of them if none is named.",
        discussion: """
            Lines of several apps are merged in the order of their times, each with the name of its app; with -f, new \
            lines follow as they come.
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
        let manager = try Manager(options)
        if follow { Output.endWithReader() }
        let (names, isOne) = try manager.names(of: apps.apps)
        if isOne {
            let lines = Lines(hasTimes: times, isJSON: options.json)
            return try AppLog(app: names[0], manager: manager, choice: choice).read { page in
                Output.write(page.lines.map { lines.text(of: $0) }.joined())
                return true
            }
        }
        let lines = Lines(hasTimes: times, isJSON: options.json, apps: names)
        try ManyLogs(apps: names, options: options, choice: choice) { app, line in
            Output.write(lines.text(of: line, app))
        }.run()
    }

    private struct Lines: Sendable {
        var hasTimes: Bool
        var isJSON: Bool
        /// The names of the apps if lines of several apps are shown; otherwise empty.
        var apps: [String] = []

        private static let colours: [Terminal.Colour] = [.cyan, .yellow, .green, .magenta, .blue, .red]

        func text(of line: JSON, _ app: Int? = nil) -> String {
            if isJSON {
                guard let app, var object = line.objectValue else { return line.description + "\n" }
                object = JSONObject(members: [.init(name: "app", value: .string(apps[app]))] + object.members)
                return JSON.object(object).description + "\n"
            }
            var text = ""
            if let app {
                let name = Terminal.harmless(apps[app])
                let width = apps.reduce(0) { max($0, $1.count) }
                let padded = name + String(repeating: " ", count: max(0, width - name.count))
                text = Terminal.coloured(padded + " |", Self.colours[app % Self.colours.count]) + " "
            }
            if hasTimes, let at = line["at"]?.intValue {
                text += Terminal.coloured(Times.timestamp(at), .dim) + " "
            }
            return text + Terminal.line(line["text"]?.stringValue ?? "") + "\n"
        }
    }
}
