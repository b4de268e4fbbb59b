// SPDX-License-Identifier: Apache-2.0

public import Configuration
import WireText

/// A subject of NATS, or a topic filter of MQTT, with wildcards.
public struct SubjectPattern: Sendable, Hashable, CustomStringConvertible {
    /// The syntax of subjects.
    public enum Dialect: Sendable, Hashable {
        /// A subject of NATS, such as `orders.*.created` or `orders.>`: docs.nats.io/nats-concepts/subjects.
        case nats
        /// A topic filter of MQTT, such as `home/+/state` or `home/#`: MQTT 3.1.1, 4.7.
        case mqtt

        var separator: String { self == .nats ? "." : "/" }
        var one: WireText { WireText(self == .nats ? "*" : "+") }
        var rest: WireText { WireText(self == .nats ? ">" : "#") }

        /// Splits at bytes, as servers do: Swift would join the separator with combining characters after it.
        func parts(_ text: String) -> [WireText] {
            text.utf8.split(separator: separator.utf8[separator.startIndex], omittingEmptySubsequences: false)
                .map { WireText(String(Substring($0))) }
        }
    }

    /// The syntax.
    public let dialect: Dialect
    /// The whole text.
    public let description: String
    private let parts: [WireText]

    /// Creates a pattern that matches only the empty subject.
    init(_ dialect: Dialect) {
        self.dialect = dialect
        description = ""
        parts = [WireText("")]
    }

    /// Parses a pattern.
    ///
    /// - Throws: ``QuantityError``, whose sentence says what is wrong.
    public init(_ text: String, _ dialect: Dialect) throws(QuantityError) {
        self.dialect = dialect
        description = text
        parts = dialect.parts(text)
        func problem(_ sentence: String) -> QuantityError { QuantityError(description: quoted(text) + sentence) }
        let kind = dialect == .nats ? "subject" : "topic filter"
        if text.isEmpty || text.utf8.count > 1024 { throw problem(" is not a \(kind) of 1 to 1024 bytes") }
        if dialect == .nats, parts.contains(WireText("")) {
            throw problem(" has an empty part: parts stand between dots")
        }
        if dialect == .nats, text.utf8.contains(where: { $0 <= 32 }) { throw problem(" has a space in it") }
        for (index, part) in parts.enumerated() {
            if part == dialect.rest, index < parts.count - 1 {
                throw problem(": \(dialect.rest) stands for the rest, and nothing can follow it")
            }
            // NATS takes * and > literally within a part.
            let bytes = part.description.utf8
            if dialect == .mqtt, bytes.count > 1, bytes.contains(where: { "+#".utf8.contains($0) }) {
                throw problem(": + and # must stand alone between slashes")
            }
        }
    }

    /// The number of wildcards in the pattern.
    public var wildcards: Int { parts.count { $0 == dialect.one || $0 == dialect.rest } }

    /// The parts of a subject that match the pattern's wildcards; nil if the subject does not match.
    public func match(_ subject: String) -> [String]? {
        let words = dialect.parts(subject)
        var found: [String] = []
        // Wildcards do not match subjects of the server itself, which begin with $ (MQTT 3.1.1, 4.7.2).
        let isWild = parts[0] == dialect.one || parts[0] == dialect.rest
        if dialect == .mqtt, isWild, subject.utf8.first == UInt8(ascii: "$") { return nil }
        for (index, part) in parts.enumerated() {
            if part == dialect.rest {
                // The filter home/# also matches the topic home.
                guard index < words.count || (dialect == .mqtt && index == words.count) else { return nil }
                found.append(words[min(index, words.count)...].map(\.description).joined(separator: dialect.separator))
                return found
            }
            guard index < words.count else { return nil }
            if part == dialect.one {
                found.append(words[index].description)
            } else if part != words[index] {
                return nil
            }
        }
        return words.count == parts.count ? found : nil
    }
}

/// A text with placeholders for a subject's wildcards: `{1}` for the first, `{subject}` for all of it.
public struct SubjectTemplate: Sendable, Hashable, CustomStringConvertible {
    private enum Part: Sendable, Hashable {
        case text(String)
        case wildcard(Int)
        case subject
    }

    /// The template as the configuration has it.
    public let description: String
    private let parts: [Part]

    /// Creates a template without placeholders.
    init(_ text: String) {
        description = text
        parts = [.text(text)]
    }

    /// Parses a template for a subject with this number of wildcards.
    ///
    /// - Throws: ``QuantityError``, whose sentence says what is wrong.
    public init(_ text: String, wildcards: Int) throws(QuantityError) {
        description = text
        var parts: [Part] = []
        var rest = Substring(text)
        while let open = rest.firstIndex(of: "{") {
            if open > rest.startIndex { parts.append(.text(String(rest[..<open]))) }
            guard let close = rest[open...].firstIndex(of: "}") else {
                throw QuantityError(description: "\(quoted(text)) has a { without a }")
            }
            let word = rest[rest.index(after: open)..<close]
            if word == "subject" {
                parts.append(.subject)
            } else if let number = Int(word), number >= 1, number <= wildcards {
                parts.append(.wildcard(number - 1))
            } else {
                let which =
                    switch wildcards {
                    case 0: "there is none"
                    case 1: "there is {1}"
                    default: "there are {1} to {\(wildcards)}"
                    }
                throw QuantityError(
                    description: "{\(word)} is neither {subject} nor a wildcard of the subject: \(which)"
                )
            }
            rest = rest[rest.index(after: close)...]
        }
        if !rest.isEmpty { parts.append(.text(String(rest))) }
        self.parts = parts
    }

    /// Whether the text has no placeholders, so that it is the same for all subjects.
    public var isConstant: Bool {
        parts.allSatisfy { if case .text = $0 { true } else { false } }
    }

    /// The text for a subject whose wildcards matched `found`.
    public func text(_ subject: String, _ found: [String]) -> String {
        var text = ""
        for part in parts {
            switch part {
            case .text(let some): text += some
            case .wildcard(let index): text += index < found.count ? found[index] : ""
            case .subject: text += subject
            }
        }
        return text
    }
}
