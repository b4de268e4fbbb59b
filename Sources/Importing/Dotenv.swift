// SPDX-License-Identifier: Apache-2.0

import Configuration

/// Finds the lines in a file of variables that torpord reads differently, for `environment_file`, than programs such as
/// dotenv.
enum Dotenv {
    /// A sentence about the differences, without a full stop; nil if there are none, or the file cannot be read.
    static func difference(_ path: String, _ tree: SourceTree) -> String? {
        guard let bytes = tree.read(path), let text = tree.text(path) else { return nil }
        let variables: [(name: String, value: String)]
        do throws(EnvironmentFileError) {
            variables = try EnvironmentFile.parse(bytes, file: path)
        } catch {
            return "cannot be launched with its file of variables: \(error.description)"
        }
        let ours = Dictionary(variables.map { ($0.name, $0.value) }, uniquingKeysWith: { $1 })
        var last: [String: (value: String, line: Int)] = [:]
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            guard let (name, value) = entry(line) else { continue }
            last[name] = (value, index + 1)
        }
        let different = last.filter { name, theirs in
            ours[name].map { !$0.utf8.elementsEqual(theirs.value.utf8) } ?? false
        }
        guard !different.isEmpty else { return nil }
        let lines = different.values.map(\.line).sorted()
        let shown = lines.prefix(most).map(String.init) + (lines.count > most ? ["others"] : [])
        let places = "\(lines.count == 1 ? "line" : "lines") \(LeftOutKeys.list(shown))"
        return "gets another value than from dotenv by \(places) of \(path): Torpor reads it as systemd does, so a # "
            + "after a value belongs to the value, and \\n in quotes stays as it is"
    }

    /// The maximum number of lines that a sentence names.
    private static let most = 10

    /// The variable in a line, as dotenv reads it. Nil for other lines, and for a value that continues on further
    /// lines.
    private static func entry(_ line: Substring) -> (name: String, value: String)? {
        var text = line.trimmed[...]
        if text.hasPrefix("export ") { text = text.dropFirst("export ".count) }
        guard !text.hasPrefix("#"), let equals = text.firstIndex(of: "=") else { return nil }
        let value = text[text.index(after: equals)...].trimmed
        guard let quote = value.first, ["'", "\"", "`"].contains(quote) else {
            return (text[..<equals].trimmed, value.prefix { $0 != "#" }.trimmed)
        }
        let inner = value.dropFirst()
        guard let end = end(of: inner, quote) else { return nil }
        let quoted = String(inner[..<end])
        let isEscaped = quote == "\"" && (quoted.contains("\\n") || quoted.contains("\\r"))
        // dotenv decodes only `\n` and `\r`, and keeps every other backslash. A text that contains one of these two is
        // read differently by torpord in any case, so the other backslashes need no exact handling.
        let theirs = isEscaped ? quoted.replacing("\\n", with: "\n").replacing("\\r", with: "\r") : quoted
        return (text[..<equals].trimmed, theirs)
    }

    /// Where a quoted text ends: at the first quote without a backslash before it.
    private static func end(of text: Substring, _ quote: Character) -> Substring.Index? {
        var isAfterBackslash = false
        for index in text.indices {
            if text[index] == quote, !isAfterBackslash { return index }
            isAfterBackslash = text[index] == "\\"
        }
        return nil
    }
}
