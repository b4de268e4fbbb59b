// SPDX-License-Identifier: Apache-2.0

import WireText

/// A value of a TOML file.
enum TOMLValue: Sendable {
    case string(String)
    case integer(Int64)
    case number(Double)
    case boolean(Bool)
    case array([TOMLValue])
    case table(OrderedTable<TOMLValue>)

    static func strings(_ texts: [String]) -> TOMLValue { .array(texts.map(TOMLValue.string)) }

    /// The value as TOML on one line.
    var text: String {
        switch self {
        case .string(let text): Self.basic(text)
        case .integer(let number): "\(number)"
        case .number(let number): "\(number)"
        case .boolean(let flag): flag ? "true" : "false"
        case .array(let elements): "[" + elements.map(\.text).joined(separator: ", ") + "]"
        case .table(let members):
            members.isEmpty
                ? "{}" : "{ " + members.map { "\(Self.key($0.key)) = \($0.value.text)" }.joined(separator: ", ") + " }"
        }
    }

    /// The value as TOML after `key = `. A long array takes several lines, and a text with several lines becomes a
    /// multi-line string.
    func text(after key: String) -> String {
        let line = text
        let isLong = line.unicodeScalars.count + key.count + 3 > 110
        switch self {
        case .array(let elements) where isLong || elements.contains(where: \.hasLines):
            return "[\n" + Self.filled(elements.map { $0.hasLines ? $0.lines : $0.text }) + "]"
        case .string where hasLines: return lines
        case .string, .integer, .number, .boolean, .array, .table: return line
        }
    }

    /// The elements of an array as lines, each with as many elements as fit.
    private static func filled(_ elements: [String]) -> String {
        var lines: [String] = []
        for element in elements {
            if let last = lines.last, !element.contains("\n"), !last.contains("\n"),
                last.unicodeScalars.count + element.unicodeScalars.count + 7 <= 110
            {
                lines[lines.count - 1] += " " + element + ","
            } else {
                lines.append(element + ",")
            }
        }
        return lines.map { "    \($0)\n" }.joined()
    }

    private var hasLines: Bool {
        guard case .string(let text) = self else { return false }
        return text.contains("\n")
    }

    private var lines: String {
        guard case .string(let text) = self else { return self.text }
        let isPlain = text.unicodeScalars.allSatisfy {
            !$0.steersTerminals || $0 == "\n" || $0 == "\t"
        }
        if text.contains("\"") || text.contains("\\"), isPlain, !text.contains("'''"), !text.hasSuffix("'") {
            return "'''\n" + text + "'''"
        }
        return "\"\"\"\n" + Self.escaped(text, keepsLines: true) + "\"\"\""
    }

    static func key(_ name: String) -> String {
        let isBare =
            !name.isEmpty
            && name.utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, UInt8(ascii: "-"), UInt8(ascii: "_"): true
                default: false
                }
            }
        return isBare ? name : basic(name)
    }

    /// The text as a TOML string: in single quotes if that saves backslashes, otherwise in double quotes.
    static func basic(_ text: String) -> String {
        let needs = text.contains("\"") || text.contains("\\")
        let isPlain = text.unicodeScalars.allSatisfy { !$0.steersTerminals && $0 != "'" }
        if needs, isPlain { return "'\(text)'" }
        return "\"\(escaped(text, keepsLines: false))\""
    }

    private static func escaped(_ text: String, keepsLines: Bool) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\", "\"": result += "\\" + String(scalar)
            case "\n": result += keepsLines ? "\n" : "\\n"
            case "\t": result += "\\t"
            // Escape characters that could control the terminal in which a user reads the file.
            case _ where scalar.steersTerminals:
                let digits = String(scalar.value, radix: 16, uppercase: true)
                result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}

extension TOMLValue {
    /// The approximate size of the value as text, in bytes.
    var size: Int {
        switch self {
        case .string(let text): text.utf8.count
        case .integer, .number, .boolean: 8
        case .array(let elements): elements.reduce(0) { $0 + $1.size + 2 }
        case .table(let members): members.reduce(0) { $0 + $1.key.utf8.count + $1.value.size + 5 }
        }
    }
}

extension TOMLValue: Equatable {
    static func == (left: TOMLValue, right: TOMLValue) -> Bool {
        switch (left, right) {
        case (.string(let one), .string(let other)): one.utf8.elementsEqual(other.utf8)
        case (.integer(let one), .integer(let other)): one == other
        case (.number(let one), .number(let other)): one == other
        case (.boolean(let one), .boolean(let other)): one == other
        case (.array(let one), .array(let other)): one == other
        case (.table(let one), .table(let other)):
            one.elementsEqual(other) { $0.key.utf8.elementsEqual($1.key.utf8) && $0.value == $1.value }
        case (.string, _), (.integer, _), (.number, _), (.boolean, _), (.array, _), (.table, _): false
        }
    }
}
