// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The tables on standard output, 80 columns wide or more if names are long.
enum TextTable {
    static func text(_ results: Results) -> String {
        var text = ""
        for table in results.tables {
            let unit = table.unit.isEmpty ? "" : " in \(table.unit)"
            text += "\n\(table.title)\(unit)\(table.better == "higher" ? " (more is better)" : "")\n"
            let width = max(24, table.rows.map(\.label.count).max() ?? 0)
            text += "  " + pad("", width) + right("median", 11) + right("best", 10) + right("worst", 10)
            text += right("× floor", 11) + right("× best peer", 13) + "\n"
            for row in table.rows {
                let best = table.better == "lower" ? row.minimum : row.maximum
                let worst = table.better == "lower" ? row.maximum : row.minimum
                text += "  " + pad(row.label, width) + right(Statistics.text(row.median), 11)
                text += right(Statistics.text(best), 10) + right(Statistics.text(worst), 10)
                text += right(row.toFloor.map(Statistics.text) ?? "", 11)
                text += right(row.toBestPeer.map(Statistics.text) ?? "", 13) + "\n"
            }
        }
        if !results.notes.isEmpty {
            text += "\nNotes\n"
            for note in results.notes {
                text +=
                    "  \([note.measurement, note.peer].filter { !$0.isEmpty }.joined(separator: ", ")): \(note.text)\n"
            }
        }
        return text
    }

    private static func pad(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }

    private static func right(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(0, width - text.count)) + text
    }
}
