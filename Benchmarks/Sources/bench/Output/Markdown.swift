// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The tables for a page of the documentation: a table per figure with a line per peer and way, since a column per
/// figure would be too wide.
enum Markdown {
    static func text(_ results: Results) -> String {
        var text = "# Measured beside the peers\n\n"
        let machine = ["processors", "memory", "kernel", "date"].compactMap { results.machine[$0] }
        text += machine.joined(separator: ", ") + (results.quick ? "; a quick run" : "") + ".\n\n"
        for peer in results.peers {
            text +=
                "- **\(peer.name)** (\(peer.title)): \(peer.missing.map { "not measured: \($0)" } ?? peer.conditions)\n"
        }
        text += "\n" + summary(results)
        for conditions in results.conditions {
            let tables = results.tables.filter { $0.measurement == conditions.measurement }
            guard !tables.isEmpty else { continue }
            text += "\n## \(conditions.measurement)\n\n\(conditions.text)\n"
            for table in tables { text += "\n" + one(table) }
        }
        if !results.notes.isEmpty {
            text += "\n## Notes\n\n"
            for note in results.notes {
                let who = [note.measurement, note.peer].filter { !$0.isEmpty }.joined(separator: ", ")
                text += "- \(who): \(note.text)\n"
            }
        }
        return text
    }

    /// One line per figure: Torpor, floor and the best peer.
    private static func summary(_ results: Results) -> String {
        var text = "| | torpor | floor | best peer | × floor | × best peer |\n|---|---:|---:|---:|---:|---:|\n"
        for table in results.tables {
            for own in table.rows where own.peer == "torpor" { text += line(table, own) }
        }
        return text
    }

    private static func line(_ table: Results.Table, _ own: Results.Line) -> String {
        let isLower = table.better == "lower"
        let isCommand = Results.isCommand(own.way)
        let others = table.rows.filter {
            $0.peer != "floor" && !Results.isTorpor($0.peer) && Results.isCommand($0.way) == isCommand
        }
        let best = others.min { isLower ? $0.median < $1.median : $0.median > $1.median }
        let floor = own.toFloor.flatMap { _ in
            table.rows.first { $0.peer == "floor" && ($0.way.isEmpty || Results.isCommand($0.way) == isCommand) }
        }
        var cells = [title(table) + (own.way.isEmpty ? "" : " (\(own.way))")]
        cells.append(Statistics.text(own.median))
        cells.append(floor.map { Statistics.text($0.median) } ?? "")
        cells.append(best.map { Statistics.text($0.median) + " " + $0.label } ?? "")
        cells.append(own.toFloor.map(Statistics.text) ?? "")
        cells.append(own.toBestPeer.map(Statistics.text) ?? "")
        return "| \(cells.joined(separator: " | ")) |\n"
    }

    private static func one(_ table: Results.Table) -> String {
        let better = table.better == "higher" ? ", more is better" : ""
        var text = "| \(title(table))\(better) | median | best | worst | × floor | × best peer |\n"
        text += "|---|---:|---:|---:|---:|---:|\n"
        for row in table.rows {
            let isLower = table.better == "lower"
            var cells = [row.peer == "torpor" ? "**\(row.label)**" : row.label]
            cells.append(Statistics.text(row.median))
            cells.append(Statistics.text(isLower ? row.minimum : row.maximum))
            cells.append(Statistics.text(isLower ? row.maximum : row.minimum))
            cells.append(row.toFloor.map(Statistics.text) ?? "")
            cells.append(row.toBestPeer.map(Statistics.text) ?? "")
            text += "| \(cells.joined(separator: " | ")) |\n"
        }
        return text
    }

    private static func title(_ table: Results.Table) -> String {
        table.unit.isEmpty ? table.title : "\(table.title), \(table.unit)"
    }
}
