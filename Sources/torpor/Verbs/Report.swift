// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Linux
import TorporAPI
import Varlink

struct Reports: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "report",
        abstract: "Shows termination reports: why apps ended when nobody had asked for it."
    )
    .examples(
        "torpor report",
        "torpor report web"
    )

    @Argument(
        help: ArgumentHelp("Only this app's.", valueName: "app"),
        completion: .custom { words, _, _ in Completion.apps(words) }
    )
    var app: String?
    @OptionGroup var times: TimeOptions
    @OptionGroup var options: GlobalOptions

    func run() throws {
        let reply = try Manager(options).call(.reports(app: app))
        var reports = try Manager.read { () throws(FieldError) in
            try Fields(reply).list("reports") { json throws(FieldError) in try Report(json: json) }
        }
        var reading = JournalReading()
        for index in reports.indices { reading.complete(&reports[index]) }
        if options.json {
            let read = JSON.array(reports.map(\.json))
            return Output.document(reading.isChanged ? read : reply["reports"] ?? [])
        }
        Output.page(
            reports.isEmpty ? "no reports\n" : reports.map { ReportPage($0).text }.joined(separator: "\n")
        )
    }
}
