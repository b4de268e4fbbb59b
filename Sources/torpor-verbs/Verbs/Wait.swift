// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import EverydayVerbs
import TorporAPI

struct WaitFor: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "wait",
        abstract: "Waits until apps are in a state."
    )
    .examples(
        "torpor wait web --for active --timeout 30s"
    )
    @OptionGroup package var apps: AppsArgument

    @Option(
        name: .customLong("for"),
        help: ArgumentHelp(
            "The state to wait for: \(PlainVerb.states.joined(separator: ", ")).",
            valueName: "state"
        ),
        completion: .list(PlainVerb.states)
    )
    var state: String

    @Option(help: ArgumentHelp("The longest time to wait, such as 10s.", valueName: "duration"))
    var timeout: TimeLimit?
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        guard PlainVerb.states.contains(state) else {
            throw ValidationError("there is no state “\(state)”, only \(PlainVerb.states.joined(separator: ", "))")
        }
    }

    package func run() throws {
        var request = VerbRequest(verb: .wait, apps: apps.apps)
        request.state = state
        request.timeoutMilliseconds = timeout?.milliseconds
        try VerbRunner.run(request, options)
    }
}
