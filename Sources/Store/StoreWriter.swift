// SPDX-License-Identifier: Apache-2.0

import Linux

/// The writer thread, the only thread that accesses the file.
final class StoreWriter {
    private let place: StorePlace
    private let queue: Monitor<StoreQueue>
    private let doorbell: EventCounter

    private var file: StoreFile?
    private var isHeld = true
    /// Rows that were read from a damaged database, until they are written to the new one.
    private var salvaged = StoreContents()
    /// The content of the first database that could be read, until the event loop requests it.
    private var contents: StoreContents?
    private var trouble: String?
    private var retryDelay = Duration.seconds(1)
    private var retryAt: Duration?
    private var setAsideAt: Duration?
    /// How many times SQLite has reported damage to an intact file since the last write.
    private var falseAlarms = 0
    private static let mostFalseAlarms = 8
    /// How often a file that SQLite has reported as damaged is checked: at least and at most, and for how long beyond the
    /// least.
    private static let fewestChecks = 8
    private static let mostChecks = 64
    private static let longestCheck = Duration.seconds(2)
    /// How often to try to open the file at the start before it is opened read-only. A read-only open ignores the
    /// write-ahead log, so if a single failed read were enough to cause it, torpord would use outdated content.
    private static let mostFirstTries = 64
    /// Whether to reopen the file, because the last error may come from the connection and not from the file.
    private var isSuspect = false
    /// Whether the last attempt to write has failed because the disk is full.
    private var isFull = false

    init(_ place: StorePlace, queue: Monitor<StoreQueue>, doorbell: EventCounter) {
        self.place = place
        self.queue = queue
        self.doorbell = doorbell
    }

    /// The writer thread's main loop, which ends when the queue is closed.
    func run() {
        while true {
            let turn = queue.wait { (queue, deadline) -> StoreQueue.Turn? in
                queue.take(now: Clock.monotonic(), &deadline)
            }
            guard let turn else { continue }
            carryOut(turn)
            let hung = queue.withLock { queue in
                defer { queue.busySince = nil }
                return queue.busySince.map { Clock.monotonic() - $0 >= Store.patience } ?? false
            }
            if hung { tell(.answers, "\(place.path): the disk answers again") }
            if turn.isLast { break }
        }
        if queue.withLock({ $0.leavesLog }) { file?.database.keepLogOnClose(true) }
        file?.database.close()
        file = nil
        queue.withLock { $0.isFinished = true }
        queue.wake()
        doorbell.signal()
    }

    private func carryOut(_ turn: StoreQueue.Turn) {
        if isHeld, !turn.holds {
            file = nil
            retryAt = nil
            isHeld = false
        }
        for app in turn.work.removed { salvaged.forget(app: app) }
        for id in turn.work.mail.mail.removed { salvaged.mail[id] = nil }
        for id in turn.work.mail.unhandled.removed { salvaged.unhandled[id] = nil }
        for key in turn.work.mail.rows.removed { salvaged.rows[key] = nil }
        let isLoading = turn.requests.contains { if case .load = $0.request { true } else { false } }
        let mustWrite = !turn.work.isEmpty || turn.tidies
        if mustWrite || isLoading || !turn.requests.isEmpty { write(turn, isLoading: isLoading) }
        for (ticket, request) in turn.requests {
            let answer = answer(request)
            queue.withLock { $0.answers.append((ticket, answer)) }
        }
        if !turn.requests.isEmpty { doorbell.signal() }
    }

    // MARK: Writing

    /// Writes a batch. If the file turns out to be damaged, writes the batch into a new file.
    private func write(_ turn: StoreQueue.Turn, isLoading: Bool) {
        // Normally the first try succeeds. SQLite may report an intact file as damaged up to `mostFalseAlarms` times.
        // If it still does so afterwards, the file may really be damaged, and the last try writes to a new file.
        for _ in 0..<Self.mostFalseAlarms + 2 {
            do throws(DatabaseError) {
                let file = try openFile(isPatient: turn.isLast || isLoading)
                if !turn.work.isEmpty {
                    try file.write(turn.work)
                    if let mark = turn.work.mark { queue.withLock { $0.stored = mark } }
                }
                if turn.holds { return }
                let isUntidy = try file.tidy(
                    turn.retention,
                    now: Clock.monotonic(),
                    wallClock: Clock.realtimeMicroseconds()
                )
                queue.withLock { $0.isUntidy = isUntidy }
                // If nothing had to be written, for a query for example, a full disk is still full.
                if isFull, turn.work.isEmpty { return }
                return succeeded()
            } catch {
                guard setAside(error) else { return failed(error, turn.work) }
            }
        }
        failed(DatabaseError(kind: .damaged, "a new one is damaged at once: is the disk broken?"), turn.work)
    }

    /// Returns the open file, or opens it if it is not open. After an error, the file is reopened only at `retryAt`, or
    /// at once if `isPatient`.
    private func openFile(isPatient: Bool) throws(DatabaseError) -> StoreFile {
        if let file, file.isInPlace, !file.isReadOnly, !isSuspect { return file }
        if let retryAt, !isPatient, Clock.monotonic() < retryAt {
            throw DatabaseError(kind: .other, trouble ?? "it is tried again later")
        }
        file = nil
        let opened = try open()
        isSuspect = false
        let isAnother = contents != nil
        let origin = took(opened)
        guard !isHeld, origin == .nobody else { return opened }
        // First write the rows that were salvaged from the lost file to the new file. The current state of the apps is
        // saved later and replaces them.
        if !salvaged.hasNoData {
            var known = StoreWork()
            known.rows = salvaged.apps
            known.mail = MailWork(salvaged)
            try opened.write(known)
            salvaged = StoreContents()
        }
        if isAnother {
            queue.withLock { $0.wantsRows = true }
            doorbell.signal()
        }
        return opened
    }

    /// Opens the file for reading and writing.
    ///
    /// At the start, the open is retried after errors. Without a retry, the file would be opened read-only, which
    /// ignores its write-ahead log, and torpord would use outdated content. This includes a refusal, because SQLite
    /// reports a shortage of descriptors as one.
    private func open() throws(DatabaseError) -> StoreFile {
        var tries = contents == nil ? Self.mostFirstTries : 1
        while true {
            do throws(DatabaseError) {
                return try StoreFile(place, holds: isHeld)
            } catch {
                tries -= 1
                let mayPass = [.input, .full, .refused, .other].contains(error.kind)
                guard tries > 0, mayPass else { throw error }
            }
        }
    }

    @discardableResult
    private func took(_ opened: StoreFile) -> StoreContents.Origin {
        file = opened
        let found = opened.takeContents()
        guard contents == nil else { return found.origin }
        contents = found
        if found.origin == .otherMachine {
            tell(
                .otherMachine,
                "\(place.path) comes from another machine: what users asked of their apps is kept"
            )
        }
        return found.origin
    }

    private func succeeded() {
        isFull = false
        retryAt = nil
        falseAlarms = 0
        retryDelay = .seconds(1)
        let lost = queue.withLock { queue in
            queue.notBefore = nil
            return queue.takeDropped()
        }
        guard trouble != nil || lost > 0 else { return }
        trouble = nil
        let loss = lost == 0 ? "nothing was lost" : lost == 1 ? "1 event was lost" : "\(lost) events were lost"
        tell(.available(lost: lost), "\(place.path) can be written again: \(loss)")
    }

    /// Queues the changes again, so that they are written later.
    private func failed(_ error: DatabaseError, _ work: StoreWork) {
        let now = Clock.monotonic()
        if retryAt.map({ $0 <= now }) ?? true {
            // Reopen the file at the retry, because the connection may be the cause of the error. This is not needed if
            // the disk is just full. Until the retry, the open file can still be read.
            isFull = error.kind == .full
            isSuspect = !isFull
            retryAt = now + retryDelay
            retryDelay = min(retryDelay * 2, .seconds(60))
        }
        let notBefore = retryAt
        queue.withLock { queue in
            queue.notBefore = notBefore
            queue.putBack(work, now: now)
        }
        guard trouble == nil else { return }
        let reason =
            switch error.kind {
            case .inUse: "another program has it open (another torpord? give each its own state_directory)"
            case .full: "the disk is full"
            case .damaged, .emptied, .foreign, .newer, .refused, .input, .other: error.description
            }
        trouble = reason
        tell(
            .unavailable,
            "\(place.path) cannot be written: \(reason); events are kept in memory until it can be"
        )
    }

    /// Renames the file if the error means that the file is unusable and a second check confirms it. Returns whether to
    /// retry at once.
    private func setAside(_ error: DatabaseError) -> Bool {
        let suffix: String
        switch error.kind {
        case .damaged, .emptied: suffix = SetAsideFile.Cause.damaged.rawValue
        case .foreign: suffix = "foreign"
        case .newer(let version): suffix = "newer-\(version)"
        case .inUse, .full, .refused, .input, .other: return false
        }
        file?.database.keepLogOnClose(true)
        // Close the database now. A caller may still have a reference to it, which would keep the file open, and rows
        // cannot be salvaged from a file that is locked.
        file?.database.close()
        file = nil
        if error.kind == .damaged, isFalseAlarm() { return true }
        guard !isHeld else { return false }
        let now = Clock.monotonic()
        if let setAsideAt, now - setAsideAt < .seconds(60) { return false }
        if error.kind == .damaged {
            var saved = StoreFile.salvage(place)
            saved.origin = .earlierBoot
            saved.forgetWhatIsOver()
            saved.origin = .nobody
            salvaged = saved
            if contents == nil { contents = saved }
        }
        guard let name = try? Quarantine.move(place.path, suffix: suffix) else { return false }
        setAsideAt = now
        let what: String
        switch error.kind {
        case .newer: what = "was written by a later torpord: \(error.description)"
        case .foreign: what = "is not torpord's: \(error.description)"
        case .emptied: what = "was emptied: \(error.description)"
        default: what = "is damaged: \(error.description)"
        }
        let taken = salvaged.apps.count
        let rest = taken == 0 ? "" : "; its records of \(taken) apps could be read and are kept"
        tell(
            suffix.hasPrefix("newer") ? .setAsideNewer : .setAside,
            "\(place.path) \(what); it is kept as \(name), and a new one is created\(rest)",
            SetAsideFile(name, of: place.path)
        )
        return true
    }

    /// Whether a file that SQLite reported as damaged is intact. SQLite also reports damage after a single failed read
    /// (EIO). Checks many times, because a check may fail for the same reason, and a file that is set aside is lost.
    private func isFalseAlarm() -> Bool {
        guard falseAlarms < Self.mostFalseAlarms else { return false }
        let end = Clock.monotonic() + Self.longestCheck
        for number in 1...Self.mostChecks {
            if StoreFile.isSound(place) {
                falseAlarms += 1
                return true
            }
            // The checks of a large file take long.
            if number >= Self.fewestChecks, Clock.monotonic() >= end { break }
        }
        return false
    }

    private func tell(_ kind: StoreNotice.Kind, _ sentence: String, _ file: SetAsideFile? = nil) {
        let notice = StoreNotice(kind, sentence, file)
        queue.withLock { $0.notices.append(notice) }
        doorbell.signal()
    }

    // MARK: Answering

    private func answer(_ request: StoreRequest) -> StoreAnswer {
        if file == nil, retryAt != nil {
            // A file that cannot be written may still be readable: including its write-ahead log if the file can be
            // opened for writing, otherwise without it.
            let readable =
                (try? StoreFile(place, holds: true)) ?? (try? StoreFile(place, mode: .immutable, holds: true))
            if let readable {
                took(readable)
                // Open the file again before it is written, because it may have to be migrated.
                isSuspect = true
            }
        }
        if case .load = request {
            defer { contents?.letGo() }
            return .contents(contents ?? StoreContents())
        }
        if request.isFlush, let trouble { return .failed(trouble) }
        guard let file else { return .failed(trouble ?? "it cannot be read") }
        if file.isBehind { return .failed("its format is being migrated") }
        do throws(DatabaseError) {
            return try read(request, from: file)
        } catch {
            // If `setAside` renamed the file, set `isUntidy`, so that the writer thread continues at once and creates a
            // new file.
            if error.kind == .damaged, !file.isReadOnly, setAside(error) { queue.withLock { $0.isUntidy = true } }
            return .failed(error.description)
        }
    }

    private func read(_ request: StoreRequest, from file: StoreFile) throws(DatabaseError) -> StoreAnswer {
        switch request {
        case .load: .contents(contents ?? StoreContents())
        case .events(let query): .events(try file.database.events(query))
        case .reports(let app): .reports(try file.database.reports(app: app))
        case .unhandled(let query): .unhandled(try unhandled(query, in: file.database))
        case .flush, .sync: .flushed
        }
    }

    private func unhandled(
        _ query: UnhandledQuery,
        in database: Database
    ) throws(DatabaseError) -> [StoredUnhandled] {
        var rows: [StoredUnhandled] = []
        try database.unhandled(query) { rows.append($0) }
        return rows
    }
}
