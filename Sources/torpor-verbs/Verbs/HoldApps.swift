// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import EverydayVerbs
import TorporAPI

struct HoldApps: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "hold",
        abstract: "Keeps apps from being suspended when they are in the background.",
        discussion: """
            The app stays where it is: an active one stays active, and is not suspended once it goes to the \
            background; a suspended one stays suspended until it is resumed. ‘torpor suspend --force’ suspends it \
            anyway. Holds with the same reason become one, which lasts until the later end.
            """
    )
    .examples(
        "torpor hold web --for 10m --reason 'looking at it'",
        "torpor hold web --end"
    )
    @OptionGroup package var apps: AppsArgument
    @Option(
        name: .customLong("for"),
        help: ArgumentHelp("End the hold after this time, such as 10m.", valueName: "duration")
    )
    var time: TimeLimit?
    @Option(help: ArgumentHelp("The reason, which is shown with the app.", valueName: "text"))
    package var reason: String?
    @Flag(help: "End all holds of the apps.") var end = false
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if let time, time.milliseconds <= 0 { throw ValidationError("--for must be longer than 0") }
        if end, time != nil || reason != nil {
            throw ValidationError("--end ends all holds: it takes neither --for nor --reason")
        }
    }

    package func run() throws {
        var request = VerbRequest(verb: .hold, apps: apps.apps)
        request.end = end
        request.reason = reason
        request.forMilliseconds = time.map { $0.milliseconds }
        try VerbRunner.run(request, options)
    }
}
