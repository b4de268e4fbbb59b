// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import TorporAPI

struct Restart: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "restart",
        abstract: "Terminates apps and launches them again."
    )
    .examples(
        "torpor restart web",
        "torpor restart 'web@*' --timeout 30s"
    )
    @OptionGroup package var apps: AppsArgument
    @OptionGroup var wait: WaitOptions
    @OptionGroup var options: GlobalOptions

    package func run() throws {
        let request = VerbRequest(verb: .restart, apps: apps.apps)
        try VerbRunner.run(request, options, wait: wait)
    }
}
