import Linux

/// Colours, only on a terminal and never with NO_COLOR (https://no-color.org).
enum Terminal {
    enum Colour: String, Sendable {
        case red = "31"
        case green = "32"
        case yellow = "33"
        case blue = "34"
        case magenta = "35"
        case cyan = "36"
        case dim = "2"
        case bold = "1"
    }

    static let hasColour: Bool =
        ThisProcess.isTerminal(1) && (ThisProcess.environment("NO_COLOR") ?? "").isEmpty
        && ThisProcess.environment("TERM") != "dumb"

    static func coloured(_ text: String, _ colour: Colour?) -> String {
        guard let colour, hasColour, !text.isEmpty else { return text }
        return "\u{1b}[\(colour.rawValue)m\(text)\u{1b}[0m"
    }

    /// How wide standard output is; nil where it is no terminal, and lines are best left whole.
    static var columns: Int? { columns(of: 1) }

    /// The same of another descriptor.
    static func columns(of descriptor: Int32) -> Int? {
        // Some terminals do not know, and say 0.
        ThisProcess.isTerminal(descriptor)
            ? TerminalDevice.size(descriptor).flatMap { $0.columns > 0 ? $0.columns : nil } : nil
    }

    /// The text in lines of so many columns, broken between words; those after the first begin at the column behind
    /// which the first one does.
    static func wrapped(_ text: String, behind indent: Int, in columns: Int?) -> String {
        guard let columns, indent + text.count > columns else { return text }
        let words = text.split(separator: " ", omittingEmptySubsequences: false)
        let room = columns - indent
        // In a narrow column only what no word breaks anew.
        guard room >= 24 || room >= 8 && words.allSatisfy({ $0.count <= room }) else { return text }
        var lines: [String] = []
        var line = ""
        for word in words {
            if !line.isEmpty, indent + line.count + 1 + word.count > columns {
                lines.append(line)
                line = ""
            }
            line += (line.isEmpty ? "" : " ") + word
        }
        return (lines + [line]).joined(separator: "\n" + String(repeating: " ", count: indent))
    }

    /// The text without what would move the cursor, change the terminal, or show it in another order than it has.
    static func harmless(_ text: String) -> String {
        // All that is harmful is one of these bytes, or begins with one.
        guard text.utf8.contains(where: { $0 < 0x20 || [0x7f, 0xc2, 0xd8, 0xe2].contains($0) }) else { return text }
        var result = String.UnicodeScalarView()
        for scalar in text.unicodeScalars { result.append(isHarmful(scalar) && scalar != "\t" ? "\u{fffd}" : scalar) }
        return String(result)
    }

    /// A line that an app wrote, as it is shown: on a terminal without what is harmful there. Colours stay, and end with
    /// the line.
    static func line(_ text: String) -> String { ThisProcess.isTerminal(1) ? visible(text, coloured: hasColour) : text }

    /// What a terminal may be given of a line.
    static func visible(_ text: String, coloured: Bool) -> String {
        let scalars = Array(text.unicodeScalars)
        var result = String.UnicodeScalarView()
        var isColoured = false
        var at = 0
        // What a program for Windows ends its lines with.
        let end = scalars.last == "\r" ? scalars.count - 1 : scalars.count
        while at < end {
            if let next = endOfColour(scalars, from: at) {
                if coloured { result.append(contentsOf: scalars[at..<next]) }
                isColoured = coloured
                at = next
                continue
            }
            let scalar = scalars[at]
            result.append(isHarmful(scalar) && scalar != "\t" ? "\u{fffd}" : scalar)
            at += 1
        }
        return String(result) + (isColoured ? "\u{1b}[0m" : "")
    }

    /// Behind the sequence for colours that begins there (SGR: ESC [ numbers m); nil where none does.
    private static func endOfColour(_ scalars: [Unicode.Scalar], from start: Int) -> Int? {
        guard start + 2 < scalars.count, scalars[start] == "\u{1b}", scalars[start + 1] == "[" else { return nil }
        var at = start + 2
        while at < scalars.count, at < start + 40 {
            if scalars[at] == "m" { return at + 1 }
            guard ("0"..."9").contains(scalars[at]) || scalars[at] == ";" || scalars[at] == ":" else { return nil }
            at += 1
        }
        return nil
    }

    /// Controls, separators of lines and paragraphs, and what turns the direction of what follows.
    private static func isHarmful(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0..<0x20, 0x7f...0x9f, 0x61c, 0x200e, 0x200f, 0x2028...0x202e, 0x2066...0x2069: true
        default: false
        }
    }

    /// The colour of a state.
    static func colour(ofState state: String, failed: Bool = false) -> Colour? {
        if failed { return .red }
        return switch state {
        case "active": .green
        case "inactive", "background": .yellow
        case "suspended": .blue
        case "not-running": .dim
        default: nil
        }
    }
}

/// Columns as wide as needed, two spaces between them.
struct Table {
    struct Cell {
        var text: String
        var colour: Terminal.Colour?

        init(_ text: String, _ colour: Terminal.Colour? = nil) {
            self.text = Terminal.harmless(text)
            self.colour = colour
        }
    }

    private let heads: [String]
    private let rightAligned: Set<Int>
    private var rows: [[Cell]] = []
    private let columns = Terminal.columns

    init(_ heads: [String], rightAligned: Set<Int> = []) {
        self.heads = heads
        self.rightAligned = rightAligned
    }

    mutating func append(_ row: [Cell]) { rows.append(row) }

    /// Whether the longest row stays on one line of the terminal; where there is none, all do.
    var fits: Bool {
        guard let columns else { return true }
        return (0..<heads.count).reduce(0) { width, column in
            width + 2 + rows.reduce(heads[column].count) { max($0, Self.width($1[column].text)) }
        } - 2 <= columns
    }

    var text: String {
        var widths = heads.map(\.count)
        let rowWidths = rows.map { row in row.map { Self.width($0.text) } }
        for row in rowWidths {
            for (column, width) in row.enumerated() where width > widths[column] { widths[column] = width }
        }
        var text = ""
        appendRow(&text, heads.map { Cell($0, .bold) }, heads.map(\.count), widths)
        let last = widths.dropLast().reduce(0) { $0 + $1 + 2 }
        for (row, own) in zip(rows, rowWidths) {
            // Sentences stand in the last column.
            guard row.count == heads.count, !rightAligned.contains(heads.count - 1), var sentence = row.last else {
                appendRow(&text, row, own, widths)
                continue
            }
            let wrapped = Terminal.wrapped(sentence.text, behind: last, in: columns)
            let width = own[own.count - 1]
            if width > 0, wrapped == sentence.text, let columns, last + width > columns {
                // There is no room for it: it has lines of its own.
                appendRow(&text, row.dropLast(), own, widths)
                text +=
                    "    " + Terminal.coloured(Terminal.wrapped(wrapped, behind: 4, in: columns), sentence.colour)
                    + "\n"
            } else {
                sentence.text = wrapped
                appendRow(&text, row.dropLast() + [sentence], own, widths)
            }
        }
        return text
    }

    /// In columns. Looking each up is slow, and most text is ASCII.
    private static func width(_ text: String) -> Int {
        if text.utf8.allSatisfy({ $0 < 0x80 }) { return text.utf8.count }
        return text.unicodeScalars.reduce(0) { $0 + (CharacterWidth.columns($1) ?? 1) }
    }

    private func appendRow(_ text: inout String, _ row: [Cell], _ own: [Int], _ widths: [Int]) {
        var pending = 0
        for (column, cell) in row.enumerated() {
            let padding = widths[column] - own[column]
            if rightAligned.contains(column) {
                pending += padding
            }
            if own[column] > 0 {
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
