// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CommandLinePages
import EverydayVerbs
import TorporAPI
import Varlink

struct Restart: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "restart",
        abstract: "Terminates apps and launches them again.",
        discussion: """
            As with ‘torpor stop’, the next launch does not get the state that an app saved, unless --keep-state is given.
            An app that could not be launched again, for example since its program does not exist, runs on as before, and \
            the command fails; --force ends it all the same.
            """
    )
    .examples(
        "torpor restart web",
        "torpor restart 'web@*' --timeout 30s",
        "torpor restart notes --keep-state",
        "torpor restart web --force",
        "torpor restart web --only-running"
    )
    @OptionGroup package var apps: AppsArgument
    @Flag(name: .customLong("keep-state"), help: "Give the next launch the state that the app saved.")
    var keepState = false
    @Flag(help: "End the apps even if they could not be launched again.") var force = false
    @Flag(
        name: .customLong("only-running"),
        help: "Leave apps alone that are not meant to run, such as one that a user stopped."
    )
    var onlyRunning = false
    @OptionGroup var wait: WaitOptions
    @OptionGroup var options: GlobalOptions

    package func run() throws {
        var request = VerbRequest(verb: .restart, apps: apps.apps)
        request.keepState = keepState
        request.force = force
        if onlyRunning {
            request.apps = try runningApps()
            guard !request.apps.isEmpty else {
                if options.json { return Output.document(.array([])) }
                let names = Terminal.harmless(apps.apps.joined(separator: ", "))
                return Output.page("\(names): not running, so not restarted\n")
            }
        }
        try VerbRunner.run(request, options, wait: wait)
    }

    /// The names of those apps that run or would run if they could: an app that failed, or whose restart is delayed, is
    /// restarted too, since what made it fail may have been mended.
    private func runningApps() throws -> [String] {
        let reply = try Manager(options).call(.listOf(apps.apps))
        return try (reply["apps"]?.arrayValue ?? []).compactMap { json -> String? in
            let app = try Manager.read { () throws(FieldError) in try AppSummary(json: json) }
            let isUp = app.state != "not-running" || app.transition != nil
            return isUp || app.failed || app.nextRestartMilliseconds != nil ? app.name : nil
        }
    }
}
