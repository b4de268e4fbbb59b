// SPDX-License-Identifier: Apache-2.0

/// Receives the members of an object in their order, and builds the object (``JSONObject``) or writes it as text
/// (``JSONWriter``). So a type lists its members only once for both. The names must be distinct and need no escapes.
public protocol JSONMembers: ~Copyable {
    /// A string, or `null`.
    mutating func add(_ name: StaticString, _ value: String?)
    /// An integer, or `null`.
    mutating func add(_ name: StaticString, _ value: Int64?)
    /// A number, or `null`.
    mutating func add(_ name: StaticString, _ value: Double?)
    /// `true` or `false`.
    mutating func add(_ name: StaticString, _ value: Bool)
    /// An array of strings.
    mutating func add(_ name: StaticString, _ values: [String])
    /// An object of strings by name, sorted by name.
    mutating func add(_ name: StaticString, _ values: [String: String])
    /// An object, whose members `write` adds.
    mutating func add(_ name: StaticString, object write: (inout Self) -> Void)
    /// An array of objects; `write` adds the members of each.
    mutating func add<Element>(
        _ name: StaticString,
        objects: [Element],
        _ write: (Element, inout Self) -> Void
    )
    /// Any value.
    mutating func add(_ name: StaticString, json: JSON)
}

extension JSONObject: JSONMembers {
    /// A string, or `null`.
    public mutating func add(_ name: StaticString, _ value: String?) { add(name, json: .optional(value)) }
    /// An integer, or `null`.
    public mutating func add(_ name: StaticString, _ value: Int64?) { add(name, json: .optional(value)) }
    /// A number, or `null`.
    public mutating func add(_ name: StaticString, _ value: Double?) { add(name, json: .optional(value)) }
    /// `true` or `false`.
    public mutating func add(_ name: StaticString, _ value: Bool) { add(name, json: .bool(value)) }
    /// An array of strings.
    public mutating func add(_ name: StaticString, _ values: [String]) { add(name, json: .strings(values)) }
    /// An object of strings by name, sorted by name.
    public mutating func add(_ name: StaticString, _ values: [String: String]) { add(name, json: .strings(values)) }

    /// An object, whose members `write` adds.
    public mutating func add(_ name: StaticString, object write: (inout JSONObject) -> Void) {
        var object = JSONObject()
        write(&object)
        add(name, json: .object(object))
    }

    /// An array of objects; `write` adds the members of each.
    public mutating func add<Element>(
        _ name: StaticString,
        objects: [Element],
        _ write: (Element, inout JSONObject) -> Void
    ) {
        let values = objects.map { element -> JSON in
            var object = JSONObject()
            write(element, &object)
            return .object(object)
        }
        add(name, json: .array(values))
    }

    /// Any value.
    public mutating func add(_ name: StaticString, json: JSON) { append(name.description, json) }
}

extension JSONWriter: JSONMembers {
    /// A string, or `null`.
    public mutating func add(_ name: StaticString, _ value: String?) {
        guard let value else { return begin(name, .null) }
        begin(name)
        append(value)
    }

    /// An integer, or `null`.
    public mutating func add(_ name: StaticString, _ value: Int64?) {
        guard let value else { return begin(name, .null) }
        begin(name)
        append(value)
    }

    /// A number, or `null`.
    public mutating func add(_ name: StaticString, _ value: Double?) {
        guard let value else { return begin(name, .null) }
        begin(name)
        append(value)
    }

    /// `true` or `false`.
    public mutating func add(_ name: StaticString, _ value: Bool) { begin(name, value ? .true : .false) }

    /// An array of strings.
    public mutating func add(_ name: StaticString, _ values: [String]) {
        guard !values.isEmpty else { return begin(name, .emptyArray) }
        begin(name)
        for (index, value) in values.enumerated() {
            append(UInt8(ascii: index == 0 ? "[" : ","))
            append(value)
        }
        append(UInt8(ascii: "]"))
    }

    /// An object of strings by name, sorted by name.
    public mutating func add(_ name: StaticString, _ values: [String: String]) {
        guard !values.isEmpty else { return begin(name, .emptyObject) }
        begin(name)
        JSON.strings(values).append(to: &self)
    }

    /// An object, whose members `write` adds.
    public mutating func add(_ name: StaticString, object write: (inout JSONWriter) -> Void) {
        begin(name)
        appendObject(write)
    }

    /// An array of objects; `write` adds the members of each. It can be inlined, because without the type of the
    /// elements it takes ten times as long.
    @inlinable
    public mutating func add<Element>(
        _ name: StaticString,
        objects: [Element],
        _ write: (Element, inout JSONWriter) -> Void
    ) {
        beginArray(name)
        var isFirst = true
        for element in objects {
            if !isFirst { append(UInt8(ascii: ",")) }
            isFirst = false
            appendObject { write(element, &$0) }
        }
        append(UInt8(ascii: "]"))
    }

    @usableFromInline
    mutating func beginArray(_ name: StaticString) {
        begin(name)
        append(UInt8(ascii: "["))
    }

    /// Any value.
    public mutating func add(_ name: StaticString, json: JSON) {
        begin(name)
        json.append(to: &self)
    }

    /// Appends an object, whose members `write` adds.
    public mutating func appendObject(_ write: (inout JSONWriter) -> Void) {
        append(UInt8(ascii: "{"))
        write(&self)
        append(UInt8(ascii: "}"))
    }
}
