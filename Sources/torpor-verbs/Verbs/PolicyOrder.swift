// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CommandLinePages
import EverydayVerbs
import Linux
import TorporAPI
import Varlink

struct PolicyOrder: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "order",
        abstract: "Shows which apps the policies would end first if memory were short, and why.",
        discussion: "An app that is not listed would not be ended. Asks the policies now, and ends no app."
    )
    .examples(
        "torpor policy order"
    )
    @OptionGroup var options: GlobalOptions

    package func run() throws {
        let reply = try Manager(options).call(.evictionOrder)
        let apps = try Manager.read { () throws(FieldError) in
            try Fields(reply).list("apps") { json throws(FieldError) in try EvictionCandidate(json: json) }
        }
        guard !options.json else { return Output.document(.array(apps.map(\.json))) }
        guard !apps.isEmpty else {
            Output.write("none: no policy names an app that may be ended\n")
            return
        }
        var table = Table(["", "APP", "STATE", "MEM", "POLICY", "WHY"], rightAligned: [0, 3])
        for (index, app) in apps.enumerated() {
            table.append([
                .init("\(index + 1)"), .init(app.app, .bold),
                .init(app.state, Terminal.colour(ofState: app.state)),
                .init(app.memoryBytes.map { Times.memory(bytes: $0) } ?? "-"), .init(app.policy), .init(app.reason),
            ])
        }
        Output.page(table.text)
    }
}
