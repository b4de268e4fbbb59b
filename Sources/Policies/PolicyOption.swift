// SPDX-License-Identifier: Apache-2.0

internal import TorporPolicyABI

/// A value in `[policies.NAME] options`. Tables and arrays are flattened: `rules.0.when`, `rules.1.when`.
public struct PolicyOption: Hashable, Sendable {
    /// A TOML value.
    public enum Value: Hashable, Sendable {
        case string(String)
        case integer(Int64)
        case number(Double)
        case boolean(Bool)
        /// A date or time, as it is written.
        case date(String)
    }

    /// The option's name.
    public var key: String
    /// The option's value.
    public var value: Value

    /// Creates an option from name and value.
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

    /// The type of the value, `TORPOR_OPTION_…`.
    public var type: UInt32 {
        switch value {
        case .string: TORPOR_OPTION_STRING.rawValue
        case .integer: TORPOR_OPTION_INTEGER.rawValue
        case .number: TORPOR_OPTION_NUMBER.rawValue
        case .boolean: TORPOR_OPTION_BOOLEAN.rawValue
        case .date: TORPOR_OPTION_DATE.rawValue
        }
    }

    /// The value of an integer, 1 or 0 for a boolean; 0 for other types.
    public var integer: Int64 {
        switch value {
        case .integer(let integer): integer
        case .boolean(let boolean): boolean ? 1 : 0
        case .string, .number, .date: 0
        }
    }

    /// The value of an integer or a float; 0 for other types.
    public var number: Double {
        switch value {
        case .integer(let integer): Double(integer)
        case .number(let number): number
        case .string, .boolean, .date: 0
        }
    }
}
