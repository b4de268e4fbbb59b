// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import EverydayVerbs
import TorporAPI

struct Post: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "post",
        abstract: "Sends an app a message on a topic, now or when it wakes.",
        discussion: """
            The message waits in the app's mailbox, on the disk, until the app has received it. The app takes the \
            topics in its configuration. When a process of an app calls this, it posts in that app's name \
            (accepts_from), unless --socket names the supervisor.
            """
    )
    .examples(
        "torpor post web news --payload '{\"n\":7}'",
        "torpor post web refresh --coalesce latest --no-wake"
    )
    @OptionGroup var app: AppArgument
    @Argument(help: ArgumentHelp("The topic of the message.", valueName: "topic"))
    var topic: String
    @Option(help: ArgumentHelp("The content: JSON, @FILE with JSON, or - for standard input.", valueName: "json"))
    var payload: String?
    @Option(
        help: ArgumentHelp(
            "How to merge it with messages already queued for the topic: all, latest, count, merge or net; "
                + "else as the app's configuration says.",
            valueName: "how"
        ),
        completion: .list(["all", "latest", "count", "merge", "net"])
    )
    var coalesce: String?
    @Option(
        help: ArgumentHelp("The key within the topic: only messages with the same key are merged.", valueName: "key")
    )
    var key: String?
    @Flag(help: "Wake the app for it.")
    var urgent = false
    @Flag(help: "Do not wake the app for it, even if its configuration says urgent.")
    var noWake = false
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if urgent, noWake { throw ValidationError("--urgent and --no-wake say the opposite: choose one") }
    }

    package func run() throws {
        var request = PostRequest(app: app.app, topic: topic)
        request.coalesce = coalesce
        request.key = key
        request.urgent = urgent ? true : noWake ? false : nil
        try PlainPost(request, payload: payload, options: PlainOptions(options)).run()
    }
}
