// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// What torpor-transfer says to torpord. It runs as the app's user: nothing that it says is believed of another app's.
public enum TransferReport: Hashable, Sendable {
    /// The answer to `hello`: the transfers that it has, running, waiting for `go`, or ended and not acknowledged. All but
    /// progress is said again after it.
    case here(ids: [Int64], version: Int64 = TransferProtocol.version)
    /// A server's answer to a download that begins, or begins anew: its body is written once `go` came. What was in the
    /// part goes then, unless `offset` is its length.
    case head(id: Int64, validator: TransferValidator, offset: Int64)
    /// The file of an upload was opened: it is sent once `go` came.
    case source(id: Int64, TransferSource)
    /// How far it is; at most once a second for each.
    case progress(id: Int64, bytes: Int64, total: Int64?)
    /// It is over; said again to each torpord until one acknowledges it.
    case ended(id: Int64, TransferEnd)

    /// Reads one.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        let kind = try fields.string("report")
        switch kind {
        case "here":
            self = .here(
                ids: try fields.list("ids") { json throws(FieldError) in
                    guard let id = json.intValue else { throw FieldError(field: "ids", problem: "must have integers") }
                    return id
                },
                version: try fields.int("version")
            )
        case "head":
            self = .head(
                id: try fields.int("id"),
                validator: try TransferValidator(json: fields["validator"] ?? .emptyObject),
                offset: try fields.int("offset")
            )
        case "source":
            self = .source(id: try fields.int("id"), try TransferSource(json: fields["source"] ?? .emptyObject))
        case "progress":
            self = .progress(
                id: try fields.int("id"),
                bytes: try fields.int("bytes"),
                total: try fields.optionalInt("total")
            )
        case "ended":
            self = .ended(id: try fields.int("id"), try TransferEnd(json: fields["end"] ?? .emptyObject))
        default: throw FieldError(field: "report", problem: "is \(kind), which is unknown")
        }
    }

    /// Its object.
    public var json: JSON {
        switch self {
        case .here(let ids, let version):
            ["report": "here", "ids": .array(ids.map { .int($0) }), "version": .int(version)]
        case .head(let id, let validator, let offset):
            ["report": "head", "id": .int(id), "validator": validator.json, "offset": .int(offset)]
        case .source(let id, let source): ["report": "source", "id": .int(id), "source": source.json]
        case .progress(let id, let bytes, let total):
            ["report": "progress", "id": .int(id), "bytes": .int(bytes), "total": .optional(total)]
        case .ended(let id, let end): ["report": "ended", "id": .int(id), "end": end.json]
        }
    }
}

/// What torpord and torpor-transfer agree upon.
public enum TransferProtocol {
    /// Another one is another language: a torpord that finds such a process has it replaced.
    public static let version: Int64 = 2
}

/// How a transfer ended in torpor-transfer.
public struct TransferEnd: Hashable, Sendable {
    /// What torpord makes of it.
    public enum Outcome: String, Hashable, Sendable {
        /// The file is where it belongs, durably.
        case done
        /// It is not tried again.
        case failed
        /// It is tried again later: the connection, or a server that is not ready.
        case retry
        /// There is no room for it now.
        case space
        /// The server asks who it is, and what it was told did not do.
        case login
    }

    /// What torpord makes of it.
    public var outcome: Outcome
    /// A word for programs, such as `http-status`, `certificate`, `redirects`, `scheme`, `digest`, `length`, `too-large`,
    /// `destination`, `file-changed`, `source`, `encoding`, `connection`, `timeout`, `stalled`, `resolve`,
    /// `unreachable`, `proxy-login`, `not-allowed`; nil when done.
    public var reason: String?
    /// A sentence for people; nil when done.
    public var message: String?
    /// The last answer's status.
    public var status: Int64?
    /// Bytes of the file that are there, or were sent.
    public var bytes: Int64
    /// Whether bytes came that were not there before: the delay before the next try begins anew.
    public var hasGained: Bool
    /// SHA-256 of the whole file of a download that is done, 64 lower-case hexadecimal digits.
    public var sha256: String?
    /// Seconds after which the server wants to be asked again.
    public var retryAfter: Int64?
    /// What the server wants a login for.
    public var realm: String?
    /// How it wants it: `basic`, `digest`, or another word of its own.
    public var scheme: String?

    /// Whether there was no way to the server, as far as can be told: there may be one when the machine's network is otherwise.
    public var isWithoutWay: Bool {
        outcome == .retry && !hasGained && ["resolve", "timeout", "unreachable"].contains(reason)
    }

    /// Makes one from what every one has.
    public init(_ outcome: Outcome, bytes: Int64, hasGained: Bool = false) {
        self.outcome = outcome
        self.bytes = bytes
        self.hasGained = hasGained
    }

    /// Reads it from its object.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        guard let outcome = Outcome(rawValue: try fields.string("outcome")) else {
            throw FieldError(field: "outcome", problem: "must be done, failed, retry, space or login")
        }
        self.init(
            outcome,
            bytes: try fields.optionalInt("bytes") ?? 0,
            hasGained: try fields.optionalBool("gained") ?? false
        )
        reason = try fields.optionalString("reason")
        message = try fields.optionalString("message")
        status = try fields.optionalInt("status")
        sha256 = try fields.optionalString("sha256")
        retryAfter = try fields.optionalInt("retry_after")
        realm = try fields.optionalString("realm")
        scheme = try fields.optionalString("scheme")
    }

    /// Its object.
    public var json: JSON {
        [
            "outcome": .string(outcome.rawValue), "bytes": .int(bytes), "gained": .bool(hasGained),
            "reason": .optional(reason), "message": .optional(message), "status": .optional(status),
            "sha256": .optional(sha256), "retry_after": .optional(retryAfter), "realm": .optional(realm),
            "scheme": .optional(scheme),
        ]
    }
}
