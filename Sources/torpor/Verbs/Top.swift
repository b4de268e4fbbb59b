// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Linux
import TopView

struct Top: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "top",
        abstract: "Shows all apps on the whole screen, as they change, and acts on them.",
        discussion: "Keys. \(TopHelp.text)"
    )
    .examples("torpor top", "torpor top --once", "torpor top --once --json")

    @Option(name: .shortAndLong, help: ArgumentHelp("Read that often; 1s if it is not given.", valueName: "duration"))
    var delay: TimeLimit?

    @Flag(help: "Write one picture as plain text, and end.")
    var once = false

    @Flag(help: "With --once: one JSON document on standard output.")
    package var json = false

    @Flag(help: "Draw with ASCII only, which is the default where the locale is not one of UTF-8.")
    var ascii = false

    @Option(help: ArgumentHelp("The supervisor's control socket.", valueName: "path"), completion: .file())
    var socket: String?

    /// The shortest and the longest time between two readings, in milliseconds.
    private static let delays: ClosedRange<Int64> = 100...3_600_000

    func validate() throws {
        if let delay, !Self.delays.contains(delay.milliseconds) {
            throw ValidationError("--delay wants from 100ms to 1h")
        }
        if json, !once { throw ValidationError("--json is for one picture: write --once too") }
    }

    package func run() throws {
        let session = try TopSession(
            path: socket ?? Manager.defaultSocket,
            delay: .milliseconds(delay?.milliseconds ?? 1000),
            isASCII: ascii
        )
        if once { try session.once(json: json) } else { try session.run() }
    }
}
