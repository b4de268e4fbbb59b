// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import EverydayVerbs
import TorporAPI

struct Stop: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stop",
        abstract: "Terminates apps: notifies them, then sends SIGTERM, and SIGKILL after the grace."
    )
    .examples(
        "torpor stop web",
        "torpor stop tag:shop --no-wait",
        "torpor stop db --until-boot && backup; torpor start db"
    )
    @OptionGroup package var apps: AppsArgument
    @Flag(name: .customLong("keep-state"), help: "Keep the state that the app saved for its next launch.")
    var keepState = false
    @Flag(
        name: .customLong("until-boot"),
        help: "Launch the apps again at the next boot, as if they had not been stopped."
    )
    var untilBoot = false
    @OptionGroup var wait: WaitOptions
    @OptionGroup var options: GlobalOptions

    package func run() throws {
        var request = VerbRequest(verb: .stop, apps: apps.apps)
        request.keepState = keepState
        request.untilBoot = untilBoot
        try VerbRunner.run(request, options, wait: wait)
    }
}
