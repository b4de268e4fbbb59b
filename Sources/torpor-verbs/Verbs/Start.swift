// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import EverydayVerbs
import TorporAPI

struct Start: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "start",
        abstract: "Launches apps into the foreground."
    )
    .examples(
        "torpor start web",
        "torpor start --background tag:shop"
    )
    @OptionGroup package var apps: AppsArgument
    @Flag(help: "Launch into the background.") var background = false
    @Flag(help: "Launch only to suspend at once, even an app that this machine does not own.") var standby = false
    @Flag(help: "Launch even if a policy is against it, or this machine does not own the app.") var force = false
    @OptionGroup var wait: WaitOptions
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if standby, background || force { throw ValidationError("--standby takes neither --background nor --force") }
    }

    package func run() throws {
        var request = VerbRequest(verb: .start, apps: apps.apps)
        request.background = background
        request.standby = standby
        request.force = force
        try VerbRunner.run(request, options, wait: wait)
    }
}
