// SPDX-License-Identifier: Apache-2.0

public import TransferProtocol
public import Varlink

/// An unfinished transfer of an app, in the form in which it is persisted. Times are in microseconds since 1970.
public struct Transfer: Hashable, Sendable {
    /// Why a transfer does not run now. The raw values are those of torpord's interface.
    public enum Cause: String, Hashable, Sendable, CaseIterable {
        case retry, network, power, memory, load, space, window, metered, login
        /// The transfer is a subscription whose next fetch is not due yet.
        case interval
    }

    /// What a transfer has to wait for before it runs.
    public enum Kind: Hashable, Sendable {
        /// The transfer waits only for a free slot.
        case prompt
        /// The transfer waits for good conditions: power, network, load.
        case discretionary
        /// The transfer waits for good conditions, and also until events may wake its app.
        case feed
    }

    /// The state of a transfer in the queue.
    public enum State: Hashable, Sendable {
        /// The transfer runs as soon as a slot is free.
        case queued
        /// torpor-transfer is running the transfer.
        case running
        /// The transfer waits until `until`. If it waits for a login, it waits until credentials are given.
        case waiting(Cause, until: Int64?)

        /// The state's name in the interface.
        public var word: String {
            switch self {
            case .queued: "queued"
            case .running: "running"
            case .waiting: "waiting"
            }
        }
    }

    /// The most Unicode scalars of a text from a server or torpor-transfer that are stored. A limit on characters
    /// (grapheme clusters) would bound nothing: a single one may have any number of scalars.
    private static let longestText = 512

    /// The beginning of a text from a server or torpor-transfer, as far as it is stored.
    public static func bounded(_ text: String) -> String { String(text.unicodeScalars.prefix(longestText)) }

    /// What torpor-transfer is told to transfer. For a download, this includes the server's latest identification of
    /// the file's version (such as its ETag); for an upload, the size and time of the file that is sent.
    public var order: TransferOrder
    /// The name of the app that the transfer belongs to.
    public var app: String
    /// The name of the session, which groups the transfer with others.
    public var session: String
    /// Whether the end of the transfer's session wakes or launches the app.
    public var events = true
    /// Whether a POST is retried after a failure.
    public var retriesPost = false
    /// Transfers of higher priority run first.
    public var priority: Int64 = 0
    /// When the app requested the transfer.
    public var createdAt: Int64
    /// When the transfer expires and fails; nil for never.
    public var expiresAt: Int64?
    /// The request's token for idempotent retries; 0 for none.
    public var token: UInt64 = 0
    /// The transfer's state; a running transfer is persisted as queued.
    public var state = State.queued
    /// Whether the file may already have been uploaded by an attempt whose result is unknown.
    public var mayBeSent = false
    /// The number of attempts so far.
    public var attempts: Int64 = 0
    /// How many attempts have failed since bytes last arrived.
    public var failures: Int64 = 0
    /// How many bytes have arrived or were sent.
    public var bytes: Int64 = 0
    /// The HTTP status of the last response; nil if there was none.
    public var status: Int64?
    /// The reason of the last failure as a word for programs; nil if there was none.
    public var reason: String?
    /// The reason of the last failure as a sentence; nil if there was none.
    public var error: String?
    /// The realm of the login that a server demands.
    public var realm: String?
    /// The scheme of the login that a server demands, such as `basic`.
    public var scheme: String?
    /// The subscription's data if this is a subscription, a transfer that is repeated without end; otherwise nil.
    public var feed: TransferFeed?
    /// The current rate in bytes per second; not persisted.
    public var rate: Int64?

    /// The transfer's number.
    public var id: Int64 { order.id }

    /// Creates a queued transfer.
    public init(order: TransferOrder, app: String, session: String, createdAt: Int64) {
        self.order = order
        self.app = app
        self.session = session
        self.createdAt = createdAt
    }

    /// Decodes a persisted transfer. A transfer that was running is queued again.
    public init(json: JSON) throws(FieldError) {
        let fields = try Fields(json)
        order = try TransferOrder(json: fields["order"] ?? .null)
        app = try fields.string("app")
        session = try fields.string("session")
        createdAt = try fields.int("created_at")
        events = try fields.bool("events")
        retriesPost = try fields.bool("retries_post")
        priority = try fields.int("priority")
        expiresAt = try fields.optionalInt("expires_at")
        token = UInt64(bitPattern: try fields.optionalInt("token") ?? 0)
        attempts = try fields.int("attempts")
        failures = try fields.int("failures")
        bytes = try fields.int("bytes")
        status = try fields.optionalInt("status")
        reason = try fields.optionalString("reason")
        error = try fields.optionalString("error")
        realm = try fields.optionalString("realm")
        scheme = try fields.optionalString("scheme")
        mayBeSent = try fields.optionalBool("may_be_sent") ?? false
        feed = try fields["feed"].map { json throws(FieldError) in try TransferFeed(json: json) }
        guard let word = try fields.optionalString("cause") else { return }
        guard let cause = Cause(rawValue: word) else { throw FieldError(field: "cause", problem: "is unknown") }
        state = .waiting(cause, until: try fields.optionalInt("until"))
    }

    /// The persisted form. It contains no credentials and proxies: only torpor-transfer gets these.
    public var json: JSON {
        var kept = order
        (kept.credentials, kept.proxy, kept.secureProxy) = (nil, nil, nil)
        var object: JSONObject = [
            "order": kept.json, "app": .string(app), "session": .string(session), "created_at": .int(createdAt),
            "events": .bool(events), "retries_post": .bool(retriesPost), "priority": .int(priority),
            "expires_at": .optional(expiresAt), "token": .int(Int64(bitPattern: token)), "attempts": .int(attempts),
            "failures": .int(failures), "bytes": .int(bytes), "status": .optional(status),
            "reason": .optional(reason), "error": .optional(error), "realm": .optional(realm),
            "scheme": .optional(scheme),
        ]
        if mayBeSent { object["may_be_sent"] = .bool(true) }
        if let feed { object["feed"] = feed.json }
        if case .waiting(let cause, let until) = state {
            object["cause"] = .string(cause.rawValue)
            object["until"] = .optional(until)
        }
        return .object(object)
    }

    /// Whether an interrupted download can be resumed.
    public var canGoOnLater: Bool { order.direction == .download && order.validator?.condition != nil && feed == nil }

    /// The size of the whole file in bytes; nil if unknown.
    public var total: Int64? { order.direction == .upload ? order.source?.size : order.validator?.total }

    /// What the transfer has to wait for before it runs.
    public var kind: Kind { feed != nil ? .feed : order.isDiscretionary ? .discretionary : .prompt }

    /// The server's host and port, by which the transfers per server are limited.
    public var server: String { WebAddress(order.url)?.server ?? "" }
}

/// The final result of a transfer.
public struct TransferResult: Hashable, Sendable {
    /// The ``reason`` of a transfer that a user cancelled.
    public static let cancelled = "cancelled"

    /// The reason of a failure as a word for programs; nil on success.
    public var reason: String?
    /// The reason of a failure as a sentence; nil on success.
    public var error: String?
    /// How many bytes of the file were transferred.
    public var bytes: Int64
    /// The HTTP status of the last response; nil if there was none.
    public var status: Int64?
    /// The SHA-256 of a successful download; nil otherwise.
    public var sha256: String?

    /// Creates the result of a transfer that succeeded.
    public init(bytes: Int64, status: Int64?, sha256: String?) {
        (self.bytes, self.status, self.sha256) = (bytes, status, sha256)
    }

    /// Creates the result of a transfer that failed.
    public init(of transfer: Transfer, reason: String, error: String) {
        (self.reason, self.error) = (reason, error)
        (bytes, status) = (transfer.bytes, transfer.status)
    }
}
