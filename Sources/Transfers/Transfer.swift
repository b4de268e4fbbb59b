// SPDX-License-Identifier: Apache-2.0

public import TransferProtocol
public import Varlink

/// A transfer of an app that is not over, as it is kept. Times are microseconds since 1970.
public struct Transfer: Hashable, Sendable {
    /// Why a transfer does not run now. The raw values are those of the interface.
    public enum Cause: String, Hashable, Sendable, CaseIterable {
        case retry, network, power, memory, load, space, window, metered, login
        /// A subscription that was looked at.
        case interval
    }

    /// What it has to wait for.
    public enum Kind: Hashable, Sendable {
        /// Nothing but its turn.
        case prompt
        /// A good moment.
        case discretionary
        /// The same, and an app that may be woken.
        case feed
    }

    /// Where it stands.
    public enum State: Hashable, Sendable {
        /// It runs as soon as there is a place for it.
        case queued
        /// torpor-transfer has it.
        case running
        /// It is queued again at that time; of a login, when that was answered.
        case waiting(Cause, until: Int64?)

        /// As the interface has it.
        public var word: String {
            switch self {
            case .queued: "queued"
            case .running: "running"
            case .waiting: "waiting"
            }
        }
    }

    /// What torpor-transfer is told, with what the server and the file said last.
    public var order: TransferOrder
    /// Whose it is.
    public var app: String
    /// What belongs together.
    public var session: String
    /// Whether the end of the session brings the app back.
    public var events = true
    /// Whether a POST is tried again.
    public var retriesPost = false
    /// The greater comes first.
    public var priority: Int64 = 0
    /// When the app asked for it.
    public var createdAt: Int64
    /// When it fails, over or not; nil for never.
    public var expiresAt: Int64?
    /// So that it is begun once however often it is asked for; 0 for none.
    public var token: UInt64 = 0
    /// Where it stands; one that runs is kept as queued.
    public var state = State.queued
    /// A try whose end is not known may have sent it.
    public var mayBeSent = false
    /// How often it was begun.
    public var attempts: Int64 = 0
    /// Tries since bytes came that failed.
    public var failures: Int64 = 0
    /// Bytes that are there, or were sent.
    public var bytes: Int64 = 0
    /// The last answer's status.
    public var status: Int64?
    /// What went wrong last, a word.
    public var reason: String?
    /// What went wrong last, a sentence.
    public var error: String?
    /// What a server wants a login for.
    public var realm: String?
    /// How it wants it.
    public var scheme: String?
    /// Of a subscription, which is a transfer without end.
    public var feed: TransferFeed?
    /// Bytes a second at last, while it runs; not kept.
    public var rate: Int64?

    /// Its number.
    public var id: Int64 { order.id }

    /// A new one.
    public init(order: TransferOrder, app: String, session: String, createdAt: Int64) {
        self.order = order
        self.app = app
        self.session = session
        self.createdAt = createdAt
    }

    /// Reads one that was kept; one that ran then is queued.
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

    /// What is kept of it: all but credentials and proxies, which are nobody's but torpor-transfer's.
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

    /// Whether what came of it is there when it goes on another time.
    public var canGoOnLater: Bool { order.direction == .download && order.validator?.condition != nil && feed == nil }

    /// Bytes of the whole, where they are known.
    public var total: Int64? { order.direction == .upload ? order.source?.size : order.validator?.total }

    /// What it has to wait for.
    public var kind: Kind { feed != nil ? .feed : order.isDiscretionary ? .discretionary : .prompt }

    /// The server that it is from or to, by which those that run are counted.
    public var server: String { WebAddress(order.url)?.server ?? "" }
}

/// How a transfer ended for good.
public struct TransferResult: Hashable, Sendable {
    /// The ``reason`` of one that a person cancelled.
    public static let cancelled = "cancelled"

    /// Why it failed, a word; nil for one that is done.
    public var reason: String?
    /// Why it failed, a sentence; nil for one that is done.
    public var error: String?
    /// Bytes of the file.
    public var bytes: Int64
    /// The last answer's status.
    public var status: Int64?
    /// Of a download that is done.
    public var sha256: String?

    /// One that is done.
    public init(bytes: Int64, status: Int64?, sha256: String?) {
        (self.bytes, self.status, self.sha256) = (bytes, status, sha256)
    }

    /// One that failed.
    public init(of transfer: Transfer, reason: String, error: String) {
        (self.reason, self.error) = (reason, error)
        (bytes, status) = (transfer.bytes, transfer.status)
    }
}
