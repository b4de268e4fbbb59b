// SPDX-License-Identifier: Apache-2.0

import Engine
import EventLoop
import Linux

/// Runs disk work for state archives and snapshots, on threads that exist only while there is work. Work in one
/// folder is done in order. Work in different folders is done in parallel, so that the disk can flush the results
/// together.
///
/// Use it only on the thread of the event loop.
final class StateArchives {
    /// A kind of work in an app's folder.
    enum Work: Sendable {
        case save(ArchiveContent, limit: UInt64?, owner: ArchiveOwner?)
        /// Save a snapshot in place of the previous one. The number of the incarnation becomes part of the file name.
        case saveSnapshot(ArchiveContent, incarnation: UInt32)
        /// Replace the archive by a copy that belongs to this user.
        case give(ArchiveOwner, limit: UInt64?)
        case discard
        /// Set the archive's time to now, so that the archive is newer than the end of the app's last run.
        case renew
        /// Set the archive aside, and put down what became of it.
        case setAside(Monitor<ArchiveFolder.Aside?>)
        case remove

        /// The content to save; nil if the work saves nothing.
        var content: ArchiveContent? {
            switch self {
            case .save(let content, _, _), .saveSnapshot(let content, _): content
            case .give, .discard, .renew, .setAside, .remove: nil
            }
        }

        /// Whether the work removes or renames the current file.
        var takesAway: Bool {
            switch self {
            case .save, .saveSnapshot, .give, .renew: false
            case .discard, .setAside, .remove: true
            }
        }
    }

    typealias Outcome = Result<UInt64, ArchiveFailure>

    private struct Job: Sendable {
        let ticket: Int
        let folder: ArchiveFolder
        let work: Work

        func run() -> Outcome {
            do throws(Errno) {
                switch work {
                case .save(let content, let limit, let owner):
                    return Result { () throws(ArchiveFailure) in
                        try folder.save(content, limit: limit, owner: owner)
                    }
                case .saveSnapshot(let content, let incarnation):
                    return Result { () throws(ArchiveFailure) in
                        try folder.saveSnapshot(content, incarnation: incarnation)
                    }
                case .give(let owner, let limit):
                    return Result { () throws(ArchiveFailure) in try folder.give(to: owner, limit: limit) }
                case .discard: try folder.discard()
                case .renew: try folder.renew()
                case .setAside(let report):
                    let aside = try folder.setAside()
                    report.withLock { $0 = aside }
                case .remove: try folder.remove()
                }
                return .success(0)
            } catch {
                return .failure(.failed("\(folder.path): \(error)"))
            }
        }
    }

    private struct Queue {
        var waiting: [Job] = []
        /// Folders in which a thread is working.
        var busy: Set<String> = []
        var workers = 0
        var answers: [(ticket: Int, outcome: Outcome)] = []

        var next: Int? { waiting.firstIndex { !busy.contains($0.folder.path) } }
    }

    private struct Pending {
        let path: String
        let takesAway: Bool
        let bytes: Int
        let completion: (Outcome) -> Void
    }

    /// The most jobs per folder, waiting or in progress.
    private static let mostOfAnApp = 4
    /// The most bytes that the content of all jobs may take in memory.
    private static let mostBytes = 64 << 20
    /// How long a thread may take to end after its last answer.
    private static let leaving = Duration.milliseconds(100)

    private let loop: EventLoop
    /// The most threads; more would not make a disk faster.
    private let mostWorkers: Int
    private let queue = Monitor(Queue())
    private var doorbell: EventCounter?
    private var source: IOSource?
    private var pending: [Int: Pending] = [:]
    private var nextTicket = 0
    private var bytes = 0
    private var answeredAt: Duration?

    init(loop: EventLoop, workers: Int = 8) { (self.loop, mostWorkers) = (loop, workers) }

    /// Whether no thread of this object exists.
    var isIdle: Bool { pending.isEmpty && answeredAt.map { loop.now - $0 > Self.leaving } ?? true }

    /// Whether a job in the folder is not done yet.
    func isBusy(_ folder: ArchiveFolder) -> Bool { pending.values.contains { $0.path == folder.path } }

    /// Whether a job is about to remove or rename the current file of the folder.
    func takesAway(_ folder: ArchiveFolder) -> Bool {
        pending.values.contains { $0.path == folder.path && $0.takesAway }
    }

    /// Calls `completion` when all work that was requested so far in the folder is done.
    func whenDone(_ folder: ArchiveFolder, _ completion: @escaping () -> Void) {
        guard let last = pending.filter({ $0.value.path == folder.path }).keys.max(), let entry = pending[last] else {
            return loop.later(completion)
        }
        pending[last] = Pending(path: entry.path, takesAway: entry.takesAway, bytes: entry.bytes) { outcome in
            entry.completion(outcome)
            completion()
        }
    }

    /// Requests work. `completion` is called by the event loop, with the number of bytes saved.
    func ask(_ work: Work, in folder: ArchiveFolder, _ completion: @escaping (Outcome) -> Void) {
        var size = 0
        if let content = work.content {
            size = content.waitingBytes
            if let refusal = refusal(of: size, in: folder) {
                return loop.later { completion(.failure(.refused(refusal))) }
            }
        }
        nextTicket += 1
        let job = Job(ticket: nextTicket, folder: folder, work: work)
        do throws(Errno) {
            let doorbell = try makeDoorbell()
            pending[job.ticket] = Pending(
                path: folder.path,
                takesAway: work.takesAway,
                bytes: size,
                completion: completion
            )
            bytes += size
            let isNeeded = queue.withLock { queue in
                queue.waiting.append(job)
                guard queue.workers < mostWorkers, queue.next != nil else { return false }
                queue.workers += 1
                return true
            }
            if isNeeded { try start(doorbell) }
        } catch {
            let isAlone = queue.withLock { queue in
                queue.waiting.removeAll { $0.ticket == job.ticket && queue.workers == 0 }
                return queue.workers == 0
            }
            // If another thread exists, that thread will do the work.
            guard isAlone else { return }
            forget(job.ticket)
            loop.later { completion(.failure(.failed("no thread for it could be started: \(error)"))) }
        }
    }

    /// Sets the folder's current archive aside. `completion` is called by the event loop, with nil if there was none.
    func setAside(
        in folder: ArchiveFolder,
        _ completion: @escaping (Result<ArchiveFolder.Aside?, ArchiveFailure>) -> Void
    ) {
        let report = Monitor<ArchiveFolder.Aside?>(nil)
        ask(.setAside(report), in: folder) { outcome in completion(outcome.map { _ in report.withLock { $0 } }) }
    }

    private func refusal(of size: Int, in folder: ArchiveFolder) -> String? {
        guard pending.values.count(where: { $0.path == folder.path }) < Self.mostOfAnApp else {
            return "\(Self.mostOfAnApp) archives of this app are being written: wait for a reply before the next"
        }
        guard bytes + size <= Self.mostBytes else {
            return "the disk is slow, and \(bytes >> 20) MiB wait to be written: try again in a moment"
        }
        return nil
    }

    private func makeDoorbell() throws(Errno) -> EventCounter {
        if let doorbell { return doorbell }
        let doorbell = try EventCounter()
        source = try loop.watch(doorbell.raw, .readable) { [weak self] _ in self?.answered() }
        self.doorbell = doorbell
        return doorbell
    }

    private func start(_ doorbell: EventCounter) throws(Errno) {
        do throws(Errno) {
            let queue = queue
            try WorkerThread.start(named: "archives") { Self.work(queue, doorbell) }
        } catch {
            queue.withLock { $0.workers -= 1 }
            throw error
        }
    }

    private static func work(_ queue: Monitor<Queue>, _ doorbell: EventCounter) {
        while true {
            let job: Job? = queue.withLock { queue in
                guard let next = queue.next else {
                    queue.workers -= 1
                    return nil
                }
                let job = queue.waiting.remove(at: next)
                queue.busy.insert(job.folder.path)
                return job
            }
            guard let job else { return }
            let outcome = job.run()
            queue.withLock { queue in
                queue.busy.remove(job.folder.path)
                queue.answers.append((job.ticket, outcome))
            }
            doorbell.signal()
        }
    }

    private func answered() {
        doorbell?.drain()
        let answers = queue.withLock { queue in
            let answers = queue.answers
            queue.answers = []
            return answers
        }
        answeredAt = loop.now
        for answer in answers { forget(answer.ticket)?.completion(answer.outcome) }
    }

    @discardableResult
    private func forget(_ ticket: Int) -> Pending? {
        let entry = pending.removeValue(forKey: ticket)
        bytes -= entry?.bytes ?? 0
        return entry
    }
}
