/// `$NAME` and `${NAME…}` in the texts of a compose file.
struct ComposeInterpolation {
    let variables: [String: String]
    /// Variables that a text names and nobody has set.
    private(set) var missing: [String] = []
    /// What `${NAME?sentence}` wants set.
    private(set) var wanted: [String] = []

    init(variables: [String: String]) { self.variables = variables }

    mutating func expand(_ text: String) -> String {
        guard text.contains("$") else { return text }
        return expand(text[...], depth: 0)
    }

    private mutating func expand(_ text: Substring, depth: Int) -> String {
        guard depth < 16 else { return String(text) }
        var result = ""
        var rest = text
        while let dollar = rest.firstIndex(of: "$") {
            result += rest[..<dollar]
            rest = rest[rest.index(after: dollar)...]
            if rest.hasPrefix("$") {
                result += "$"
                rest = rest.dropFirst()
            } else if rest.hasPrefix("{"), let end = Self.end(of: rest) {
                let inner = rest[rest.index(after: rest.startIndex)..<end]
                rest = rest[rest.index(after: end)...]
                result += braced(inner, depth: depth)
            } else {
                let name = rest.prefix { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") }
                if ShellWords.isName(String(name)) {
                    rest = rest.dropFirst(name.count)
                    result += value(String(name))
                } else {
                    result += "$"
                }
            }
        }
        return result + rest
    }

    private mutating func value(_ name: String) -> String {
        if let value = variables[name] { return value }
        if !missing.contains(name) { missing.append(name) }
        return ""
    }

    private mutating func braced(_ inner: Substring, depth: Int) -> String {
        let name = String(inner.prefix { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") })
        guard ShellWords.isName(name) else { return "${\(inner)}" }
        var rest = inner.dropFirst(name.count)
        guard !rest.isEmpty else { return value(name) }
        let countsEmpty = rest.hasPrefix(":")
        if countsEmpty { rest = rest.dropFirst() }
        guard let sign = rest.first else { return value(name) }
        let word = rest.dropFirst()
        let found = variables[name].flatMap { countsEmpty && $0.isEmpty ? nil : $0 }
        switch sign {
        case "-": return found ?? expand(word, depth: depth + 1)
        case "+": return found == nil ? "" : expand(word, depth: depth + 1)
        case "?":
            if found == nil, !wanted.contains(name) { wanted.append(name) }
            return found ?? ""
        default: return "${\(inner)}"
        }
    }

    /// The `}` that closes what begins here.
    private static func end(of text: Substring) -> Substring.Index? {
        var depth = 0
        var isVariable = true
        for index in text.indices {
            let character = text[index]
            if character == "{", isVariable { depth += 1 }
            if character == "}" {
                depth -= 1
                if depth == 0 { return index }
            }
            isVariable = character == "$"
        }
        return nil
    }
}
