// SPDX-License-Identifier: Apache-2.0

import WireText

/// Parses the output of `pw-dump --monitor`: JSON arrays of objects. The first array has all objects, and each later
/// array those that have changed. Only a few members are kept, so the memory used is bounded for any input.
public struct PipeWireDump: Sendable {
    /// The error for input that pw-dump would not write.
    public struct Invalid: Error, Hashable, Sendable, CustomStringConvertible {
        /// The end of a sentence whose subject is pw-dump, such as “writes what is not JSON”.
        public let description: String
    }

    /// The members of one object that are kept.
    public struct Object: Hashable, Sendable {
        /// PipeWire's number for the object.
        public var id: Int64?
        /// The object's type, such as `PipeWire:Interface:Node`; nil if the object was removed.
        public var type: String?
        /// The state of a node: `running`, `idle`, `suspended` …
        public var state: String?
        /// Whether the object was removed.
        public var isGone = false
        /// The object's properties with the names in ``PipeWireDump/properties``; nil if it has no properties.
        public var properties: [String: String]?

        /// Creates an object without any members.
        public init() {}
    }

    /// The names of the properties that are kept.
    public static let properties: Set<String> = [
        "application.process.id", "client.api", "client.id", "media.class", "media.role", "pipewire.sec.pid",
        "stream.monitor",
    ]
    /// The longest name or value that is kept, in bytes.
    private static let longest = 128
    private static let deepest = 64

    private enum Place: Sendable { case between, string, escape, word }

    private var place = Place.between
    /// The brackets that are open, the outermost first: `{` or `[`.
    private var open: [UInt8] = []
    /// The member names that lead to the current value, in the objects at depth 2, 3 and 4.
    private var names: [String?] = [nil, nil, nil]
    /// The bytes of the string or word that is being read. `isOpaque` is set if the text is too long or has escapes.
    private var text: [UInt8] = []
    private var isOpaque = false
    /// The last string that was read: a member's name if a colon follows, otherwise a value. The inner optional is nil
    /// if the string was too long or had escapes.
    private var string: String??
    private var object = Object()

    /// Creates a parser at the start of the output.
    public init() {}

    /// Whether the output so far ends after a complete array.
    public var isComplete: Bool { hasBegun && open.isEmpty }
    private var hasBegun = false

    /// Parses the next bytes; calls `found` for each object that ends in them.
    public mutating func read(_ bytes: some Sequence<UInt8>, _ found: (Object) -> Void) throws(Invalid) {
        for byte in bytes { try read(byte, found) }
    }

    private mutating func read(_ byte: UInt8, _ found: (Object) -> Void) throws(Invalid) {
        switch place {
        case .escape: place = .string
        case .string:
            switch byte {
            case UInt8(ascii: "\\"):
                isOpaque = true
                place = .escape
            case UInt8(ascii: "\""):
                place = .between
                string = .some(taken())
            default: keep(byte)
            }
        case .word:
            switch byte {
            case UInt8(ascii: ","), UInt8(ascii: "}"), UInt8(ascii: "]"), UInt8(ascii: ":"), 0x20, 0x09, 0x0a, 0x0d:
                place = .between
                value(taken())
                try between(byte, found)
            default: keep(byte)
            }
        case .between: try between(byte, found)
        }
    }

    private mutating func keep(_ byte: UInt8) {
        if text.count < Self.longest { text.append(byte) } else { isOpaque = true }
    }

    /// Ends a string or word, and returns its text; nil if it was too long or had escapes.
    private mutating func taken() -> String? {
        defer { (text, isOpaque) = ([], false) }
        return isOpaque ? nil : String(wire: text)
    }

    private mutating func between(_ byte: UInt8, _ found: (Object) -> Void) throws(Invalid) {
        switch byte {
        case 0x20, 0x09, 0x0a, 0x0d: break
        case UInt8(ascii: ":"):
            guard open.last == UInt8(ascii: "{"), let name = string else { throw Self.noJSON }
            string = nil
            if (2...4).contains(open.count) { names[open.count - 2] = name }
        case UInt8(ascii: ","): pass()
        case UInt8(ascii: "{"), UInt8(ascii: "["):
            guard open.count < Self.deepest, string == nil, open.count != 0 || byte == UInt8(ascii: "[") else {
                throw Self.noJSON
            }
            open.append(byte)
            hasBegun = true
            if open.count == 2 { (object, names) = (Object(), [nil, nil, nil]) }
            if isProperties, byte == UInt8(ascii: "{") { object.properties = [:] }
        case UInt8(ascii: "}"), UInt8(ascii: "]"):
            pass()
            // In ASCII, `}` and `]` are two above `{` and `[`.
            guard open.popLast() == byte - 2 else { throw Self.noJSON }
            if open.count == 1, byte == UInt8(ascii: "}") { found(object) }
        case UInt8(ascii: "\""):
            guard !open.isEmpty, string == nil else { throw Self.noJSON }
            place = .string
        default:
            guard !open.isEmpty, string == nil else { throw Self.noJSON }
            place = .word
            keep(byte)
        }
    }

    private static let noJSON = Invalid(description: "writes what is not JSON")

    /// Uses the last string as a value, since no colon followed it.
    private mutating func pass() {
        if let string { value(string) }
        string = nil
    }

    /// Whether the innermost open bracket is that of an object's properties.
    private var isProperties: Bool { open.count == 4 && names[0] == "info" && names[1] == "props" }

    private mutating func value(_ value: String?) {
        guard open.last == UInt8(ascii: "{") else { return }
        switch open.count {
        case 2:
            switch names[0] {
            case "id": object.id = value.flatMap { Int64($0) }
            case "type": object.type = value
            case "info": object.isGone = value == "null"
            default: break
            }
        case 3: if names[0] == "info", names[1] == "state" { object.state = value }
        case 4:
            guard isProperties, let name = names[2], Self.properties.contains(name) else { return }
            object.properties?[name] = value
        default: break
        }
    }
}
