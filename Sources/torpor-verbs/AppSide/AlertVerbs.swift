// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CommandLinePages
import EverydayVerbs
import TorporAPI
import Varlink

struct AppNotify: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "notify",
        abstract: "Shows people an alert of the app, now, later or again and again.",
        discussion: """
            While the app is in the foreground, it is told instead (didReceiveLocalNotification). Prints the alert's \
            id and when it comes.
            """
    )
    .examples(
        "torpor app notify 'The build is done'",
        "torpor app notify 'Tea is ready' --after 4min --sound bell",
        "torpor app notify 'Stand-up' --calendar 'Mon..Fri 9:55' --id standup"
    )
    @OptionGroup var alert: AlertOptions
    @OptionGroup var output: OutputOptions

    package func run() throws {
        try AlertOptions.show(try AppSide.call(.scheduleAlert(try alert.request())), isJSON: output.json)
    }
}

struct AppAlertsVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "alerts",
        abstract: "Shows or cancels the app's alerts."
    )
    .examples("torpor app alerts", "torpor app alerts --cancel standup", "torpor app alerts --all")
    @Option(help: ArgumentHelp("Cancel the alert of this id; once for each.", valueName: "id"))
    var cancel: [String] = []
    @Flag(name: .customLong("all"), help: "Cancel all alerts of the app.")
    var cancelsAll = false
    @OptionGroup var times: TimeOptions
    @OptionGroup var output: OutputOptions

    func validate() throws {
        if !cancel.isEmpty, cancelsAll { throw ValidationError("--cancel and --all: choose one") }
    }

    package func run() throws {
        if !cancel.isEmpty || cancelsAll {
            let reply = try AppSide.call(.cancelAlert(ids: cancelsAll ? nil : cancel))
            if output.json { return Output.document(reply) }
            return Output.write(try AlertPage.cancelled(reply))
        }
        let reply = try AppSide.call(.alerts)
        guard !output.json else { return Output.document(reply["alerts"] ?? []) }
        Output.page(AlertPage.text(try AlertPage.items(reply), withApps: false))
    }
}

struct AppBadge: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "badge",
        abstract: "Shows a number at the app's entry, in lists and on the desktop."
    )
    .examples("torpor app badge 3", "torpor app badge 0")
    @Argument(help: "1 to 9999, or 0 for none.")
    var number: Int64
    @OptionGroup var output: OutputOptions

    func validate() throws {
        guard (0...9999).contains(number) else { throw ValidationError(BadgeVerb.problem("\(number)")) }
    }

    package func run() throws {
        _ = try AppSide.call(.setBadge(count: number))
        if output.json { Output.document(["ok": true]) }
    }
}
