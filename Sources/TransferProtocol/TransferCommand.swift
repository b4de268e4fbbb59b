// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// A message from torpord to torpor-transfer: a JSON object that ends with a NUL, like messages of Varlink.
public enum TransferCommand: Hashable, Sendable {
    /// The first message of each torpord; answered with `here`, then with all unacknowledged reports.
    case hello
    /// Start a transfer. A transfer that is known already continues unchanged.
    case start(TransferOrder)
    /// torpord has stored durably what `head` or `source` reported: bytes may be written or sent now.
    case go(id: Int64)
    /// End the transfer, keep its partial file, and forget the transfer.
    case stop(id: Int64)
    /// End the transfer, remove its partial file, and forget the transfer.
    case discard(id: Int64)
    /// torpord has stored the end durably: forget the transfer. After a success, the partial file no longer exists.
    case acknowledge(id: Int64)
    /// Limit all transfers of the process together, in bytes per second; nil for no limit.
    case rate(Int64?)

    /// Decodes a command.
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

    /// The encoded command.
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
    /// The number of the transfer, unique among the transfers of all apps.
    public var id: Int64
    /// Download or upload.
    public var direction: TransferDirection
    /// http or https, at most 8 KiB, without user information.
    public var url: String
    /// The root folder of the file, as an index of the process's `--root` options, from 0.
    public var root: Int
    /// The file's path below the root folder, without `.` and `..`.
    public var file: String
    /// `GET`, `PUT` or `POST`.
    public var method: String
    /// Header fields in their order.
    public var headers: [TransferHeader] = []
    /// The expected SHA-256 of a download, 64 lower-case hexadecimal digits.
    public var sha256: String?
    /// Identifies the version of the file to which the partial file belongs. Without a validator, a download starts at
    /// 0.
    public var validator: TransferValidator?
    /// The version of the file that exists already: if the server still has the same version, the download is skipped
    /// (status 304).
    public var unless: String?
    /// The size and time of an upload's file at an earlier attempt: if the file's size or time differs now, the
    /// transfer fails.
    public var source: TransferSource?
    /// Whether an earlier attempt, whose result is unknown, may have uploaded the file already. The file must not be
    /// sent twice: the transfer fails unless the end of that attempt was recorded.
    public var isDoubtful = false
    /// Patterns that redirects must match (``WebPattern``); empty for any target.
    public var allow: [String] = []
    /// The ports that the app's sandbox allows, for the URL and for redirects; empty for all ports.
    public var ports: [UInt16] = []
    /// The most bytes of a download.
    public var sizeLimit: Int64?
    /// Seconds that each request may take; nil for no limit while bytes arrive.
    public var timeLimit: Int64?
    /// Bytes to keep free on the destination's filesystem; with fewer free bytes, a download ends with `space`.
    public var minimumFree: Int64 = 0
    /// Send packets with lower priority (DSCP LE, RFC 8622).
    public var isDiscretionary = false
    /// The login, sent once, after a response with status 401.
    public var credentials: TransferCredentials?
    /// The proxy for http; nil for none.
    public var proxy: TransferProxy?
    /// The proxy for https; nil for none.
    public var secureProxy: TransferProxy?
    /// Hosts that are reached without a proxy, in the syntax of `no_proxy`.
    public var noProxy: String?
    /// A file with a certificate authority to trust besides the system's.
    public var authority: String?

    /// Creates an order.
    public init(id: Int64, direction: TransferDirection, url: String, root: Int, file: String, method: String) {
        self.id = id
        self.direction = direction
        self.url = url
        self.root = root
        self.file = file
        self.method = method
    }

    /// Decodes an order.
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
        ports = try fields.list("ports") { json throws(FieldError) in
            guard let port = json.intValue.flatMap({ UInt16(exactly: $0) }) else {
                throw FieldError(field: "ports", problem: "must have ports")
            }
            return port
        }
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

    /// The encoded order.
    public var json: JSON {
        [
            "id": .int(id), "direction": .string(direction.rawValue), "url": .string(url), "root": .int(Int64(root)),
            "file": .string(file), "method": .string(method), "headers": .array(headers.map(\.json)),
            "sha256": .optional(sha256), "validator": validator?.json ?? .null, "source": source?.json ?? .null,
            "size_limit": .optional(sizeLimit), "min_free": .int(minimumFree), "discretionary": .bool(isDiscretionary),
            "credentials": credentials?.json ?? .null, "authority": .optional(authority), "unless": .optional(unless),
            "time_limit": .optional(timeLimit), "allow": .strings(allow),
            "ports": .array(ports.map { .int(Int64($0)) }),
            "proxy": proxy?.json ?? .null, "secure_proxy": secureProxy?.json ?? .null, "no_proxy": .optional(noProxy),
            "doubtful": .bool(isDoubtful),
        ]
    }
}

/// The direction of a transfer.
public enum TransferDirection: String, Hashable, Sendable {
    case download, upload
}

/// A header field of a request.
public struct TransferHeader: Hashable, Sendable {
    /// A token (RFC 9110, 5.6.2).
    public var name: String
    /// The value of the field, without CR, LF and NUL.
    public var value: String

    /// Creates a field.
    public init(name: String, value: String) {
        self.name = name
        self.value = value
    }

    /// Decodes a field.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        self.init(name: try fields.string("name"), value: try fields.string("value"))
    }

    /// The encoded field.
    public var json: JSON { ["name": .string(name), "value": .string(value)] }
}

/// Identifies the version of a file on the server, by header fields of the response to which the partial file belongs.
public struct TransferValidator: Hashable, Sendable {
    /// The value for the field If-Range: a strong ETag, or a Last-Modified that is at least 60 s older than the
    /// response's Date; nil if the response has neither. In that case, an interrupted download begins at byte 0 again.
    public var condition: String?
    /// Bytes of the whole file, if the server sent its length.
    public var total: Int64?
    /// The value for the field If-None-Match or If-Modified-Since: the ETag, weak or strong, or else the Last-Modified;
    /// nil if the response has neither.
    public var version: String?

    /// Creates a validator.
    public init(condition: String?, total: Int64?, version: String? = nil) {
        self.condition = condition
        self.total = total
        self.version = version
    }

    /// Decodes a validator.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        self.init(
            condition: try fields.optionalString("condition"),
            total: try fields.optionalInt("total"),
            version: try fields.optionalString("version")
        )
    }

    /// The encoded validator.
    public var json: JSON {
        ["condition": .optional(condition), "total": .optional(total), "version": .optional(version)]
    }
}

/// The identity of an upload's file when it was first opened.
public struct TransferSource: Hashable, Sendable {
    /// The size of the file in bytes.
    public var size: Int64
    /// The time of the last modification, in nanoseconds since 1970.
    public var modified: Int64

    /// Creates a source.
    public init(size: Int64, modified: Int64) {
        self.size = size
        self.modified = modified
    }

    /// Decodes a source.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        self.init(size: try fields.int("size"), modified: try fields.int("modified"))
    }

    /// The encoded source.
    public var json: JSON { ["size": .int(size), "modified": .int(modified)] }
}

/// Credentials for a server or a proxy: user and password, or a whole Authorization field.
public struct TransferCredentials: Hashable, Sendable {
    /// The user's name.
    public var user: String?
    /// The password.
    public var password: String?
    /// The value of an Authorization field, instead of user and password.
    public var header: String?

    /// Creates credentials.
    public init(user: String? = nil, password: String? = nil, header: String? = nil) {
        self.user = user
        self.password = password
        self.header = header
    }

    /// Decodes credentials.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        self.init(
            user: try fields.optionalString("user"),
            password: try fields.optionalString("password"),
            header: try fields.optionalString("header")
        )
    }

    /// The encoded credentials.
    public var json: JSON {
        ["user": .optional(user), "password": .optional(password), "header": .optional(header)]
    }
}
