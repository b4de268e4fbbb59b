// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// What torpord says to torpor-transfer: one object each, ended by a NUL, as Varlink frames its messages.
public enum TransferCommand: Hashable, Sendable {
    /// The first of each torpord: it is answered by `here`, then by all that was not acknowledged.
    case hello
    /// Begin one; one that is known by this number already goes on as it is.
    case start(TransferOrder)
    /// What `head` or `source` said of it is durable: bytes may be written or sent.
    case go(id: Int64)
    /// End it, keep its part, forget it.
    case stop(id: Int64)
    /// End it, remove its part, forget it.
    case discard(id: Int64)
    /// Its end is durable: forget it. The part of one that is done is gone already.
    case acknowledge(id: Int64)
    /// How fast all of this process together may be, in bytes a second; nil for no limit.
    case rate(Int64?)

    /// Reads one.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        let kind = try fields.string("command")
        switch kind {
        case "hello": self = .hello
        case "start": self = .start(try TransferOrder(fields: try Fields(fields["order"] ?? .null)))
        case "go": self = .go(id: try fields.int("id"))
        case "stop": self = .stop(id: try fields.int("id"))
        case "discard": self = .discard(id: try fields.int("id"))
        case "acknowledge": self = .acknowledge(id: try fields.int("id"))
        case "rate": self = .rate(try fields.optionalInt("rate"))
        default: throw FieldError(field: "command", problem: "is \(kind), which is unknown")
        }
    }

    /// Its object.
    public var json: JSON {
        switch self {
        case .hello: ["command": "hello"]
        case .start(let order): ["command": "start", "order": order.json]
        case .go(let id): ["command": "go", "id": .int(id)]
        case .stop(let id): ["command": "stop", "id": .int(id)]
        case .discard(let id): ["command": "discard", "id": .int(id)]
        case .acknowledge(let id): ["command": "acknowledge", "id": .int(id)]
        case .rate(let rate): ["command": "rate", "rate": .optional(rate)]
        }
    }
}

/// All that torpor-transfer needs to know of a transfer.
public struct TransferOrder: Hashable, Sendable {
    /// Its number, which no other transfer of any app has.
    public var id: Int64
    /// Whether a file is fetched or sent.
    public var direction: TransferDirection
    /// http or https, at most 8 KiB, without user information.
    public var url: String
    /// Which of the folders that the process was started with (`--root`, from 0) the file is below.
    public var root: Int
    /// The file's name below that folder, with `/` between folders, none of them `.` or `..`.
    public var file: String
    /// `GET`, `PUT` or `POST`.
    public var method: String
    /// Header fields in their order.
    public var headers: [TransferHeader] = []
    /// SHA-256 that a download must have, 64 lower-case hexadecimal digits.
    public var sha256: String?
    /// What the server said of the file whose part is there: without it a download begins from 0.
    public var validator: TransferValidator?
    /// What the server said of the file that is there already: only another one is downloaded. A download ends without one
    /// (status 304) where the server still has that.
    public var unless: String?
    /// What a file was that is sent once more: if it is another now, the transfer fails.
    public var source: TransferSource?
    /// The server may have taken the file in an earlier try whose end nobody knows, and is not to get it twice: unless that is
    /// known after all, the transfer has failed.
    public var isDoubtful = false
    /// Where a server may redirect to (``WebPattern``); empty for anywhere.
    public var allow: [String] = []
    /// The most bytes that a download may have.
    public var sizeLimit: Int64?
    /// Seconds that each request may take; nil for as long as bytes come.
    public var timeLimit: Int64?
    /// Bytes that the destination's filesystem keeps free; below it a download ends with `space`.
    public var minimumFree: Int64 = 0
    /// Lower effort than others' (DSCP LE of RFC 8622).
    public var isDiscretionary = false
    /// For a server that asks who it is (401), used once.
    public var credentials: TransferCredentials?
    /// By which servers of http are reached; nil for directly.
    public var proxy: TransferProxy?
    /// By which servers of https are reached; nil for directly.
    public var secureProxy: TransferProxy?
    /// Servers that are reached without one, as `no_proxy` has them.
    public var noProxy: String?
    /// An authority's file that counts for this one beside the system's.
    public var authority: String?

    /// Makes one from what every one has.
    public init(id: Int64, direction: TransferDirection, url: String, root: Int, file: String, method: String) {
        self.id = id
        self.direction = direction
        self.url = url
        self.root = root
        self.file = file
        self.method = method
    }

    /// Reads it from its object.
    public init(json: JSON) throws(FieldError) { try self.init(fields: Fields(json)) }

    init(fields: Fields) throws(FieldError) {
        guard let direction = TransferDirection(rawValue: try fields.string("direction")) else {
            throw FieldError(field: "direction", problem: "must be download or upload")
        }
        guard let root = Int(exactly: try fields.int("root")), root >= 0 else {
            throw FieldError(field: "root", problem: "is out of range")
        }
        self.init(
            id: try fields.int("id"),
            direction: direction,
            url: try fields.string("url"),
            root: root,
            file: try fields.string("file"),
            method: try fields.string("method")
        )
        headers = try fields.list("headers") { json throws(FieldError) in try TransferHeader(json: json) }
        sha256 = try fields.optionalString("sha256")
        validator = try fields["validator"].map { json throws(FieldError) in try TransferValidator(json: json) }
        unless = try fields.optionalString("unless")
        source = try fields["source"].map { json throws(FieldError) in try TransferSource(json: json) }
        isDoubtful = try fields.optionalBool("doubtful") ?? false
        allow = try fields["allow"] == nil ? [] : fields.strings("allow")
        sizeLimit = try fields.optionalInt("size_limit")
        timeLimit = try fields.optionalInt("time_limit")
        minimumFree = try fields.optionalInt("min_free") ?? 0
        isDiscretionary = try fields.optionalBool("discretionary") ?? false
        credentials = try fields["credentials"].map { json throws(FieldError) in try TransferCredentials(json: json) }
        proxy = try fields["proxy"].map { json throws(FieldError) in try TransferProxy(json: json) }
        secureProxy = try fields["secure_proxy"].map { json throws(FieldError) in try TransferProxy(json: json) }
        noProxy = try fields.optionalString("no_proxy")
        authority = try fields.optionalString("authority")
    }

    /// Its object.
    public var json: JSON {
        [
            "id": .int(id), "direction": .string(direction.rawValue), "url": .string(url), "root": .int(Int64(root)),
            "file": .string(file), "method": .string(method), "headers": .array(headers.map(\.json)),
            "sha256": .optional(sha256), "validator": validator?.json ?? .null, "source": source?.json ?? .null,
            "size_limit": .optional(sizeLimit), "min_free": .int(minimumFree), "discretionary": .bool(isDiscretionary),
            "credentials": credentials?.json ?? .null, "authority": .optional(authority), "unless": .optional(unless),
            "time_limit": .optional(timeLimit), "allow": .strings(allow),
            "proxy": proxy?.json ?? .null, "secure_proxy": secureProxy?.json ?? .null, "no_proxy": .optional(noProxy),
            "doubtful": .bool(isDoubtful),
        ]
    }
}

/// Which way a file goes.
public enum TransferDirection: String, Hashable, Sendable {
    case download, upload
}

/// A header field of a request.
public struct TransferHeader: Hashable, Sendable {
    /// A token of RFC 9110.
    public var name: String
    /// Without CR, LF and NUL.
    public var value: String

    /// Makes one.
    public init(name: String, value: String) {
        self.name = name
        self.value = value
    }

    /// Reads it from its object.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        self.init(name: try fields.string("name"), value: try fields.string("value"))
    }

    /// Its object.
    public var json: JSON { ["name": .string(name), "value": .string(value)] }
}

/// By what a server knows a file again, as it said in the answer whose body the part is.
public struct TransferValidator: Hashable, Sendable {
    /// For If-Range: a strong ETag, or a Last-Modified that is at least 60 s older than the answer's Date; nil where there
    /// is neither, so that a download that was cut begins from 0.
    public var condition: String?
    /// The whole file's length in bytes, where the server said it.
    public var total: Int64?
    /// For If-None-Match or If-Modified-Since: an ETag, also a weak one, or else the Last-Modified; nil where there is neither.
    public var version: String?

    /// Makes one.
    public init(condition: String?, total: Int64?, version: String? = nil) {
        self.condition = condition
        self.total = total
        self.version = version
    }

    /// Reads it from its object.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        self.init(
            condition: try fields.optionalString("condition"),
            total: try fields.optionalInt("total"),
            version: try fields.optionalString("version")
        )
    }

    /// Its object.
    public var json: JSON {
        ["condition": .optional(condition), "total": .optional(total), "version": .optional(version)]
    }
}

/// What a file that is sent was when it was opened first.
public struct TransferSource: Hashable, Sendable {
    /// Bytes.
    public var size: Int64
    /// Last change of what is in it, nanoseconds since 1970.
    public var modified: Int64

    /// Makes one.
    public init(size: Int64, modified: Int64) {
        self.size = size
        self.modified = modified
    }

    /// Reads it from its object.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        self.init(size: try fields.int("size"), modified: try fields.int("modified"))
    }

    /// Its object.
    public var json: JSON { ["size": .int(size), "modified": .int(modified)] }
}

/// What is answered to a server that asks who it is: a name and a password, or a whole Authorization field.
public struct TransferCredentials: Hashable, Sendable {
    /// Who.
    public var user: String?
    /// Their password.
    public var password: String?
    /// The value of an Authorization field, in place of both.
    public var header: String?

    /// Makes one.
    public init(user: String? = nil, password: String? = nil, header: String? = nil) {
        self.user = user
        self.password = password
        self.header = header
    }

    /// Reads it from its object.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        self.init(
            user: try fields.optionalString("user"),
            password: try fields.optionalString("password"),
            header: try fields.optionalString("header")
        )
    }

    /// Its object.
    public var json: JSON {
        ["user": .optional(user), "password": .optional(password), "header": .optional(header)]
    }
}
