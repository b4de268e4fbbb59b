// SPDX-License-Identifier: Apache-2.0

/// A table with columns as wide as needed, two spaces apart.
package struct Table {
    package struct Cell {
        package var text: String
        package var colour: Terminal.Colour?

        package init(_ text: String, _ colour: Terminal.Colour? = nil) {
            self.text = Terminal.harmless(text)
            self.colour = colour
        }
    }

    private let heads: [String]
    private let rightAligned: Set<Int>
    private let whole: Set<Int>
    private var rows: [[Cell]] = []
    private let columns = Terminal.columns

    /// - Parameter whole: the columns that are never cut, since a cut text would have no meaning there. Right-aligned
    ///   columns, which hold numbers, are never cut either.
    package init(_ heads: [String], rightAligned: Set<Int> = [], whole: Set<Int> = []) {
        self.heads = heads
        self.rightAligned = rightAligned
        self.whole = whole.union(rightAligned)
    }

    package mutating func append(_ row: [Cell]) { rows.append(row) }

    /// Whether the longest row fits one line of the terminal; true without a terminal.
    package var fits: Bool {
        guard let columns else { return true }
        return (0..<heads.count).reduce(0) { width, column in
            width + 2 + rows.reduce(heads[column].count) { max($0, Terminal.width(of: $1[column].text)) }
        } - 2 <= columns
    }

    /// The table, wrapped to the terminal's width if numbers and times leave enough room.
    package var text: String {
        // The last column holds sentences.
        let hasSentences = !rightAligned.contains(heads.count - 1)
        var head = Self.row(heads.map { Cell($0, .bold) })
        var rows = rows.map { Self.row($0) }
        var widths = heads.map(\.count)
        for row in rows {
            for (column, width) in row.widths.enumerated() { widths[column] = max(widths[column], width) }
        }
        if let columns { shorten(&rows, &widths, to: columns, count: heads.count - (hasSentences ? 1 : 0)) }
        var text = ""
        let last = widths.dropLast().reduce(0) { $0 + $1 + 2 }
        // If sentences are on lines of their own, their column has no head.
        if hasSentences, let columns, last + head.widths[heads.count - 1] > columns { head.cells.removeLast() }
        append(head, to: &text, widths)
        for var row in rows {
            guard hasSentences, let columns, row.cells.count == heads.count, let sentence = row.cells.last,
                !sentence.text.isEmpty, last + row.widths[heads.count - 1] > columns
            else {
                append(row, to: &text, widths)
                continue
            }
            if Terminal.isReadable(sentence.text, columns: columns - last) {
                row.cells[heads.count - 1].text = Terminal.wrapped(sentence.text, behind: last, in: columns)
                append(row, to: &text, widths)
            } else {
                // The terminal is too narrow for the whole row: put the sentence on lines of its own.
                row.cells.removeLast()
                append(row, to: &text, widths)
                let own = Terminal.wrapped(sentence.text, behind: 4, in: columns)
                text += "    " + Terminal.coloured(own, sentence.colour) + "\n"
            }
        }
        return text
    }

    private typealias Row = (cells: [Cell], widths: [Int])

    private static func row(_ cells: [Cell]) -> Row { (cells, cells.map { Terminal.width(of: $0.text) }) }

    /// The minimum width of a text column. No text column is cut to fewer columns of the terminal, or below the width
    /// of its head.
    private static let narrowest = 6

    /// Cuts the widest text columns until the first `count` columns fit.
    private func shorten(_ rows: inout [Row], _ widths: inout [Int], to columns: Int, count: Int) {
        var excess = widths.prefix(count).reduce(0) { $0 + $1 + 2 } - 2 - columns
        guard excess > 0 else { return }
        func least(_ column: Int) -> Int { max(Self.narrowest, heads[column].count) }
        while excess > 0 {
            let cuttable = (0..<count).filter { !whole.contains($0) && widths[$0] > least($0) }
            guard let widest = cuttable.max(by: { widths[$0] < widths[$1] }) else { break }
            widths[widest] -= 1
            excess -= 1
        }
        for index in rows.indices {
            for column in 0..<min(count, rows[index].cells.count) where rows[index].widths[column] > widths[column] {
                rows[index].cells[column].text = Terminal.cut(rows[index].cells[column].text, to: widths[column])
                rows[index].widths[column] = widths[column]
            }
        }
    }

    private func append(_ row: Row, to text: inout String, _ widths: [Int]) {
        var pending = 0
        for (column, cell) in row.cells.enumerated() {
            let padding = widths[column] - row.widths[column]
            if rightAligned.contains(column) { pending += padding }
            if row.widths[column] > 0 {
                text.append(String(repeating: " ", count: pending))
                text.append(Terminal.coloured(cell.text, cell.colour))
                pending = 0
            }
            if !rightAligned.contains(column) { pending += padding }
            pending += 2
        }
        text.append("\n")
    }
}
