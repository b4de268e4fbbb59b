// SPDX-License-Identifier: Apache-2.0

import Linux
import WireText

/// Colours, only on a terminal and never with NO_COLOR (https://no-color.org).
package enum Terminal {
    package enum Colour: String, Sendable {
        case red = "31"
        case green = "32"
        case yellow = "33"
        case blue = "34"
        case magenta = "35"
        case cyan = "36"
        case dim = "2"
        case bold = "1"
    }

    package static let hasColour: Bool =
        ThisProcess.isTerminal(1) && (ThisProcess.environment("NO_COLOR") ?? "").isEmpty
        && ThisProcess.environment("TERM") != "dumb"

    package static func coloured(_ text: String, _ colour: Colour?) -> String {
        guard let colour, hasColour, !text.isEmpty else { return text }
        return "\u{1b}[\(colour.rawValue)m\(text)\u{1b}[0m"
    }

    /// The width of standard output; nil if it is not a terminal, and lines should stay whole.
    package static var columns: Int? { columns(of: 1) }

    /// The width of a descriptor's terminal.
    package static func columns(of descriptor: Int32) -> Int? {
        // Some terminals do not know their width and report 0, which counts as unknown.
        ThisProcess.isTerminal(descriptor)
            ? TerminalDevice.size(descriptor).flatMap { $0.columns > 0 ? $0.columns : nil } : nil
    }

    /// Replaces by U+FFFD all characters that move the cursor, change the terminal's state, or reorder the text.
    package static func harmless(_ text: String) -> String {
        // In UTF-8, each character that must be replaced is one of these bytes or begins with one of them.
        let isHarmful = { (byte: UInt8) in
            byte < 0x20 || byte == 0x7f || byte == 0xc2 || byte == 0xd8 || byte == 0xe2
        }
        guard text.utf8.contains(where: isHarmful) else { return text }
        var result = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            result.append(scalar.steersTerminals && scalar != "\t" ? "\u{fffd}" : scalar)
        }
        return String(result)
    }

    /// A line of an app's output. On a terminal, harmful characters are removed; colours stay and are reset at its
    /// end.
    package static func line(_ text: String) -> String {
        ThisProcess.isTerminal(1) ? visible(text, coloured: hasColour) : text
    }

    /// The line as it may be sent to a terminal.
    static func visible(_ text: String, coloured: Bool) -> String {
        let scalars = Array(text.unicodeScalars)
        var result = String.UnicodeScalarView()
        var isColoured = false
        var at = 0
        // Windows programs end lines with CR LF: drop the CR at the end.
        let end = scalars.last == "\r" ? scalars.count - 1 : scalars.count
        while at < end {
            if let next = endOfColour(scalars, from: at) {
                if coloured { result.append(contentsOf: scalars[at..<next]) }
                isColoured = coloured
                at = next
                continue
            }
            let scalar = scalars[at]
            result.append(scalar.steersTerminals && scalar != "\t" ? "\u{fffd}" : scalar)
            at += 1
        }
        return String(result) + (isColoured ? "\u{1b}[0m" : "")
    }

    /// The index after the colour sequence (SGR: ESC [ numbers m) at `start`; nil if there is none.
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

    package static func colour(ofState state: String, failed: Bool = false) -> Colour? {
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
