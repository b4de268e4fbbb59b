// SPDX-License-Identifier: Apache-2.0

/// A call as Varlink has it (https://varlink.org/Method-Call): one JSON object, ended by a NUL byte.
public struct VarlinkCall: Hashable, Sendable {
    /// The bytes that interface and method may have.
    public static let longestMethod = 255

    /// Interface and method, such as `io.torpor.Manager.List`.
    public var method: String
    /// An object; empty where the caller gave none.
    public var parameters: JSON
    /// The caller takes more than one reply.
    public var more: Bool
    /// The caller wants no reply.
    public var oneway: Bool
    /// The caller wants to speak another protocol after the reply.
    public var upgrade: Bool

    /// Makes one from its parts.
    public init(
        method: String,
        parameters: JSON = .emptyObject,
        more: Bool = false,
        oneway: Bool = false,
        upgrade: Bool = false
    ) {
        self.method = method
        self.parameters = parameters
        self.more = more
        self.oneway = oneway
        self.upgrade = upgrade
    }

    /// The part of the method's name before its last dot; empty when there is none.
    public var interface: String {
        guard let dot = method.lastIndex(of: ".") else { return "" }
        return String(method[..<dot])
    }

    /// The part of the method's name after its last dot.
    public var member: String {
        guard let dot = method.lastIndex(of: ".") else { return method }
        return String(method[method.index(after: dot)...])
    }

    /// Reads a call from its object.
    public init(json: JSON) throws(FieldError) {
        guard let object = json.objectValue else { throw FieldError(field: "", problem: "a call is a JSON object") }
        let fields = Fields(object)
        method = try fields.string("method")
        guard method.utf8.count <= Self.longestMethod, method.utf8.allSatisfy({ $0 < 0x80 }) else {
            throw FieldError(
                field: "method",
                problem: "must be a name of at most \(Self.longestMethod) ASCII characters"
            )
        }
        parameters = object["parameters"] ?? .null
        if parameters.isNull { parameters = .emptyObject }
        guard parameters.objectValue != nil else {
            throw FieldError(field: "parameters", problem: "must be an object")
        }
        more = try fields.optionalBool("more") ?? false
        oneway = try fields.optionalBool("oneway") ?? false
        upgrade = try fields.optionalBool("upgrade") ?? false
    }

    /// The call as an object.
    public var json: JSON {
        var object: JSONObject = ["method": .string(method), "parameters": parameters]
        if more { object["more"] = true }
        if oneway { object["oneway"] = true }
        if upgrade { object["upgrade"] = true }
        return .object(object)
    }
}

/// What comes back for a call.
public struct VarlinkResponse: Hashable, Sendable {
    /// The results, or what belongs to the error.
    public var parameters: JSON
    /// More replies to the same call follow.
    public var continues: Bool
    /// The full name of the error, nil when the call succeeded.
    public var error: String?

    /// Makes one from its parts.
    public init(parameters: JSON = .emptyObject, continues: Bool = false, error: String? = nil) {
        self.parameters = parameters
        self.continues = continues
        self.error = error
    }

    /// Reads a response from its object.
    public init(json: JSON) throws(FieldError) {
        guard let object = json.objectValue else { throw FieldError(field: "", problem: "a reply is a JSON object") }
        let fields = Fields(object)
        parameters = object["parameters"] ?? .emptyObject
        if parameters.isNull { parameters = .emptyObject }
        continues = try fields.optionalBool("continues") ?? false
        error = try fields.optionalString("error")
    }

    /// The response as an object.
    public var json: JSON {
        var object: JSONObject = [:]
        if let error { object["error"] = .string(error) }
        object["parameters"] = parameters
        if continues { object["continues"] = true }
        return .object(object)
    }
}

/// The names of the errors that every Varlink service may give (https://varlink.org/Service).
public enum VarlinkErrorName {
    /// The service has no such interface.
    public static let interfaceNotFound = "org.varlink.service.InterfaceNotFound"
    /// The interface has no such method.
    public static let methodNotFound = "org.varlink.service.MethodNotFound"
    /// The service does not carry this method out.
    public static let methodNotImplemented = "org.varlink.service.MethodNotImplemented"
    /// A parameter is missing, of the wrong kind or out of range.
    public static let invalidParameter = "org.varlink.service.InvalidParameter"
    /// The caller may not do this.
    public static let permissionDenied = "org.varlink.service.PermissionDenied"
    /// The method has several replies, and the call does not allow `more`.
    public static let expectedMore = "org.varlink.service.ExpectedMore"
}

/// Finds the messages in a stream of bytes: each ends with a NUL. Keeps no more than one message's bound of bytes.
public struct MessageFramer: Sendable {
    /// A message is longer than the bound; the stream cannot be read any further.
    public struct TooLong: Error, Hashable, Sendable, CustomStringConvertible {
        /// Bytes.
        public var limit: Int
        /// A sentence for people.
        public var description: String { "a message is longer than \(limit) bytes" }
    }

    /// The longest message in bytes, its NUL not counted.
    public let limit: Int
    private var buffer: [UInt8] = []
    private var start = 0
    /// How far the buffer was searched for a NUL: no byte is looked at twice.
    private var searched = 0

    /// - Parameter limit: the longest message in bytes; 16 MiB unless said otherwise.
    public init(limit: Int = 16 << 20) { self.limit = limit }

    /// Whether part of a message waits for its rest.
    public var hasPartialMessage: Bool { waitingBytes > 0 }
    /// Bytes that came and were not taken yet.
    public var waitingBytes: Int { buffer.count - start }

    /// Takes bytes that came.
    public mutating func append(_ bytes: some Collection<UInt8>) {
        if start > 0, start == buffer.count || start > 1 << 16 {
            buffer.removeFirst(start)
            searched -= start
            start = 0
        }
        buffer.append(contentsOf: bytes)
    }

    /// The next whole message without its NUL; nil when it has not come whole yet.
    public mutating func next() throws(TooLong) -> ArraySlice<UInt8>? {
        let end = buffer.withUnsafeBufferPointer { bytes in bytes[searched...].firstIndex(of: 0) }
        guard let end else {
            searched = buffer.count
            if buffer.count - start > limit { throw TooLong(limit: limit) }
            return nil
        }
        guard end - start <= limit else { throw TooLong(limit: limit) }
        let message = buffer[start..<end]
        start = end + 1
        searched = start
        if start == buffer.count {
            // Connections rest most of the time: nothing is kept for the next message.
            buffer = []
            start = 0
            searched = 0
        }
        return message
    }
}
