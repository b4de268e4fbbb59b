// SPDX-License-Identifier: Apache-2.0

/// The words behind a verb, read without the argument parser. Options that few use, and mistakes, are not read: such a
/// command line is left to the parser, which also says what is wrong with it.
struct PlainWords {
    /// Reads an option that not every verb has; false if it is unknown, or its value is missing or wrong. `--utc` is
    /// only accepted: ``Times/zone`` reads it from the command line itself.
    typealias Taker = (_ option: String, _ words: inout PlainWords) -> Bool

    private(set) var options = PlainOptions()
    /// The words that are neither options nor their values.
    private(set) var operands: [String] = []
    private var rest: ArraySlice<String>

    /// Whether no word is about the supervisor, which verbs of `torpor app` do not ask.
    var isForApps: Bool { options.socket == nil && !options.verbose }

    init?(_ words: ArraySlice<String>, _ take: Taker = { _, _ in false }) {
        rest = words
        while let word = rest.popFirst() {
            switch word {
            case "--json": options.json = true
            case "--verbose", "-v": options.verbose = true
            case "--socket":
                guard let path = value() else { return nil }
                options.socket = path
            default:
                if Self.isValue(word) {
                    operands.append(word)
                } else if !take(word, &self) {
                    return nil
                }
            }
        }
    }

    /// The value of the option that was read last; nil if there is none, or if only the parser can tell it from another
    /// option.
    mutating func value() -> String? {
        guard let value = rest.popFirst(), Self.isValue(value) else { return nil }
        return value
    }

    /// A lone `-` stands for standard input or output.
    private static func isValue(_ word: String) -> Bool { !word.isEmpty && (!word.hasPrefix("-") || word == "-") }

    /// Sets a field to the value of the option that was read last. Returns whether it has a valid one.
    mutating func set<Value>(_ field: inout Value?, _ valid: (String) -> Value?) -> Bool {
        guard let found = value().flatMap(valid) else { return false }
        field = found
        return true
    }

    /// Reads the number of `-n 5`, `-n5` or `--lines 5`; false if the option is another, or has no such number.
    mutating func setLines(_ option: String, _ field: inout Int64?) -> Bool {
        let isLong = option == "-n" || option == "--lines"
        guard isLong || option.hasPrefix("-n") else { return false }
        guard let digits = isLong ? value() : String(option.dropFirst(2)),
            digits.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
        else { return false }
        field = Int64(digits)
        return field != nil
    }

    /// The words behind `--`, which are the words of another program.
    mutating func program() -> [String] {
        defer { rest = [] }
        return Array(rest)
    }
}
