// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import EverydayVerbs
import TorporAPI

struct Own: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Says that this machine owns apps, so that it may launch and wake them.",
        discussion: """
            For apps with owner = "external", which run on one of several machines. After a boot, a machine owns none \
            of them. An app that was not owned goes to the state that a user last requested, or else to the one that \
            its key launch says. With --for, repeat the verb with --renew before the time is over, or the app is \
            suspended. This does not replace fencing: see torpor-lifecycle(7).
            """
    )
    .examples(
        "torpor own orders",
        "torpor own orders --for 90s",
        "torpor own orders --for 90s --renew"
    )
    @OptionGroup package var apps: AppsArgument
    @Option(
        name: .customLong("for"),
        help: ArgumentHelp("Own the apps for this time, such as 90s, unless this is repeated.", valueName: "duration")
    )
    var time: TimeLimit?
    @Flag(help: "Fail for an app that this machine does not own any more, instead of owning it again.") var renew =
        false
    @OptionGroup var wait: WaitOptions
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if renew, time == nil { throw ValidationError("--renew needs --for, the time from now") }
        if let time, time.milliseconds <= 0 { throw ValidationError("--for must be longer than 0") }
    }

    package func run() throws {
        var request = VerbRequest(verb: .own, apps: apps.apps)
        request.forMilliseconds = time.map { $0.milliseconds }
        request.renew = renew
        try VerbRunner.run(request, options, wait: wait)
    }
}

struct Disown: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Says that this machine does not own apps: they are suspended, and nothing launches or wakes them.",
        discussion: """
            An app in the foreground goes to the background first, as with any suspension, and may save its state. It \
            is suspended even if a task or a hold keeps it awake.
            """
    )
    .examples(
        "torpor disown orders",
        "torpor disown orders --stop"
    )
    @OptionGroup package var apps: AppsArgument
    @Flag(help: "Terminate the apps too; their saved state is kept for the next launch.") var stop = false
    @OptionGroup var wait: WaitOptions
    @OptionGroup var options: GlobalOptions

    package func run() throws {
        var request = VerbRequest(verb: .disown, apps: apps.apps)
        request.stop = stop
        try VerbRunner.run(request, options, wait: wait)
    }
}
