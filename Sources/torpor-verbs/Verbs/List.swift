// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CommandLinePages
import EverydayVerbs
import Linux
import TorporAPI
import Varlink

struct List: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "Shows apps, a line each; all of them if none is named.",
        discussion: "A template has one line for its scenes; named scenes, or all with --scenes, have a line each.",
        aliases: ["ls"]
    )
    .examples(
        "torpor list",
        "torpor list web 'tag:shop'",
        "torpor list --scenes",
        "torpor list --json | jq -r '.[] | select(.state == \"suspended\") | .name'"
    )
    @OptionGroup package var apps: AnyAppsArgument
    @Flag(help: "Show each scene on its own line.")
    var scenes = false
    @OptionGroup var options: GlobalOptions

    package func run() throws {
        try PlainList(apps: apps.apps, showsScenes: scenes || !apps.apps.isEmpty, options: PlainOptions(options)).run()
    }
}
