// SPDX-License-Identifier: Apache-2.0

/// Splits and quotes words by the shell's rules, as far as supervisors follow them.
enum ShellWords {
    /// Splits a text into words as Python's shlex does, and as the shell does without expansions. Nil if a quote is not
    /// closed.
    ///
    /// Outside quotes, the mark ``Late/open`` becomes ``Late/openBare``.
    static func split(_ text: String) -> [String]? {
        var words: [String] = []
        var word: String.UnicodeScalarView?
        var quote: Unicode.Scalar?
        var escaped = false
        for scalar in text.unicodeScalars {
            if escaped {
                escaped = false
                if quote == "\"", scalar != "\"", scalar != "\\" { word?.append("\\") }
                if quote == nil, scalar == "\n" { continue }
                word = word ?? .init()
                word?.append(scalar)
            } else if scalar == "\\", quote != "'" {
                escaped = true
                word = word ?? .init()
            } else if let open = quote {
                if scalar == open { quote = nil } else { word?.append(scalar) }
            } else if scalar == "'" || scalar == "\"" {
                quote = scalar
                word = word ?? .init()
            } else if scalar == " " || scalar == "\t" || scalar == "\n" || scalar == "\r" {
                if let done = word { words.append(String(done)) }
                word = nil
            } else {
                word = word ?? .init()
                word?.append(scalar == Late.open ? Late.openBare : scalar)
            }
        }
        guard quote == nil, !escaped else { return nil }
        if let done = word { words.append(String(done)) }
        return words
    }

    /// The word, with quotes if the shell would otherwise read it as something else.
    static func quote(_ word: String) -> String {
        let isPlain =
            !word.isEmpty
            && word.unicodeScalars.allSatisfy { scalar in
                scalar.isASCII
                    && (scalar.properties.isAlphabetic || ("0"..."9").contains(scalar)
                        || "-_./:=,+@%^".unicodeScalars.contains(scalar))
            }
        guard !isPlain else { return word }
        // Iterate over scalars. In Swift, a quote followed by a combining mark is a single Character, but the shell
        // sees the quote.
        var quoted = "'"
        for scalar in word.unicodeScalars {
            if scalar == "'" { quoted += "'\\''" } else { quoted.unicodeScalars.append(scalar) }
        }
        return quoted + "'"
    }

    /// Splits `NAME=…` into the variable's name and value; nil if the text is not an assignment.
    static func assignment(_ word: String) -> (name: String, value: String)? {
        guard let equals = word.firstIndex(of: "=") else { return nil }
        let name = String(word[..<equals])
        return isName(name) ? (name, String(word[word.index(after: equals)...])) : nil
    }

    static func isName(_ text: String) -> Bool {
        guard let first = text.utf8.first, !(0x30...0x39).contains(first) else { return false }
        return text.utf8.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, UInt8(ascii: "_"): true
            default: false
            }
        }
    }

    /// Names of commands that the shell itself provides. A program of that name need not exist.
    static let builtins: Set = [
        "cd", "unset", "export", "exec", "while", "until", "if", "for", "case", "source", ".", ":", "set", "ulimit",
        "umask", "trap", "wait", "eval", "read", "shift", "alias", "function", "{", "}", "!", "local", "return", "exit",
        "then", "do", "command", "type", "time", "[[",
    ]

    /// Whether a command line needs a shell.
    enum Need {
        /// No shell is needed: the words are the program's arguments.
        case none
        /// A shell is needed for expansions in a single command.
        case expansion
        /// A shell is needed to run more than one command.
        case script
    }

    /// Whether a command line needs a shell, and for what.
    static func need(_ line: String) -> Need {
        var quote: Unicode.Scalar?
        var escaped = false
        var expands = false
        var atWord = true
        for scalar in line.unicodeScalars {
            if escaped {
                escaped = false
                continue
            }
            defer { atWord = quote == nil && (scalar == " " || scalar == "\t") }
            if scalar == "\\", quote != "'" {
                escaped = true
            } else if let open = quote {
                if scalar == open {
                    quote = nil
                } else if open == "\"", scalar == "$" || scalar == "`" {
                    expands = true
                }
            } else {
                switch scalar {
                case "'", "\"": quote = scalar
                case ";", "&", "|", "\n", "(", ")": return .script
                case "<", ">", "$", "`", "*", "?", "[": expands = true
                case "{", "}": expands = true
                case "~", "#": if atWord { expands = true }
                default: break
                }
            }
        }
        if quote != nil || escaped { return .script }
        let first = split(line)?.first { assignment($0) == nil } ?? ""
        if builtins.contains(first) { return .script }
        return expands ? .expansion : .none
    }
}

/// Variables whose values are known only when the program runs. In texts, marks (private-use characters) enclose the
/// name of such a variable. In the result, a shell expands the variable.
enum Late {
    static let open: Unicode.Scalar = "\u{e000}"
    static let openBare: Unicode.Scalar = "\u{e001}"
    static let close: Unicode.Scalar = "\u{e002}"
    /// Stands for a `%` that is ordinary text, but that torpord would take for the beginning of a placeholder, such as
    /// `%i`.
    static let percent: Unicode.Scalar = "\u{e003}"
    /// Stands for `%i` as Torpor's placeholder, in texts whose other `%` are ordinary text.
    static let number: Unicode.Scalar = "\u{e004}"

    static func variable(_ name: String) -> String {
        var text = String.UnicodeScalarView([open])
        text.append(contentsOf: name.unicodeScalars)
        text.append(close)
        return String(text)
    }

    static func isIn(_ text: String) -> Bool {
        text.unicodeScalars.contains { $0 == open || $0 == openBare || $0 == percent }
    }

    /// The text with each `%` marked that torpord would take for the beginning of a placeholder.
    static func literal(_ word: String, hasInstances: Bool) -> String {
        guard word.utf8.contains(UInt8(ascii: "%")) else { return word }
        let marked = word.unicodeScalars.map { $0 == "%" ? percent : $0 }
        return unmarked(String(String.UnicodeScalarView(marked)), hasInstances: hasInstances)
    }

    /// The text with the marked `%` replaced by plain ones, except where torpord would take one for the beginning of a
    /// placeholder (for an instance's number or a URL): there the mark stays.
    static func unmarked(_ word: String, hasInstances: Bool) -> String {
        let scalars = Array(word.unicodeScalars)
        var result = String.UnicodeScalarView()
        for (index, scalar) in scalars.enumerated() {
            let next = String(String.UnicodeScalarView(scalars[(index + 1)...].prefix(3)))
            let isNumber = next.hasPrefix("i") || (next.hasPrefix("0") && next.hasSuffix("i"))
            let isURL = scalars.count == 2 && index == 0 && (next == "u" || next == "f")
            let begins = (hasInstances && isNumber) || isURL
            result.append(scalar == percent && !begins ? "%" : scalar)
        }
        return String(result)
    }

    /// The word in shell syntax, with variables in place of the marks. For a variable that was outside quotes, the
    /// shell splits the value into words.
    static func shell(_ word: String) -> String {
        var result = ""
        var plain = ""
        var name: String?
        var isBare = false
        for scalar in word.unicodeScalars {
            if scalar == open || scalar == openBare {
                if !plain.isEmpty { result += ShellWords.quote(plain) }
                plain = ""
                name = ""
                isBare = scalar == openBare
            } else if scalar == close, let variable = name {
                result += isBare ? "${\(variable)}" : "\"${\(variable)}\""
                name = nil
            } else if name != nil {
                name?.unicodeScalars.append(scalar)
            } else if scalar == percent {
                if !plain.isEmpty { result += ShellWords.quote(plain) }
                plain = ""
                // Put empty quotes between the `%` and the letter. The shell removes them, but torpord sees them and
                // finds no placeholder.
                result += "%''"
            } else {
                plain.unicodeScalars.append(scalar)
            }
        }
        if !plain.isEmpty { result += ShellWords.quote(plain) }
        return result.isEmpty ? "''" : result
    }

    /// The words that result from a word if its variables have these values. The value of a variable outside quotes is
    /// split into words. Nil if a variable has no value.
    static func filled(_ word: String, _ values: OrderedTable<String>) -> [String]? {
        var result = String.UnicodeScalarView()
        var name: String?
        var isBare = false
        for scalar in word.unicodeScalars {
            if scalar == open || scalar == openBare {
                name = ""
                if scalar == openBare { isBare = true }
            } else if scalar == close, let variable = name {
                guard let value = values[variable] else { return nil }
                result.append(contentsOf: value.unicodeScalars)
                name = nil
            } else if name != nil {
                name?.unicodeScalars.append(scalar)
            } else {
                result.append(scalar == percent ? "%" : scalar)
            }
        }
        guard isBare else { return [String(result)] }
        return result.split { $0 == " " || $0 == "\t" || $0 == "\n" }.map { String($0) }
    }

    /// The words to execute. If the command or one of these variables contains something to expand, they run a shell,
    /// which runs the command. Otherwise they are the command itself.
    ///
    /// - Parameters:
    ///   - variables: variables that the shell always sets.
    ///   - defaults: variables that the shell sets only if they are not set already.
    static func command(
        _ words: [String],
        variables: [(name: String, value: String)] = [],
        defaults: [(name: String, value: String)] = []
    ) -> [String] {
        guard words.contains(where: isIn) || !variables.isEmpty || !defaults.isEmpty else { return words }
        var script = ""
        for (name, value) in defaults { script += "[ \"${\(name)+x}\" ] || export \(name)=\(shell(value)); " }
        for (name, value) in variables { script += "export \(name)=\(shell(value)); " }
        let isSplit = words.contains { $0.unicodeScalars.contains(openBare) }
        if isSplit { script += "set -f; " }
        return ["/bin/sh", "-c", script + "exec " + words.map(shell).joined(separator: " ")]
    }

    /// The text with `$NAME` in place of marked variables, for a message.
    static func plain(_ text: String) -> String {
        String(
            String.UnicodeScalarView(
                text.unicodeScalars.flatMap { scalar -> [Unicode.Scalar] in
                    if scalar == open || scalar == openBare { return ["$"] }
                    if scalar == percent { return ["%"] }
                    return scalar == close ? [] : [scalar]
                }
            )
        )
    }
}
