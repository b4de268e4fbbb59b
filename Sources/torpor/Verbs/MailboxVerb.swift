// SPDX-License-Identifier: Apache-2.0

import AppConnection
import ArgumentParser
import CommandLinePages
import Linux
import TorporAPI
import Varlink

struct MailboxVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "mailbox",
        abstract: "Shows what waits to be told to an app.",
        discussion: """
            Without APP, for a process of an app: its own mailbox, for programs that have no delegate. What is taken is \
            printed first and does not wait any more after that.
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
    @Flag(help: "What is shown does not wait any more.")
    var take = false
    @Option(help: ArgumentHelp("Only that of this number, which does not wait any more.", valueName: "id"))
    var drop: [Int64] = []
    @OptionGroup var times: TimeOptions
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if let app, !AppArgument.isName(app) {
            throw ValidationError("“\(app)” can be many apps, and this verb takes one: write its name")
        }
        if take, !drop.isEmpty { throw ValidationError("--take takes all, --drop only some: choose one") }
    }

    package func run() throws {
        guard let app else { return try showOwn() }
        let manager = try Manager(options)
        var request = MailboxRequest(app: app)
        request.drop = drop
        let reply = try manager.call(.mailbox(request))
        let status = try Manager.read { () throws(FieldError) in try MailboxStatus(json: reply) }
        let missing = drop.filter { id in !status.mail.contains { $0.id == id } }
        show(status.mail, reply)
        let taken = take ? status.mail.filter { !$0.inFlight }.map(\.id) : []
        if !taken.isEmpty {
            request.drop = taken
            try manager.call(.mailbox(request))
        }
        if let first = missing.first {
            throw Failure(
                status: .failed,
                message:
                    "nothing of the number \(first) waits for \(app), or it is being told: ‘torpor mailbox \(app)’ shows all"
            )
        }
    }

    /// What waits for the app of which this is a process.
    private func showOwn() throws {
        var request = TakeRequest()
        request.keep = true
        let reply = try AppSide.call(.take(request))
        var mail = try Manager.read { () throws(FieldError) in
            try Fields(reply).list("mail") { json throws(FieldError) in try MailInfo(json: json) }
        }
        if !drop.isEmpty { mail = mail.filter { drop.contains($0.id) } }
        show(mail, ["mail": .array(mail.map(\.json))])
        guard take || !drop.isEmpty, !mail.isEmpty else { return }
        request.max = 0
        request.done = mail.map(\.id)
        _ = try AppSide.call(.take(request))
    }

    private func show(_ mail: [MailInfo], _ reply: JSON) {
        if options.json { return Output.document(reply) }
        guard !mail.isEmpty else { return }
        var table = Table(
            ["ID", "SINCE", "TOPIC", "FROM", "COUNT", "WAKES", "PAYLOAD"],
            rightAligned: [4],
            whole: [0, 1]
        )
        for mail in mail {
            table.append([
                .init("\(mail.id)"), .init(Times.brief(mail.firstAt)),
                .init(mail.key.map { "\(mail.topic) (\($0))" } ?? mail.topic), .init(mail.sender),
                .init("\(mail.count)"), .init(mail.inFlight ? "being told" : mail.wake ?? "-"),
                .init(Self.short(mail.payload)),
            ])
        }
        Output.page(table.text)
    }

    private static func short(_ payload: JSON) -> String {
        let text = payload.isNull ? "" : payload.description
        return text.count <= 60 ? text : text.prefix(59) + "…"
    }
}

struct Subscribe: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "subscribe",
        abstract: "Has an app take what is posted to it of a topic, for the scripts of an app.",
        discussion: "As an entry of topics in the app's configuration; it lasts until it is ended."
    )
    .examples(
        "torpor app subscribe news",
        "torpor app subscribe news --end"
    )
    @Argument(help: ArgumentHelp("The topic, or a pattern of * and ?.", valueName: "topic"))
    var topic: String
    @Option(
        help: ArgumentHelp("all, latest, count, merge or net.", valueName: "how"),
        completion: .list(["all", "latest", "count", "merge", "net"])
    )
    var coalesce: String?
    @Flag(help: "Each wakes the app.")
    var urgent = false
    @Option(
        help: ArgumentHelp("How what is urgent wakes it: background, foreground or none.", valueName: "how"),
        completion: .list(["background", "foreground", "none"])
    )
    var wake: String?
    @Flag(help: "It waits until it is taken, also where a signal tells of it.")
    var keep = false
    @Flag(help: "End it.")
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
