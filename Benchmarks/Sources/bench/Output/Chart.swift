// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The drawing: a small bar chart for each figure, and curves over the number of apps.
enum Chart {
    private static let columns = 3
    private static let width = 330.0
    private static let labels = 146.0
    private static let values = 82.0
    private static let step = 15.0

    static func svg(_ results: Results) -> String {
        var y = 24.0
        var body = SVG.label("Torpor beside its peers, measured in one run", x: 8, y: y, size: 15, isBold: true)
        y += 18
        let machine = ["processors", "memory", "kernel"].compactMap { results.machine[$0] }.joined(separator: " · ")
        body += SVG.label("\(machine) · medians; × is the ratio to floor, a bare loop in C", x: 8, y: y)
        y += 16
        let (curves, height) = Curves.draw(results, y: y, width: width, columns: columns)
        body += curves
        y += height
        let tables = results.tables.filter { !$0.rows.isEmpty }
        for start in stride(from: 0, to: tables.count, by: columns) {
            let group = tables[start..<min(start + columns, tables.count)]
            let rows = group.map(\.rows.count).max() ?? 0
            for (column, table) in group.enumerated() { body += bars(table, x: 8 + Double(column) * width, y: y) }
            y += 46 + Double(rows) * step
        }
        return SVG.document(width: 16 + width * Double(columns), height: y + 8, body)
    }

    /// One figure: a bar for each row, the best first.
    private static func bars(_ table: Results.Table, x: Double, y: Double) -> String {
        let isLower = table.better == "lower"
        let rows = table.rows.sorted { isLower ? $0.median < $1.median : $0.median > $1.median }
        let positive = rows.map(\.median).filter { $0 > 0 }
        let most = positive.max() ?? 1
        let least = positive.min() ?? most
        let isLogarithmic = most / least > 15
        // Start at the power of ten below the smallest value: else that would have no bar.
        let origin = pow(10, (log10(least) - 0.15).rounded(.down))
        let room = width - labels - values
        let note = [table.unit, isLogarithmic ? "log scale" : "", isLower ? "" : "more is better"]
            .filter { !$0.isEmpty }.joined(separator: ", ")
        // A smaller font keeps long titles within their column.
        let size = min(12, 12 * 42 / Double(max(1, table.title.count)))
        var body = SVG.label(table.title, x: x, y: y + 18, size: size, isBold: true)
        body += SVG.label(note, x: x, y: y + 31, size: 10)
        for (index, row) in rows.enumerated() {
            let top = y + 38 + Double(index) * step
            let isTorpor = Results.isTorpor(row.peer)
            let part: Double =
                if row.median <= 0 {
                    0
                } else if isLogarithmic {
                    log10(row.median / origin) / log10(most / origin)
                } else {
                    row.median / most
                }
            body += SVG.label(
                row.label,
                x: x + labels - 6,
                y: top + 9,
                size: 10,
                anchor: "end",
                isBold: isTorpor
            )
            body += SVG.bar(
                x: x + labels,
                y: top,
                width: part * room,
                height: step - 4,
                colour: SVG.colour(row.peer)
            )
            let ratio = row.toFloor.map { " ×\(Statistics.text($0))" } ?? ""
            body += SVG.label(
                Statistics.text(row.median) + (row.peer == "floor" ? "" : ratio),
                x: x + labels + part * room + 4,
                y: top + 9,
                size: 10,
                isBold: isTorpor
            )
        }
        return body
    }
}
