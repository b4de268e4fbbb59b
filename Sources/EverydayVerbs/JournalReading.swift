// SPDX-License-Identifier: Apache-2.0

import Linux
package import TorporAPI

/// Adds apps' output from the journal to replies of the supervisor. All reading together takes at most 3 seconds;
/// replies after that only mention the journal.
package struct JournalReading {
    /// Whether any output was added to a reply.
    package private(set) var isChanged = false
    private let end = Clock.monotonic() + .seconds(3)

    package init() {}

    /// How many lines to add to a reply: as many as the supervisor itself adds from a log file.
    private static let lines = 10

    /// Adds the last output of the app.
    package mutating func complete(_ status: inout AppStatus) {
        if let place = status.journal, status.log.isEmpty { status.log = last(JournalOutput(place)) }
    }

    /// Adds the last output of a run (launch of an app) that has ended.
    package mutating func complete(_ report: inout Report) {
        guard let place = report.journal, report.log.isEmpty else { return }
        var output = JournalOutput(place)
        // Exclude lines of other runs. The end has a margin because the journal stamps a line when it reads the line,
        // which may be shortly after the end of the run.
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
