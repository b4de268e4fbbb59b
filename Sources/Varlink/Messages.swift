// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A Varlink call (https://varlink.org/Method-Call): one JSON object, terminated by a NUL byte.
public struct VarlinkCall: Hashable, Sendable {
    /// The maximum length of interface and method in bytes.
    public static let longestMethod = 255

    /// Interface and method, such as `io.torpor.Manager.List`.
    public var method: String
    /// An object; empty if the caller gave none.
    public var parameters: JSON
    /// The caller accepts several replies.
    public var more: Bool
    /// The caller wants no reply.
    public var oneway: Bool
    /// The caller wants to switch to another protocol after the reply.
    public var upgrade: Bool

    /// Memberwise initializer.
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

    /// The part of the method's name before its last dot; empty if there is none.
    public var interface: String {
        guard let dot = lastDot else { return "" }
        return String(method[..<dot])
    }

    /// The part of the method's name after its last dot.
    public var member: String {
        guard let dot = lastDot else { return method }
        return String(method[method.utf8.index(after: dot)...])
    }

    /// By bytes: each call is asked for its names several times, and a search by characters is slow.
    private var lastDot: String.Index? { method.utf8.lastIndex(of: UInt8(ascii: ".")) }

    /// Parses a call from its object.
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

    /// The call as a JSON object.
    public var json: JSON {
        var object: JSONObject = ["method": .string(method), "parameters": parameters]
        if more { object["more"] = true }
        if oneway { object["oneway"] = true }
        if upgrade { object["upgrade"] = true }
        return .object(object)
    }
}

/// A reply to a call.
public struct VarlinkResponse: Hashable, Sendable {
    /// The results, or the error's parameters.
    public var parameters: JSON
    /// More replies to the same call follow.
    public var continues: Bool
    /// The fully qualified name of the error; nil if the call succeeded.
    public var error: String?

    /// Memberwise initializer.
    public init(parameters: JSON = .emptyObject, continues: Bool = false, error: String? = nil) {
        self.parameters = parameters
        self.continues = continues
        self.error = error
    }

    /// Parses a reply from its object.
    public init(json: JSON) throws(FieldError) {
        guard let object = json.objectValue else { throw FieldError(field: "", problem: "a reply is a JSON object") }
        let fields = Fields(object)
        parameters = object["parameters"] ?? .emptyObject
        if parameters.isNull { parameters = .emptyObject }
        continues = try fields.optionalBool("continues") ?? false
        error = try fields.optionalString("error")
    }

    /// Appends the reply as JSON text.
    public func append(to writer: inout JSONWriter) {
        writer.append("{" as StaticString)
        if let error {
            writer.append("\"error\":" as StaticString)
            writer.append(error)
            writer.append("," as StaticString)
        }
        Self.append(to: &writer, continues: continues) { parameters.append(to: &$0) }
    }

    /// Appends the results of a call as JSON text. `write` appends them as an object.
    public static func appendResults(
        to writer: inout JSONWriter,
        continues: Bool,
        _ write: (inout JSONWriter) -> Void
    ) {
        writer.append("{" as StaticString)
        append(to: &writer, continues: continues, write)
    }

    private static func append(to writer: inout JSONWriter, continues: Bool, _ write: (inout JSONWriter) -> Void) {
        writer.append("\"parameters\":" as StaticString)
        write(&writer)
        writer.append(continues ? ",\"continues\":true}" as StaticString : "}")
    }

    /// The reply as a JSON object.
    public var json: JSON {
        var object: JSONObject = [:]
        if let error { object["error"] = .string(error) }
        object["parameters"] = parameters
        if continues { object["continues"] = true }
        return .object(object)
    }
}

/// The standard errors of Varlink services (https://varlink.org/Service).
public enum VarlinkErrorName {
    /// The service has no such interface.
    public static let interfaceNotFound = "org.varlink.service.InterfaceNotFound"
    /// The interface has no such method.
    public static let methodNotFound = "org.varlink.service.MethodNotFound"
    /// The service does not implement this method.
    public static let methodNotImplemented = "org.varlink.service.MethodNotImplemented"
    /// A parameter is missing, out of range or of the wrong type.
    public static let invalidParameter = "org.varlink.service.InvalidParameter"
    /// The caller may not do this.
    public static let permissionDenied = "org.varlink.service.PermissionDenied"
    /// The method sends several replies, but the call does not permit `more`.
    public static let expectedMore = "org.varlink.service.ExpectedMore"
}

/// Splits a stream of bytes into NUL-terminated messages. Its buffer is bounded by the maximum message size.
public struct MessageFramer: Sendable {
    /// A message exceeds the maximum; the stream cannot be read any further.
    public struct TooLong: Error, Hashable, Sendable, CustomStringConvertible {
        /// The maximum in bytes.
        public var limit: Int
        /// A sentence for users.
        public var description: String { "a message is longer than \(limit) bytes" }
    }

    /// The maximum size of a call in bytes, without its NUL, that torpord takes.
    public static let callLimit = 1 << 20

    /// The maximum size of a message in bytes, without its NUL.
    public let limit: Int
    private var buffer: [UInt8] = []
    private var start = 0
    /// The position up to which the buffer was searched for a NUL: no byte is searched twice.
    private var searched = 0

    /// - Parameter limit: the maximum size of a message in bytes.
    public init(limit: Int = 16 << 20) { self.limit = limit }

    /// Whether an incomplete message is buffered.
    public var hasPartialMessage: Bool { waitingBytes > 0 }
    /// Bytes received but not returned yet.
    public var waitingBytes: Int { buffer.count - start }

    /// Adds received bytes.
    public mutating func append(_ bytes: some Collection<UInt8>) {
        if start > 0, start == buffer.count || start > 1 << 16 {
            buffer.removeFirst(start)
            searched -= start
            start = 0
        }
        buffer.append(contentsOf: bytes)
    }

    /// The next complete message without its NUL; nil if there is none yet.
    public mutating func next() throws(TooLong) -> ArraySlice<UInt8>? {
        let end = buffer.withUnsafeBytes { bytes -> Int? in
            guard let base = bytes.baseAddress, searched < bytes.count,
                let found = memchr(base + searched, 0, bytes.count - searched)
            else { return nil }
            return UnsafeRawPointer(found) - base
        }
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
            // Free the buffer, since connections are idle most of the time.
            buffer = []
            start = 0
            searched = 0
        }
        return message
    }
}
