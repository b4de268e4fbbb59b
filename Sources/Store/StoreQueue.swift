// SPDX-License-Identifier: Apache-2.0

import Linux

/// A batch of changes to write.
struct StoreWork: Sendable {
    /// The newest row of each app.
    var rows: [String: AppRow] = [:]
    var removed: Set<String> = []
    var events: [StoredEvent] = []
    var reports: [StoredReport] = []
    /// Mail, schedules and the like.
    var mail = MailWork()

    /// All journal frames before this mark are included in this batch or an earlier one.
    var mark: UInt32?

    var isEmpty: Bool { rows.isEmpty && removed.isEmpty && events.isEmpty && reports.isEmpty && mail.isEmpty }
}

/// A request to the writer, answered after everything that was queued before it.
enum StoreRequest: Sendable {
    case load
    case events(EventQuery)
    case reports(app: String?)
    case unhandled(UnhandledQuery)
    case flush
    /// Like flush, but only once writing is permitted.
    case sync
}

/// An answer of the writer.
enum StoreAnswer: Sendable {
    case contents(StoreContents)
    case events([StoredEvent])
    case reports([StoredReport])
    case unhandled([StoredUnhandled])
    case flushed
    case failed(String)
    /// It takes longer than the requester's limit; another answer will follow.
    case later
}

/// The queue between the event loop and the writer: bounded, and coalesced by app.
struct StoreQueue: Sendable {
    /// Limits of the queue. Beyond them the oldest events and reports are dropped; rows of apps never are, since
    /// there is only one per app.
    struct Limits: Sendable {
        var events = 20_000
        var reports = 1_000
        /// For events and for reports each, in bytes.
        var bytes = 8 << 20
        var requests = 256
    }

    /// How long a batch is delayed to coalesce writes.
    static let delay = Duration.milliseconds(10)

    let limits: Limits
    var work = StoreWork()
    private var eventBytes = 0
    private var reportBytes = 0
    /// The number of dropped events and reports.
    private(set) var dropped: Int64 = 0
    private var requests: [(ticket: Int, request: StoreRequest)] = []
    /// When the oldest change was queued.
    private var since: Duration?
    /// No write before this time, after an error.
    var notBefore: Duration?
    /// While true, nothing is written.
    var holds: Bool
    /// Whether there is something to tidy up.
    var isUntidy = false
    var retention: Retention
    var isClosing = false
    /// Keep the write-ahead log on close: the next process checkpoints it.
    var leavesLog = false
    /// When the writer started its current work; nil while it waits.
    var busySince: Duration?
    var isFinished = false
    /// All journal frames before this mark are stored.
    var stored: UInt32?
    /// For the event loop.
    var answers: [(ticket: Int, answer: StoreAnswer)] = []
    var notices: [StoreNotice] = []
    /// A new database has replaced a lost one.
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

    /// Returns false if too many requests are queued.
    mutating func ask(_ request: StoreRequest, ticket: Int) -> Bool {
        guard requests.count < limits.requests else { return false }
        requests.append((ticket, request))
        return true
    }

    /// Drops the oldest, an eighth at a time: removing one for each new one would move all others.
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

    /// Whether the writer already waits for the end of a batch's delay.
    var isGathering: Bool { since != nil && !isUntidy && !holds && busySince == nil && requests.isEmpty }

    // MARK: From the writer's thread

    /// The writer's next work.
    struct Turn: Sendable {
        var work = StoreWork()
        var requests: [(ticket: Int, request: StoreRequest)] = []
        var retention: Retention
        var tidies = false
        var holds: Bool
        var isLast: Bool
    }

    /// The work that is due at `now`; nil if there is none, with the time to check again in `deadline`.
    mutating func take(now: Duration, _ deadline: inout Duration?) -> Turn? {
        let isDue = { (time: Duration?) in time.map { $0 <= now } ?? true }
        let writes = !work.isEmpty && !holds
        let due = max((since ?? now) + Self.delay, notBefore ?? .zero)
        let tidies = isUntidy && isDue(notBefore) && !holds
        // Do not answer a sync before writing is permitted.
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

    /// Requeues changes that could not be written. Changes queued since are newer and win.
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

    /// How many were dropped since the last call.
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
    /// What sort of news.
    public enum Kind: Sendable, Hashable {
        /// A damaged or foreign file was renamed, and a new one created.
        case setAside
        /// A newer version's file was renamed, and a new one created.
        case setAsideNewer
        /// Nothing can be written for now; changes stay in memory.
        case unavailable
        /// The disk has not answered for a while.
        case hangs
        /// The disk answers again.
        case answers
        /// Writing works again; `lost` is the number of dropped events and reports.
        case available(lost: Int64)
        /// The file was written on another machine.
        case otherMachine
    }

    /// What sort of news.
    public let kind: Kind
    /// A sentence.
    public let description: String

    init(_ kind: Kind, _ description: String) {
        self.kind = kind
        self.description = description
    }
}
