// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import EverydayVerbs
import TorporAPI

struct Background: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "background",
        abstract: "Sends apps to the background."
    )
    .examples(
        "torpor background web"
    )
    @OptionGroup package var apps: AppsArgument
    @OptionGroup var wait: WaitOptions
    @OptionGroup var options: GlobalOptions

    package func run() throws {
        let request = VerbRequest(verb: .background, apps: apps.apps)
        try VerbRunner.run(request, options, wait: wait)
    }
}
