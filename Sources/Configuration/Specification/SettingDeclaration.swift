// SPDX-License-Identifier: Apache-2.0

import Linux
import WireText

/// The declaration of an app's setting: an entry of `settings`.
public struct SettingDeclaration: Sendable, Hashable {
    /// The type of a setting, with the values that it accepts.
    public enum Kind: Sendable, Hashable {
        /// Text, with its maximum length in characters, and a POSIX extended regular expression that must match the
        /// whole text.
        case string(maxLength: Int?, pattern: String?)
        case integer(min: Int64, max: Int64)
        case number(min: Double, max: Double)
        case boolean
        /// The value must be one of these words.
        case choice([String])
        case duration(min: Duration, max: Duration)
        /// A size in bytes.
        case size(min: UInt64, max: UInt64)
        /// An absolute path in the file system.
        case path
        /// Text that is never shown, with a maximum length and a regular expression as for a string.
        case secret(maxLength: Int?, pattern: String?)

        /// The word for this type, as in the key `type`.
        public var word: String {
            switch self {
            case .string: "string"
            case .integer: "integer"
            case .number: "number"
            case .boolean: "boolean"
            case .choice: "choice"
            case .duration: "duration"
            case .size: "size"
            case .path: "path"
            case .secret: "secret"
            }
        }
    }

    /// All words that the key `type` accepts.
    static let types = [
        "string", "integer", "number", "boolean", "choice", "duration", "size", "path", "secret",
    ]
    /// The maximum number of settings of an app.
    public static let most = 200
    /// The maximum length of a value in bytes.
    public static let longestValue = 4 << 10
    /// The maximum length of a setting's name in bytes.
    static let longestName = 64
    /// The maximum length of a regular expression in bytes.
    static let longestPattern = 256
    /// The maximum number of steps to match one value with its pattern. This many steps take some milliseconds, during
    /// which torpord's event loop is blocked.
    static let mostSteps = 1 << 20
    /// The maximum number of steps to match all values of an app with their patterns. torpord matches all values at
    /// once when the app sets them together, and at its own start.
    static let mostStepsOfAll = 1 << 21

    /// The setting's name: letters, digits and `_`.
    public var name: String
    /// The setting's type, with the values that it accepts.
    public var kind: Kind
    /// The value in its normal form if the user has set none; `nil` if there is no default.
    public var defaultValue: String?
    /// The setting's title for users of all languages that are not in ``titles``; `nil` if it has none.
    public var title: String?
    /// Translations of the title. The keys are language tags (BCP 47) in lower case.
    public var titles: [String: String] = [:]
    /// An explanation of the setting for users of all languages that are not in ``helps``; `nil` if it has none.
    public var help: String?
    /// Translations of the explanation. The keys are language tags (BCP 47) in lower case.
    public var helps: [String: String] = [:]
    /// Whether a change of the setting restarts a running app.
    public var restart = false
    /// Whether the setting selects the account (user identity) with which the app works.
    public var identity = false
    /// Whether the app itself may change the setting's value.
    public var writable = false

    /// Creates a setting with a name and a type, without a default.
    public init(_ name: String, _ kind: Kind) {
        self.name = name
        self.kind = kind
    }

    /// Whether the setting's value must never be shown.
    public var isSecret: Bool { if case .secret = kind { true } else { false } }

    /// The maximum number of steps that matching a value with the pattern can take; 0 without a pattern.
    var mostSteps: Int {
        switch kind {
        case .string(let maxLength, let pattern?), .secret(let maxLength, let pattern?):
            TextPattern(pattern)?.mostSteps(on: Self.longestBytes(maxLength)) ?? 0
        default: 0
        }
    }

    /// The maximum length in bytes of a value with at most `maxLength` characters, each of which may take 4 bytes.
    static func longestBytes(_ maxLength: Int?) -> Int { min(4 * (maxLength ?? longestValue), longestValue) }

    /// Why a text is not a valid name of a setting; nil if it is valid.
    static func problem(inName name: String) -> String? {
        let bytes = name.utf8
        guard (1...longestName).contains(bytes.count), bytes.allSatisfy({ $0.isNameByte && $0 != UInt8(ascii: "-") }),
            let first = bytes.first, !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains(first)
        else { return "a name has up to \(longestName) letters, digits and _, and does not begin with a digit" }
        return nil
    }
}

/// Why a value of a setting is not valid.
public struct SettingProblem: Error, Sendable, Hashable, CustomStringConvertible {
    /// The reason, as the end of a sentence whose subject is the setting's name.
    public let description: String

    /// The problem of a stored value that is no longer valid. The text does not contain the value, which may be secret.
    package static let unfitting = SettingProblem("was set to a value that no longer fits")

    init(_ description: String) { self.description = description }
}

/// A setting's value as apps get it.
public enum SettingValue: Sendable, Hashable {
    case text(String)
    case integer(Int64)
    case number(Double)
    case boolean(Bool)

    /// The value as text, as it is inserted into `exec` and written to `settings.env`.
    public var text: String {
        switch self {
        case .text(let text): text
        case .integer(let number): "\(number)"
        case .number(let number): number.rounded() == number && abs(number) < 1e15 ? "\(Int64(number))" : "\(number)"
        case .boolean(let flag): flag ? "true" : "false"
        }
    }
}

extension SettingDeclaration {
    /// Converts a value that a user has written to its normal form.
    ///
    /// - Throws: ``SettingProblem`` if the value is not valid. The error for a secret does not contain the value.
    public func normal(_ text: String) throws(SettingProblem) -> String {
        guard text.utf8.count <= Self.longestValue else {
            throw SettingProblem("has \(text.utf8.count) bytes: at most \(Self.longestValue) are allowed")
        }
        switch kind {
        case .string(let maxLength, let pattern), .secret(let maxLength, let pattern):
            if let problem = Self.problem(inText: text, maxLength, pattern) { throw SettingProblem(problem) }
            return text
        case .integer(let min, let max):
            guard let number = Int64(text) else { throw SettingProblem("must be an integer, not \(quoted(text))") }
            guard (min...max).contains(number) else {
                let isBounded = (min != .min, max != .max)
                throw SettingProblem(
                    Self.range("\(number)", isBounded.0 ? "\(min)" : nil, isBounded.1 ? "\(max)" : nil)
                )
            }
            return "\(number)"
        case .number(let min, let max):
            guard let number = Double(text), number.isFinite else {
                throw SettingProblem("must be a number, not \(quoted(text))")
            }
            guard (min...max).contains(number) else {
                throw SettingProblem(Self.range("\(number)", "\(min)", "\(max)"))
            }
            return SettingValue.number(number).text
        case .boolean:
            guard text == "true" || text == "false" else {
                throw SettingProblem("must be true or false, not \(quoted(text))")
            }
            return text
        case .choice(let words):
            guard words.contains(where: { $0.utf8.elementsEqual(text.utf8) }) else {
                let list = words.map(quoted).joined(separator: ", ")
                throw SettingProblem("must be one of \(list), not \(quoted(text))" + Nearest.hint(text, among: words))
            }
            return text
        case .duration(let min, let max):
            let duration = try Self.quantity { () throws(QuantityError) in try Quantity.duration(text) }
            guard (min...max).contains(duration) else {
                throw SettingProblem(Self.range(Quantity.text(duration), Quantity.text(min), Quantity.text(max)))
            }
            return Quantity.text(duration)
        case .size(let min, let max):
            let size = try Self.quantity { () throws(QuantityError) in try Quantity.size(text) }
            guard (min...max).contains(size) else {
                throw SettingProblem(Self.range(Write.size(size), Write.size(min), Write.size(max)))
            }
            return Write.size(size)
        case .path:
            if let problem = Self.problem(inText: text, nil, nil) { throw SettingProblem(problem) }
            guard text.hasPrefix("/") else { throw SettingProblem("must be an absolute path, not \(quoted(text))") }
            return Path.normal(text)
        }
    }

    private static func quantity<T>(_ read: () throws(QuantityError) -> T) throws(SettingProblem) -> T {
        do throws(QuantityError) { return try read() } catch { throw SettingProblem("does not fit: \(error)") }
    }

    private static func range(_ value: String, _ min: String?, _ max: String?) -> String {
        switch (min, max) {
        case (let min?, nil): "is out of range: \(value) is less than \(min)"
        case (nil, let max?): "is out of range: \(value) is more than \(max)"
        default: "is out of range: \(value) is not between \(min ?? "") and \(max ?? "")"
        }
    }

    private static func problem(inText text: String, _ maxLength: Int?, _ pattern: String?) -> String? {
        if text.unicodeScalars.contains(where: { $0.steersTerminals && $0 != "\n" && $0 != "\t" }) {
            return
                "must not contain control characters except line breaks and tabs, or marks that change its direction"
        }
        if let maxLength, text.unicodeScalars.count > maxLength {
            return "has \(text.unicodeScalars.count) characters: at most \(maxLength) are allowed"
        }
        if let pattern, TextPattern(pattern)?.fits(text) == false {
            return "does not fit the pattern \(quoted(pattern))"
        }
        return nil
    }

    /// Converts a value from its normal form to the form for apps: a duration in seconds, a size in bytes.
    public func value(_ normal: String) -> SettingValue {
        switch kind {
        case .string, .choice, .path, .secret: .text(normal)
        case .integer: Int64(normal).map { .integer($0) } ?? .text(normal)
        case .number: Double(normal).map { .number($0) } ?? .text(normal)
        case .boolean: .boolean(normal == "true")
        case .duration: (try? Quantity.duration(normal)).map { .number(Double($0.microseconds) / 1e6) } ?? .text(normal)
        case .size: (try? Quantity.size(normal)).map { .integer(Int64(clamping: $0)) } ?? .text(normal)
        }
    }
}

/// The values of `settings_format`: the format of the files in which an app gets its settings.
public enum SettingsFormat: String, Sendable, Hashable, CaseIterable {
    /// Only `settings.json`.
    case json
    /// torpord writes both `settings.env` and `settings.json`.
    case env
}
