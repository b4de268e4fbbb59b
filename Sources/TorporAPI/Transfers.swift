// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// A transfer as its app and operators see it: without credentials, and without the values of its header fields, which
/// may be secret.
public struct TransferInfo: Hashable, Sendable {
    /// The transfer's number.
    public var id: Int64
    /// The app that the transfer belongs to.
    public var app: String
    /// The name under which the app groups transfers.
    public var session: String
    /// `download` or `upload`.
    public var direction: String
    /// The URL to download from or to upload to.
    public var url: String
    /// The absolute path of the file to write or to upload.
    public var file: String
    /// `queued`, `running`, `waiting`, `done`, `failed` or `cancelled`.
    public var state: String
    /// What a transfer in the state `waiting` waits for: `retry`, `network`, `power`, `memory`, `load`, `space`,
    /// `window`, `metered` or `login`.
    public var cause: String?
    /// Bytes received or sent.
    public var bytes: Int64 = 0
    /// Bytes of the whole file, if known.
    public var total: Int64?
    /// The current speed in bytes per second, while the transfer runs.
    public var rate: Int64?
    /// The priority: transfers with a greater value start first.
    public var priority: Int64 = 0
    /// Whether the transfer waits until power, memory, load, network and time of day allow it (docs/transfers.md).
    public var isDiscretionary = false
    /// Whether torpord wakes or launches the app when all transfers of the session have ended.
    public var events = true
    /// How often the transfer was started.
    public var attempts: Int64 = 0
    /// When the app requested the transfer, microseconds since 1970.
    public var createdAt: Int64
    /// When the transfer is retried, microseconds since 1970.
    public var retryAt: Int64?
    /// When the transfer ended, microseconds since 1970.
    public var endedAt: Int64?
    /// The HTTP status of the server's last answer.
    public var status: Int64?
    /// The SHA-256 of a finished download's file, 64 hexadecimal digits.
    public var sha256: String?
    /// The last error, as one word for programs, such as `http-status`.
    public var reason: String?
    /// The last error, as a sentence.
    public var error: String?

    /// Sets the required fields; the others keep their defaults.
    public init(
        id: Int64,
        app: String,
        session: String,
        direction: String,
        url: String,
        file: String,
        state: String,
        createdAt: Int64
    ) {
        (self.id, self.app, self.session, self.direction) = (id, app, session, direction)
        (self.url, self.file, self.state, self.createdAt) = (url, file, state, createdAt)
    }

    /// Decodes a JSON object; throws if a field is missing or has the wrong type.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        self.init(
            id: try fields.int("id"),
            app: try fields.string("app"),
            session: try fields.string("session"),
            direction: try fields.string("direction"),
            url: try fields.string("url"),
            file: try fields.string("file"),
            state: try fields.string("state"),
            createdAt: try fields.int("created_at")
        )
        cause = try fields.optionalString("cause")
        bytes = try fields.int("bytes")
        total = try fields.optionalInt("total")
        rate = try fields.optionalInt("rate")
        priority = try fields.int("priority")
        isDiscretionary = try fields.bool("discretionary")
        events = try fields.bool("events")
        attempts = try fields.int("attempts")
        retryAt = try fields.optionalInt("retry_at")
        endedAt = try fields.optionalInt("ended_at")
        status = try fields.optionalInt("status")
        sha256 = try fields.optionalString("sha256")
        reason = try fields.optionalString("reason")
        error = try fields.optionalString("error")
    }

    /// Encodes the value as a JSON object.
    public var json: JSON {
        [
            "id": .int(id), "app": .string(app), "session": .string(session), "direction": .string(direction),
            "url": .string(url), "file": .string(file), "state": .string(state), "cause": .optional(cause),
            "bytes": .int(bytes), "total": .optional(total), "rate": .optional(rate), "priority": .int(priority),
            "discretionary": .bool(isDiscretionary), "events": .bool(events), "attempts": .int(attempts),
            "created_at": .int(createdAt), "retry_at": .optional(retryAt), "ended_at": .optional(endedAt),
            "status": .optional(status), "sha256": .optional(sha256), "reason": .optional(reason),
            "error": .optional(error),
        ]
    }

    /// Whether the transfer has ended. torpord keeps the record of an ended transfer until the app has answered the
    /// message about the end.
    public var isOver: Bool { state == "done" || state == "failed" || state == "cancelled" }
}

/// The parameters of Transfers in `io.torpor.Manager`.
public struct TransfersRequest: Hashable, Sendable {
    /// List only transfers of these apps: names, patterns or `tag:NAME`; empty for all.
    public var apps: [String] = []
    /// List only transfers of this session; nil for all.
    public var session: String?

    /// A request for all transfers.
    public init() {}

    init(fields: Fields) throws(FieldError) {
        apps = try fields.strings("apps")
        session = try fields.optionalString("session")
    }

    var parameters: JSON {
        var object: JSONObject = [:]
        if !apps.isEmpty { object["apps"] = .strings(apps) }
        if let session { object["session"] = .string(session) }
        return .object(object)
    }
}

/// The parameters of CancelTransfers in `io.torpor.Manager`.
public struct CancelTransfersRequest: Hashable, Sendable {
    /// Cancel all transfers of these apps: names, patterns or `tag:NAME`.
    public var apps: [String] = []
    /// Cancel the transfers with these numbers.
    public var ids: [Int64] = []

    /// Memberwise initializer.
    public init(apps: [String] = [], ids: [Int64] = []) {
        self.apps = apps
        self.ids = ids
    }

    init(fields: Fields) throws(FieldError) {
        apps = try fields.strings("apps")
        ids = try fields.integers("ids")
    }

    var parameters: JSON {
        var object: JSONObject = [:]
        if !apps.isEmpty { object["apps"] = .strings(apps) }
        if !ids.isEmpty { object["ids"] = .array(ids.map { .int($0) }) }
        return .object(object)
    }
}
