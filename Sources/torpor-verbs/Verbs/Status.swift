// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CommandLinePages
import EverydayVerbs
import Linux
import TorporAPI
import Varlink

struct Status: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Shows everything about apps, or a line for each if none is named.",
        discussion: """
            Without APP it is ‘torpor list’ for people; --json has everything about all apps. ‘torpor status '*'’ shows a \
            page for each. Exit status 3: an app that was named is not running. With --json, one app that is named is an object; several, \
            or those of a pattern, are an array.
            """
    )
    .examples(
        "torpor status",
        "torpor status web",
        "torpor status web db --utc"
    )
    @OptionGroup package var apps: AnyAppsArgument
    @OptionGroup var times: TimeOptions
    @OptionGroup var options: GlobalOptions

    package func run() throws { try PlainStatus(apps: apps.apps, options: PlainOptions(options)).run() }
}
