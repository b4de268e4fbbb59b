// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CommandLinePages
import EverydayVerbs
import Linux
import TorporAPI
import Varlink

struct Reports: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "report",
        abstract: "Shows termination reports: why apps ended unexpectedly.",
        discussion: """
            If no app is named, several reports are listed, a line each, the newest last. Those of APP are shown in full, \
            the newest first, and so is a single report.
            """
    )
    .examples(
        "torpor report",
        "torpor report web",
        "torpor report web -n 1"
    )

    @OptionGroup var app: AppOrAllArgument

    @Option(name: [.customShort("n", allowingJoined: true), .long], help: "Show only this many of the newest reports.")
    var lines: Int?
    @OptionGroup var times: TimeOptions
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        if let lines, lines < 0 { throw ValidationError("-n wants a number from 0") }
    }

    package func run() throws {
        let reply = try Manager(options).call(.reports(app: app.app))
        var reports = try Manager.read { () throws(FieldError) in
            try Fields(reply).list("reports") { json throws(FieldError) in try Report(json: json) }
        }
        let isCut = lines.map { $0 < reports.count } ?? false
        if let lines { reports = Array(reports.prefix(lines)) }
        var reading = JournalReading()
        for index in reports.indices { reading.complete(&reports[index]) }
        if options.json {
            let read = JSON.array(reports.map(\.json))
            return Output.document(reading.isChanged || isCut ? read : reply["reports"] ?? [])
        }
        guard !reports.isEmpty else { return Output.page("no reports\n") }
        if app.app == nil, reports.count > 1 { return Output.page(Self.list(reports)) }
        let read = (try? File.readString("/proc/sys/kernel/core_pattern", limit: 4096)) ?? ""
        let pattern = String(read.prefix { $0 != "\n" })
        Output.page(reports.map { ReportPage($0, corePattern: pattern).text }.joined(separator: "\n"))
    }

    /// A list with one line for each report, the newest last, and a hint how to see a whole report.
    private static func list(_ reports: [Report]) -> String {
        var table = Table(["TIME", "APP", "RUN", "REASON", "WHY"], rightAligned: [2], whole: [0, 1])
        for report in reports.reversed() {
            table.append([
                .init(Times.timestamp(report.at)), .init(report.app), .init("\(report.incarnation)"),
                .init(report.reason, .red), .init(report.text ?? ""),
            ])
        }
        return table.text + "‘torpor report \(Terminal.harmless(reports[0].app)) -n 1’ shows the last one in full\n"
    }
}
