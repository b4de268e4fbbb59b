// SPDX-License-Identifier: Apache-2.0

import Linux

/// A batch of changes to write in one transaction.
struct StoreWork: Sendable {
    /// The newest row of each app whose row has changed.
    var rows: [String: AppRow] = [:]
    var removed: Set<String> = []
    var events: [StoredEvent] = []
    var reports: [StoredReport] = []
    /// Changes of messages, schedules and similar rows.
    var mail = MailWork()

    /// A position in the journal. The changes of all frames before it are in this batch or in earlier ones.
    var mark: UInt32?

    var isEmpty: Bool { rows.isEmpty && removed.isEmpty && events.isEmpty && reports.isEmpty && mail.isEmpty }
}

/// A request to the writer thread, which first handles everything that was queued before the request, and then answers.
enum StoreRequest: Sendable {
    case load
    case events(EventQuery)
    case reports(app: String?)
    case unhandled(UnhandledQuery)
    case flush
    /// Like `flush`, but handled only once changes of the file are permitted.
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
    /// The writer thread has not answered within the requester's limit. Its real answer will follow.
    case later
}

/// The queue between the event loop and the writer thread. Its size is limited, and a newer row of an app replaces the
/// queued one.
struct StoreQueue: Sendable {
    /// Limits of the queue. If they are exceeded, the oldest events and reports are dropped. Rows of apps are never
    /// dropped, because there is only one per app.
    struct Limits: Sendable {
        var events = 20_000
        var reports = 1_000
        /// The limit in bytes for all queued events, and separately for all queued reports.
        var bytes = 8 << 20
        var requests = 256
    }

    /// How long a batch is delayed, so that further changes can be written in the same transaction.
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
    /// Whether the file must not be changed yet, because an older torpord may still need it.
    var holds: Bool
    /// Whether expired events remain to be removed.
    var isUntidy = false
    var retention: Retention
    var isClosing = false
    /// Whether to leave the write-ahead log in place on close. The next process then does the checkpoint.
    var leavesLog = false
    /// When the writer thread began its current work; nil while it is idle.
    var busySince: Duration?
    var isFinished = false
    /// A position in the journal. The changes of all frames before it are in the database.
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

    /// Drops the oldest events and reports. Drops an eighth of them at a time, because each removal moves all elements
    /// that remain.
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

    /// Whether the writer thread has nothing to do until the delay of the current batch is over.
    var isGathering: Bool { since != nil && !isUntidy && !holds && busySince == nil && requests.isEmpty }

    // MARK: From the writer's thread

    /// The work that the writer thread takes from the queue at one time.
    struct Turn: Sendable {
        var work = StoreWork()
        var requests: [(ticket: Int, request: StoreRequest)] = []
        var retention: Retention
        var tidies = false
        var holds: Bool
        var isLast: Bool
    }

    /// Removes the work that is due at `now` from the queue and returns it. If no work is due, returns nil and sets
    /// `deadline` to the time at which to check again.
    mutating func take(now: Duration, _ deadline: inout Duration?) -> Turn? {
        let isDue = { (time: Duration?) in time.map { $0 <= now } ?? true }
        let writes = !work.isEmpty && !holds
        let due = max((since ?? now) + Self.delay, notBefore ?? .zero)
        let tidies = isUntidy && isDue(notBefore) && !holds
        // A sync must not be answered before changes of the file are permitted.
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

    /// Queues changes again that could not be written. If a newer change to the same row was queued since, the newer
    /// one is kept.
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
        /// A damaged or emptied file, or a file of another program, was renamed, and a new file was created.
        case setAside
        /// A file that a newer version wrote was renamed, and a new file was created.
        case setAsideNewer
        /// The file cannot be written for now. Changes are kept in memory.
        case unavailable
        /// A disk operation has taken more than five seconds and has not finished yet.
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
    /// The file that was renamed; nil if none was.
    public let file: SetAsideFile?

    init(_ kind: Kind, _ description: String, _ file: SetAsideFile? = nil) {
        self.kind = kind
        self.description = description
        self.file = file
    }
}
