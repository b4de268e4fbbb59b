// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CommandLinePages
import EverydayVerbs
import TorporAPI
import Varlink

struct Notify: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "notify",
        abstract: "Shows people an alert of an app, now, later or again and again.",
        discussion: """
            If the app is in the foreground, the app is told instead of people. A person who chooses the alert brings \
            the app to the foreground. Prints the alert's id and when it comes. ‘torpor app notify’ is the same for an \
            app's own processes.
            """
    )
    .examples(
        "torpor notify web 'The build is done'",
        "torpor notify web 'Stand-up' --calendar 'Mon..Fri 9:55' --id standup",
        "torpor notify web 'Disk is full' --urgency critical --action clean=Clean"
    )
    @OptionGroup var app: AppArgument
    @OptionGroup var alert: AlertOptions
    @OptionGroup var options: GlobalOptions

    package func run() throws {
        let request = ScheduleAppAlertRequest(app: app.app, alert: try alert.request())
        try AlertOptions.show(try Manager(options).call(.scheduleAlert(request)), isJSON: options.json)
    }
}

struct AlertsVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "alerts",
        abstract: "Shows, answers or cancels the alerts of apps.",
        discussion: """
            NEXT is when an alert comes, or open: it came, and was neither answered nor dismissed. To answer an alert \
            does what a click on it does: the app comes to the foreground and is told, or the alert's URL is opened.
            """
    )
    .examples(
        "torpor alerts",
        "torpor alerts web --answer standup",
        "torpor alerts web --answer disk --action clean",
        "torpor alerts web --dismiss standup",
        "torpor alerts web --cancel standup",
        "torpor alerts web --all"
    )
    @OptionGroup package var apps: AnyAppsArgument
    @Option(
        help: ArgumentHelp("Dismiss the open alert of this id; if it is repeated, it comes again.", valueName: "id")
    )
    var dismiss: String?
    @Option(
        help: ArgumentHelp("Cancel the alert of this id, open or scheduled; once for each.", valueName: "id")
    )
    var cancel: [String] = []
    @Flag(name: .customLong("all"), help: "Cancel or dismiss all alerts of the apps.")
    var cancelsAll = false
    @Option(help: ArgumentHelp("Answer the open alert of this id.", valueName: "id"))
    var answer: String?
    @Option(help: ArgumentHelp("With --answer: the id of the alert's action.", valueName: "id"))
    var action: String?
    @OptionGroup var times: TimeOptions
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if [!cancel.isEmpty, cancelsAll, answer != nil, dismiss != nil].count(where: { $0 }) > 1 {
            throw ValidationError("--dismiss, --cancel, --all and --answer: choose one")
        }
        if cancelsAll, apps.apps.isEmpty { throw ValidationError("--all needs the apps; '*' is all") }
        if action != nil, answer == nil { throw ValidationError("--action is for --answer") }
        if answer != nil, apps.apps.count > 1 { throw ValidationError("--answer takes one app") }
    }

    package func run() throws {
        let manager = try Manager(options)
        if let answer {
            let request = AnswerAlertRequest(app: apps.apps.first, id: answer, action: action ?? "default")
            _ = try manager.call(.answerAlert(request))
            if options.json { Output.document(["ok": true]) }
            return
        }
        if let dismiss {
            let found = try AlertPage.items(try manager.call(.alerts(AlertsRequest(apps: apps.apps))))
            let numbers = try AlertPage.open(dismiss, in: found).map(\.number)
            let reply = try manager.call(.cancelAlerts(AlertsRequest(apps: apps.apps, numbers: numbers)))
            if options.json { return Output.document(reply) }
            return Output.write(try AlertPage.cancelled(reply, "dismissed"))
        }
        if !cancel.isEmpty || cancelsAll {
            let request = AlertsRequest(apps: apps.apps, ids: cancelsAll ? nil : cancel)
            let reply = try manager.call(.cancelAlerts(request))
            if options.json { return Output.document(reply) }
            return Output.write(try AlertPage.cancelled(reply))
        }
        let reply = try manager.call(.alerts(AlertsRequest(apps: apps.apps)))
        guard !options.json else { return Output.document(reply["alerts"] ?? []) }
        let items = try AlertPage.items(reply)
        var text = AlertPage.text(items, withApps: true)
        if !items.isEmpty, let problem = reply["problem"]?.stringValue {
            text += Terminal.wrapped(Terminal.harmless("alerts are on no desktop: \(problem)"), behind: 0) + "\n"
        }
        Output.page(text)
    }
}

struct BadgeVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "badge",
        abstract: "Shows a number at an app's entry, in lists and on the desktop."
    )
    .examples("torpor badge web 3", "torpor badge web 0")
    @OptionGroup var app: AppArgument
    @Argument(help: "1 to 9999, or 0 for none.")
    var number: Int64
    @OptionGroup var options: GlobalOptions

    static func problem(_ word: String) -> String {
        "\(word) is no badge: write a number from 1 to 9999, or 0 for none"
    }

    func validate() throws {
        guard (0...9999).contains(number) else { throw ValidationError(Self.problem("\(number)")) }
    }

    package func run() throws {
        _ = try Manager(options).call(.setBadge(app: app.app, count: number))
        if options.json { Output.document(["ok": true]) }
    }
}
