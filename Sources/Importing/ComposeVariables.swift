// SPDX-License-Identifier: Apache-2.0

import Configuration

/// Reads files of variables (`.env`, `env_file`) by the rules of the compose specification.
enum ComposeVariables {
    private static let quotes: Set<Character> = ["'", "\""]

    /// The variables of a file, in its order.
    ///
    /// - Parameter known: variables that values may contain as `$NAME`, besides the earlier ones of the file, which
    ///   these override.
    static func parse(_ text: String, known: [String: String]) -> [(name: String, value: String)] {
        var result: [(name: String, value: String)] = []
        var variables = known
        var rest = text[...]
        while !rest.isEmpty {
            let line = rest.prefix { $0 != "\n" }
            rest = rest[line.endIndex...].dropFirst()
            var head = line.drop(while: isSpace)
            if head.hasPrefix("export ") { head = head.dropFirst("export ".count) }
            guard head.first != "#", let equals = head.firstIndex(of: "=") else { continue }
            let name = head[..<equals].trimmed
            guard ShellWords.isName(name) else { continue }
            let start = head[head.index(after: equals)...].drop(while: isSpace)
            let value: String
            if let quote = start.first, quotes.contains(quote), let end = end(of: text[start.startIndex...]) {
                let inner = text[text.index(after: start.startIndex)..<end]
                // A quoted value may have several lines; a comment may be behind it.
                rest = text[end...].drop { $0 != "\n" }.dropFirst()
                value =
                    quote == "'"
                    ? String(inner).replacing("\\'", with: "'") : expanded(unescaped(inner), variables)
            } else {
                value = expanded(withoutComment(start), variables)
            }
            result.append((name, value))
            if known[name] == nil { variables[name] = value }
        }
        return result
    }

    /// Adds to `environment` the variables that torpord would read otherwise from an app's files than compose does.
    static func correct(_ program: inout ImportedProgram, _ tree: SourceTree, _ variables: [String: String]) {
        guard case .array(let files) = program["environment_file"] else { return }
        var ours: [String: String] = [:]
        var theirs = OrderedTable<String>()
        for case .string(let file) in files {
            let path = file.hasPrefix("-") ? String(file.dropFirst()) : file
            guard let bytes = tree.read(path), let text = tree.text(path) else { continue }
            do throws(EnvironmentFileError) {
                for (name, value) in try EnvironmentFile.parse(bytes, file: path) { ours[name] = value }
            } catch {
                program.remark("cannot be launched with its file of variables: \(error.description)")
            }
            for (name, value) in parse(text, known: variables) { theirs[name] = value }
        }
        var given = OrderedTable<TOMLValue>()
        if case .table(let table) = program["environment"] { given = table }
        var names: [String] = []
        for (name, value) in theirs where given[name] == nil {
            if let same = ours[name], same.utf8.elementsEqual(value.utf8) { continue }
            program.setVariable(name, value)
            names.append(name)
        }
        guard !names.isEmpty else { return }
        program.remark(
            "has \(LeftOutKeys.list(names)) in environment, since Torpor reads env_file as systemd does: a # after a "
                + "value belongs to it, and neither $NAME nor \\n is replaced"
        )
    }

    private static func isSpace(_ character: Character) -> Bool { character == " " || character == "\t" }

    /// Where a quoted text ends that begins with its quote: at the first such quote without a backslash before it.
    private static func end(of text: Substring) -> Substring.Index? {
        var isAfterBackslash = false
        for index in text.indices.dropFirst() {
            if text[index] == text.first, !isAfterBackslash { return index }
            isAfterBackslash = text[index] == "\\" && !isAfterBackslash
        }
        return nil
    }

    /// A value without quotes: a comment begins with a `#` that has a space before it.
    private static func withoutComment(_ text: Substring) -> String {
        var before: Character? = " "
        for index in text.indices {
            if text[index] == "#", before.map(isSpace) ?? false { return text[..<index].trimmed }
            before = text[index]
        }
        return text.trimmed
    }

    /// The text with the escapes of double quotes replaced. An escaped dollar sign becomes `$$`, which stands for one.
    private static func unescaped(_ text: Substring) -> String {
        guard text.contains("\\") else { return String(text) }
        let escapes: [Character: String] = ["n": "\n", "r": "\r", "t": "\t", "\\": "\\", "\"": "\"", "$": "$$"]
        var result = ""
        var isAfterBackslash = false
        for character in text {
            if isAfterBackslash {
                result += escapes[character] ?? "\\\(character)"
                isAfterBackslash = false
            } else if character == "\\" {
                isAfterBackslash = true
            } else {
                result.append(character)
            }
        }
        return isAfterBackslash ? result + "\\" : result
    }

    private static func expanded(_ text: String, _ variables: [String: String]) -> String {
        var interpolation = ComposeInterpolation(variables: variables)
        return interpolation.expand(text)
    }
}
