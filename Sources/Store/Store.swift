// SPDX-License-Identifier: Apache-2.0

public import EventLoop
import Linux

/// Stores the state that survives a reboot, such as goals set by users, restart ledgers, events and termination
/// reports, in an SQLite database. Only one thread, which belongs to the store, accesses the database.
///
/// The event loop never waits for the database. Saves are queued (in a bounded queue, coalesced by app) and committed
/// in batches, about 10 ms after the first save of a batch. While the disk hangs or cannot be written, changes stay in
/// the queue. If the queue exceeds its limit, the oldest events are dropped and counted, but rows of apps are never
/// dropped. No call fails: errors are reported to `onNotice` as a sentence, and the write is retried with increasing
/// delays.
///
/// Use a store on the event loop only.
public final class Store {
    /// If a disk operation of the writer thread takes longer than this, torpord reports that the disk hangs.
    static let patience = Duration.seconds(5)

    /// Called on the event loop with notices for users about the database.
    public var onNotice: ((StoreNotice) -> Void)?
    /// Called when a new database has replaced a lost one. The closure must save the row of every app again.
    public var onRowsWanted: (() -> Void)?

    /// How many events, reports and other changes were recovered from the journal of an earlier torpord that was
    /// killed.
    public private(set) var replayed = 0
    /// Changes made before the database was read, by an earlier torpord or this one. They are newer than the database,
    /// so they are applied to the content that is read from the database.
    var beforeLoad: [StoreJournal.Item] = []
    /// Whether the content of the database was read.
    public private(set) var isLoaded = false
    /// Calls of `sync` whose data is not on the disk yet. `isSyncing` tells whether the writer thread is handling
    /// earlier calls.
    var waitingForSync: [(deadline: Duration, completion: (Unavailable?) -> Void)] = []
    var isSyncing = false

    private let place: StorePlace
    package let journal: StoreJournal?
    let loop: EventLoop
    private let queue: Monitor<StoreQueue>
    private var doorbell: EventCounter?
    private var source: IOSource?
    private var timer: TimerSource?
    private var pending: [Int: Pending] = [:]
    private var nextTicket = 0
    private var lastSequence: Int64 = 0
    private var isHanging = false
    private var isWakeDue = false
    private var isClosed = false

    private struct Pending {
        let deadline: Duration
        let completion: (StoreAnswer) -> Void
        /// Called with an answer that arrives after the deadline; nil if such an answer is discarded.
        var late: ((StoreAnswer) -> Void)?
    }

    /// How long after the deadline of ``load(within:late:_:)`` an answer is still accepted. After this time, the
    /// database is treated as empty.
    private static let latePatience = Duration.seconds(60)

    /// Why a request got no result.
    public struct Unavailable: Error, Sendable, Hashable, CustomStringConvertible {
        /// The reason as a sentence.
        public let description: String
    }

    /// Starts the writer thread, which opens the database when it is first used.
    ///
    /// - Parameters:
    ///   - path: the database's path. The file and its directory are created if missing.
    ///   - machine: the content of /etc/machine-id. If another machine wrote the database, state that does not apply
    ///     here, such as restart counts and force-quit marks, is ignored.
    ///   - boot: the boot's id. Force-quit marks from another boot are ignored.
    ///   - journal: keeps changes that are not in the database yet, for the next torpord. Changes that the journal
    ///     contains now are written to the database.
    ///   - holdsWrites: if true, the file is not changed until ``releaseWrites()`` is called, so that the older torpord
    ///     can continue to use the file if an upgrade fails.
    public convenience init(
        path: String,
        machine: String,
        boot: String,
        retention: Retention = Retention(),
        journal: StoreJournal? = nil,
        holdsWrites: Bool = false,
        loop: EventLoop
    ) {
        let place = StorePlace(path: path, machine: machine, boot: boot, vfs: nil, retention: retention)
        self.init(place, limits: StoreQueue.Limits(), journal: journal, holdsWrites: holdsWrites, loop: loop)
    }

    init(
        _ place: StorePlace,
        limits: StoreQueue.Limits,
        journal: StoreJournal?,
        holdsWrites: Bool,
        loop: EventLoop
    ) {
        self.place = place
        self.journal = journal
        self.loop = loop
        queue = Monitor(StoreQueue(limits: limits, holds: holdsWrites, retention: place.retention))
        for tries in 1... {
            do throws(Errno) {
                try start()
                break
            } catch {
                source?.cancel()
                source = nil
                timer?.cancel()
                timer = nil
                guard tries == Self.mostStarts else { continue }
                let notice = StoreNotice(.unavailable, "nothing is stored: its thread cannot be started (\(error))")
                loop.later { [weak self] in self?.onNotice?(notice) }
                break
            }
        }
        if doorbell != nil { replay() }
    }

    /// How often to try to start the writer thread. A shortage of memory or threads may last only an instant, but
    /// without the thread this torpord could never read or store anything.
    private static let mostStarts = 64

    private func start() throws(Errno) {
        let doorbell = try EventCounter()
        source = try loop.watch(doorbell.raw, .readable) { [weak self] _ in self?.answered() }
        timer = try loop.timer { [weak self] in self?.giveUpOnOld() }
        let place = place
        let queue = queue
        try WorkerThread.start(named: "store") {
            StoreWriter(place, queue: queue, doorbell: doorbell).run()
        }
        self.doorbell = doorbell
    }

    deinit { close(within: .zero) }

    /// Queues the changes that are in the journal, because an earlier torpord did not write them to the database.
    private func replay() {
        guard let journal else { return }
        let now = loop.now
        let mark = journal.end
        let items = journal.items()
        replayed = items.count
        push { queue in
            for item in items {
                switch item {
                case .event(let event): queue.append(event, mark: mark, now: now)
                case .report(let report): queue.append(report, mark: mark, now: now)
                case .removal(let app): queue.remove(app: app, mark: mark, now: now)
                case .change(let change): queue.take(change, mark: mark, now: now)
                }
            }
        }
        beforeLoad = items.filter { item in
            switch item {
            case .removal, .change: true
            case .event, .report: false
            }
        }
        for case .event(let event) in items { lastSequence = max(lastSequence, event.sequence) }
    }

    // MARK: Writing

    /// Saves an app's row. An earlier row of the app that is still queued is replaced.
    public func save(_ row: AppRow) {
        let now = loop.now
        push { $0.save(row, now: now) }
    }

    /// Removes an app's row, reports, mail and schedules. The app's events are kept.
    public func remove(app: String) {
        let now = loop.now
        journal?.appendRemoval(of: app)
        let mark = journal?.end
        if !isLoaded { beforeLoad.append(.removal(app: app)) }
        push { $0.remove(app: app, mark: mark, now: now) }
    }

    /// Saves an event, and returns its sequence number. If the event already has a number greater than those of all
    /// earlier events, it keeps this number. Otherwise it gets a new one.
    @discardableResult
    public func append(_ event: StoredEvent) -> Int64 {
        var event = event
        lastSequence = max(lastSequence &+ 1, event.at, event.sequence)
        event.sequence = lastSequence
        let now = loop.now
        journal?.append(event)
        let mark = journal?.end
        push { $0.append(event, mark: mark, now: now) }
        return lastSequence
    }

    /// Saves a termination report. Only the newest ten reports of each app are kept.
    public func append(_ report: StoredReport) {
        let now = loop.now
        journal?.append(report)
        let mark = journal?.end
        push { $0.append(report, mark: mark, now: now) }
    }

    /// Changes how long events are kept.
    public func setRetention(_ retention: Retention) {
        push {
            $0.retention = retention
            $0.isUntidy = true
        }
    }

    /// Permits changes of the file, if `holdsWrites` was true at initialization.
    public func releaseWrites() { push { $0.holds = false } }

    func push(_ change: (inout StoreQueue) -> Void) {
        guard doorbell != nil, !isClosed else { return }
        let now = loop.now
        let (busySince, stored, wakes) = queue.withLock { queue in
            // A writer that is waiting for the end of a batch's delay wakes up by itself, so do not wake it for each
            // change.
            let wasGathering = queue.isGathering
            change(&queue)
            defer { queue.stored = nil }
            return (queue.busySince, queue.stored, !wasGathering || !queue.isGathering)
        }
        if wakes { wakeLater() }
        if let stored { journal?.release(through: stored) }
        if let busySince, !isHanging, now - busySince >= Self.patience {
            isHanging = true
            onNotice?(
                StoreNotice(
                    .hangs,
                    "\(place.path): the disk does not answer; events are kept in memory until it does"
                )
            )
        }
    }

    /// How many threads the store has.
    public var threadCount: Int { doorbell == nil ? 0 : 1 }

    /// Runs `body` while the writer thread is idle and cannot start to work. Returns false, without running `body`, if
    /// the thread is busy.
    public func whileIdle(_ body: () -> Void) -> Bool {
        if doorbell != nil { return queue.whileAllWait(1, body) }
        body()
        return true
    }

    /// Wakes the writer thread at the end of this iteration of the event loop. If woken earlier, it would compete with
    /// the loop for a processor.
    private func wakeLater() {
        guard !isWakeDue else { return }
        isWakeDue = true
        loop.later { [weak self] in
            self?.isWakeDue = false
            self?.queue.wake()
        }
    }

    // MARK: Reading

    /// Reads the file's content. Call it once, before any other request.
    ///
    /// - Parameters:
    ///   - limit: if the disk takes longer than this, `completion` gets empty content.
    ///   - late: called once if `limit` has passed: with the content as soon as it is read or, if that takes more than
    ///     another minute, with empty content. Until then, ``isLoaded`` is false.
    public func load(
        within limit: Duration = .seconds(10),
        late: ((StoreContents) -> Void)? = nil,
        _ completion: @escaping (StoreContents) -> Void
    ) {
        func take(_ completion: @escaping (StoreContents) -> Void) -> (StoreAnswer) -> Void {
            { [weak self] in self?.loaded($0, completion) }
        }
        ask(.load, within: limit, late: late.map(take), take(completion))
    }

    private func loaded(_ answer: StoreAnswer, _ completion: (StoreContents) -> Void) {
        var contents = StoreContents()
        switch answer {
        case .later: return completion(contents)
        case .contents(let found): contents = found
        case .events, .reports, .unhandled, .flushed, .failed: break
        }
        lastSequence = max(lastSequence, contents.lastSequence)
        for item in beforeLoad {
            switch item {
            case .removal(let app): contents.forget(app: app)
            case .change(let change): contents.apply(change)
            case .event, .report: break
            }
        }
        beforeLoad = []
        isLoaded = true
        completion(contents)
    }

    /// Reads the events that a query selects, oldest first. The result includes all events appended before this call,
    /// except those that could not be written.
    public func events(
        _ query: EventQuery,
        within limit: Duration = .seconds(2),
        _ completion: @escaping (Result<[StoredEvent], Unavailable>) -> Void
    ) {
        ask(.events(query), within: limit) { answer in
            switch answer {
            case .events(let events): completion(.success(events))
            case .failed(let reason): completion(.failure(Unavailable(description: reason)))
            case .contents, .reports, .unhandled, .flushed, .later: break
            }
        }
    }

    /// Reads the reports of an app, or of all apps, newest first.
    public func reports(
        app: String? = nil,
        within limit: Duration = .seconds(2),
        _ completion: @escaping (Result<[StoredReport], Unavailable>) -> Void
    ) {
        ask(.reports(app: app), within: limit) { answer in
            switch answer {
            case .reports(let reports): completion(.success(reports))
            case .failed(let reason): completion(.failure(Unavailable(description: reason)))
            case .contents, .events, .unhandled, .flushed, .later: break
            }
        }
    }

    /// Writes all queued changes at once, then calls `completion` with whether that succeeded.
    public func flush(within limit: Duration = .seconds(2), _ completion: @escaping (Bool) -> Void) {
        ask(.flush, within: limit) { answer in
            if case .flushed = answer { completion(true) } else { completion(false) }
        }
    }

    func ask(
        _ request: StoreRequest,
        within limit: Duration,
        late: ((StoreAnswer) -> Void)? = nil,
        _ completion: @escaping (StoreAnswer) -> Void
    ) {
        nextTicket += 1
        let ticket = nextTicket
        let isTaken = doorbell != nil && !isClosed && queue.withLock { $0.ask(request, ticket: ticket) }
        guard isTaken else {
            loop.later { completion(.failed("too many requests wait for the disk already")) }
            return
        }
        pending[ticket] = Pending(deadline: loop.now + limit, completion: completion, late: late)
        queue.wake()
        armTimer()
    }

    private func armTimer() {
        guard let next = pending.values.map(\.deadline).min() else {
            timer?.disarm()
            return
        }
        if timer?.deadline != next { timer?.arm(at: next) }
    }

    private func giveUpOnOld() {
        let now = loop.now
        let old = pending.filter { $0.value.deadline <= now }.sorted { $0.key < $1.key }
        for (ticket, entry) in old {
            pending[ticket] = entry.late.map { Pending(deadline: now + Self.latePatience, completion: $0) }
        }
        armTimer()
        for (_, entry) in old { entry.completion(entry.late == nil ? .failed("the disk does not answer") : .later) }
    }

    /// Handles the answers and notices that the writer thread has queued.
    private func answered() {
        doorbell?.drain()
        let (answers, notices, wantsRows) = queue.withLock { queue in
            defer {
                queue.answers = []
                queue.notices = []
                queue.wantsRows = false
            }
            return (queue.answers, queue.notices, queue.wantsRows)
        }
        if wantsRows { onRowsWanted?() }
        for notice in notices {
            switch notice.kind {
            case .available: isHanging = false
            // Report that the disk answers again only if its hang was reported.
            case .answers where !isHanging: continue
            case .answers: isHanging = false
            case .setAside, .setAsideNewer, .unavailable, .hangs, .otherMachine: break
            }
            onNotice?(notice)
        }
        let taken = answers.compactMap { entry in
            pending.removeValue(forKey: entry.ticket).map { ($0.completion, entry.answer) }
        }
        armTimer()
        for (completion, answer) in taken { completion(answer) }
    }

    // MARK: The end

    /// Writes queued changes and closes the file. Blocks at most for `limit`. Returns false if `limit` was too short or
    /// a change could not be written. Pending requests get no answer. A second call only waits until the first has
    /// finished.
    ///
    /// - Parameter quickly: whether to skip the checkpoint of the write-ahead log, which syncs to the disk once or
    ///   twice.
    @discardableResult
    public func close(within limit: Duration = .seconds(1), quickly: Bool = false) -> Bool {
        guard doorbell != nil else { return true }
        isClosed = true
        source?.cancel()
        timer?.cancel()
        pending = [:]
        queue.withLock {
            $0.leavesLog = quickly
            $0.isClosing = true
        }
        queue.wake()
        let isClean = queue.wait(until: Clock.monotonic() + limit) { (queue, _) -> Bool? in
            queue.isFinished ? queue.work.isEmpty : nil
        }
        if isClean == true, let journal { journal.release(through: journal.end) }
        return isClean ?? false
    }
}
