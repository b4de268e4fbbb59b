// SPDX-License-Identifier: Apache-2.0

public import EventLoop
import Linux

/// What must outlive a boot: goals that persons set, marks, restart ledgers, events, termination reports. One SQLite
/// database, written and read by a thread of its own.
///
/// The loop's thread never waits for it: what is saved is queued, bounded and coalesced by app, and committed in
/// batches about 10 ms after the first of it. While the disk cannot be written, or hangs, only the queue grows: beyond
/// its bound the oldest events go, and are counted; rows of apps never do. Nothing here fails: what is wrong is told
/// to `onNotice` in a sentence, and tried again with growing delays.
///
/// Of the loop's thread.
public final class Store {
    /// How long the disk may keep the writer before somebody should know.
    static let patience = Duration.seconds(5)

    /// Told what a person should know, on the loop's thread.
    public var onNotice: ((StoreNotice) -> Void)?
    /// The file was lost, and a new one is begun: every app's row is to be saved again.
    public var onRowsWanted: (() -> Void)?

    /// How many events, reports and removals came from the journal of a torpord that was killed.
    public private(set) var replayed = 0
    /// What changed before the file was read, by that torpord or this one: what the file held is older.
    var beforeLoad: [StoreJournal.Item] = []
    /// Whether it is known what the file held.
    public private(set) var isLoaded = false
    /// Who waits for what is saved to be on the disk, and whether some are being served.
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
        /// Gets the answer that comes after the deadline; nil: nobody wants it.
        var late: ((StoreAnswer) -> Void)?
    }

    /// How long after that: without an answer then, it is taken for one that there is nothing.
    private static let latePatience = Duration.seconds(60)

    /// Why a question has no answer.
    public struct Unavailable: Error, Sendable, Hashable, CustomStringConvertible {
        /// A sentence.
        public let description: String
    }

    /// Starts the thread. The file is opened by it, at the first use.
    ///
    /// - Parameters:
    ///   - path: the database; it and its directory are made where they are missing.
    ///   - machine: /etc/machine-id. Of a file from another machine only what persons asked for counts.
    ///   - boot: the boot's id. Force-quit marks do not count in another boot.
    ///   - journal: what is not in the database yet, for the next torpord; what it holds is written now.
    ///   - holdsWrites: nothing is changed in the file before ``releaseWrites()``: an older version of this program
    ///     may have to go on with it.
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
        let queue = Monitor(StoreQueue(limits: limits, holds: holdsWrites, retention: place.retention))
        self.queue = queue
        do throws(Errno) {
            let doorbell = try EventCounter()
            source = try loop.watch(doorbell.raw, .readable) { [weak self] _ in self?.answered() }
            timer = try loop.timer { [weak self] in self?.giveUpOnOld() }
            try WorkerThread.start(named: "store") {
                StoreWriter(place, queue: queue, doorbell: doorbell).run()
            }
            self.doorbell = doorbell
            replay()
        } catch {
            source = nil
            let notice = StoreNotice(.unavailable, "nothing is stored: its thread cannot be started (\(error))")
            loop.later { [weak self] in self?.onNotice?(notice) }
        }
    }

    deinit { close(within: .zero) }

    /// Takes over what an earlier torpord could not write any more.
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

    /// Keeps an app's row; a newer one replaces one that was not written yet.
    public func save(_ row: AppRow) {
        let now = loop.now
        push { $0.save(row, now: now) }
    }

    /// Forgets an app's row, reports, mail and schedules, not its events.
    public func remove(app: String) {
        let now = loop.now
        journal?.appendRemoval(of: app)
        let mark = journal?.end
        if !isLoaded { beforeLoad.append(.removal(app: app)) }
        push { $0.remove(app: app, mark: mark, now: now) }
    }

    /// Keeps an event, and returns the sequence that it gets: its own if that is later than all before it.
    @discardableResult
    public func append(_ event: StoredEvent) -> Int64 {
        var event = event
        lastSequence = max(lastSequence &+ 1, event.at, event.sequence)
        event.sequence = lastSequence
        let now = loop.now
        let numbered = event
        journal?.append(event)
        let mark = journal?.end
        push { $0.append(numbered, mark: mark, now: now) }
        return lastSequence
    }

    /// Keeps a termination report; of an app the newest ten are kept.
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

    /// From now on the file may be changed.
    public func releaseWrites() { push { $0.holds = false } }

    func push(_ change: (inout StoreQueue) -> Void) {
        guard doorbell != nil, !isClosed else { return }
        let now = loop.now
        let (busySince, stored, wakes) = queue.withLock { queue in
            // The writer that waits for the end of a batch's time need not be told of each that comes.
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

    /// How many threads of it there are.
    public var threadCount: Int { doorbell == nil ? 0 : 1 }

    /// Runs `body` while the thread has nothing to do and does nothing; false when it has.
    public func whileIdle(_ body: () -> Void) -> Bool {
        if doorbell != nil { return queue.whileAllWait(1, body) }
        body()
        return true
    }

    /// After what is done now, which the writer would only take a processor from.
    private func wakeLater() {
        guard !isWakeDue else { return }
        isWakeDue = true
        loop.later { [weak self] in
            self?.isWakeDue = false
            self?.queue.wake()
        }
    }

    // MARK: Reading

    /// Gives what the file held when it was opened. To be called once, before anything else is asked.
    ///
    /// - Parameters:
    ///   - limit: when the disk takes longer, the completion gets what an empty file holds.
    ///   - late: gets then what the file does hold, when the disk has answered; until then, for a minute at most, it is not known (``isLoaded``).
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

    /// Gives the events that the query wants, the oldest first; all that was appended before is seen, except what
    /// could not be written.
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

    /// Gives the reports of an app, or all, the newest first.
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

    /// Has everything written at once; true when it was.
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

    /// The writer has rung.
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
            // Nobody was told of a wait that ended before anything else came.
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

    /// Has what waits written and the file closed. Blocks, at most for `limit`: false when that was not enough, or
    /// something could not be written. Questions that wait get no answer any more. A second call only waits.
    ///
    /// - Parameter quickly: the write-ahead log is not taken into the file, which takes a sync or two.
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
