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

    /// The maximum number of suspended apps for which the supervisor is asked what wakes them.
    private static let mostAsked = 64

    /// Warns of apps that no event will wake, because only a user can bring these back. On a terminal, also names the
    /// expected events that will not wake an app.
    static func hint(_ results: [VerbResult], _ options: PlainOptions) {
        let apps = results.filter { $0.state == "suspended" }.map(\.app)
        guard !apps.isEmpty, let manager = try? Manager(options) else { return }
        var asleep: [AppStatus] = []
        for app in apps.prefix(mostAsked) {
            guard let reply = try? manager.call(.status(app: app)),
                let status = try? AppStatus(json: reply["status"] ?? .null)
            else { return }
            if status.wokenBy.isEmpty { asleep.append(status) }
            if !options.json, ThisProcess.isTerminal(2), apps.count <= 3, !status.notWokenBy.isEmpty {
                Complaint.say("\(app) is not woken by \(status.notWokenBy.joined(separator: ", "))", .remark)
            }
        }
        guard let first = asleep.first?.summary.name else { return }
        if asleep.count > 1 {
            let names = asleep.map(\.summary.name)
            let more = names.count > 5 ? " and \(names.count - 5) more" : ""
            let shown = names.prefix(5).joined(separator: ", ")
            return Complaint.say("no event wakes \(shown)\(more): ‘torpor resume NAME’ brings one back", .warning)
        }
        let users = asleep[0].requiredBy.joined(separator: " or ")
        let more = users.isEmpty ? "" : ", and so does using \(users)"
        Complaint.say("no event wakes \(first): ‘torpor resume \(first)’ brings it back\(more)", .warning)
    }
}
