// SPDX-License-Identifier: Apache-2.0

import Engine
package import EventLoop
import Linux
package import Processes

/// What waits for the kernel on behalf of memory, on a thread of its own, of which there is none while there is nothing
/// to do: paging apps out, looking at what they have, taking what those had that were killed. Paging an app out may
/// take seconds; whatever else is asked for is done in between.
///
/// Of the loop's thread. Completions are called by the loop, later, never at once.
package final class MemoryWorker {
    private enum Job: Sendable {
        case snapshot(Int)
        case footprints(Int, [MembersMemory])
        case release(Int, MembersMemory)
        case pageOut(Int, MembersMemory, Wish)
        case cold(Int, MembersMemory, Wish)
        case purge(Int, Handed<[Descriptor]>, [String], UInt32?)
    }

    /// Whether something is still wanted.
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

    /// Given from one thread to the other, and touched by the first no more.
    private struct Handed<Value>: @unchecked Sendable { let value: Value }

    private struct Queue {
        /// What takes moments.
        var quick: [Job] = []
        var slow: [Job] = []
        var isRunning = false
        var staysReady = false
        var answers: [(ticket: Int, answer: Answer)] = []
    }

    /// A thread that has answered may still be on its way out of the program's memory.
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

    /// - Parameter name: of the thread; at most 15 bytes.
    package init(_ loop: EventLoop, named name: String = "memory") { (self.loop, self.name) = (loop, name) }

    // Nobody else would tell the thread to go.
    deinit { if staysReady { letGo() } }

    private func letGo() {
        queue.withLock { $0.staysReady = false }
        queue.wake()
    }

    /// Whether something that was asked for is still to be answered.
    var isAtWork: Bool { !pending.isEmpty }

    /// Whether no thread of it is in the program.
    package var isIdle: Bool {
        !isAtWork && !staysReady && leftAt.map { loop.now - $0 > Self.leaving } ?? true
    }

    /// Whether the thread stays when it has nothing to do: a thread that is there needs no memory when memory is short.
    var staysReady = false {
        didSet {
            guard staysReady != oldValue else { return }
            queue.withLock { $0.staysReady = staysReady }
            if staysReady { run() } else { queue.wake() }
            leftAt = loop.now
        }
    }

    // MARK: What is asked

    /// Pages out what an app has. Each app once at a time: a second wish is answered with EBUSY.
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

    /// Marks what an app has as the first to go.
    func markCold(_ tree: ProcessTree) {
        let key = ObjectIdentifier(tree)
        guard wishes[key] == nil else { return }
        let (wish, ticket) = (Wish(), newTicket())
        wishes[key] = (wish, ticket, true)
        members(of: [tree]) { [self] members in
            ask(ticket, slowly: true, .cold(ticket, members[0], wish)) { _ in self.forget(key, ticket) }
        }
    }

    /// An app is to go on: what is still to be paged out of it stays. A page-out that is under way ends within some
    /// milliseconds, and says so to its completion.
    package func cancel(_ tree: ProcessTree) { wishes.removeValue(forKey: ObjectIdentifier(tree))?.wish.cancel() }

    /// What these apps have, in their order.
    func footprints(of trees: [ProcessTree], _ completion: @escaping ([Footprint]) -> Void) {
        members(of: trees) { [self] members in
            let ticket = newTicket()
            ask(ticket, .footprints(ticket, members)) { answer in
                guard case .footprints(let footprints) = answer else { return completion(members.map { _ in .init() }) }
                completion(footprints)
            }
        }
    }

    /// Takes what processes had that were sent SIGKILL: so it is there before the last of them has come to its end.
    ///
    /// - Parameter processes: as they were before the signal (``ProcessTree/pinned(in:)``).
    package func release(_ processes: MembersMemory) {
        let ticket = newTicket()
        ask(ticket, .release(ticket, processes)) { _ in }
    }

    /// Empties these files, which nobody here uses any more, and removes the files in these folders that belong to that
    /// user, as far as they are in memory; tells how many bytes they took.
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

    /// Lists and pins; /proc is read as a whole only where it must be, and not by the loop.
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

    /// Sees to it that somebody comes to what waits.
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
            // No room for a thread: what takes moments the loop does itself this once; the rest is answered as not done.
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
        /// Between the steps of what takes long, what takes moments.
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
