// SPDX-License-Identifier: Apache-2.0

/// Expands `$NAME` and `${NAME…}` in the texts of a compose file.
struct ComposeInterpolation {
    let variables: [String: String]
    /// Variables that are not set and have no default. They were replaced by the empty string.
    var missing: [String] { unset.names }
    /// Required variables (`${NAME?sentence}`) that are not set; for `${NAME:?sentence}`, also those that are empty.
    var wanted: [String] { needed.names }

    private var unset = Names()
    private var needed = Names()
    /// For each `${` of the text, the position of its closing brace. All positions are found in one pass, because
    /// searching for each brace would take long in a text with very many `${` that are not closed.
    private var ends: [String.Index: String.Index] = [:]

    /// Names without duplicates, in the order of their first occurrence.
    private struct Names {
        private(set) var names: [String] = []
        private var known: Set<String> = []

        mutating func insert(_ name: String) {
            if known.insert(name).inserted { names.append(name) }
        }
    }

    private static let dollar = UInt8(ascii: "$")

    init(variables: [String: String]) { self.variables = variables }

    mutating func expand(_ text: String) -> String {
        guard text.utf8.contains(Self.dollar) else { return text }
        ends = Self.ends(of: text)
        return expand(text[...], depth: 0)
    }

    private mutating func expand(_ text: Substring, depth: Int) -> String {
        guard depth < 16 else { return String(text) }
        var result = ""
        var rest = text
        while let dollar = rest.utf8.firstIndex(of: Self.dollar) {
            result += rest[..<dollar]
            rest = rest[rest.utf8.index(after: dollar)...]
            if rest.utf8.first == Self.dollar {
                result += "$"
                rest = Self.behindFirst(rest)
            } else if rest.utf8.first == UInt8(ascii: "{"), let end = ends[rest.startIndex] {
                let inner = Self.behindFirst(rest[..<end])
                rest = rest[rest.utf8.index(after: end)...]
                result += braced(inner, depth: depth)
            } else {
                let name = Self.name(rest)
                if ShellWords.isName(name) {
                    rest = rest[rest.utf8.index(rest.startIndex, offsetBy: name.utf8.count)...]
                    result += value(name)
                } else {
                    result += "$"
                }
            }
        }
        return result + rest
    }

    private mutating func value(_ name: String) -> String {
        if let value = variables[name] { return value }
        unset.insert(name)
        return ""
    }

    private mutating func braced(_ inner: Substring, depth: Int) -> String {
        let name = Self.name(inner)
        guard ShellWords.isName(name) else { return "${\(inner)}" }
        var rest = inner[inner.utf8.index(inner.startIndex, offsetBy: name.utf8.count)...]
        guard !rest.isEmpty else { return value(name) }
        let countsEmpty = rest.utf8.first == UInt8(ascii: ":")
        if countsEmpty { rest = Self.behindFirst(rest) }
        guard let sign = rest.utf8.first else { return value(name) }
        let found = variables[name].flatMap { countsEmpty && $0.isEmpty ? nil : $0 }
        switch sign {
        case UInt8(ascii: "-"): return found ?? expand(Self.behindFirst(rest), depth: depth + 1)
        case UInt8(ascii: "+"): return found == nil ? "" : expand(Self.behindFirst(rest), depth: depth + 1)
        case UInt8(ascii: "?"):
            if found == nil { needed.insert(name) }
            return found ?? ""
        default: return "${\(inner)}"
        }
    }

    /// The text without its first byte, which must be an ASCII character.
    private static func behindFirst(_ text: Substring) -> Substring { text[text.utf8.index(after: text.startIndex)...] }

    private static func name(_ text: Substring) -> String {
        let name = text.utf8.prefix { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, UInt8(ascii: "_"): true
            default: false
            }
        }
        return String(Substring(name))
    }

    private static func ends(of text: String) -> [String.Index: String.Index] {
        var ends: [String.Index: String.Index] = [:]
        var open: [String.Index] = []
        var isVariable = false
        for index in text.utf8.indices {
            let byte = text.utf8[index]
            if byte == UInt8(ascii: "{"), isVariable { open.append(index) }
            if byte == UInt8(ascii: "}"), let begin = open.popLast() { ends[begin] = index }
            isVariable = byte == dollar
        }
        return ends
    }
}
