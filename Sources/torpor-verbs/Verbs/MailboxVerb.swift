// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import EverydayVerbs
import TorporAPI
import Varlink

struct MailboxVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "mailbox",
        abstract: "Shows the messages that wait for an app.",
        discussion: """
            Without APP, a process of an app reads its own mailbox; this is for programs without a delegate. Messages \
            that are taken are printed first, and removed after that.
            """
    )
    .examples(
        "torpor mailbox web",
        "torpor mailbox web --drop 17",
        "torpor mailbox --take"
    )
    @Argument(
        help: ArgumentHelp("The app's name.", valueName: "app"),
        completion: .custom { words, _, _ in Completion.apps(words) }
    )
    var app: String?
    @Flag(help: "Remove the messages that are shown.")
    var take = false
    @Option(help: ArgumentHelp("Show and remove only the message with this number.", valueName: "id"))
    var drop: [Int64] = []
    @OptionGroup var times: TimeOptions
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if let app, !AppWord.isName(app) {
            throw ValidationError("“\(app)” can be many apps, and this verb takes one: write its name")
        }
        if take, !drop.isEmpty { throw ValidationError("--take takes all, --drop only some: choose one") }
    }

    package func run() throws {
        try PlainMailbox(app: app, take: take, drop: drop, options: PlainOptions(options)).run()
    }
}

struct Subscribe: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "subscribe",
        abstract: "Subscribes the app to a topic, for an app's scripts.",
        discussion: "It works like an entry of topics in the app's configuration, and lasts until --end."
    )
    .examples(
        "torpor app subscribe news",
        "torpor app subscribe news --end"
    )
    @Argument(help: ArgumentHelp("The topic, or a pattern with * and ?.", valueName: "topic"))
    var topic: String
    @Option(
        help: ArgumentHelp("How to merge queued messages: all, latest, count, merge or net.", valueName: "how"),
        completion: .list(["all", "latest", "count", "merge", "net"])
    )
    var coalesce: String?
    @Flag(help: "Wake the app for each message.")
    var urgent = false
    @Option(
        help: ArgumentHelp("How urgent messages wake the app: background, foreground or none.", valueName: "how"),
        completion: .list(["background", "foreground", "none"])
    )
    var wake: String?
    @Flag(help: "Keep each message until the app takes it, even if a signal announced it.")
    var keep = false
    @Flag(help: "End the subscription.")
    var end = false
    @OptionGroup var output: OutputOptions

    package func run() throws {
        var request = SubscribeRequest(topic: topic)
        request.coalesce = coalesce
        request.urgent = urgent ? true : nil
        request.wake = wake
        request.keep = keep ? true : nil
        request.end = end
        _ = try AppSide.call(.subscribe(request))
        if output.json { Output.document(["topic": .string(topic), "ok": true]) }
    }
}
