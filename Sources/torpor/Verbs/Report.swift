// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CommandLinePages
import Linux
import TorporAPI
import Varlink

struct Reports: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "report",
        abstract: "Shows termination reports: why apps ended unexpectedly."
    )
    .examples(
        "torpor report -n 1",
        "torpor report web"
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
        let read = (try? File.readString("/proc/sys/kernel/core_pattern", limit: 4096)) ?? ""
        let pattern = String(read.prefix { $0 != "\n" })
        Output.page(reports.map { ReportPage($0, corePattern: pattern).text }.joined(separator: "\n"))
    }
}
