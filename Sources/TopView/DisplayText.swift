// SPDX-License-Identifier: Apache-2.0

import Linux

/// Text as terminal cells: nothing in it moves the cursor, and its width is known.
public enum DisplayText {
    /// The characters that may be shown.
    public enum Characters: Hashable, Sendable {
        /// All characters whose width is known.
        case unicode
        /// ASCII only, for locales without UTF-8.
        case ascii
    }

    /// A character with its combining characters.
    public struct Piece: Hashable, Sendable {
        /// The character's text.
        public var text: String
        /// The width of the character, 1 or 2 columns.
        public var width: Int

        /// Creates a piece.
        public init(text: String, width: Int) {
            self.text = text
            self.width = width
        }
    }

    /// The most combining characters per piece: more than ncurses takes and any language needs.
    private static let mostCombining = 4

    /// Splits a text into pieces.
    ///
    /// A tab becomes a space; other control characters and characters of unknown width become U+FFFD. Characters that
    /// only modify others (joiners, directions, variation selectors, skin tones) are dropped: terminals disagree
    /// about the width.
    public static func pieces(_ text: String, _ characters: Characters = .unicode) -> [Piece] {
        var pieces: [Piece] = []
        pieces.reserveCapacity(text.utf8.count)
        var combining = 0
        for scalar in text.unicodeScalars {
            if scalar.value >= 0x20, scalar.value < 0x7f {
                pieces.append(Piece(text: String(scalar), width: 1))
                combining = 0
                continue
            }
            if scalar == "\t" {
                pieces.append(Piece(text: " ", width: 1))
                continue
            }
            if isSteering(scalar) { continue }
            guard let width = isControl(scalar) ? nil : CharacterWidth.columns(scalar) else {
                pieces.append(Piece(text: characters == .unicode ? "\u{fffd}" : "?", width: 1))
                continue
            }
            guard characters == .unicode else {
                for letter in width > 0 ? plain[scalar] ?? "?" : "" {
                    pieces.append(Piece(text: String(letter), width: 1))
                }
                continue
            }
            if width > 0 {
                pieces.append(Piece(text: String(scalar), width: width))
                combining = 0
            } else if !pieces.isEmpty, combining < mostCombining {
                pieces[pieces.count - 1].text.unicodeScalars.append(scalar)
                combining += 1
            }
        }
        return pieces
    }

    /// ASCII replacements for the characters that Torpor's own sentences contain.
    private static let plain: [Unicode.Scalar: String] = [
        "…": "...", "“": "\"", "”": "\"", "‘": "'", "’": "'", "·": "-", "→": ">", "←": "<", "↑": "Up", "↓": "Down",
        "–": "-",
    ]

    private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        scalar.value < 0x20 || (0x7f...0x9f).contains(scalar.value) || scalar.value == 0x2028 || scalar.value == 0x2029
    }

    private static func isSteering(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        // Variation selectors and skin tones.
        case 0xfe00...0xfe0f, 0xe0100...0xe01ef, 0x1f3fb...0x1f3ff: true
        default: scalar.value > 0x9f && scalar.properties.generalCategory == .format
        }
    }

    /// The pieces that fit into `width`; if some do not, the last one is an ellipsis.
    static func fitted(_ pieces: [Piece], to width: Int, _ characters: Characters) -> ArraySlice<Piece> {
        var taken = 0
        for (index, piece) in pieces.enumerated() {
            taken += piece.width
            guard taken > width else { continue }
            // The ellipsis replaces the last piece that would fit.
            var kept = pieces[..<index]
            taken -= piece.width
            while taken > width - 1, let last = kept.popLast() { taken -= last.width }
            return kept + (width > 0 ? [Piece(text: characters == .unicode ? "…" : "~", width: 1)] : [])
        }
        return pieces[...]
    }

    /// The text's width in columns.
    public static func width(_ text: String, _ characters: Characters = .unicode) -> Int {
        if text.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7f }) { return text.utf8.count }
        return pieces(text, characters).reduce(0) { $0 + $1.width }
    }

    /// Splits into lines of at most `width` columns, at spaces if there are any.
    public static func wrapped(_ text: String, to width: Int) -> [String] {
        guard width > 8, self.width(text) > width else { return [text] }
        var lines: [String] = []
        var line = ""
        var taken = 0
        for word in text.split(separator: " ", omittingEmptySubsequences: false).map(String.init) {
            let own = self.width(word)
            if taken > 0, taken + 1 + own > width {
                lines.append(line)
                (line, taken) = ("  ", 2)
            }
            if !line.isEmpty, taken > 2 || lines.isEmpty { (line, taken) = (line + " ", taken + 1) }
            (line, taken) = (line + word, taken + own)
        }
        return lines + [line]
    }
}
