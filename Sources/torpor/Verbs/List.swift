// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CommandLinePages
import Linux
import TorporAPI
import Varlink

struct List: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "Shows apps, a line each; all of them if none is named.",
        aliases: ["ls"]
    )
    .examples(
        "torpor list",
        "torpor list web 'tag:shop'",
        "torpor list --json | jq -r '.[] | select(.state == \"suspended\") | .name'"
    )
    @OptionGroup package var apps: AnyAppsArgument
    @OptionGroup var options: GlobalOptions

    package func run() throws { try PlainList(apps: apps.apps, options: PlainOptions(options)).run() }
}

/// `list` without the argument parser.
struct PlainList {
    package var apps: [String]
    var options: PlainOptions

    package func run() throws {
        let reply = try Manager(options).call(.list(of: apps))
        guard !options.json else {
            return Output.document(reply["apps"] ?? [])
        }
        let apps = try Manager.read { () throws(FieldError) in
            try Fields(reply).list("apps") { json throws(FieldError) in try AppSummary(json: json) }
        }
        let heads = ["NAME", "STATE", "PID", "UPTIME", "RESTARTS", "MEM", "CPU", "REASON"]
        func table(_ heads: [String], _ row: (AppSummary) -> [Table.Cell]) -> Table {
            var table = Table(heads, rightAligned: [2, 3, 4, 5, 6])
            for app in apps { table.append(row(app)) }
            return table
        }
        var shown = table(heads, Self.row)
        if apps.contains(where: { $0.title != nil }) {
            let titled = table(heads + ["TITLE"]) { Self.row($0) + [.init($0.title(in: Languages.wanted) ?? "")] }
            // On a terminal only where nothing is broken for it.
            if titled.fits { shown = titled }
        }
        Output.page(shown.text)
    }

    private static func row(_ app: AppSummary) -> [Table.Cell] {
        [
            .init(app.name),
            .init(app.transition ?? app.state, Terminal.colour(ofState: app.state, failed: app.failed)),
            .init(app.pid.map { String($0) } ?? "-"),
            .init(app.uptime.map { Times.duration(seconds: $0) } ?? "-"),
            .init(String(app.restarts)),
            .init(app.memoryBytes.map { Times.memory(bytes: $0) } ?? "-"),
            .init(app.cpuSeconds.map { Times.duration(seconds: $0) } ?? "-"),
            .init(reason(app), app.failed ? .red : nil),
        ]
    }

    private static func reason(_ app: AppSummary) -> String {
        if let reason = app.heldBack { return "waits: \(reason)" }
        var text = app.failed ? "failed" : ""
        // Why an app ended once is of no interest any more while it runs.
        if app.pid == nil, let exit = app.lastExit {
            text += (text.isEmpty ? "" : ": ") + exit.sentence
        }
        if let left = app.nextRestartMilliseconds {
            text += (text.isEmpty ? "" : ", ") + "restarts in " + Times.duration(milliseconds: left)
        }
        return text
    }
}
