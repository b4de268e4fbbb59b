// SPDX-License-Identifier: Apache-2.0

/// Splits the values of units into words (systemd.syntax(7)), expands specifiers (systemd.unit(5)), and parses
/// command lines (systemd.service(5)).
struct SystemdText {
    /// The values of specifiers, by their letter.
    var specifiers: [Character: String]

    init(_ unit: SystemdUnit, tree: SourceTree) {
        let variables = tree.variables
        let instance = unit.instance == "" ? "%i" : unit.instance ?? ""
        let home = unit.isUser ? variables["HOME"] ?? "/root" : "/root"
        let runtime = unit.isUser ? variables["XDG_RUNTIME_DIR"] ?? "/run/user/0" : "/run"
        specifiers = [
            "i": instance, "I": Self.unescaped(instance), "n": unit.name + unit.suffix, "N": unit.name,
            "p": unit.prefix,
            "P": Self.unescaped(unit.prefix), "j": String(unit.prefix.split(separator: "-").last ?? ""), "h": home,
            "t": runtime, "S": unit.isUser ? home + "/.local/state" : "/var/lib",
            "C": unit.isUser ? home + "/.cache" : "/var/cache",
            "L": unit.isUser ? home + "/.local/state/log" : "/var/log",
            "E": unit.isUser ? home + "/.config" : "/etc", "T": "/tmp", "V": "/var/tmp", "%": "%",
            "u": unit.isUser ? variables["USER"] ?? "root" : "root", "U": unit.isUser ? variables["UID"] ?? "0" : "0",
            "s": "/bin/sh", "H": tree.hostName, "l": String(tree.hostName.prefix { $0 != "." }),
        ]
        guard Quadlet.suffixes.contains(unit.suffix) else { return }
        for (name, value) in QuadletOwner(path: unit.path, tree: tree).specifiers { specifiers[name] = value }
    }

    /// Decodes the escapes in a unit's name: `a-b` becomes `a/b`, and `\x2d` becomes `-`.
    private static func unescaped(_ text: String) -> String {
        text.replacing("-", with: "/").replacing("\\x2d", with: "-")
    }

    /// Specifiers whose values depend on the machine.
    static let ofMachine: Set<Character> = ["H", "l"]

    /// The letters of the specifiers that a text contains.
    static func specifiers(in text: String) -> Set<Character> {
        var names: Set<Character> = []
        var rest = text[...]
        while let percent = rest.utf8.firstIndex(of: UInt8(ascii: "%")) {
            rest = rest[rest.utf8.index(after: percent)...]
            guard let name = rest.first else { break }
            if name.isASCII, name.isLetter { names.insert(name) }
            if name.isASCII { rest = rest.dropFirst() }
        }
        return names
    }

    /// The text with specifiers replaced by their values. Unknown specifiers stay as they are.
    func expanded(_ text: String) -> String {
        guard text.contains("%") else { return text }
        var result = ""
        var rest = text[...]
        while let percent = rest.firstIndex(of: "%") {
            result += rest[..<percent]
            rest = rest[rest.index(after: percent)...]
            guard let name = rest.first, let value = specifiers[name] else {
                result += "%"
                continue
            }
            result += value
            rest = rest.dropFirst()
        }
        return result + rest
    }

    /// Splits a value into words, and removes their quotes and escapes; nil if a quote is not closed.
    ///
    /// Iterates over scalars, because in Swift a quote followed by a combining mark is a single Character, but systemd
    /// sees the quote.
    static func words(_ text: String) -> [String]? {
        var words: [String] = []
        var word = String.UnicodeScalarView()
        var isWord = false
        var quote: Unicode.Scalar?
        var rest = text.unicodeScalars[...]
        while let scalar = rest.popFirst() {
            if scalar == "\\" {
                word.append(contentsOf: escape(&rest).unicodeScalars)
                isWord = true
            } else if let open = quote {
                if scalar == open { quote = nil } else { word.append(scalar) }
            } else if scalar == "\"" || scalar == "'" {
                quote = scalar
                isWord = true
            } else if scalar == " " || scalar == "\t" || scalar == "\n" || scalar == "\r" {
                if isWord { words.append(String(word)) }
                word = .init()
                isWord = false
            } else {
                word.append(scalar)
                isWord = true
            }
        }
        guard quote == nil else { return nil }
        if isWord { words.append(String(word)) }
        return words
    }

    /// Decodes an escape sequence. `rest` begins after the backslash.
    private static func escape(_ rest: inout Substring.UnicodeScalarView) -> String {
        guard let letter = rest.popFirst() else { return "\\" }
        let plain: [Unicode.Scalar: String] = [
            "a": "\u{7}", "b": "\u{8}", "f": "\u{c}", "n": "\n", "r": "\r", "t": "\t", "v": "\u{b}", "s": " ",
            "\\": "\\",
            "\"": "\"", "'": "'",
        ]
        if let text = plain[letter] { return text }
        func code(_ digits: Int, _ radix: Int, _ first: String) -> String? {
            let written = first + String(rest.prefix(digits - first.count))
            guard written.unicodeScalars.count == digits, let value = UInt32(written, radix: radix), value > 0,
                let scalar = Unicode.Scalar(value)
            else { return nil }
            rest = rest.dropFirst(digits - first.count)
            return String(Character(scalar))
        }
        let found: String? =
            switch letter {
            case "x": code(2, 16, "")
            case "u": code(4, 16, "")
            case "U": code(8, 16, "")
            case "0"..."3": code(3, 8, String(letter))
            default: nil
            }
        return found ?? "\\" + String(letter)
    }
}

/// A command of `ExecStart=` or a similar key.
struct SystemdCommand {
    /// The program and its arguments. Variables in them are marked (``Late``).
    var words: [String]
    /// Whether a failure of the command is ignored (prefix `-`).
    var isForgiven = false
    /// The prefix that changes the command's privileges: `+` or `!`; nil if there is none.
    var privileges: Character?
    /// The first argument that the program gets instead of its path (prefix `@`).
    var shownName: String?

    /// The commands of a line, separated by `;`; nil if the line is not valid.
    static func commands(_ line: String, _ text: SystemdText) -> [SystemdCommand]? {
        guard let all = SystemdText.words(line) else { return nil }
        var commands: [SystemdCommand] = []
        for words in all.split(separator: ";") {
            guard let command = SystemdCommand(Array(words), text) else { return nil }
            commands.append(command)
        }
        return commands.isEmpty ? nil : commands
    }

    private init?(_ all: [String], _ text: SystemdText) {
        guard var first = all.first else { return nil }
        var expands = true
        var hasName = false
        while let prefix = first.first, "@-:+!|".contains(prefix) {
            switch prefix {
            case "@": hasName = true
            case "-": isForgiven = true
            case ":": expands = false
            default: privileges = prefix
            }
            first.removeFirst()
        }
        var rest = Array(all.dropFirst())
        if hasName {
            guard !rest.isEmpty else { return nil }
            shownName = rest.removeFirst()
        }
        guard !first.isEmpty else { return nil }
        words =
            [text.expanded(first)]
            + rest.map { word in
                let word = word == "\\;" ? ";" : text.expanded(word)
                return expands ? Self.marked(word) : word
            }
    }

    /// Marks the variables in a word. If `$NAME` is the whole word, its value is split into words; the value of
    /// `${NAME}` is not. `$$` stands for a dollar sign.
    static func marked(_ word: String) -> String {
        if word.hasPrefix("$"), ShellWords.isName(String(word.dropFirst())) {
            return Late.variable(String(word.dropFirst())).replacing(String(Late.open), with: String(Late.openBare))
        }
        var result = ""
        var rest = word[...]
        while let dollar = rest.firstIndex(of: "$") {
            result += rest[..<dollar]
            rest = rest[rest.index(after: dollar)...]
            if rest.hasPrefix("$") {
                result += "$"
                rest = rest.dropFirst()
            } else if rest.hasPrefix("{"), let end = rest.firstIndex(of: "}"),
                ShellWords.isName(String(rest[rest.index(after: rest.startIndex)..<end]))
            {
                result += Late.variable(String(rest[rest.index(after: rest.startIndex)..<end]))
                rest = rest[rest.index(after: end)...]
            } else {
                result += "$"
            }
        }
        return result + rest
    }

    /// The command in the form of an app's `exec`.
    var plain: [String] { Late.command(words) }

    /// The command in the form of a hook. If systemd would ignore a failure of the command, a shell runs it and always
    /// succeeds.
    var hook: [String] {
        isForgiven ? ["/bin/sh", "-c", words.map(Late.shell).joined(separator: " ") + " || :"] : plain
    }
}
