// SPDX-License-Identifier: Apache-2.0

import TorporAPI

extension TopLayout {
    /// One lane per app with its states over time, newest at the right.
    mutating func timeline() {
        let names = model.visible.map { DisplayText.width($0.name, model.characters) }.max() ?? 0
        let width = max(8, min(names, grid.columns / 4))
        let start = 1 + width + 3
        let columns = grid.columns - start - 1
        guard columns >= 8 else { return list() }
        // Align columns to whole multiples of their length: otherwise past states would move between columns.
        let length = max(1, model.span * 1_000_000 / Int64(columns))
        let end = (model.now / length + 1) * length
        let begin = end - length * Int64(columns)
        axis(start, columns, Double(length) / 1e6)
        if model.visible.isEmpty { return nothing() }
        let rows = regions.body.dropLast(regions.body.count > 4 ? 1 : 0)
        for (row, app) in zip(rows, model.visible.dropFirst(model.first)) {
            let state = ShownState(app)
            grid.put(app.name, row: row, column: 1, width: width, Style(.plain, bold: app.name == model.selected))
            grid.put(model.glyphs.sign(state), row: row, column: width + 2, width: 1, Style(state.ink, bold: true))
            if model.marked.contains(app.name) {
                grid.put(model.glyphs.marked, row: row, column: 0, Style(.accent, bold: true))
            }
            let cells = Lanes.cells(
                model.changes[app.name] ?? [],
                current: state,
                from: begin,
                to: end,
                now: model.now,
                knownSince: model.knownSince,
                columns: columns
            )
            for (index, cell) in cells.enumerated() {
                let shown: ShownState? = cell.isFailure ? .failed : cell.state
                let style = Style(shown?.ink ?? .dim, bold: cell.isFailure)
                grid.put(model.glyphs.lane(shown), row: row, column: start + index, style)
            }
            if app.name == model.selected { grid.ground(.selected, row: row, 0..<start - 1) }
        }
        if rows.count < regions.body.count { legend(row: regions.body.upperBound - 1) }
    }

    /// Writes labels at about every sixteenth column, newest at the right.
    private mutating func axis(_ start: Int, _ columns: Int, _ seconds: Double) {
        let row = regions.head
        grid.put(Self.length(model.span), row: row, column: 1, width: max(1, start - 3), Style(.accent, bold: true))
        for column in 0..<columns {
            grid.put(model.glyphs.line, row: row, column: start + column, Style(.dim))
        }
        let step = Self.step(for: Double(model.span) * 14 / Double(columns))
        var age = step
        grid.put("now", row: row, column: start + columns - 3, Style(.dim, bold: true))
        var limit = start + columns - 4
        while age <= Double(model.span) {
            let column = start + columns - 1 - Int((age / seconds).rounded())
            let text = "-" + Self.length(Int64(age))
            let first = column - text.utf8.count
            guard first >= start else { break }
            if column < limit {
                grid.put(text, row: row, column: first, Style(.dim, bold: true))
                grid.put(model.glyphs.tick, row: row, column: column, Style(.dim, bold: true))
                limit = first
            }
            age += step
        }
    }

    /// The shortest customary interval of at least `seconds`.
    private static func step(for seconds: Double) -> Double {
        let steps: [Double] = [5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 14_400, 21_600]
        return steps.first { $0 >= seconds } ?? 43_200
    }

    private static func length(_ seconds: Int64) -> String {
        if seconds < 60 { return "\(seconds) s" }
        if seconds < 3600 { return seconds % 60 == 0 ? "\(seconds / 60) min" : "\(seconds / 60) min \(seconds % 60) s" }
        return seconds % 3600 == 0 ? "\(seconds / 3600) h" : "\(seconds / 3600) h \(seconds % 3600 / 60) min"
    }

    private mutating func legend(row: Int) {
        let groups = ShownState.allCases.map { state in
            [Part(model.glyphs.lane(state), state.ink, bold: state == .failed), Part(" \(state.name)", .dim)]
        }
        put(groups, row: row, column: 1)
    }
}
