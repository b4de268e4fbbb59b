// SPDX-License-Identifier: Apache-2.0

internal import TorporPolicyABI

/// One value in `[policies.NAME] options`. Tables and arrays are flattened: `rules.0.when`, `rules.1.when`.
public struct PolicyOption: Hashable, Sendable {
    /// A TOML value.
    public enum Value: Hashable, Sendable {
        case string(String)
        case integer(Int64)
        case number(Double)
        case boolean(Bool)
        /// A date or time, as written.
        case date(String)
    }

    /// Its name.
    public var key: String
    /// Its value.
    public var value: Value

    /// An option.
    public init(key: String, value: Value) {
        self.key = key
        self.value = value
    }

    /// The value as text, whatever its type.
    public var text: String {
        switch value {
        case .string(let text), .date(let text): text
        case .integer(let integer): String(integer)
        case .number(let number): String(number)
        case .boolean(let boolean): boolean ? "true" : "false"
        }
    }

    /// `TORPOR_OPTION_…`.
    public var type: UInt32 {
        switch value {
        case .string: TORPOR_OPTION_STRING.rawValue
        case .integer: TORPOR_OPTION_INTEGER.rawValue
        case .number: TORPOR_OPTION_NUMBER.rawValue
        case .boolean: TORPOR_OPTION_BOOLEAN.rawValue
        case .date: TORPOR_OPTION_DATE.rawValue
        }
    }

    /// An integer; a boolean as 1 or 0; otherwise 0.
    public var integer: Int64 {
        switch value {
        case .integer(let integer): integer
        case .boolean(let boolean): boolean ? 1 : 0
        case .string, .number, .date: 0
        }
    }

    /// An integer or a number; otherwise 0.
    public var number: Double {
        switch value {
        case .integer(let integer): Double(integer)
        case .number(let number): number
        case .string, .boolean, .date: 0
        }
    }
}
