// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Configuration
import Linux
import TopView

struct Top: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "top",
        abstract: "Shows all apps live on the whole screen; keys act on them.",
        discussion: "Keys. \(TopHelp.text)"
    )
    .examples("torpor top", "torpor top --once", "torpor top --once --json")

    @Option(
        name: .shortAndLong,
        help: ArgumentHelp("Refresh at this interval; 1s if none is named.", valueName: "duration")
    )
    var delay: TimeLimit?

    @Flag(help: "Print one picture as plain text and exit.")
    var once = false

    @Flag(help: "With --once: one JSON document on standard output.")
    package var json = false

    @Flag(help: "Draw with ASCII only (the default outside UTF-8 locales).")
    var ascii = false

    @Option(help: ArgumentHelp("The supervisor's control socket.", valueName: "path"), completion: .file())
    var socket: String?

    /// The limits of the refresh interval, in milliseconds.
    private static let delays: ClosedRange<Int64> = 100...3_600_000

    func validate() throws {
        if let delay, !Self.delays.contains(delay.milliseconds) {
            throw ValidationError("--delay must be from 100ms to 1h")
        }
        if json, !once { throw ValidationError("--json is for one picture: write --once too") }
    }

    package func run() throws {
        let found = socket.map { (path: $0, isFallback: false) } ?? ControlSocket.search()
        let session = try TopSession(
            path: found.path,
            isFallback: found.isFallback,
            delay: .milliseconds(delay?.milliseconds ?? 1000),
            isASCII: ascii
        )
        if once { try session.once(json: json) } else { try session.run() }
    }
}
