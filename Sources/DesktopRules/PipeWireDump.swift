// SPDX-License-Identifier: Apache-2.0

import WireText

/// What `pw-dump --monitor` writes: arrays of objects, the first with all objects, each further one with those that
/// have changed. Only the few members that matter are kept, so that its memory is bounded whatever comes.
public struct PipeWireDump: Sendable {
    /// What was read is not what pw-dump writes.
    public struct Invalid: Error, Hashable, Sendable, CustomStringConvertible {
        /// Half a sentence.
        public let description: String
    }

    /// What was written about one object.
    public struct Object: Hashable, Sendable {
        /// PipeWire's number of it.
        public var id: Int64?
        /// Such as `PipeWire:Interface:Node`; nil for one that is gone.
        public var type: String?
        /// `running`, `idle`, `suspended` …, of a node.
        public var state: String?
        /// Whether it is gone.
        public var isGone = false
        /// Its properties of the names in ``PipeWireDump/properties``; nil if none were written.
        public var properties: [String: String]?

        /// Nothing was written yet.
        public init() {}
    }

    /// The properties that are kept.
    public static let properties: Set<String> = [
        "application.process.id", "client.api", "client.id", "media.class", "media.role", "pipewire.sec.pid",
        "stream.monitor",
    ]
    /// The longest name or value that is kept, in bytes.
    private static let longest = 128
    private static let deepest = 64

    private enum Place: Sendable { case between, string, escape, word }

    private var place = Place.between
    /// The brackets that are open: `{` or `[`.
    private var open: [UInt8] = []
    /// The names on the way to the value that comes, of the objects at depth 2, 3 and 4.
    private var names: [String?] = [nil, nil, nil]
    /// The string or word that is being read, and whether it is too long or has escapes.
    private var text: [UInt8] = []
    private var isOpaque = false
    /// A string that may turn out to be a name.
    private var string: String??
    private var object = Object()

    /// Nothing was read yet.
    public init() {}

    /// Whether all arrays that were begun are complete; false before the first one.
    public var isComplete: Bool { hasBegun && open.isEmpty }
    private var hasBegun = false

    /// Reads the next bytes; calls `found` for each object whose end is in them.
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

    /// What was read of a string or a word; nil if that was not kept.
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
            // The two kinds of brackets are two apart.
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

    /// A string that no colon follows is a value.
    private mutating func pass() {
        if let string { value(string) }
        string = nil
    }

    /// Whether the properties' bracket is the last one that was opened.
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
