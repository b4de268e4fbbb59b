// SPDX-License-Identifier: Apache-2.0

import Linux
import TorporAPI

/// Adds to what the supervisor tells of apps what they wrote to the journal. It reads for a few seconds in all: what
/// was not read by then is not worth waiting for, and the place where it is stands there.
struct JournalReading {
    /// Something was added.
    private(set) var isChanged = false
    private let end = Clock.monotonic() + .seconds(3)

    /// As many as the supervisor gives of a file.
    private static let lines = 10

    /// The last output of an app.
    mutating func complete(_ status: inout AppStatus) {
        if let place = status.journal, status.log.isEmpty { status.log = last(JournalOutput(place)) }
    }

    /// The last output of a run that has ended.
    mutating func complete(_ report: inout Report) {
        guard let place = report.journal, report.log.isEmpty else { return }
        var output = JournalOutput(place)
        // Lines of other runs would only mislead. The journal stamps a line when it reads it, which may be a moment
        // after the end.
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
