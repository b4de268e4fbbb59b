// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import EverydayVerbs
import TorporAPI

struct Resume: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume",
        abstract: "Resumes suspended apps in the background."
    )
    .examples(
        "torpor resume web"
    )
    @OptionGroup package var apps: AppsArgument
    @OptionGroup var wait: WaitOptions
    @OptionGroup var options: GlobalOptions

    package func run() throws {
        let request = VerbRequest(verb: .resume, apps: apps.apps)
        try VerbRunner.run(request, options, wait: wait)
    }
}
