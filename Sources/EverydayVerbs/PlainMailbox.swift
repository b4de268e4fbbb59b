// SPDX-License-Identifier: Apache-2.0

import CommandLinePages
import TorporAPI
import Varlink

/// The verb `mailbox` without the argument parser (see ``PlainArguments``).
package struct PlainMailbox {
    /// The app; nil for the one that this process belongs to.
    private let app: String?
    private let take: Bool
    /// The numbers of the messages to show and remove; if empty, all are shown.
    private let drop: [Int64]
    private let options: PlainOptions

    package init(app: String?, take: Bool, drop: [Int64], options: PlainOptions) {
        self.app = app
        self.take = take
        self.drop = drop
        self.options = options
    }

    init?(_ words: ArraySlice<String>) {
        var take = false
        var drop: [Int64] = []
        let read = PlainWords(words) { option, words in
            switch option {
            case "--take" where drop.isEmpty: take = true
            case "--utc": break
            case "--drop" where !take:
                guard let id = words.value().flatMap({ Int64($0) }) else { return false }
                drop.append(id)
            default: return false
            }
            return true
        }
        guard let line = read, line.operands.count <= 1, line.operands.allSatisfy(AppWord.isName) else { return nil }
        self.init(app: line.operands.first, take: take, drop: drop, options: line.options)
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
        if let first = missing.first { throw Self.missing(first, app, "torpor mailbox \(app)") }
    }

    /// Shows the queued messages of the app that this process belongs to.
    private func showOwn() throws {
        let removes = take || !drop.isEmpty
        var isMore = true
        // One document, whatever the number of parts; the last part is removed after it was printed.
        var all: [MailInfo] = []
        while isMore {
            var request = TakeRequest()
            request.keep = true
            request.only = drop
            let reply = try AppSide.call(.take(request))
            let mail = try Manager.read { () throws(FieldError) in
                try Fields(reply).list("mail") { json throws(FieldError) in try MailInfo(json: json) }
            }
            isMore = reply["more"]?.boolValue ?? false
            all += mail
            if !options.json {
                show(mail, .null)
            } else if !isMore || !removes || mail.isEmpty {
                show([], ["mail": .array(all.map(\.json))])
            }
            guard removes, !mail.isEmpty else { break }
            // Only what was taken makes room for the rest.
            request.max = 0
            request.done = mail.map(\.id)
            _ = try AppSide.call(.take(request))
        }
        if isMore, !removes { Complaint.say("other messages wait: --take takes and shows them all", .remark) }
        if let first = drop.first(where: { id in !all.contains { $0.id == id } }) {
            throw Self.missing(first, "this app", "torpor mailbox")
        }
    }

    private static func missing(_ id: Int64, _ app: String, _ command: String) -> Failure {
        Failure(
            status: .failed,
            message: "no message \(id) waits for \(app), or it is being delivered: ‘\(command)’ shows all"
        )
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
