// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// A socket that torpord has bound for an app.
public struct SocketInfo: Hashable, Sendable {
    /// The name by which the app knows the socket.
    public var name: String
    /// `stream`, `datagram` or `seqpacket`.
    public var kind: String
    /// The address that the socket is bound to.
    public var address: String
    /// The number of connections in the accept queue; for a datagram socket, the bytes in the receive buffer. Nil if
    /// the kernel does not report it.
    public var waiting: Int64?
    /// The maximum of ``waiting``.
    public var most: Int64?
    /// The number of datagrams that were dropped because the receive buffer was full.
    public var dropped: Int64?
    /// Why the socket is not bound, in a sentence; nil if it is bound.
    public var trouble: String?

    /// A socket without its counters.
    public init(name: String, kind: String, address: String) {
        (self.name, self.kind, self.address) = (name, kind, address)
    }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
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

    /// Encodes the value as a JSON object.
    public var json: JSON {
        [
            "name": .string(name), "kind": .string(kind), "address": .string(address), "waiting": .optional(waiting),
            "limit": .optional(most), "dropped": .optional(dropped), "trouble": .optional(trouble),
        ]
    }

    /// The socket in one line, for users.
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
