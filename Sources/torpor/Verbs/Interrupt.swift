// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import TorporAPI

struct Interrupt: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "interrupt",
        abstract: "Makes active apps inactive, so that they get no user events."
    )
    .examples(
        "torpor interrupt web",
        "torpor interrupt web --end"
    )
    @OptionGroup package var apps: AppsArgument
    @Flag(help: "End an interruption.") var end = false
    @OptionGroup var wait: WaitOptions
    @OptionGroup var options: GlobalOptions

    package func run() throws {
        var request = VerbRequest(verb: .interrupt, apps: apps.apps)
        request.end = end
        try VerbRunner.run(request, options, wait: wait)
    }
}
