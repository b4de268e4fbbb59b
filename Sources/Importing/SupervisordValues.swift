// SPDX-License-Identifier: Apache-2.0

/// Expands `%(name)s` by supervisord's rules.
struct SupervisordExpansion {
    /// Values by name. A name `ENV_X` that is missing here becomes a variable that a shell expands when the program
    /// runs.
    var values: [String: String]
    /// The environment variables of supervisord, for values that must be known at the time of the import.
    var variables: [String: String]

    struct Failure: Error {
        var message: String
    }

    static func remark(onHost tree: SourceTree) -> String {
        "%(host_node_name)s becomes \(quoted(tree.hostName)), the name of this machine at the import"
    }

    /// The variables that are replaced by the values that they have at the import, which are supervisord's: those whose
    /// value in the program's environment differs, and ``setHere``.
    var hidden: Set<String> = []
    /// The values that `[supervisord] environment` sets.
    var ofSupervisord = OrderedTable<String>()
    /// The same, with all variables in the values replaced by their current values.
    var currentOfSupervisord = OrderedTable<String>()

    /// The variables that are set at the import, except those that every service has. Torpor runs as a service, so it
    /// has none of the others, which supervisord got from the shell or the script that started it.
    var setHere: Set<String> {
        Set(variables.keys.filter { $0 != "PATH" && $0 != "LANG" && !$0.hasPrefix("LC_") })
    }

    /// Expands a text, but leaves environment variables to a shell, which expands them when the program runs
    /// (``Late``). Inserts the current values of ``hidden`` instead. Marks a `%` that is text (``Late/percent``).
    func late(_ text: String) throws(Failure) -> String {
        var missing: String?
        let result = try expand(text, literal: String(Character(Late.percent))) { name in
            if let value = ofSupervisord[name] { return value }
            guard hidden.contains(name) else { return Late.variable(name) }
            if variables[name] == nil { missing = missing ?? name }
            return variables[name] ?? ""
        }
        if let missing {
            throw Failure(
                message:
                    "%(ENV_\(missing))s is supervisord's own \(missing), which is not set here: set it for the import"
            )
        }
        return result
    }

    /// Expands a text. Environment variables are replaced by the values that `[supervisord] environment` sets, or else
    /// by their current values, as supervisord does for the settings of a program (options.py, read_config).
    func now(_ text: String) throws(Failure) -> String {
        var missing: String?
        let result = try expand(text) { name in
            if let value = currentOfSupervisord[name] { return value }
            if variables[name] == nil { missing = missing ?? name }
            return variables[name] ?? ""
        }
        if let missing { throw Failure(message: "the variable \(missing) is not set here: set it for the import") }
        return result
    }

    /// The maximum length of an expanded text in bytes, because Linux allows no longer argument or environment
    /// variable.
    private static let limit = 131_072

    private func expand(
        _ text: String,
        literal: String = "%",
        variable: (String) -> String
    ) throws(Failure) -> String {
        var result = ""
        var rest = text[...]
        while let percent = rest.firstIndex(of: "%") {
            result += rest[..<percent]
            rest = rest[rest.index(after: percent)...]
            if rest.hasPrefix("%") {
                result += literal
                rest = rest.dropFirst()
                continue
            }
            guard rest.hasPrefix("("), let end = rest.firstIndex(of: ")") else {
                throw Failure(message: "a % is neither %% nor %(name)s in \(quoted(text))")
            }
            let name = String(rest[rest.index(after: rest.startIndex)..<end])
            rest = rest[rest.index(after: end)...]
            let flags = rest.prefix { $0.isASCII && $0.isNumber }
            rest = rest.dropFirst(flags.count)
            guard let conversion = rest.first, "sdi".contains(conversion) else {
                throw Failure(message: "%(\(name)) is not followed by s or d in \(quoted(text))")
            }
            rest = rest.dropFirst()
            let value: String
            if name.hasPrefix("ENV_") {
                let name = String(name.dropFirst(4))
                guard ShellWords.isName(name) else { throw Failure(message: "\(quoted(name)) is not a variable name") }
                value = variable(name)
            } else if let known = values[name] {
                value = known
            } else {
                throw Failure(message: "%(\(name))s is not known")
            }
            result += padded(value, String(flags))
            guard result.utf8.count <= Self.limit else {
                throw Failure(message: "it is longer than \(Self.limit) bytes once its names are replaced")
            }
        }
        return result + rest
    }

    /// Pads a value with zeros or blanks, as the `02` in `%(process_num)02d` requires. An instance's number is not
    /// known yet, so its padding becomes part of the placeholder: `%02i`.
    private func padded(_ value: String, _ flags: String) -> String {
        guard let width = Int(flags), width < 100 else { return value }
        if value == "%i" { return flags.hasPrefix("0") && (1...9).contains(width) ? "%0\(width)i" : value }
        guard value.count < width else { return value }
        let fill = flags.hasPrefix("0") ? "0" : " "
        return String(repeating: fill, count: width - value.count) + value
    }
}

/// Parses values of supervisord's keys.
enum SupervisordValues {
    /// Parses `KEY=value,KEY="value"`; nil if the text has another form.
    static func environment(_ text: String) -> [(name: String, value: String)]? {
        var variables: [(name: String, value: String)] = []
        var rest = text[...]
        func blank(_ character: Character) -> Bool { character.isWhitespace }
        while true {
            rest = rest.drop { blank($0) || $0 == "," }
            guard !rest.isEmpty else { return variables }
            guard let equals = rest.firstIndex(of: "=") else { return nil }
            let name = rest[..<equals].trimmed
            rest = rest[rest.index(after: equals)...].drop(while: blank)
            let value: Substring
            if let quote = rest.first, quote == "\"" || quote == "'" {
                rest = rest.dropFirst()
                guard let end = rest.firstIndex(of: quote) else { return nil }
                value = rest[..<end]
                rest = rest[rest.index(after: end)...].drop(while: blank)
                guard rest.isEmpty || rest.hasPrefix(",") else { return nil }
            } else {
                value = rest.prefix { $0 != "," && !blank($0) }
                rest = rest.dropFirst(value.count).drop(while: blank)
                guard rest.isEmpty || rest.hasPrefix(",") else { return nil }
            }
            guard !name.isEmpty, !name.contains(where: blank) else { return nil }
            variables.append((name, String(value)))
        }
    }

    /// Parses `true`, `yes`, `on`, `1` and their opposites; nil for other texts.
    static func flag(_ text: String) -> Bool? {
        switch text.lowercased() {
        case "true", "yes", "on", "1": true
        case "false", "no", "off", "0": false
        default: nil
        }
    }
}
