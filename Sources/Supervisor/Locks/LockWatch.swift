// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import Lifecycle
import Linux
import Processes

/// The result of a check of an app's file locks.
enum LockFinding {
    /// No lock keeps the app from being suspended. `holds`: whether the app holds locks, or may hold some because not
    /// all of its processes could be read. `pids`: what the app's cgroup contained, if it was read just now.
    case free(holds: Bool, pids: [Int32]? = nil)
    /// These locks keep the app from being suspended.
    case inTheWay([LockInTheWay])
}

/// Finds the file locks that should keep an app from being suspended.
///
/// An app's locks are read from the file descriptors of its processes, which takes about 8 µs per descriptor. If that
/// finds no locks, as for most apps, the app is suspended without delay.
///
/// Only the machine's lock table shows which processes wait for a lock. The kernel may need 10 ms to print it, so a
/// ``CoalescingReader`` reads it on another thread, and only if the app has a lock, a process whose locks cannot be
/// read, or more descriptors than can be read in a millisecond.
final class LockWatch: Room, LifecycleObserver {
    let engine: Engine
    let recorder: Recorder
    private let reader: CoalescingReader<LockTable.Question, LockTable>
    private var timer: TimerSource?
    /// Suspended apps to check again.
    private var due: [AppID: Due] = [:]

    private struct Due {
        let at: Duration
        /// Whether the app's locks were read after it was stopped, so that the stored list of its locks is complete.
        let isKnown: Bool
    }

    /// The time until the first check, which finds locks that were taken just before the stop. Later checks follow
    /// while the app holds a lock.
    private static let soon = Duration.seconds(1)
    private static let interval = Duration.seconds(10)
    /// Whether it was reported that the machine has too many locks.
    private var isToldPartial = false
    /// The longest time for which one check may keep the event loop busy.
    private static let slice = Duration.milliseconds(1)

    init(_ engine: Engine, _ recorder: Recorder) {
        self.engine = engine
        self.recorder = recorder
        // The kernel may take 10 ms to print its table of locks, so another thread reads it. If the table cannot be
        // read, this code treats it as empty.
        reader = CoalescingReader(engine.loop, named: "locks", joining: { $0.formUnion($1) }) { question in
            (try? LockTable.read(question)) ?? LockTable()
        }
    }

    func entered(_ app: AppRuntime, from: AppState, to: AppState) {
        switch to {
        case .suspended:
            app.run.locksInTheWay = nil
            followLocks(app)
        case .background: app.run.locks = nil
        case .active, .inactive:
            app.run.locksInTheWay = nil
            app.run.locks = nil
        case .notRunning: break  // The app's report still needs the locks.
        }
    }

    func forget(_ app: AppRuntime) { due[app.id] = nil }

    // MARK: One look

    /// A check of an app's locks that has begun and has not ended. A later check of the app replaces it in `lockLook`;
    /// an event that makes the check needless sets `lockLook` to nil.
    final class Look {
        let app: AppRuntime
        let tree: ProcessTree
        var reading: HeldLockReading
        /// What the app's cgroup contained when the check began.
        let pids: [Int32]?
        let completion: (LockFinding) -> Void

        init(_ app: AppRuntime, _ tree: ProcessTree, _ completion: @escaping (LockFinding) -> Void) {
            self.app = app
            self.tree = tree
            self.completion = completion
            let listing = tree.quickListing()
            reading = HeldLockReading(listing.members)
            pids = listing.ofCgroup
        }

        var isWanted: Bool { app.run.lockLook === self && app.run.tree === tree }
    }

    /// Checks an app's locks. Calls `completion` at once if the app has no locks. Never calls it if the check becomes
    /// needless before it ends.
    func look(at app: AppRuntime, _ completion: @escaping (LockFinding) -> Void) {
        guard let tree = app.run.tree else { return completion(.free(holds: false)) }
        let look = Look(app, tree, completion)
        let isRead = look.reading.read(until: Clock.monotonic() + Self.slice)
        if isRead, look.reading.locks.isEmpty, look.reading.unreadable.isEmpty {
            // Most apps hold no locks, so most checks end here.
            app.run.lockLook = nil
            app.run.locks = nil
            return completion(.free(holds: false, pids: look.pids))
        }
        app.run.lockLook = look
        if isRead { return found(look) }
        // The app has very many descriptors, so reading them takes long. Ask first whether any process waits for a lock
        // at all: most likely none does.
        let resources = app.specification.sharedResources
        guard resources.isEmpty else { return readOn(look) }
        ask(LockTable.Question(files: nil)) { [weak self] table in
            guard let self, look.isWanted else { return }
            let waits = table.waiters.contains { Self.isOutside($0, look.tree) }
            if waits { self.readOn(look) } else { self.finish(look, .free(holds: true)) }
        }
    }

    /// Reads the machine's lock table. If a part of it could not be read in time, the waiters in that part are not
    /// known: apps are suspended as if there were none. Otherwise a user with very many locks could keep all apps from
    /// being suspended.
    private func ask(_ question: LockTable.Question, _ completion: @escaping (LockTable) -> Void) {
        reader.ask(question) { [weak self] table in
            if table.isPartial, let self, !self.isToldPartial {
                self.isToldPartial = true
                self.log.warning(
                    "this machine has so many file locks that /proc/locks cannot be read in time: it is not known who waits "
                        + "for a lock of a suspended app"
                )
            }
            completion(table)
        }
    }

    private func readOn(_ look: Look) {
        guard look.isWanted else { return }
        if look.reading.read(until: Clock.monotonic() + Self.slice) { return found(look) }
        loop.later { [weak self] in self?.readOn(look) }
    }

    private func found(_ look: Look) {
        let reading = look.reading
        if reading.locks.isEmpty, reading.unreadable.isEmpty { return finish(look, .free(holds: false)) }
        look.app.run.locks = reading.locks.isEmpty ? nil : reading.locks
        let question = LockTable.Question(
            files: reading.unreadable.isEmpty ? Set(reading.locks.compactMap(\.lock.file)) : nil,
            holders: Set(reading.unreadable)
        )
        ask(question) { [weak self] table in
            guard let self, look.isWanted else { return }
            // The kernel's table of locks also shows locks of processes whose descriptors cannot be read, if an entry
            // contains the holder's pid.
            let others = table.locks.compactMap { lock in
                lock.pid.flatMap { pid in question.holders.contains(pid) ? HeldLock(lock, path: nil, holder: pid) : nil
                }
            }
            let held = reading.locks + others
            look.app.run.locks = held.isEmpty ? nil : held
            self.judge(look, held, table)
        }
    }

    private func judge(_ look: Look, _ held: [HeldLock], _ table: LockTable) {
        let inTheWay = Self.inTheWay(held, table, look.tree, look.app.specification.sharedResources)
        finish(look, inTheWay.isEmpty ? .free(holds: !held.isEmpty) : .inTheWay(inTheWay))
    }

    private func finish(_ look: Look, _ finding: LockFinding) {
        look.app.run.lockLook = nil
        look.completion(finding)
    }

    static func inTheWay(
        _ held: [HeldLock],
        _ table: LockTable,
        _ tree: ProcessTree,
        _ resources: [String]
    ) -> [LockInTheWay] {
        held.compactMap { one in
            let waiter = table.waiters.first { waiter in
                waiter.file == one.lock.file && one.lock.blocks(waiter.request) && isOutside(waiter, tree)
            }
            guard waiter != nil || one.isOn(resources, others: held) else { return nil }
            return LockInTheWay(held: one, isAwaited: waiter != nil, waiter: waiter?.request.pid)
        }
    }

    /// Whether a waiter for a lock is a process outside the app. A waiter whose pid is unknown counts as outside the
    /// app.
    private static func isOutside(_ waiter: LockTable.Waiter, _ tree: ProcessTree) -> Bool {
        waiter.request.pid.map { !tree.contains($0) } ?? true
    }

    // MARK: Suspended apps

    /// Starts to check the locks of a suspended app.
    func follow(_ app: AppRuntime) { put(app.id, in: Self.soon, isKnown: false) }

    private func put(_ app: AppID, in time: Duration, isKnown: Bool = true) {
        let at = now + time
        due[app] = Due(at: at, isKnown: isKnown)
        if timer == nil { timer = try? loop.timer { [weak self] in self?.lookAgain() } }
        if timer?.deadline.map({ $0 > at }) ?? true { timer?.arm(after: time) }
    }

    private func lookAgain() {
        timer?.disarm()
        let now = loop.now
        // Check apps that are due soon as well, so that the kernel's table is read once for all of them.
        let apps = due.filter { $0.value.at <= now + .milliseconds(100) }
        due = due.filter { apps[$0.key] == nil }
        look(at: apps.map { ($0.key, $0.value.isKnown) }.sorted { $0.0 < $1.0 }[...])
        if let next = due.values.map(\.at).min() { timer?.arm(after: max(.zero, next - now)) } else { timer = nil }
    }

    private func look(at rest: ArraySlice<(app: AppID, isKnown: Bool)>) {
        var rest = rest
        let end = Clock.monotonic() + Self.slice
        while let (id, isKnown) = rest.popFirst() {
            if isStillToBeLookedAt(id) { lookAgain(at: apps[id], isKnown: isKnown) }
            if Clock.monotonic() >= end { break }
        }
        if !rest.isEmpty { loop.later { [weak self] in self?.look(at: rest) } }
    }

    private func lookAgain(at app: AppRuntime, isKnown: Bool) {
        let id = app.id
        // Wait for the check in progress: a second check would replace it, and the caller of the first would never get
        // an answer.
        guard app.run.stop == .none, app.run.lockLook == nil else { return put(id, in: Self.interval) }
        // A stopped app takes and releases no locks. So if the stored list of locks is complete, only the waiters for
        // these locks have to be found.
        guard isKnown, let known = app.run.locks, let tree = app.run.tree else {
            return look(at: app) { [weak self] in self?.looked(at: id, $0) }
        }
        ask(LockTable.Question(files: Set(known.compactMap(\.lock.file)))) { [weak self] table in
            guard let self, self.isStillToBeLookedAt(id), app.run.tree === tree else { return }
            let isFree = Self.inTheWay(known, table, tree, app.specification.sharedResources).isEmpty
            if isFree || app.run.stop != .none { return self.put(id, in: Self.interval) }
            self.look(at: app) { [weak self] in self?.looked(at: id, $0) }
        }
    }

    private func looked(at id: AppID, _ finding: LockFinding) {
        guard isStillToBeLookedAt(id) else { return }
        switch finding {
        case .free(holds: false, _): break
        case .free(holds: true, _): put(id, in: Self.interval)
        case .inTheWay(let locks):
            put(id, in: Self.interval)
            isHeld(apps[id], by: locks)
        }
    }
}

extension Incarnation {
    /// The unfinished check of the app's file locks; nil if there is none.
    var lockLook: LockWatch.Look? {
        get { slots[LockLookSlot.self] }
        set { slots[LockLookSlot.self] = newValue }
    }

    /// The file locks that the app had at the last check; nil if it had none, or was not checked.
    var locks: [HeldLock]? {
        get { slots[LocksSlot.self] }
        set { slots[LocksSlot.self] = newValue }
    }
}

private enum LockLookSlot: Slot { typealias Value = LockWatch.Look }
private enum LocksSlot: Slot { typealias Value = [HeldLock] }
