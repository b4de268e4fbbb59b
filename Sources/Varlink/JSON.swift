// SPDX-License-Identifier: Apache-2.0

import WireText

/// A JSON value (RFC 8259). Integers that fit into 64 bits stay integers; objects keep the order of their members.
public enum JSON: Hashable, Sendable {
    case null
    case bool(Bool)
    case int(Int64)
    case double(Double)
    case string(String)
    case array([JSON])
    case object(JSONObject)

    /// Whether objects and arrays are nested at most `depth` levels deep.
    public func isNested(atMost depth: Int) -> Bool {
        switch self {
        case .null, .bool, .int, .double, .string: true
        case .array(let elements): depth > 0 && elements.allSatisfy { $0.isNested(atMost: depth - 1) }
        case .object(let object): depth > 0 && object.members.allSatisfy { $0.value.isNested(atMost: depth - 1) }
        }
    }

    /// The member of an object; nil if there is none, or this is not an object.
    public subscript(name: String) -> JSON? {
        guard case .object(let object) = self else { return nil }
        return object[name]
    }

    /// Whether this is `null`.
    public var isNull: Bool { self == .null }

    /// The value of a `true` or `false`.
    public var boolValue: Bool? {
        guard case .bool(let value) = self else { return nil }
        return value
    }

    /// The value of an integer, including one written as `2.0`.
    public var intValue: Int64? {
        switch self {
        case .int(let value): value
        case .double(let value): Int64(exactly: value)
        default: nil
        }
    }

    /// The value of a number of either kind.
    public var doubleValue: Double? {
        switch self {
        case .int(let value): Double(value)
        case .double(let value): value
        default: nil
        }
    }

    /// The value of a string.
    public var stringValue: String? {
        guard case .string(let value) = self else { return nil }
        return value
    }

    /// The elements of an array.
    public var arrayValue: [JSON]? {
        guard case .array(let value) = self else { return nil }
        return value
    }

    /// The members of an object.
    public var objectValue: JSONObject? {
        guard case .object(let value) = self else { return nil }
        return value
    }

    /// An object with no members.
    public static let emptyObject = JSON.object(JSONObject())

    /// A string, or `null` for nil.
    public static func optional(_ value: String?) -> JSON { value.map { .string($0) } ?? .null }
    /// An integer, or `null` for nil.
    public static func optional(_ value: Int64?) -> JSON { value.map { .int($0) } ?? .null }
    /// An integer, or `null` for nil.
    public static func optional(_ value: Int32?) -> JSON { value.map { .int(Int64($0)) } ?? .null }
    /// A number, or `null` for nil.
    public static func optional(_ value: Double?) -> JSON { value.map { .double($0) } ?? .null }
    /// `true` or `false`, or `null` for nil.
    public static func optional(_ value: Bool?) -> JSON { value.map { .bool($0) } ?? .null }
    /// An array of strings.
    public static func strings(_ values: [String]) -> JSON { .array(values.map { .string($0) }) }

    /// An object of strings by name, sorted by name.
    public static func strings(_ values: [String: String]) -> JSON {
        .object(JSONObject(members: values.sorted { $0.key < $1.key }.map { .init(name: $0, value: .string($1)) }))
    }
}

/// The members of a JSON object, in the order of the text.
public struct JSONObject: Hashable, Sendable, ExpressibleByDictionaryLiteral {
    /// A name and its value.
    public struct Member: Hashable, Sendable {
        /// The member's name.
        public var name: String
        /// The member's value.
        public var value: JSON

        /// Memberwise initializer.
        public init(name: String, value: JSON) {
            self.name = name
            self.value = value
        }

        /// Whether the member has this name, by its bytes: `==` would also find a member that is named by U+212A, the
        /// Kelvin sign, for “K”.
        @inline(__always)
        func isNamed(_ other: String) -> Bool {
            name.utf8.count == other.utf8.count && name.utf8.elementsEqual(other.utf8)
        }
    }

    /// All members in order.
    public private(set) var members: [Member]

    /// Creates an object from members whose names must be distinct.
    public init(members: [Member]) { self.members = members }

    /// Creates an empty object.
    public init() { members = [] }

    /// Appends a member, whose name must be new. Unlike the subscript, this does not search for the name.
    public mutating func append(_ name: String, _ value: JSON) { members.append(Member(name: name, value: value)) }

    /// Makes room for this many members.
    public mutating func reserve(_ count: Int) { members.reserveCapacity(count) }

    /// A duplicate name keeps its first place and gets the last value.
    public init(dictionaryLiteral elements: (String, JSON)...) {
        members = []
        members.reserveCapacity(elements.count)
        for (name, value) in elements { self[name] = value }
    }

    /// The value of the member with this name. Setting nil removes the member; a member with a new name is appended.
    public subscript(name: String) -> JSON? {
        get {
            for member in members where member.isNamed(name) { return member.value }
            return nil
        }
        set {
            let index = members.firstIndex { $0.isNamed(name) }
            switch (index, newValue) {
            case (let index?, let value?): members[index].value = value
            case (let index?, nil): members.remove(at: index)
            case (nil, let value?): members.append(Member(name: name, value: value))
            case (nil, nil): break
            }
        }
    }
}

extension JSON: ExpressibleByDictionaryLiteral, ExpressibleByArrayLiteral, ExpressibleByStringLiteral,
    ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral, ExpressibleByFloatLiteral, ExpressibleByNilLiteral
{
    /// Creates an object from a literal `["name": value]`. Names must be distinct, which only debug builds check.
    public init(dictionaryLiteral elements: (String, JSON)...) {
        assert(Set(elements.map(\.0)).count == elements.count, "a name stands twice in \(elements.map(\.0))")
        self = .object(JSONObject(members: elements.map { JSONObject.Member(name: $0.0, value: $0.1) }))
    }
    /// Creates an array from a literal `[value]`.
    public init(arrayLiteral elements: JSON...) { self = .array(elements) }
    /// Creates a string from a literal `"text"`.
    public init(stringLiteral value: String) { self = .string(value) }
    /// Creates an integer from a literal `1`.
    public init(integerLiteral value: Int64) { self = .int(value) }
    /// Creates a boolean from a literal `true`.
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    /// Creates a number from a literal `1.5`.
    public init(floatLiteral value: Double) { self = .double(value) }
    /// Creates `null` from the literal `nil`.
    public init(nilLiteral: ()) { self = .null }
}

extension JSON: CustomStringConvertible {
    /// The value as compact JSON text.
    public var description: String { String(wire: serialised()) }
}
