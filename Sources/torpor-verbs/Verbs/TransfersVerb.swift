// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CommandLinePages
import EverydayVerbs
import Linux
import TorporAPI
import Varlink

struct TransfersVerb: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "transfers",
        abstract: "Shows or cancels the downloads and uploads that run while apps sleep.",
        discussion: """
            STATE is queued, running, done, failed, cancelled, or what a transfer waits for: retry, network, power, \
            memory, load, space, window, metered, login or, of a subscription, interval. A transfer that is over is \
            shown until its app has acknowledged it.
            """
    )
    .examples(
        "torpor transfers",
        "torpor transfers web --session episodes",
        "torpor transfers -f",
        "torpor transfers --cancel 17",
        "torpor transfers web --cancel-all"
    )

    @OptionGroup package var apps: AnyAppsArgument
    @Option(help: ArgumentHelp("Show only the transfers of this session.", valueName: "name"))
    var session: String?
    @Flag(name: .shortAndLong, help: "Refresh each second; with --json, print a line for each transfer that changed.")
    var follow = false
    @Option(
        help: ArgumentHelp(
            "Cancel the transfer of this number, or forget one that is over; once for each.",
            valueName: "id"
        )
    )
    var cancel: [Int64] = []
    @Flag(help: "Cancel all transfers of the apps.")
    var cancelAll = false
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if [follow, !cancel.isEmpty, cancelAll].count(where: { $0 }) > 1 {
            throw ValidationError("--follow, --cancel and --cancel-all: choose one")
        }
        if !apps.apps.isEmpty, !cancel.isEmpty {
            throw ValidationError(
                apps.apps.allSatisfy { Int64($0) != nil }
                    ? "write --cancel before each number" : "a number says which it is: leave out the app"
            )
        }
        if cancelAll, apps.apps.isEmpty { throw ValidationError("--cancel-all needs the apps; '*' is all") }
        if session != nil, !cancel.isEmpty || cancelAll {
            throw ValidationError("--session only chooses what is shown: cancel by number or by app")
        }
    }

    package func run() throws {
        let manager = try Manager(options)
        if !cancel.isEmpty || cancelAll { return try cancelThem(manager) }
        if follow { return try followAll(manager) }
        let reply = try manager.call(.transfers(request))
        guard !options.json else { return Output.document(reply["transfers"] ?? []) }
        let items = try TransferPage.items(reply)
        Output.page(items.isEmpty ? "no transfers\n" : TransferPage.table(items, withApps: true).text)
    }

    private var request: TransfersRequest {
        var request = TransfersRequest()
        request.apps = apps.apps
        request.session = session
        return request
    }

    private func cancelThem(_ manager: Manager) throws {
        let reply = try manager.call(.cancelTransfers(CancelTransfersRequest(apps: apps.apps, ids: cancel)))
        if options.json { return Output.document(reply) }
        let count = reply["ids"]?.arrayValue?.count ?? 0
        Output.write(count == 1 ? "1 transfer cancelled\n" : "\(count) transfers cancelled\n")
    }

    /// Shows all transfers again every second. Polls them, because progress causes no events.
    private func followAll(_ manager: Manager) throws {
        Output.endWithReader()
        var before: [Int64: TransferInfo] = [:]
        var lines = 0
        while true {
            let items = try TransferPage.items(try manager.call(.transfers(request)))
            if options.json {
                for item in items where before[item.id] != item { Output.line(item.json) }
                before = Dictionary(items.map { ($0.id, $0) }, uniquingKeysWith: { $1 })
            } else {
                let text = items.isEmpty ? "no transfers\n" : TransferPage.table(items, withApps: true).text
                // On a terminal, overwrite what was shown before.
                let isTerminal = ThisProcess.isTerminal(1)
                let up = isTerminal && lines > 0 ? "\u{1b}[\(lines)A\u{1b}[J" : ""
                Output.write(up + text + (isTerminal ? "" : "\n"))
                lines = text.utf8.count { $0 == UInt8(ascii: "\n") }
            }
            ThisProcess.sleep(.seconds(1))
        }
    }
}

/// Shows transfers as a table, for operators and for an app's own processes.
enum TransferPage {
    static func items(_ reply: JSON) throws -> [TransferInfo] {
        try Manager.read { () throws(FieldError) in
            try Fields(reply).list("transfers") { json throws(FieldError) in try TransferInfo(json: json) }
        }
    }

    static func table(_ items: [TransferInfo], withApps: Bool) -> Table {
        let heads = ["ID", "SESSION", "STATE", "PROGRESS", "RATE", "ETA", "URL"]
        var table = Table(
            (withApps ? ["APP"] : []) + heads,
            rightAligned: withApps ? [1, 5, 6] : [0, 4, 5],
            whole: [withApps ? 3 : 2]
        )
        for item in items { table.append((withApps ? [.init(item.app)] : []) + row(item)) }
        return table
    }

    private static func row(_ item: TransferInfo) -> [Table.Cell] {
        let colour: Terminal.Colour? =
            switch item.state {
            case "failed": .red
            case "waiting": .yellow
            case "running": .green
            default: nil
            }
        let arrow = item.direction == "upload" ? "to " : ""
        let why = item.state == "running" || item.state == "queued" ? "" : item.error.map { ": \($0)" } ?? ""
        return [
            .init("\(item.id)"), .init(item.session), .init(item.cause ?? item.state, colour),
            .init(progress(item)), .init(item.rate.map { Times.memory(bytes: $0) + "/s" } ?? "-"),
            .init(eta(item)), .init(arrow + item.url + why),
        ]
    }

    private static func progress(_ item: TransferInfo) -> String {
        let there = Times.memory(bytes: item.bytes)
        guard let total = item.total, total > 0 else { return there }
        let percent = min(100, item.bytes * 100 / total)
        return "\(percent)% of \(Times.memory(bytes: total))"
    }

    private static func eta(_ item: TransferInfo) -> String {
        if item.state == "waiting", let at = item.retryAt {
            return "in " + Times.duration(seconds: Double(max(0, at - Times.now)) / 1e6)
        }
        guard item.state == "running", let total = item.total, let rate = item.rate, rate > 0 else { return "-" }
        return Times.duration(seconds: Double(max(0, total - item.bytes)) / Double(rate))
    }
}
