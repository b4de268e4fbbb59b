// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CommandLinePages
import EverydayVerbs
import Linux
import Mailbox
import TorporAPI
import Varlink

struct Unhandled: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "unhandled",
        abstract: "Shows messages that no app handled, or that crashed the app that got them.",
        discussion: """
            WHY is unhandled (neither the app nor the next ones of its topic handled it), crashed (it was delivered \
            mail_attempts times, and the app ended each time; ‘torpor report’ has the report of RUN), unknown-message \
            or unreadable. Messages are kept until they are replayed or dropped, the newest 1,000 of each app.
            """
    )
    .examples(
        "torpor unhandled",
        "torpor unhandled web --json",
        "torpor unhandled --show 1764158733000017",
        "torpor unhandled --replay 1764158733000017",
        "torpor unhandled --replay 1764158733000017 --to web",
        "torpor unhandled --drop 1764158733000017",
        "torpor unhandled web --drop-all"
    )

    @OptionGroup package var apps: AnyAppsArgument
    @Flag(name: .shortAndLong, help: "Keep showing messages that no app handles, as they come.")
    var follow = false
    @Option(help: ArgumentHelp("Print the message with this number as JSON.", valueName: "id"))
    var show: Int64?
    @Option(help: ArgumentHelp("Deliver the message with this number again.", valueName: "id"))
    var replay: [Int64] = []
    @Option(
        help: ArgumentHelp("Deliver it to this app instead of the one that it was sent to.", valueName: "app"),
        completion: .custom { words, _, _ in Completion.apps(words) }
    )
    var to: String?
    @Option(help: ArgumentHelp("Drop the message with this number.", valueName: "id"))
    var drop: [Int64] = []
    @Flag(help: "Drop all unhandled messages of the apps.")
    var dropAll = false
    @OptionGroup var times: TimeOptions
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        let ways = [follow, show != nil, !replay.isEmpty, !drop.isEmpty, dropAll].count { $0 }
        if ways > 1 { throw ValidationError("--follow, --show, --replay, --drop and --drop-all: choose one") }
        if to != nil, replay.isEmpty { throw ValidationError("--to goes with --replay") }
        if let to, !AppWord.isName(to) {
            throw ValidationError("“\(to)” can be many apps, and --to takes one: write its name")
        }
        if !apps.apps.isEmpty, show != nil || !replay.isEmpty || !drop.isEmpty {
            throw ValidationError("a number says which it is: leave out the app")
        }
        if dropAll, apps.apps.isEmpty { throw ValidationError("--drop-all wants the apps; '*' is all") }
    }

    package func run() throws {
        let manager = try Manager(options)
        if let show { return try showOne(show, manager) }
        if !replay.isEmpty { return try tellAgain(manager) }
        if !drop.isEmpty || dropAll { return try dropThem(manager) }
        if follow { return try followAll(manager) }
        let reply = try manager.call(.unhandled(request))
        guard !options.json else { return Output.document(reply["unhandled"] ?? []) }
        let items = try Self.items(reply)
        guard !items.isEmpty else { return Output.write("no unhandled messages\n") }
        Output.page(Self.table(items).text)
    }

    private var request: UnhandledRequest {
        var request = UnhandledRequest()
        request.apps = apps.apps
        return request
    }

    private static func items(_ reply: JSON) throws -> [UnhandledInfo] {
        try Manager.read { () throws(FieldError) in
            try Fields(reply).list("unhandled") { json throws(FieldError) in try UnhandledInfo(json: json) }
        }
    }

    private static func table(_ items: [UnhandledInfo]) -> Table {
        var table = Table(
            ["ID", "APP", "TOPIC", "FROM", "SINCE", "WHY", "RUN"],
            rightAligned: [6],
            whole: [0, 4]
        )
        for item in items {
            table.append([
                .init("\(item.id)"), .init(item.app), .init(Self.topic(of: item)),
                .init(item.sender), .init(Times.brief(item.since)),
                .init(item.why, item.why == "unhandled" ? nil : .red), .init(item.incarnation.map { "\($0)" } ?? "-"),
            ])
        }
        return table
    }

    /// The topic of the item. If the item is a URL, the URL itself.
    private static func topic(of item: UnhandledInfo) -> String {
        if let url = item.payload?["url"]?.stringValue, item.topic == OpenedURL.topic {
            let line = Terminal.harmless(url)
            return line.count <= 60 ? line : line.prefix(59) + "…"
        }
        return item.key.map { "\(item.topic) (\($0))" } ?? item.topic
    }

    private func showOne(_ id: Int64, _ manager: Manager) throws {
        var request = UnhandledRequest()
        request.ids = [id]
        request.payload = true
        let reply = try manager.call(.unhandled(request))
        guard let item = reply["unhandled"]?.arrayValue?.first else {
            throw Failure(
                status: .failed,
                message: "there is no unhandled message \(id): ‘torpor unhandled’ shows all of them"
            )
        }
        Output.document(item)
    }

    private func tellAgain(_ manager: Manager) throws {
        var replies: [JSON] = []
        for id in replay {
            let reply = try manager.call(.replayUnhandled(ReplayRequest(id: id, app: to)))
            replies.append(reply)
            guard !options.json else { continue }
            let app = Terminal.harmless(reply["app"]?.stringValue ?? "")
            let result = try Manager.read { () throws(FieldError) in try PostResult(json: reply) }
            Output.write("\(app) \(PlainPost.words(result))\n")
        }
        if options.json { Output.document(.array(replies)) }
    }

    private func dropThem(_ manager: Manager) throws {
        let reply = try manager.call(.dropUnhandled(DropRequest(apps: apps.apps, ids: drop)))
        if options.json { return Output.document(reply) }
        let count = reply["ids"]?.arrayValue?.count ?? 0
        Output.write(count == 1 ? "1 message dropped\n" : "\(count) messages dropped\n")
    }

    /// Shows the unhandled messages, and shows them again whenever the supervisor reports new ones.
    private func followAll(_ manager: Manager) throws {
        Output.endWithReader()
        var shown: Set<Int64> = []
        func showNew() throws {
            let items = try Self.items(try manager.call(.unhandled(request))).filter { shown.insert($0.id).inserted }
            guard !items.isEmpty else { return }
            if options.json {
                Output.write(items.map { $0.json.description + "\n" }.joined())
            } else {
                Output.write(Self.table(items).text)
            }
        }
        var events = EventsRequest()
        events.follow = true
        events.limit = 0
        var problem: (any Error)?
        _ = try Manager(options).call(.events(events)) { reply in
            events.after = reply["sequence"]?.intValue
            let isFirst = reply["events"]?.arrayValue?.isEmpty ?? true
            let isOurs = reply["events"]?.arrayValue?.contains { $0["kind"]?.stringValue == "unhandled" } ?? false
            guard isFirst || isOurs, problem == nil else { return }
            do { try showNew() } catch { problem = error }
        }
        if let problem { throw problem }
    }
}
