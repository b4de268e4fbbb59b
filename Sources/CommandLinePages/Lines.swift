// SPDX-License-Identifier: Apache-2.0

import Linux

/// Wraps lines at the terminal's width. Without a terminal (`columns` is nil) they stay whole.
extension Terminal {
    /// Wraps text that begins at column `indent`, and indents further lines to the same column.
    package static func wrapped(_ text: String, behind indent: Int, in columns: Int? = Self.columns) -> String {
        guard let columns, indent + width(of: text) > columns, columns - indent >= narrowest else { return text }
        let lines = broken(text, first: columns - indent, others: columns - indent)
        return lines.joined(separator: "\n" + String(repeating: " ", count: indent))
    }

    /// Wraps the lines of a page; continuation lines are indented by `indent` more columns.
    package static func fitted(_ page: String, in columns: Int? = Self.columns, indent: Int = 4) -> String {
        guard let columns else { return page }
        return page.split(separator: "\n", omittingEmptySubsequences: false).map { line in
            let line = String(line)
            guard width(of: line) > columns else { return line }
            let margin = line.prefix { $0 == " " }.count
            let inner = margin + indent
            guard columns - inner >= narrowest else { return line }
            let lines = broken(String(line.dropFirst(margin)), first: columns - margin, others: columns - inner)
            return line.prefix(margin) + lines.joined(separator: "\n" + String(repeating: " ", count: inner))
        }.joined(separator: "\n")
    }

    /// Whether text is readable in a column of this width.
    static func isReadable(_ text: String, columns: Int) -> Bool {
        columns >= 24 || columns >= narrowest && text.split(separator: " ").allSatisfy { width(of: $0) <= columns }
    }

    /// A column that is narrower than this many characters is not wrapped at all.
    private static let narrowest = 8

    /// The width of a text in columns; colour sequences count as 0. The ASCII check avoids a slow lookup of each
    /// scalar.
    package static func width(of text: some StringProtocol) -> Int {
        if text.utf8.allSatisfy({ $0 < 0x80 && $0 != 0x1b }) { return text.utf8.count }
        var width = 0
        var isColour = false
        for scalar in text.unicodeScalars {
            if isColour {
                isColour = scalar != "m"
            } else if scalar == "\u{1b}" {
                isColour = true
            } else {
                width += CharacterWidth.columns(scalar) ?? 1
            }
        }
        return width
    }

    /// Cuts the text to `columns` and marks the cut with an ellipsis.
    package static func cut(_ text: String, to columns: Int) -> String {
        guard width(of: text) > columns else { return text }
        return pieces(of: text[...], first: max(0, columns - 1), others: .max)[0] + "…"
    }

    /// Breaks between words, and inside a word that is longer than a line.
    private static func broken(_ text: String, first: Int, others: Int) -> [String] {
        var lines: [String] = []
        var line = ""
        var used = 0
        var room: Int { lines.isEmpty ? first : others }
        for word in text.split(separator: " ", omittingEmptySubsequences: false) {
            let width = width(of: word)
            if !line.isEmpty, used + 1 + width > room {
                lines.append(line)
                (line, used) = ("", 0)
            }
            if !line.isEmpty {
                line += " "
                used += 1
            }
            guard width > room else {
                line += word
                used += width
                continue
            }
            let parts = pieces(of: word, first: room, others: others)
            lines += parts.dropLast()
            line = parts.last ?? ""
            used = Self.width(of: line)
        }
        return lines + [line]
    }

    /// Splits a word into pieces of the given widths.
    private static func pieces(of word: Substring, first: Int, others: Int) -> [String] {
        var pieces: [String] = []
        var piece = String.UnicodeScalarView()
        var used = 0
        var isColour = false
        for scalar in word.unicodeScalars {
            isColour = isColour || scalar == "\u{1b}"
            let width = isColour ? 0 : CharacterWidth.columns(scalar) ?? 1
            if used + width > (pieces.isEmpty ? first : others) {
                pieces.append(String(piece))
                piece = .init()
                used = 0
            }
            piece.append(scalar)
            used += width
            if isColour { isColour = scalar != "m" }
        }
        return pieces + [String(piece)]
    }
}
