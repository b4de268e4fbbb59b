// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Linux
import TorporAPI
import Varlink

struct Suspend: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "suspend",
        abstract: "Stops the processes of apps and keeps them in memory."
    )
    .examples(
        "torpor suspend web",
        "torpor suspend web --force"
    )
    @OptionGroup package var apps: AppsArgument
    @Flag(help: "Suspend even if a hold or task keeps the app awake, or an app in use requires it.") var force = false
    @OptionGroup var wait: WaitOptions
    @OptionGroup var options: GlobalOptions

    package func run() throws {
        var request = VerbRequest(verb: .suspend, apps: apps.apps)
        request.force = force
        Self.hint(try VerbRunner.run(request, options, wait: wait), PlainOptions(options))
    }

    /// Says, on a terminal, for the first apps, that no event will wake them, or which expected ones will not.
    static func hint(_ results: [VerbResult], _ options: PlainOptions) {
        guard !options.json, ThisProcess.isTerminal(2) else { return }
        for result in results.prefix(3) where result.state == "suspended" { hint(result.app, options) }
    }

    private static func hint(_ app: String, _ options: PlainOptions) {
        guard let reply = try? Manager(options).call(.status(app: app)),
            let status = try? AppStatus(json: reply["status"] ?? .null)
        else { return }
        if !status.notWokenBy.isEmpty {
            Complaint.say("\(app) is not woken by \(status.notWokenBy.joined(separator: ", "))", .remark)
        }
        if status.wokenBy.isEmpty { Complaint.say("no event wakes \(app): ‘torpor resume \(app)’ does", .remark) }
    }
}
