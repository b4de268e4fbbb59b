// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import EverydayVerbs
import TorporAPI

struct Foreground: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "foreground",
        abstract: "Brings apps to the foreground."
    )
    .examples(
        "torpor foreground web",
        "torpor foreground notes --url notes:today"
    )
    @OptionGroup package var apps: AppsArgument
    @Option(help: ArgumentHelp("Have the app open this URL; needs a delegate.", valueName: "url"))
    var url: String?
    @OptionGroup var wait: WaitOptions
    @OptionGroup var options: GlobalOptions

    package func run() throws {
        var request = VerbRequest(verb: .foreground, apps: apps.apps)
        request.url = url
        try VerbRunner.run(request, options, wait: wait)
    }
}
