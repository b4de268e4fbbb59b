// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import TorporAPI

struct Restart: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "restart",
        abstract: "Terminates apps and launches them again.",
        discussion: """
            As with ‘torpor stop’, the next launch does not get the state that an app saved, unless --keep-state is given.
            """
    )
    .examples(
        "torpor restart web",
        "torpor restart 'web@*' --timeout 30s",
        "torpor restart notes --keep-state"
    )
    @OptionGroup package var apps: AppsArgument
    @Flag(name: .customLong("keep-state"), help: "Give the next launch the state that the app saved.")
    var keepState = false
    @OptionGroup var wait: WaitOptions
    @OptionGroup var options: GlobalOptions

    package func run() throws {
        var request = VerbRequest(verb: .restart, apps: apps.apps)
        request.keepState = keepState
        try VerbRunner.run(request, options, wait: wait)
    }
}
