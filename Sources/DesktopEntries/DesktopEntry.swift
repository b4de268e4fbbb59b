// SPDX-License-Identifier: Apache-2.0

package import TorporAPI
import WireText

/// The desktop entry of an app: the text of a file that a desktop's menus and file managers read (freedesktop.org's
/// Desktop Entry Specification 1.1).
package struct DesktopEntry {
    /// How an entry's `Exec` line runs `torpor`.
    package struct Command: Sendable {
        /// A name on the PATH, or an absolute path.
        package var program = "torpor"
        /// The control socket to pass to `torpor`; nil if `torpor` finds the socket by itself.
        package var socket: String?

        /// Creates a command that runs `torpor` without naming a socket.
        package init() {}

        fileprivate func line(_ words: [String], field: String = "") -> String {
            let all = [program] + words + (socket.map { ["--socket", $0] } ?? [])
            return all.map(DesktopEntry.quoted).joined(separator: " ") + field
        }
    }

    /// The key that marks an entry as Torpor's and names its app.
    static let appKey = "X-Torpor-App"
    /// The key with the control socket of the supervisor that has the app.
    static let socketKey = "X-Torpor-Socket"

    private let app: DesktopApp
    private let command: Command
    private let socket: String
    /// The media types of the files that the app opens.
    private let types: [String]

    /// - Parameters:
    ///   - socket: the control socket of the app's supervisor.
    ///   - types: the media types of the files that the app opens.
    package init(_ app: DesktopApp, _ command: Command, socket: String, types: [String]) {
        (self.app, self.command, self.socket, self.types) = (app, command, socket, types)
    }

    /// The content of the file.
    package var text: String {
        var lines = ["[Desktop Entry]", "Type=Application", "Version=1.1"]
        lines += Self.texts("Name", app.title ?? app.name, app.titles)
        lines += Self.texts("Comment", app.summary, app.summaries)
        if let icon = app.icon { lines.append("Icon=" + Self.escaped(icon)) }
        let opens = !app.schemes.isEmpty || !types.isEmpty
        let line =
            opens ? command.line(["open", "--app", app.name], field: " %u") : command.line(["foreground", app.name])
        lines += ["Exec=" + Self.escaped(line), "Terminal=false", "StartupNotify=false"]
        if !categories.isEmpty { lines.append("Categories=" + Self.list(categories)) }
        let handled = app.schemes.map { "x-scheme-handler/" + $0 } + types
        if !handled.isEmpty { lines.append("MimeType=" + Self.list(handled)) }
        lines += ["Actions=suspend;quit;", "\(Self.appKey)=" + Self.escaped(app.name)]
        lines.append("\(Self.socketKey)=" + Self.escaped(socket))
        for (action, name, verb) in [("suspend", "Suspend", "suspend"), ("quit", "Quit", "stop")] {
            let exec = Self.escaped(command.line([verb, app.name]))
            lines += ["", "[Desktop Action \(action)]", "Name=" + name, "Exec=" + exec]
        }
        return lines.joined(separator: "\n") + "\n"
    }

    /// The app's categories. An entry with Audio or Video must have `AudioVideo` too, as menus require.
    private var categories: [String] {
        let needsOther =
            !app.categories.contains("AudioVideo") && app.categories.contains { ["Audio", "Video"].contains($0) }
        return (needsOther ? ["AudioVideo"] : []) + app.categories
    }

    // MARK: Values

    /// A text and its translations, one for each locale.
    private static func texts(_ key: String, _ text: String?, _ byTag: [String: String]) -> [String] {
        guard let text else { return [] }
        var lines = [key + "=" + escaped(text)]
        var locales: Set<String> = []
        for (tag, text) in byTag.sorted(by: { $0.key < $1.key }) {
            guard let locale = DesktopLocale.name(ofTag: tag), locales.insert(locale).inserted else { continue }
            lines.append("\(key)[\(locale)]=" + escaped(text))
        }
        return lines
    }

    /// Escapes a value of the type string: newlines and similar characters, and a space at the start of the value.
    static func escaped(_ text: String) -> String {
        var result: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\\"): result += "\\\\".utf8
            case UInt8(ascii: "\n"): result += "\\n".utf8
            case UInt8(ascii: "\r"): result += "\\r".utf8
            case UInt8(ascii: "\t"): result += "\\t".utf8
            case UInt8(ascii: " ") where result.isEmpty: result += "\\s".utf8
            default: result.append(byte)
            }
        }
        return String(wire: result)
    }

    /// Decodes a value of the type string.
    static func unescaped(_ value: Substring) -> String {
        var result: [UInt8] = []
        var isEscape = false
        for byte in value.utf8 {
            guard isEscape else {
                if byte == UInt8(ascii: "\\") { isEscape = true } else { result.append(byte) }
                continue
            }
            isEscape = false
            switch byte {
            case UInt8(ascii: "n"): result.append(0x0a)
            case UInt8(ascii: "r"): result.append(0x0d)
            case UInt8(ascii: "t"): result.append(0x09)
            case UInt8(ascii: "s"): result.append(0x20)
            default: result.append(byte)
            }
        }
        return String(wire: result)
    }

    private static func list(_ values: [String]) -> String {
        values.map {
            escaped($0).split(separator: ";", omittingEmptySubsequences: false).joined(separator: "\\;") + ";"
        }
        .joined()
    }

    /// Quotes an argument of `Exec` if it contains reserved characters, and doubles its `%` signs.
    static func quoted(_ word: String) -> String {
        let reserved = Set(" \t\n\"'\\><~|&;$*?#()`".utf8)
        var result: [UInt8] = []
        for byte in word.utf8 {
            if "\"`$\\".utf8.contains(byte) { result.append(UInt8(ascii: "\\")) }
            if byte == UInt8(ascii: "%") { result.append(byte) }
            result.append(byte)
        }
        let text = String(wire: result)
        return word.utf8.isEmpty || word.utf8.contains(where: reserved.contains) ? "\"\(text)\"" : text
    }

    // MARK: Reading

    /// The app and the supervisor that an entry belongs to; nil if Torpor did not write the entry.
    package static func owner(in text: String) -> (app: String, socket: String)? {
        var app: String?
        var socket: String?
        var isInside = false
        for line in text.utf8.split(separator: UInt8(ascii: "\n")) {
            let line = Substring(line)
            if line.utf8.first == UInt8(ascii: "[") {
                // The group `[Desktop Entry]` has ended: keys of other groups do not count.
                if isInside { break }
                isInside = line.utf8.elementsEqual("[Desktop Entry]".utf8)
            } else if isInside, let value = value(line, appKey) {
                app = value
            } else if isInside, let value = value(line, socketKey) {
                socket = value
            }
        }
        guard let app, let socket else { return nil }
        return (app, socket)
    }

    private static func value(_ line: Substring, _ key: String) -> String? {
        line.utf8.starts(with: (key + "=").utf8) ? unescaped(Substring(line.utf8.dropFirst(key.utf8.count + 1))) : nil
    }
}
