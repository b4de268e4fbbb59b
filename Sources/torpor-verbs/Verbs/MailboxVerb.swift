// SPDX-License-Identifier: Apache-2.0

import AppConnection
import ArgumentParser
import CommandLinePages
import EverydayVerbs
import Linux
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
        var reply = try manager.call(.mailbox(request))
        var status = try Manager.read { () throws(FieldError) in try MailboxStatus(json: reply) }
        // Of those that were dropped, the reply has only as many as it has room for.
        let missing = status.hasMore ? [] : drop.filter { id in !status.mail.contains { $0.id == id } }
        while status.hasMore, drop.isEmpty, let last = status.mail.last {
            request.after = last.id
            let part = try manager.call(.mailbox(request))
            let next = try Manager.read { () throws(FieldError) in try MailboxStatus(json: part) }
            status.mail += next.mail
            status.hasMore = next.hasMore && !next.mail.isEmpty
            reply = status.json
        }
        show(status.mail, reply)
        if status.unhandled > 0, !options.json {
            let remedy = "‘torpor unhandled \(app)’ shows them"
            Output.page("\(status.unhandled) set aside, and no longer delivered: \(remedy)\n")
        }
        let taken = take ? status.mail.filter { !$0.inFlight }.map(\.id) : []
        if !taken.isEmpty {
            (request.drop, request.after) = (taken, nil)
            try manager.call(.mailbox(request))
        }
        if let first = missing.first {
            throw Failure(
                status: .failed,
                message:
                    "no message \(first) waits for \(app), or it is being delivered: ‘torpor mailbox \(app)’ shows all"
            )
        }
    }

    /// Shows the queued messages of the app that this process belongs to.
    private func showOwn() throws {
        var isMore = true
        while isMore {
            var request = TakeRequest()
            request.keep = true
            let reply = try AppSide.call(.take(request))
            var mail = try Manager.read { () throws(FieldError) in
                try Fields(reply).list("mail") { json throws(FieldError) in try MailInfo(json: json) }
            }
            if !drop.isEmpty { mail = mail.filter { drop.contains($0.id) } }
            show(mail, ["mail": .array(mail.map(\.json))])
            isMore = reply["more"]?.boolValue ?? false
            guard take || !drop.isEmpty, !mail.isEmpty else { break }
            request.max = 0
            request.done = mail.map(\.id)
            _ = try AppSide.call(.take(request))
            // Only what was taken makes room for the rest.
            if !take { break }
        }
        if isMore, !take { Complaint.say("other messages wait: --take takes and shows them all", .remark) }
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
                .init("\(mail.count)"), .init(Self.state(mail)),
                .init(Self.short(mail.payload)),
            ])
        }
        Output.page(table.text)
    }

    /// The state of a message: if the app has got it, how many times; otherwise, how the message wakes the app.
    private static func state(_ mail: MailInfo) -> String {
        guard mail.inFlight else { return mail.wake ?? "-" }
        return mail.attempts > 1 ? "in delivery, attempt \(mail.attempts)" : "in delivery"
    }

    private static func short(_ payload: JSON) -> String {
        let text = payload.isNull ? "" : payload.description
        return text.count <= 60 ? text : text.prefix(59) + "…"
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
