// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import EverydayVerbs
import TorporAPI

struct Reset: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reset",
        abstract: "Clears ‘failed’ and the restart count of apps."
    )
    .examples(
        "torpor reset web"
    )
    @OptionGroup package var apps: AppsArgument
    @OptionGroup var options: GlobalOptions

    package func run() throws {
        try VerbRunner.run(VerbRequest(verb: .reset, apps: apps.apps), options)
    }
}
