// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// One socket that the supervisor holds for an app.
public struct SocketInfo: Hashable, Sendable {
    /// What the app knows it by.
    public var name: String
    /// `stream`, `datagram` or `seqpacket`.
    public var kind: String
    /// Where it is bound.
    public var address: String
    /// Connections that wait to be accepted; of datagrams bytes of the kernel's memory. nil where the kernel does not say.
    public var waiting: Int64?
    /// The most that may wait.
    public var most: Int64?
    /// Datagrams that found no room.
    public var dropped: Int64?
    /// Why it is not bound, in a sentence.
    public var trouble: String?

    /// Makes one of which only is known where it is.
    public init(name: String, kind: String, address: String) {
        (self.name, self.kind, self.address) = (name, kind, address)
    }

    /// Reads it from its object.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        name = try fields.string("name")
        kind = try fields.string("kind")
        address = try fields.string("address")
        waiting = try fields.optionalInt("waiting")
        most = try fields.optionalInt("limit")
        dropped = try fields.optionalInt("dropped")
        trouble = try fields.optionalString("trouble")
    }

    /// It as an object.
    public var json: JSON {
        [
            "name": .string(name), "kind": .string(kind), "address": .string(address), "waiting": .optional(waiting),
            "limit": .optional(most), "dropped": .optional(dropped), "trouble": .optional(trouble),
        ]
    }

    /// In a line, for people.
    public var text: String {
        var text = "\(name): \(kind) \(address)"
        if let trouble { return text + ", not bound: \(trouble)" }
        if let waiting, waiting > 0 {
            let limit = most.map { " of \($0)" } ?? ""
            let what =
                kind == "datagram"
                ? " bytes wait" : waiting == 1 && most == nil ? " connection waits" : " connections wait"
            text += ", \(waiting)\(limit)\(what)"
        }
        if let dropped, dropped > 0 { text += ", \(dropped) datagram\(dropped == 1 ? " was" : "s were") lost" }
        return text
    }
}
