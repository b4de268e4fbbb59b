// SPDX-License-Identifier: Apache-2.0

import Varlink

/// A value of a YAML or JSON file, with its line.
struct DataNode: Sendable {
    indirect enum Value: Sendable {
        case null
        /// A text. `isPlain` is true if the source contains the text without quotes, so that it may be a number or a
        /// boolean.
        case scalar(String, isPlain: Bool)
        case list([DataNode])
        case map(OrderedTable<DataNode>)
    }

    /// A tag in a compose file that says how to merge a value with that of an earlier file.
    enum Tag: Sendable {
        /// `!reset`: the earlier value is removed.
        case reset
        /// `!override`: the earlier value is replaced as a whole.
        case override
    }

    var value: Value
    var line: Int
    /// The name of the file that contains the value; nil for the imported file itself.
    var file: String?
    var tag: Tag?

    init(value: Value, line: Int, file: String? = nil) {
        self.value = value
        self.line = line
        self.file = file
    }

    /// The place of the value in its file; nil if unknown.
    var place: SourceLine? { line > 0 ? SourceLine(line, of: file) : nil }

    /// The member of a table with this name.
    subscript(key: String) -> DataNode? {
        guard case .map(let members) = value else { return nil }
        return members[key]
    }

    var members: OrderedTable<DataNode>? {
        guard case .map(let members) = value else { return nil }
        return members
    }

    var list: [DataNode]? {
        guard case .list(let elements) = value else { return nil }
        return elements
    }

    /// The value as text if it is a text, a number or a boolean; otherwise nil.
    var text: String? {
        guard case .scalar(let text, _) = value else { return nil }
        return text
    }

    var isNull: Bool {
        guard case .null = value else { return false }
        return true
    }

    var flag: Bool? {
        switch text?.lowercased() {
        case "true", "yes", "on": true
        case "false", "no", "off": false
        default: nil
        }
    }

    var integer: Int? { text.flatMap { Int($0) } }

    /// The value in the form for messages: a text in quotes, or the kind of the value.
    var shown: String { text.map { quoted($0) } ?? kind }

    /// The kind of the value with an article, such as `a list`.
    var kind: String {
        switch value {
        case .null: "nothing"
        case .scalar: "a string"
        case .list: "a list"
        case .map: "a table"
        }
    }

    /// The same tree with every text changed, except the names of members.
    func mapTexts(_ change: (String) -> String) -> DataNode {
        var node = self
        switch value {
        case .null: break
        case .scalar(let text, let isPlain): node.value = .scalar(change(text), isPlain: isPlain)
        case .list(let elements): node.value = .list(elements.map { $0.mapTexts(change) })
        case .map(let members): node.value = .map(members.mapValues { $0.mapTexts(change) })
        }
        return node
    }
}

extension DataNode {
    /// The words of a JSON list of strings; nil if the text is anything else.
    static func words(ofJSON text: String) -> [String]? {
        (try? JSON.parse(text)).flatMap { DataNode($0).list?.compactMap(\.text) }
    }

    /// Converts a parsed JSON value.
    init(_ json: JSON) {
        line = 0
        switch json {
        case .null: value = .null
        case .bool(let flag): value = .scalar(flag ? "true" : "false", isPlain: true)
        case .int(let number): value = .scalar("\(number)", isPlain: true)
        case .double(let number): value = .scalar("\(number)", isPlain: true)
        case .string(let text): value = .scalar(text, isPlain: false)
        case .array(let elements): value = .list(elements.map(DataNode.init))
        case .object(let object): value = .map(OrderedTable(object.members.map { ($0.name, DataNode($0.value)) }))
        }
    }
}

/// Parses JSON as people write it for PM2: with comments, names without quotes, and trailing commas. Also accepts the
/// JavaScript literals that `pm2 prettylist` prints.
enum LooseJSON {
    static func parse(_ text: String) throws(ImportError) -> DataNode {
        let plain = withoutComments(text)
        if let json = try? JSON.parse(plain) { return DataNode(json) }
        // YAML's flow style allows all of this, but does not accept tabs as white space at the beginning of a line.
        return try YAML.parse(withJSONStrings(plain).replacing("\t", with: " "), as: "JSON")
    }

    /// The text with JavaScript's strings replaced by JSON's. JavaScript also allows `'` and `` ` `` as quotes, with
    /// backslash escapes as in JSON, and long strings as sums (`'a\n' + 'b'`).
    static func withJSONStrings(_ text: String) -> String {
        var result = String.UnicodeScalarView()
        var rest = text.unicodeScalars[...]
        while let scalar = rest.popFirst() {
            guard "\"'`".unicodeScalars.contains(scalar) else {
                result.append(scalar)
                continue
            }
            result.append("\"")
            var quote = scalar
            while true {
                copyString(until: quote, &rest, &result)
                // If a plus sign follows, the sum continues with the string after it.
                var after = rest.drop { $0.properties.isWhitespace }
                guard after.popFirst() == "+" else { break }
                after = after.drop { $0.properties.isWhitespace }
                guard let next = after.popFirst(), "\"'`".unicodeScalars.contains(next) else { break }
                (quote, rest) = (next, after)
            }
            result.append("\"")
        }
        return String(result)
    }

    private static func copyString(
        until quote: Unicode.Scalar,
        _ rest: inout Substring.UnicodeScalarView,
        _ result: inout String.UnicodeScalarView
    ) {
        while let scalar = rest.popFirst(), scalar != quote {
            switch scalar {
            case "\\":
                guard let next = rest.popFirst() else { return }
                // JSON has no `\'` and no `` \` ``, so drop the backslash. Keep `\xNN`, which YAML decodes as
                // JavaScript does.
                if !"'`".unicodeScalars.contains(next) { result.append(scalar) }
                result.append(next)
            case "\"": result.append(contentsOf: "\\\"".unicodeScalars)
            default: result.append(scalar)
            }
        }
    }

    /// The text with comments (`/* … */` and `// …`) replaced by spaces.
    static func withoutComments(_ text: String) -> String {
        var result = ""
        var quote: Unicode.Scalar?
        var escaped = false
        var comment: Unicode.Scalar?
        var scalars = text.unicodeScalars[...]
        while let scalar = scalars.popFirst() {
            if let kind = comment {
                if kind == "/", scalar == "\n" { comment = nil }
                if kind == "*", scalar == "*", scalars.first == "/" {
                    scalars.removeFirst()
                    comment = nil
                    continue
                }
                if scalar == "\n" { result += "\n" }
            } else if let open = quote {
                if escaped {
                    escaped = false
                } else if scalar == "\\" {
                    escaped = true
                } else if scalar == open {
                    quote = nil
                }
                result.unicodeScalars.append(scalar)
            } else if scalar == "/", let next = scalars.first, next == "/" || next == "*" {
                comment = next
                scalars.removeFirst()
            } else {
                if scalar == "\"" || scalar == "'" { quote = scalar }
                result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}
