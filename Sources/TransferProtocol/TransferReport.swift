// SPDX-License-Identifier: Apache-2.0

public import Varlink

/// A message from torpor-transfer to torpord. The sender runs as the app's user, so it is trusted for this app only.
public enum TransferReport: Hashable, Sendable {
    /// The reply to `hello`: all transfers that torpor-transfer knows. They may be running, waiting for `go`, or ended
    /// and not acknowledged. After this reply, all their reports except those of progress are sent again.
    case here(ids: [Int64], version: Int64 = TransferProtocol.version)
    /// A response to a download that starts or restarts. Its body is written only after `go`. If `offset` is not the
    /// length of the partial file, the partial file is truncated first.
    case head(id: Int64, validator: TransferValidator, offset: Int64)
    /// An upload's file was opened. The file is sent only after `go`.
    case source(id: Int64, TransferSource)
    /// Progress, at most once a second for each transfer.
    case progress(id: Int64, bytes: Int64, total: Int64?)
    /// The transfer has ended. This report is sent to each new torpord until one acknowledges it.
    case ended(id: Int64, TransferEnd)

    /// Decodes a report.
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

    /// The encoded report.
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

/// The protocol between torpord and torpor-transfer.
public enum TransferProtocol {
    /// The protocol's version, raised by each incompatible change. torpord replaces a torpor-transfer of another
    /// version.
    public static let version: Int64 = 2
}

/// How a transfer ended in torpor-transfer.
public struct TransferEnd: Hashable, Sendable {
    /// What torpord does next.
    public enum Outcome: String, Hashable, Sendable {
        /// Success: the file is durably in its place.
        case done
        /// Final failure, no retry.
        case failed
        /// Retry later: the connection failed, or the server is not ready.
        case retry
        /// The disk is full: retry when there is space.
        case space
        /// The server demands a login, and the credentials were missing or rejected.
        case login
    }

    /// What torpord does next.
    public var outcome: Outcome
    /// A word for programs, such as `http-status`, `certificate`, `redirects`, `scheme`, `digest`, `length`, `too-large`,
    /// `destination`, `file-changed`, `source`, `encoding`, `connection`, `timeout`, `stalled`, `resolve`,
    /// `unreachable`, `proxy-login`, `not-allowed`; nil when done.
    public var reason: String?
    /// A sentence for people; nil when done.
    public var message: String?
    /// The status of the last response.
    public var status: Int64?
    /// How many bytes of the file have arrived or were sent.
    public var bytes: Int64
    /// Whether this attempt has moved any bytes. If so, the delays of retries begin again with the shortest one.
    public var hasGained: Bool
    /// SHA-256 of the whole file of a download that is done, 64 lower-case hexadecimal digits.
    public var sha256: String?
    /// The server's Retry-After in seconds.
    public var retryAfter: Int64?
    /// The realm of the login that the server demands.
    public var realm: String?
    /// The scheme of the login that the server demands: `basic`, `digest`, or another word of the server.
    public var scheme: String?

    /// Whether this machine seems to have no route to the server. If so, a change of the network is a reason for a
    /// retry.
    public var isWithoutWay: Bool {
        outcome == .retry && !hasGained && ["resolve", "timeout", "unreachable"].contains(reason)
    }

    /// Creates an end.
    public init(_ outcome: Outcome, bytes: Int64, hasGained: Bool = false) {
        self.outcome = outcome
        self.bytes = bytes
        self.hasGained = hasGained
    }

    /// Decodes an end.
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

    /// The encoded end.
    public var json: JSON {
        [
            "outcome": .string(outcome.rawValue), "bytes": .int(bytes), "gained": .bool(hasGained),
            "reason": .optional(reason), "message": .optional(message), "status": .optional(status),
            "sha256": .optional(sha256), "retry_after": .optional(retryAfter), "realm": .optional(realm),
            "scheme": .optional(scheme),
        ]
    }
}
