// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// A part of the state that an app saved: the reply of ExportState.
public struct StatePart: Hashable, Sendable {
    /// The maximum size of a part, in bytes.
    public static let mostBytes = 256 << 10
    /// The maximum size of a state that can be exported and imported, in bytes.
    public static let mostState = 16 << 20

    /// When the state was saved, microseconds since 1970; nil if the app has saved none.
    public var savedAt: Int64?
    /// The size of the whole state in bytes.
    public var bytes: Int64
    /// The state's bytes from the requested offset on.
    public var data: [UInt8]

    /// Memberwise initializer.
    public init(savedAt: Int64?, bytes: Int64 = 0, data: [UInt8] = []) {
        self.savedAt = savedAt
        self.bytes = bytes
        self.data = data
    }

    /// Decodes the reply; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        savedAt = try fields.optionalInt("saved_at")
        bytes = try fields.int("bytes")
        guard let data = Base64.decode(try fields.optionalString("data") ?? "") else {
            throw FieldError(field: "data", problem: "must be Base64")
        }
        self.data = data
    }

    /// Encodes the reply.
    public var json: JSON {
        ["saved_at": .optional(savedAt), "bytes": .int(bytes), "data": .string(Base64.encode(data))]
    }
}

/// The parameters of ImportState: a part of a state for the app's next launch.
public struct ImportStateRequest: Hashable, Sendable {
    /// The name of the app.
    public var app: String
    /// The offset of the part in the state, in bytes. With 0, the parts that were sent before are discarded.
    public var offset: Int64
    /// The size of the whole state in bytes. With 0, the state that the app saved is removed.
    public var bytes: Int64
    /// The bytes of the part.
    public var data: [UInt8]
    /// The SHA-256 of the whole state, in hexadecimal, as computed by the sender; nil if the sender gives none.
    public var digest: String?

    /// The length of a digest in hexadecimal.
    private static let digestLength = 64

    /// Memberwise initializer.
    public init(app: String, offset: Int64, bytes: Int64, data: [UInt8], digest: String? = nil) {
        self.app = app
        self.offset = offset
        self.bytes = bytes
        self.data = data
        self.digest = digest
    }

    init(fields: Fields) throws(FieldError) {
        app = try fields.string("app")
        offset = try fields.int("offset")
        bytes = try fields.int("bytes")
        guard (0...Int64(StatePart.mostState)).contains(bytes) else {
            throw FieldError(field: "bytes", problem: "must be from 0 to \(StatePart.mostState)")
        }
        guard let data = Base64.decode(try fields.string("data")), data.count <= StatePart.mostBytes else {
            throw FieldError(field: "data", problem: "must be Base64 of at most \(StatePart.mostBytes) bytes")
        }
        // Do not compare with a range `0...x` here. If x is negative, Swift traps, and torpord would crash.
        guard offset >= 0, offset <= bytes - Int64(data.count) else {
            throw FieldError(field: "offset", problem: "must be from 0 to bytes, with room for data")
        }
        guard !data.isEmpty || bytes == 0 else { throw FieldError(field: "data", problem: "must not be empty") }
        self.data = data
        digest = try fields.optionalString("digest")
        let digits = digest?.utf8
        guard digits.map({ $0.count == Self.digestLength && $0.allSatisfy(Self.isHexadecimal) }) ?? true else {
            throw FieldError(field: "digest", problem: "must be the SHA-256 of the state, in hexadecimal")
        }
    }

    private static func isHexadecimal(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
    }

    var parameters: JSON {
        [
            "app": .string(app), "offset": .int(offset), "bytes": .int(bytes), "data": .string(Base64.encode(data)),
            "digest": .optional(digest),
        ]
    }
}

/// Whether this machine owns an app that several machines can own. An element of the replies to the request Owners.
public struct Ownership: Hashable, Sendable {
    /// The name of the app.
    public var app: String
    /// `here`, `none`, or `forced` if the app runs although this machine does not own it.
    public var owner: String
    /// Whether the app's saved state has changed or was removed, or may have been. A reader should export the state
    /// again.
    public var saved: Bool
    /// The digest of the state that was imported since this machine last owned the app. Nil if no state was imported,
    /// or if its sender gave no digest. What the app has saved since then is based on that state.
    public var imported: String?

    /// Memberwise initializer.
    public init(app: String, owner: String, saved: Bool, imported: String? = nil) {
        self.app = app
        self.owner = owner
        self.saved = saved
        self.imported = imported
    }

    /// Decodes an element; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        self.init(
            app: try fields.string("app"),
            owner: try fields.string("owner"),
            saved: try fields.optionalBool("saved") ?? false,
            imported: try fields.optionalString("imported")
        )
    }

    /// Encodes the element.
    public var json: JSON {
        ["app": .string(app), "owner": .string(owner), "saved": .bool(saved), "imported": .optional(imported)]
    }
}
