// SPDX-License-Identifier: Apache-2.0

import Linux

/// A batch of changes to write.
struct StoreWork: Sendable {
    /// The newest row of each app whose row has changed.
    var rows: [String: AppRow] = [:]
    var removed: Set<String> = []
    var events: [StoredEvent] = []
    var reports: [StoredReport] = []
    /// Changes of messages, schedules and the like.
    var mail = MailWork()

    /// A position in the journal. This batch and earlier ones contain the changes of all frames before it.
    var mark: UInt32?

    var isEmpty: Bool { rows.isEmpty && removed.isEmpty && events.isEmpty && reports.isEmpty && mail.isEmpty }
}

/// A request to the writer thread, which answers after it has handled everything queued before the request.
enum StoreRequest: Sendable {
    case load
    case events(EventQuery)
    case reports(app: String?)
    case unhandled(UnhandledQuery)
    case flush
    /// Like `flush`, but handled only after writes were permitted.
    case sync
}

/// An answer of the writer thread.
enum StoreAnswer: Sendable {
    case contents(StoreContents)
    case events([StoredEvent])
    case reports([StoredReport])
    case unhandled([StoredUnhandled])
    case flushed
    case failed(String)
    /// The writer takes longer than the requester's limit. A second answer will follow.
    case later
}

/// The queue between the event loop and the writer thread. It is bounded, and coalesces changes by app.
struct StoreQueue: Sendable {
    /// Limits of the queue. Beyond them, the oldest events and reports are dropped. Rows of apps are never dropped,
    /// since there is only one per app.
    struct Limits: Sendable {
        var events = 20_000
        var reports = 1_000
        /// The limit in bytes for all queued events, and separately for all queued reports.
        var bytes = 8 << 20
        var requests = 256
    }

    /// How long a batch is delayed, so that more changes can join the batch.
    static let delay = Duration.milliseconds(10)

    let limits: Limits
    var work = StoreWork()
    private var eventBytes = 0
    private var reportBytes = 0
    /// How many events and reports were dropped.
    private(set) var dropped: Int64 = 0
    private var requests: [(ticket: Int, request: StoreRequest)] = []
    /// When the oldest queued change was queued; nil if there is none.
    private var since: Duration?
    /// When to retry after a failed write. Nothing is written until then.
    var notBefore: Duration?
    /// Whether the file must not be changed yet.
    var holds: Bool
    /// Whether expired events remain to be removed.
    var isUntidy = false
    var retention: Retention
    var isClosing = false
    /// Whether to keep the write-ahead log on close, for the next process to checkpoint it.
    var leavesLog = false
    /// When the writer began what it is doing now; nil while it is idle.
    var busySince: Duration?
    var isFinished = false
    /// A position in the journal. The database contains the changes of all frames before it.
    var stored: UInt32?
    /// Answers of the writer that the event loop has not handled yet.
    var answers: [(ticket: Int, answer: StoreAnswer)] = []
    var notices: [StoreNotice] = []
    /// Whether a new database has replaced a lost one, so that all rows must be saved again.
    var wantsRows = false

    init(limits: Limits = Limits(), holds: Bool = false, retention: Retention = Retention()) {
        self.limits = limits
        self.holds = holds
        self.retention = retention
    }

    // MARK: From the loop's thread

    mutating func save(_ row: AppRow, now: Duration) {
        work.removed.remove(row.name)
        work.rows[row.name] = row
        since = since ?? now
    }

    mutating func remove(app: String, mark: UInt32? = nil, now: Duration) {
        work.mark = mark ?? work.mark
        work.rows[app] = nil
        work.removed.insert(app)
        work.reports.removeAll { $0.app == app }
        reportBytes = work.reports.reduce(0) { $0 + $1.size }
        work.mail.remove(app: app)
        since = since ?? now
    }

    mutating func take(_ change: MailChange, isFresh: Bool = false, mark: UInt32? = nil, now: Duration) {
        work.mark = mark ?? work.mark
        work.mail.take(change, isFresh: isFresh)
        since = since ?? now
    }

    mutating func append(_ event: StoredEvent, mark: UInt32? = nil, now: Duration) {
        work.mark = mark ?? work.mark
        work.events.append(event)
        eventBytes += event.size
        since = since ?? now
        trim()
    }

    mutating func append(_ report: StoredReport, mark: UInt32? = nil, now: Duration) {
        work.mark = mark ?? work.mark
        work.reports.append(report)
        reportBytes += report.size
        since = since ?? now
        trim()
    }

    /// Queues a request. Returns false if too many are queued.
    mutating func ask(_ request: StoreRequest, ticket: Int) -> Bool {
        guard requests.count < limits.requests else { return false }
        requests.append((ticket, request))
        return true
    }

    /// Drops the oldest events and reports, an eighth of them at a time: each removal moves all elements that remain.
    private mutating func trim() {
        while work.events.count > limits.events || eventBytes > limits.bytes, !work.events.isEmpty {
            let count = work.events.count / 8 + 1
            for event in work.events.prefix(count) { eventBytes -= event.size }
            work.events.removeFirst(count)
            dropped += Int64(count)
        }
        while work.reports.count > limits.reports || reportBytes > limits.bytes, !work.reports.isEmpty {
            let count = work.reports.count / 8 + 1
            for report in work.reports.prefix(count) { reportBytes -= report.size }
            work.reports.removeFirst(count)
            dropped += Int64(count)
        }
    }

    /// Whether the writer waits only for the end of a batch's delay.
    var isGathering: Bool { since != nil && !isUntidy && !holds && busySince == nil && requests.isEmpty }

    // MARK: From the writer's thread

    /// The work that the writer dequeues at one time.
    struct Turn: Sendable {
        var work = StoreWork()
        var requests: [(ticket: Int, request: StoreRequest)] = []
        var retention: Retention
        var tidies = false
        var holds: Bool
        var isLast: Bool
    }

    /// Dequeues the work that is due at `now`. If none is due, returns nil and sets `deadline` to the time to check
    /// again.
    mutating func take(now: Duration, _ deadline: inout Duration?) -> Turn? {
        let isDue = { (time: Duration?) in time.map { $0 <= now } ?? true }
        let writes = !work.isEmpty && !holds
        let due = max((since ?? now) + Self.delay, notBefore ?? .zero)
        let tidies = isUntidy && isDue(notBefore) && !holds
        // A sync must not be answered before writes are allowed.
        let asked = requests.filter { !holds || isClosing || !$0.request.isSync }
        guard isClosing || !asked.isEmpty || (writes && due <= now) || tidies else {
            deadline = writes ? due : isUntidy && !holds ? notBefore : nil
            return nil
        }
        var turn = Turn(retention: retention, tidies: tidies, holds: holds, isLast: isClosing)
        if writes, isDue(notBefore) || isClosing || asked.contains(where: \.request.isFlush) {
            turn.work = work
            work = StoreWork()
            eventBytes = 0
            reportBytes = 0
            since = nil
        }
        turn.requests = asked
        requests = holds && !isClosing ? requests.filter { $0.request.isSync } : []
        busySince = now
        return turn
    }

    /// Requeues changes that could not be written. Changes queued after `older` was taken are newer and take
    /// precedence.
    mutating func putBack(_ older: StoreWork, now: Duration) {
        guard !older.isEmpty else { return }
        for (name, row) in older.rows where work.rows[name] == nil && !work.removed.contains(name) {
            work.rows[name] = row
        }
        work.removed.formUnion(older.removed.filter { work.rows[$0] == nil })
        work.mark = work.mark ?? older.mark
        work.mail.putBack(older.mail, removed: work.removed)
        work.events = older.events + work.events
        work.reports = older.reports.filter { !work.removed.contains($0.app) } + work.reports
        eventBytes = work.events.reduce(0) { $0 + $1.size }
        reportBytes = work.reports.reduce(0) { $0 + $1.size }
        since = since ?? now
        trim()
    }

    /// Returns how many events and reports were dropped since the last call.
    mutating func takeDropped() -> Int64 {
        defer { dropped = 0 }
        return dropped
    }
}

extension StoreRequest {
    var isFlush: Bool {
        switch self {
        case .flush, .sync: true
        case .load, .events, .reports, .unhandled: false
        }
    }

    var isSync: Bool { if case .sync = self { true } else { false } }
}

/// A notice for users about the database.
public struct StoreNotice: Sendable, Hashable, CustomStringConvertible {
    /// The kind of notice.
    public enum Kind: Sendable, Hashable {
        /// A damaged or foreign file was renamed, and a new one created.
        case setAside
        /// A newer version's file was renamed, and a new one created.
        case setAsideNewer
        /// Nothing can be written for now; changes are kept in memory.
        case unavailable
        /// The disk has not answered for five seconds.
        case hangs
        /// The disk answers again.
        case answers
        /// Writing works again; `lost` is the number of dropped events and reports.
        case available(lost: Int64)
        /// The file was last written on another machine.
        case otherMachine
    }

    /// The kind of notice.
    public let kind: Kind
    /// The notice as a sentence.
    public let description: String

    init(_ kind: Kind, _ description: String) {
        self.kind = kind
        self.description = description
    }
}
