// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CalendarTime
import CommandLinePages
import EverydayVerbs
import Linux
import TorporAPI
import Varlink

/// The options for an alert's content and time, for operators and for apps.
struct AlertOptions: ParsableArguments {
    @Argument(help: ArgumentHelp("One line of at most 80 characters.", valueName: "title"))
    var title: String
    @Option(help: ArgumentHelp("More text, at most 1 KiB.", valueName: "text"))
    var body = ""
    @Option(
        help: ArgumentHelp(
            "Show it at this time: 14:30 (today or tomorrow), 2026-03-29T14:30:00, or that with Z or an offset.",
            valueName: "time"
        )
    )
    var at: String?
    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Show it after this time, such as 10min.", valueName: "duration")
    )
    var after: TimeLimit?
    @Option(
        help: ArgumentHelp("Show it again and again, as in systemd's timers: 'Mon..Fri 9:55'.", valueName: "expression")
    )
    var calendar: String?
    @Option(
        help: ArgumentHelp(
            "The time zone of --at, such as Europe/Berlin, or local, the machine's; else TZ, else the machine's.",
            valueName: "zone"
        )
    )
    var timeZone: String?
    @Option(help: ArgumentHelp("Replace the app's alert of this id.", valueName: "id"))
    var id: String?
    @Option(
        help: ArgumentHelp(
            "low, normal or critical; a critical one on the desktop interrupts apps.",
            valueName: "word"
        ),
        completion: .list(["low", "normal", "critical"])
    )
    var urgency = "normal"
    @Option(help: ArgumentHelp("A sound of the XDG sound theme.", valueName: "name"))
    var sound: String?
    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Show this number at the app's entry, 0 for none.", valueName: "number")
    )
    var badge: Int64?
    @Option(help: ArgumentHelp("Add a button; at most four.", valueName: "id=label"))
    var action: [String] = []
    @Option(help: ArgumentHelp("Open this URL when a person chooses the alert.", valueName: "url"))
    var url: String?
    @Option(
        help: ArgumentHelp("What the app is told: JSON, @FILE with JSON, or - for standard input.", valueName: "json")
    )
    var payload: String?
    @Flag(help: "Also wake or launch the app in the background.")
    var wake = false

    func validate() throws {
        if [at != nil, after != nil, calendar != nil].count(where: { $0 }) > 1 {
            throw ValidationError("--at, --after and --calendar: choose one")
        }
        if timeZone != nil, at == nil { throw ValidationError("--time-zone is for --at") }
        for text in action where Self.split(text) == nil {
            throw ValidationError("“\(Terminal.harmless(text))” is no action: write “id=label”")
        }
    }

    private static func split(_ text: String) -> AlertAction? {
        guard let sign = text.firstIndex(of: "="), sign > text.startIndex else { return nil }
        return AlertAction(id: String(text[..<sign]), label: String(text[text.index(after: sign)...]))
    }

    /// The request to schedule the alert, with a new token, so that the request can be repeated safely.
    func request() throws -> ScheduleAlertRequest {
        var request = ScheduleAlertRequest(title: title)
        (request.id, request.body, request.urgency, request.sound) = (id, body, urgency, sound)
        (request.badge, request.url, request.wake) = (badge, url, wake)
        request.at = at.map(moment)
        (request.timeZone, request.calendar) = (timeZone, calendar)
        request.after = after?.milliseconds
        request.actions = action.compactMap(Self.split)
        request.payload = try PlainPost.read(payload)
        request.token = .random()
        return request
    }

    /// Converts a time without an offset to a moment if TZ names the time zone in which to read it. Otherwise leaves
    /// the text as it is: torpord reads the time in the machine's zone, or in the one of --time-zone.
    private func moment(_ text: String) -> String {
        guard timeZone == nil, ThisProcess.environment("TZ") != nil else { return text }
        if let ofDay = WrittenTimeOfDay(text) {
            return Times.timestamp(Times.zone.moment(ofLocal: ofDay.next(notBefore: Times.now, in: Times.zone)))
        }
        guard let written = WrittenTime(text), written.offset == nil else { return text }
        return Times.timestamp(written.moment(in: Times.zone))
    }

    /// Prints what was scheduled.
    static func show(_ reply: JSON, isJSON: Bool) throws {
        if isJSON { return Output.document(reply) }
        let info = try Manager.read { () throws(FieldError) in try AlertInfo(json: reply["alert"] ?? .null) }
        let now = Times.now
        var time = (info.heldUntil ?? info.at).map { $0 <= now ? "now" : Times.brief($0) } ?? "never"
        if let end = info.heldUntil, end > now { time += ", after the quiet hours" }
        Output.page(Terminal.harmless("\(info.id) \(time)") + "\n")
        if let warning = reply["warning"]?.stringValue { Complaint.say(Terminal.harmless(warning), .warning) }
    }
}

/// The table of alerts.
enum AlertPage {
    static func items(_ reply: JSON) throws -> [AlertInfo] {
        try Manager.read { () throws(FieldError) in
            try Fields(reply).list("alerts") { json throws(FieldError) in try AlertInfo(json: json) }
        }
    }

    static func text(_ items: [AlertInfo], withApps: Bool) -> String {
        guard !items.isEmpty else { return "no alerts\n" }
        let now = Times.now
        func open(_ item: AlertInfo) -> String {
            guard let at = item.openedAt, at <= now else { return "open" }
            return "open since \(Times.brief(at))"
        }
        var table = Table((withApps ? ["APP"] : []) + ["ID", "NEXT", "REPEATS", "TITLE"], whole: [withApps ? 2 : 1])
        for item in items {
            let time =
                item.state == "open" ? open(item) : (item.heldUntil ?? item.at).map { Times.brief($0) } ?? "never"
            table.append(
                (withApps ? [.init(item.app)] : []) + [
                    .init(item.id), .init(time, item.state == "open" ? .green : nil), .init(item.calendar ?? "-"),
                    .init(item.title, item.urgency == "critical" ? .red : nil),
                ]
            )
        }
        return table.text
    }

    /// The open alerts of this id. Throws if there is none, or if several apps have one.
    static func open(_ id: String, in items: [AlertInfo]) throws -> [AlertInfo] {
        let found = items.filter { $0.id == id }
        let open = found.filter { $0.state == "open" }
        let text = Terminal.harmless(id)
        guard let first = open.first else {
            throw Failure(
                status: .failed,
                message: found.isEmpty
                    ? "there is no open alert \(text): ‘torpor alerts’ lists them"
                    : "the alert \(text) has not come yet: ‘--cancel \(text)’ cancels it"
            )
        }
        if let other = open.first(where: { $0.app != first.app }) {
            throw Failure(
                status: .failed,
                message: "several apps have an open alert \(text) (\(first.app), \(other.app)): name the app"
            )
        }
        return open
    }

    /// A sentence about a cancellation: how many alerts were cancelled, and which repeating alerts will not come again.
    static func cancelled(_ reply: JSON, _ what: String = "cancelled") throws -> String {
        let items = try Self.items(reply)
        var text = ""
        for item in items {
            guard let calendar = item.calendar else { continue }
            text +=
                Terminal.harmless("\(item.id) of \(item.app) does not come again (it was repeated: \(calendar))") + "\n"
        }
        let count = max(items.count, reply["numbers"]?.arrayValue?.count ?? 0)
        return text + (count == 1 ? "1 alert \(what)\n" : "\(count) alerts \(what)\n")
    }
}
