// SPDX-License-Identifier: Apache-2.0

import Linux
import TorporAPI

/// Completes the supervisor's replies with the apps' output from the journal. It reads for 3 seconds in all: then the
/// reply names the journal only.
struct JournalReading {
    /// Whether any output was added.
    private(set) var isChanged = false
    private let end = Clock.monotonic() + .seconds(3)

    /// The number of lines that the supervisor sends from a log file.
    private static let lines = 10

    /// Adds the app's last output.
    mutating func complete(_ status: inout AppStatus) {
        if let place = status.journal, status.log.isEmpty { status.log = last(JournalOutput(place)) }
    }

    /// Adds the last output of a run that has ended.
    mutating func complete(_ report: inout Report) {
        guard let place = report.journal, report.log.isEmpty else { return }
        var output = JournalOutput(place)
        // Exclude other runs' lines. The journal stamps a line when it reads it, which may be a moment after the end.
        output.until = report.at + 50_000
        output.since = report.wallSeconds.map { report.at - Int64($0 * 1_000_000) - 2_000 }
        report.log = last(output)
    }

    private mutating func last(_ output: JournalOutput) -> [LogLine] {
        let left = end - Clock.monotonic()
        guard left > .zero, let page = try? output.last(Self.lines, patience: left, isQuiet: true) else { return [] }
        if !page.lines.isEmpty { isChanged = true }
        return page.lines
    }
}
