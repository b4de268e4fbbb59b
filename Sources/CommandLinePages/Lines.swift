// SPDX-License-Identifier: Apache-2.0

import Linux

/// Lines that are not wider than a terminal. Where there is none (`columns` is nil) they stay whole.
extension Terminal {
    /// The text in lines of so many columns; those after the first begin at the column behind which the first one does.
    package static func wrapped(_ text: String, behind indent: Int, in columns: Int? = Self.columns) -> String {
        guard let columns, indent + width(of: text) > columns, columns - indent >= narrowest else { return text }
        let lines = broken(text, first: columns - indent, others: columns - indent)
        return lines.joined(separator: "\n" + String(repeating: " ", count: indent))
    }

    /// A page whose lines fit; what does not fit on a line goes on in the next one, `indent` columns further in.
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

    /// Whether a text can be read in a column that is so wide.
    static func isReadable(_ text: String, columns: Int) -> Bool {
        columns >= 24 || columns >= narrowest && text.split(separator: " ").allSatisfy { width(of: $0) <= columns }
    }

    /// What has fewer columns is not broken at all.
    private static let narrowest = 8

    /// In columns. Colours have none. Looking each scalar up is slow, and most text is ASCII.
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

    /// The text cut to so many columns, with a sign that there is more.
    package static func cut(_ text: String, to columns: Int) -> String {
        guard width(of: text) > columns else { return text }
        return pieces(of: text[...], first: max(0, columns - 1), others: .max)[0] + "…"
    }

    /// Broken between words, and within a word that has no line of its own.
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

    /// A word in pieces of so many columns.
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
