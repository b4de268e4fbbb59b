// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import EverydayVerbs
import TorporAPI

struct Reset: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reset",
        abstract: "Clears ‘failed’ and the restart count of apps.",
        discussion: """
            An app that a user has stopped or force-quit is not launched, but no longer counts as stopped: its timers \
            and other events launch it again, and so does the next start of the supervisor.
            """
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
