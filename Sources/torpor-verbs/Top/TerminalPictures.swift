// SPDX-License-Identifier: Apache-2.0

import EverydayVerbs
import Linux
import TopView
import Varlink

/// Shows pictures on terminals with kitty's graphics protocol, which accepts PNG files
/// (https://sw.kovidgoyal.net/kitty/graphics-protocol/).
struct TerminalPictures {
    /// The picture on the screen, and its place; nil if there is none.
    private var shown: (place: PicturePlace, snapshot: TopSnapshot)?
    /// The picture's id in the terminal: a number that other programs are unlikely to use.
    private static let number = 746_722
    /// The size of a chunk in bytes of Base64, which is the protocol's maximum.
    private static let part = 4096

    /// Whether the terminal supports the graphics protocol. Terminal multiplexers do not.
    static var areKnown: Bool {
        func variable(_ name: String) -> String { ThisProcess.environment(name) ?? "" }
        guard variable("TMUX").isEmpty, variable("STY").isEmpty, variable("ZELLIJ").isEmpty else { return false }
        let name = variable("TERM")
        if ["xterm-kitty", "xterm-ghostty"].contains(name) { return true }
        return ["WezTerm", "ghostty"].contains(variable("TERM_PROGRAM"))
    }

    /// Shows this picture instead of the current one; nil to remove the picture.
    mutating func show(_ wanted: (place: PicturePlace, snapshot: TopSnapshot)?) {
        if let shown, let wanted, shown.place == wanted.place, shown.snapshot == wanted.snapshot { return }
        if shown == nil, wanted == nil { return }
        var text = shown == nil ? "" : Self.removal
        if let wanted, case .picture(let data, _, _) = wanted.snapshot.content {
            text += Self.command(data, wanted.place)
        }
        shown = wanted
        Output.write(text)
    }

    /// Must be called when the screen was cleared, which removes the picture too.
    mutating func forget() { shown = nil }

    private static let removal = "\u{1b}_Ga=d,d=I,i=\(number),q=2\u{1b}\\"

    private static func command(_ data: [UInt8], _ place: PicturePlace) -> String {
        let encoded = Base64.encode(data)
        // Save the cursor first and restore it at the end, because ncurses assumes that the cursor has not moved.
        var text = "\u{1b}7\u{1b}[\(place.row + 1);\(place.column + 1)H"
        var rest = encoded.utf8[...]
        var isFirst = true
        repeat {
            let piece = rest.prefix(part)
            rest = rest.dropFirst(part)
            let head = isFirst ? "a=T,f=100,i=\(number),c=\(place.columns),r=\(place.rows),C=1,q=2," : ""
            text += "\u{1b}_G\(head)m=\(rest.isEmpty ? 0 : 1);\(Substring(piece))\u{1b}\\"
            isFirst = false
        } while !rest.isEmpty
        return text + "\u{1b}8"
    }
}
