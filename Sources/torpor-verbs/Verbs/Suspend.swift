// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import EverydayVerbs
import Linux
import TorporAPI
import Varlink

struct Suspend: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "suspend",
        abstract: "Stops the processes of apps and keeps them in memory."
    )
    .examples(
        "torpor suspend web",
        "torpor suspend web --force"
    )
    @OptionGroup package var apps: AppsArgument
    @Flag(help: "Suspend even if a hold or task keeps the app awake, or an app in use requires it.") var force = false
    @OptionGroup var wait: WaitOptions
    @OptionGroup var options: GlobalOptions

    package func run() throws {
        var request = VerbRequest(verb: .suspend, apps: apps.apps)
        request.force = force
        SuspendHint.show(try VerbRunner.run(request, options, wait: wait), PlainOptions(options))
    }
}
