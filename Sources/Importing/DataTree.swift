// SPDX-License-Identifier: Apache-2.0

import Varlink

/// A value of a YAML or JSON file, and its line.
struct DataNode: Sendable {
    indirect enum Value: Sendable {
        case null
        /// A text; `isPlain` where it stands without quotes, so that it may be a number or true.
        case scalar(String, isPlain: Bool)
        case list([DataNode])
        case map(OrderedTable<DataNode>)
    }

    /// What a tag of a compose file wants done with what stands in a file before.
    enum Tag: Sendable {
        /// `!reset`: it is taken away.
        case reset
        /// `!override`: it is replaced as a whole.
        case override
    }

    var value: Value
    var line: Int
    /// The name of its file, where that is not the source itself.
    var file: String?
    var tag: Tag?

    init(value: Value, line: Int, file: String? = nil) {
        self.value = value
        self.line = line
        self.file = file
    }

    /// Where it stands; nil where that is not known.
    var place: SourceLine? { line > 0 ? SourceLine(line, of: file) : nil }

    /// The member of that name.
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

    /// The text of a scalar, numbers and truth included.
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

    /// What a sentence says that it is.
    var shown: String { text.map { quoted($0) } ?? kind }

    /// What it is, with its article.
    var kind: String {
        switch value {
        case .null: "nothing"
        case .scalar: "a string"
        case .list: "a list"
        case .map: "a table"
        }
    }

    /// The same with each text changed; names of members stay.
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
    /// The words of a list in JSON; nil of what is none.
    static func words(ofJSON text: String) -> [String]? {
        (try? JSON.parse(text)).flatMap { DataNode($0).list?.compactMap(\.text) }
    }

    /// JSON as it stands.
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

/// JSON as people write it for PM2: with comments, names without quotes, and commas at ends.
enum LooseJSON {
    static func parse(_ text: String) throws(ImportError) -> DataNode {
        let plain = withoutComments(text)
        if let json = try? JSON.parse(plain) { return DataNode(json) }
        // YAML's flow style has all the rest. A tab is no blank there at the beginning of a line.
        return try YAML.parse(plain.replacing("\t", with: " "), as: "JSON")
    }

    /// Spaces instead of what stands between `/*` and `*/`, or behind `//`.
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
