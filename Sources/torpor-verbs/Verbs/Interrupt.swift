// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import EverydayVerbs
import TorporAPI

struct Interrupt: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "interrupt",
        abstract: "Makes active apps inactive, so that they get no user events.",
        discussion: "A pattern leaves out the apps that are not in the foreground."
    )
    .examples(
        "torpor interrupt web",
        "torpor interrupt web --end",
        "torpor interrupt '*'"
    )
    @OptionGroup package var apps: AppsArgument
    @Flag(help: "End an interruption.") var end = false
    @OptionGroup var wait: WaitOptions
    @OptionGroup var options: GlobalOptions

    package func run() throws {
        var request = VerbRequest(verb: .interrupt, apps: apps.apps)
        request.end = end
        let done = try VerbRunner.run(request, options, wait: wait)
        guard done.isEmpty, !options.json else { return }
        Complaint.say(end ? "no app is interrupted" : "no app is in the foreground: none is interrupted", .remark)
    }
}
