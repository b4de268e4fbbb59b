// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import EverydayVerbs
import TorporAPI

struct ForceQuit: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "force-quit",
        abstract: "Ends apps by SIGKILL, without telling them; no event launches them again.",
        discussion: """
            An app that was force-quit stays down until a person starts it, or the machine is booted; only events that \
            its wake_after_force_quit names launch it before that. ‘torpor stop’ ends an app after telling it.
            """,
        aliases: ["kill"]
    )
    .examples(
        "torpor force-quit web"
    )
    @OptionGroup package var apps: AppsArgument
    @OptionGroup var wait: WaitOptions
    @OptionGroup var options: GlobalOptions

    package func run() throws {
        let request = VerbRequest(verb: .kill, apps: apps.apps)
        try VerbRunner.run(request, options, wait: wait)
    }
}
