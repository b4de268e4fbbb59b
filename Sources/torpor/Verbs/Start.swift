// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import TorporAPI

struct Start: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "start",
        abstract: "Launches apps into the foreground."
    )
    .examples(
        "torpor start web",
        "torpor start --background tag:shop"
    )
    @OptionGroup package var apps: AppsArgument
    @Flag(help: "Launch into the background.") var background = false
    @Flag(help: "Launch even if a policy is against it.") var force = false
    @OptionGroup var wait: WaitOptions
    @OptionGroup var options: GlobalOptions

    package func run() throws {
        var request = VerbRequest(verb: .start, apps: apps.apps)
        request.background = background
        request.force = force
        try VerbRunner.run(request, options, wait: wait)
    }
}
