// SPDX-License-Identifier: Apache-2.0

/// A member of an object is missing or has the wrong type.
public struct FieldError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The member's name, with its path if it is nested.
    public var field: String
    /// What is wrong, as the end of a sentence that starts with the member's name.
    public var problem: String

    /// Memberwise initializer.
    public init(field: String, problem: String) {
        self.field = field
        self.problem = problem
    }

    /// A sentence for users.
    public var description: String { field.isEmpty ? problem : "\(field) \(problem)" }
}

/// Reads the members of an object by name and type; `null` counts as absent. Reading is fastest in the order in which
/// the members are in the text.
public struct Fields {
    private let object: JSONObject
    private let place = Place()

    /// The index of the member after the one that was read last: the next search begins there.
    private final class Place {
        var next = 0
    }

    /// The fields of an object.
    public init(_ object: JSONObject) { self.object = object }

    /// The fields of a value that must be an object.
    public init(_ json: JSON) throws(FieldError) {
        guard let object = json.objectValue else { throw FieldError(field: "", problem: "must be an object") }
        self.object = object
    }

    /// The member; nil if it is absent or null.
    public subscript(name: String) -> JSON? {
        guard let index = index(of: name) else { return nil }
        place.next = index + 1
        let value = object.members[index].value
        if case .null = value { return nil }
        return value
    }

    private func index(of name: String) -> Int? {
        let next = place.next
        if next < object.members.count, object.members[next].isNamed(name) { return next }
        return object.members.firstIndex { $0.isNamed(name) }
    }

    private func required<T>(_ name: String, _ value: T?) throws(FieldError) -> T {
        guard let value else { throw FieldError(field: name, problem: "is missing") }
        return value
    }

    /// A required string.
    public func string(_ name: String) throws(FieldError) -> String { try required(name, optionalString(name)) }
    /// A required integer.
    public func int(_ name: String) throws(FieldError) -> Int64 { try required(name, optionalInt(name)) }
    /// A required number.
    public func double(_ name: String) throws(FieldError) -> Double { try required(name, optionalDouble(name)) }
    /// A required boolean.
    public func bool(_ name: String) throws(FieldError) -> Bool { try required(name, optionalBool(name)) }

    /// A string; nil if absent.
    public func optionalString(_ name: String) throws(FieldError) -> String? {
        guard let value = self[name] else { return nil }
        guard let string = value.stringValue else { throw FieldError(field: name, problem: "must be a string") }
        return string
    }

    /// An integer; nil if absent.
    public func optionalInt(_ name: String) throws(FieldError) -> Int64? {
        guard let value = self[name] else { return nil }
        guard let int = value.intValue else { throw FieldError(field: name, problem: "must be an integer") }
        return int
    }

    /// A 32-bit integer, such as a pid or a signal; nil if absent.
    public func optionalInt32(_ name: String) throws(FieldError) -> Int32? {
        guard let value = try optionalInt(name) else { return nil }
        guard let int = Int32(exactly: value) else { throw FieldError(field: name, problem: "is out of range") }
        return int
    }

    /// A number; nil if absent.
    public func optionalDouble(_ name: String) throws(FieldError) -> Double? {
        guard let value = self[name] else { return nil }
        guard let double = value.doubleValue else { throw FieldError(field: name, problem: "must be a number") }
        return double
    }

    /// A boolean; nil if absent.
    public func optionalBool(_ name: String) throws(FieldError) -> Bool? {
        guard let value = self[name] else { return nil }
        guard let bool = value.boolValue else { throw FieldError(field: name, problem: "must be true or false") }
        return bool
    }

    /// An array; empty if absent.
    public func array(_ name: String) throws(FieldError) -> [JSON] {
        guard let value = self[name] else { return [] }
        guard let array = value.arrayValue else { throw FieldError(field: name, problem: "must be an array") }
        return array
    }

    /// An array of strings; empty if absent.
    public func strings(_ name: String) throws(FieldError) -> [String] {
        var strings: [String] = []
        for element in try array(name) {
            guard let string = element.stringValue else {
                throw FieldError(field: name, problem: "must be an array of strings")
            }
            strings.append(string)
        }
        return strings
    }

    /// An object of strings by name; empty if absent.
    public func strings(byName name: String) throws(FieldError) -> [String: String] {
        guard let value = self[name] else { return [:] }
        guard let object = value.objectValue else {
            throw FieldError(field: name, problem: "must be an object of strings")
        }
        var strings: [String: String] = [:]
        for member in object.members {
            guard let string = member.value.stringValue else {
                throw FieldError(field: name, problem: "must be an object of strings")
            }
            strings[member.name] = string
        }
        return strings
    }

    /// An array whose elements are read one by one; empty if absent.
    public func list<T>(_ name: String, _ read: (JSON) throws(FieldError) -> T) throws(FieldError) -> [T] {
        var list: [T] = []
        for element in try array(name) { list.append(try read(element)) }
        return list
    }
}
