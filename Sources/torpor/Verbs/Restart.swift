// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import TorporAPI

struct Restart: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "restart",
        abstract: "Terminates apps and launches them again.",
        discussion: """
            As with ‘torpor stop’, the next launch does not get the state that an app saved, unless --keep-state is given.
            An app that could not be launched again, for example since its program does not exist, runs on as before, and \
            the command fails; --force ends it all the same.
            """
    )
    .examples(
        "torpor restart web",
        "torpor restart 'web@*' --timeout 30s",
        "torpor restart notes --keep-state",
        "torpor restart web --force"
    )
    @OptionGroup package var apps: AppsArgument
    @Flag(name: .customLong("keep-state"), help: "Give the next launch the state that the app saved.")
    var keepState = false
    @Flag(help: "End the apps even if they could not be launched again.") var force = false
    @OptionGroup var wait: WaitOptions
    @OptionGroup var options: GlobalOptions

    package func run() throws {
        var request = VerbRequest(verb: .restart, apps: apps.apps)
        request.keepState = keepState
        request.force = force
        try VerbRunner.run(request, options, wait: wait)
    }
}
