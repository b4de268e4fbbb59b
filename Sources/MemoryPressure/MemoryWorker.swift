// SPDX-License-Identifier: Apache-2.0

import Engine
package import EventLoop
import Linux
package import Processes

/// Runs kernel calls about memory that may block: paging out apps, measuring their memory, and releasing the memory of
/// killed processes. They run on a thread that exists only while there is work. Paging out may take seconds; the
/// thread does other jobs in between.
///
/// Use this class only on the thread of the event loop. It calls completions later, on the event loop.
package final class MemoryWorker {
    private enum Job: Sendable {
        case snapshot(Int)
        case footprints(Int, [MembersMemory])
        case release(Int, MembersMemory)
        case pageOut(Int, MembersMemory, Wish)
        case cold(Int, MembersMemory, Wish)
        case purge(Int, Handed<[Descriptor]>, [String], UInt32?)
    }

    /// A flag by which the event loop cancels a job of the worker thread.
    private final class Wish: Sendable {
        private let isGone = Monitor(false)

        var isThere: Bool { isGone.withLock { !$0 } }
        func cancel() { isGone.withLock { $0 = true } }
    }

    private enum Answer: Sendable {
        case snapshot(Handed<ProcessSnapshot>)
        case footprints([Footprint])
        case pageOut(PageOutResult)
        case purged(UInt64)
        case done
    }

    /// A value passed from one thread to another. It need not be Sendable, because the sender no longer uses it.
    private struct Handed<Value>: @unchecked Sendable { let value: Value }

    private struct Queue {
        /// Short jobs. They run before `slow` jobs, and between the steps of a slow job.
        var quick: [Job] = []
        var slow: [Job] = []
        var isRunning = false
        var staysReady = false
        var answers: [(ticket: Int, answer: Answer)] = []
    }

    /// How long a thread may take, after its last answer, to end.
    private static let leaving = Duration.milliseconds(100)

    private let loop: EventLoop
    private let queue = Monitor(Queue())
    private var doorbell: EventCounter?
    private var source: IOSource?
    private var pending: [Int: (Answer) -> Void] = [:]
    private var wishes: [ObjectIdentifier: (wish: Wish, ticket: Int, isCold: Bool)] = [:]
    private var nextTicket = 0
    private var leftAt: Duration?

    private let name: String

    /// - Parameter name: the name of the thread; at most 15 bytes.
    package init(_ loop: EventLoop, named name: String = "memory") { (self.loop, self.name) = (loop, name) }

    // End the thread, which would otherwise wait for jobs forever.
    deinit { if staysReady { letGo() } }

    private func letGo() {
        queue.withLock { $0.staysReady = false }
        queue.wake()
    }

    /// Whether a job is unfinished, or its completion was not called yet.
    var isAtWork: Bool { !pending.isEmpty }

    /// Whether no thread of this worker exists.
    package var isIdle: Bool {
        !isAtWork && !staysReady && leftAt.map { loop.now - $0 > Self.leaving } ?? true
    }

    /// Whether the thread waits for new jobs instead of ending, because it may be impossible to start a thread while
    /// memory is short.
    var staysReady = false {
        didSet {
            guard staysReady != oldValue else { return }
            queue.withLock { $0.staysReady = staysReady }
            if staysReady { run() } else { queue.wake() }
            leftAt = loop.now
        }
    }

    // MARK: What is asked

    /// Pages out an app's memory. If this app is being paged out already, the second call fails with EBUSY.
    func pageOut(_ tree: ProcessTree, _ completion: @escaping (PageOutResult) -> Void) {
        let key = ObjectIdentifier(tree)
        if let before = wishes[key] {
            guard before.isCold else { return loop.later { completion(PageOutResult(failure: .resourceBusy)) } }
            before.wish.cancel()
        }
        let (wish, ticket) = (Wish(), newTicket())
        wishes[key] = (wish, ticket, false)
        members(of: [tree]) { [self] members in
            ask(ticket, slowly: true, .pageOut(ticket, members[0], wish)) { answer in
                self.forget(key, ticket)
                guard case .pageOut(let result) = answer else { return completion(PageOutResult(failure: .noMemory)) }
                completion(result)
            }
        }
    }

    /// Tells the kernel to reclaim this app's memory before that of other apps (MADV_COLD).
    func markCold(_ tree: ProcessTree) {
        let key = ObjectIdentifier(tree)
        guard wishes[key] == nil else { return }
        let (wish, ticket) = (Wish(), newTicket())
        wishes[key] = (wish, ticket, true)
        members(of: [tree]) { [self] members in
            ask(ticket, slowly: true, .cold(ticket, members[0], wish)) { _ in self.forget(key, ticket) }
        }
    }

    /// Cancels the page-out of an app that is about to be resumed. A page-out in progress ends within a few
    /// milliseconds, with a result that says it was cancelled.
    package func cancel(_ tree: ProcessTree) { wishes.removeValue(forKey: ObjectIdentifier(tree))?.wish.cancel() }

    /// Measures the memory of these apps. The results are in the order of `trees`.
    func footprints(of trees: [ProcessTree], _ completion: @escaping ([Footprint]) -> Void) {
        members(of: trees) { [self] members in
            let ticket = newTicket()
            ask(ticket, .footprints(ticket, members)) { answer in
                guard case .footprints(let footprints) = answer else { return completion(members.map { _ in .init() }) }
                completion(footprints)
            }
        }
    }

    /// Frees the memory of killed processes at once, even if some have not exited yet (process_mrelease(2)).
    ///
    /// - Parameter processes: the processes, listed before SIGKILL was sent (``ProcessTree/pinned(in:)``).
    package func release(_ processes: MembersMemory) {
        let ticket = newTicket()
        ask(ticket, .release(ticket, processes)) { _ in }
    }

    /// Empties the in-memory files of descriptors that torpord no longer stores for an app. Also removes the user's
    /// files from those folders that are on tmpfs. Calls `completion` with the number of bytes freed.
    func purge(
        _ files: [Descriptor],
        _ folders: [String],
        ownedBy user: UInt32?,
        _ completion: @escaping (UInt64) -> Void
    ) {
        let ticket = newTicket()
        ask(ticket, .purge(ticket, Handed(value: files), folders, user)) { answer in
            guard case .purged(let bytes) = answer else { return completion(0) }
            completion(bytes)
        }
    }

    private func forget(_ key: ObjectIdentifier, _ ticket: Int) {
        if wishes[key]?.ticket == ticket { wishes[key] = nil }
    }

    private func newTicket() -> Int {
        nextTicket += 1
        return nextTicket
    }

    /// Lists the processes of the apps and opens their pidfds. If that requires a scan of /proc, the worker thread
    /// makes it.
    private func members(of trees: [ProcessTree], _ completion: @escaping ([MembersMemory]) -> Void) {
        guard trees.contains(where: \.needsSnapshot) else { return completion(trees.map { $0.pinned() }) }
        let ticket = newTicket()
        ask(ticket, .snapshot(ticket)) { answer in
            guard case .snapshot(let handed) = answer else {
                return completion(trees.map { $0.pinned() })
            }
            completion(trees.map { $0.pinned(in: handed.value) })
        }
    }

    // MARK: The thread

    private func ask(_ ticket: Int, slowly: Bool = false, _ job: Job, _ completion: @escaping (Answer) -> Void) {
        pending[ticket] = completion
        queue.withLock { queue in
            if slowly { queue.slow.append(job) } else { queue.quick.append(job) }
        }
        run()
    }

    /// Makes sure that a thread runs the queued jobs.
    private func run() {
        let isThere = queue.withLock { queue in
            defer { queue.isRunning = true }
            return queue.isRunning
        }
        if isThere { return queue.wake() }
        do throws(Errno) {
            let (queue, doorbell) = (queue, try bell())
            try WorkerThread.start(named: name) { Self.work(queue, doorbell) }
        } catch {
            queue.withLock { $0.isRunning = false }
            // No thread could be created: the event loop runs the quick jobs itself, and the slow jobs fail.
            loop.later { [weak self] in self?.goWithout() }
        }
    }

    private func goWithout() {
        let jobs = queue.withLock { queue in
            defer { (queue.quick, queue.slow) = ([], []) }
            return queue.isRunning ? [] : queue.quick + queue.slow
        }
        for job in jobs {
            switch job {
            case .snapshot, .footprints, .release: Self.perform(job, queue, nil)
            case .pageOut(let ticket, _, _), .cold(let ticket, _, _), .purge(let ticket, _, _, _):
                queue.withLock { $0.answers.append((ticket, .done)) }
            }
        }
        answered()
    }

    private func bell() throws(Errno) -> EventCounter {
        if let doorbell { return doorbell }
        let doorbell = try EventCounter()
        source = try loop.watch(doorbell.raw, .readable) { [weak self] _ in self?.answered() }
        self.doorbell = doorbell
        return doorbell
    }

    private static func work(_ queue: Monitor<Queue>, _ doorbell: EventCounter) {
        while true {
            let next: Job?? = queue.wait { (queue, _) -> Job?? in
                if !queue.quick.isEmpty { return .some(queue.quick.removeFirst()) }
                if !queue.slow.isEmpty { return .some(queue.slow.removeFirst()) }
                if queue.staysReady { return nil }
                queue.isRunning = false
                return .some(nil)
            }
            guard let job = next.flatMap({ $0 }) else { return }
            perform(job, queue, doorbell)
        }
    }

    private static func perform(_ job: Job, _ queue: Monitor<Queue>, _ doorbell: EventCounter?) {
        func answer(_ ticket: Int, _ answer: Answer) {
            queue.withLock { $0.answers.append((ticket, answer)) }
            doorbell?.signal()
        }
        /// Runs queued quick jobs between the steps of a slow job; returns whether the slow job is still wanted.
        func goesOn(_ wish: Wish) -> Bool {
            while let quick = queue.withLock({ $0.quick.isEmpty ? nil : $0.quick.removeFirst() }) {
                perform(quick, queue, doorbell)
            }
            return wish.isThere
        }
        switch job {
        case .snapshot(let ticket): answer(ticket, .snapshot(Handed(value: ProcessSnapshot())))
        case .footprints(let ticket, let members): answer(ticket, .footprints(members.map { $0.footprint() }))
        case .release(let ticket, let members):
            members.release()
            answer(ticket, .done)
        case .pageOut(let ticket, let members, let wish):
            answer(ticket, .pageOut(members.pageOut(while: { goesOn(wish) })))
        case .purge(let ticket, let handed, let folders, let user):
            var bytes = handed.value.reduce(UInt64(0)) { $0 &+ ((try? File.empty($1.raw)) ?? 0) }
            if let user { bytes = folders.reduce(bytes) { $0 &+ ((try? File.purge($1, ownedBy: user)) ?? 0) } }
            answer(ticket, .purged(bytes))
        case .cold(let ticket, let members, let wish):
            members.markCold(while: { goesOn(wish) })
            answer(ticket, .done)
        }
    }

    private func answered() {
        doorbell?.drain()
        let answers = queue.withLock { queue in
            defer { queue.answers = [] }
            return queue.answers
        }
        leftAt = loop.now
        for (ticket, answer) in answers { pending.removeValue(forKey: ticket)?(answer) }
    }
}
