// SPDX-License-Identifier: Apache-2.0

import Configuration
import DataProtection
package import Engine
import EventLoop
import EventSources
package import Lifecycle
import Linux
import Mailbox
import Processes
import TorporAPI

/// The protected folders of apps. They are unlocked together. Before they are locked, their apps are notified, and
/// torpord waits for the answers.
///
/// ``ProtectionEdge`` decides when to lock and unlock; torpor-protect closes and opens the folders, one request after
/// the other. torpord itself reads none of them, and never has a key.
package final class ProtectedData: ShellRoom, LifecycleObserver {
    package unowned(unsafe) let supervisor: Supervisor
    var edge = ProtectionEdge()
    /// The state of each app's folder, as torpor-protect last reported it.
    private(set) var standings: [String: FolderStanding] = [:]
    /// Apps that were notified of a lock and have not answered yet.
    private var awaited: Set<AppID> = []
    /// For apps that get notifications as signals, which they cannot answer: until when they may keep their files open.
    private var patience: [AppID: Duration] = [:]
    private var timer: TimerSource?
    /// The launches that wait for the unlock, in order of arrival.
    var held: [AppID] = []
    /// Apps to be launched whose folders torpor-protect is opening or closing.
    var opening: Set<AppID> = []
    /// Processes outside all apps that hold files, and were reported since the last unlock: each is reported once.
    private var reported: Set<Int32> = []
    /// The state of the session and the machine that logind last reported; nil if it is not known.
    private var outside: Outside?
    /// Whether logind's state was handled before in this boot, by any torpord: then only a change of it has an effect.
    private var isOutsideKnown = false
    /// The user whose session was locked last; nil if this torpord has seen no lock.
    private var lockedUser: UInt32?
    /// Whether no folder was closed since the boot, so that the next lock must close all of them.
    private var isFresh = false
    /// Whether an earlier torpord has announced the unlock already, so that this torpord must not announce it.
    private var isQuiet = false
    private var whenLocked: [(String?) -> Void] = []
    private var whenUnlocked: [(Result<String?, Refusal>) -> Void] = []
    /// How far the closing of the folders has come when torpord ends; nil before that.
    private var closing: Closing?
    let runs: ProtectRuns

    private enum Closing { case underWay, done }

    /// Why protected data is not unlocked, as a sentence.
    package struct Refusal: Error, CustomStringConvertible {
        package let description: String
    }

    package init(_ supervisor: Supervisor) {
        self.supervisor = supervisor
        runs = ProtectRuns(supervisor)
    }

    // MARK: Places

    /// The app's own folder; nil for an app without protected data.
    package func folder(of app: AppRuntime) -> String? {
        app.specification.data.protection.kind.map { _ in door(of: app) + "/" + ProtectedPlace.files }
    }

    private var rules: SupervisorProtection { supervisor.configuration.supervisor.protection }

    /// The folder that contains the app's protected folder. A sandbox refers to this one, because the kernel cannot
    /// lock a folder that a sandbox refers to.
    func door(of app: AppRuntime) -> String { "\(runs.root)/\(app.name)" }

    func variables(of app: AppRuntime) -> [String: String] {
        folder(of: app).map { ["TORPOR_PROTECTED_DIRECTORY": $0] } ?? [:]
    }

    private var protected: [AppRuntime] { apps.filter { $0.specification.data.protection.kind != nil } }
    private var locking: [AppRuntime] { apps.filter { $0.specification.data.protection.kind == .complete } }

    /// Whether the app's folder is open, and is not being locked.
    func isReadable(_ app: AppRuntime) -> Bool {
        guard standings[app.name]?.state == .open else { return false }
        return app.specification.data.protection.kind == .firstUnlock || edge.isUnlocked
    }

    /// Whether the app stays out of the foreground until its data is unlocked.
    func covers(_ app: AppRuntime) -> Bool {
        app.specification.data.protection.kind == .complete && edge.hasBegun && !isReadable(app) && !isQuiet
    }

    // MARK: The edge

    /// Begins to protect data, if any app has protected data. Called after the takeover, and when another
    /// configuration is in force.
    package func configure() {
        edge.deadline = rules.deadline
        guard !edge.hasBegun, !protected.isEmpty, !isEnding else { return }
        let recorded = supervisor.recovery.protection
        // If the data was unlocked, an earlier torpord has told the apps so already.
        isQuiet = recorded == .unlocked
        isOutsideKnown = recorded != .nothing
        isFresh = recorded == .nothing
        if isFresh { supervisor.recovery.isFirstUnlockOver = false } else { reopenFirst() }
        handle(.begun(recorded))
        if recorded == .nothing, !rules.unlock.isEmpty { unlockFromOutside() }
        if let outside { follow(outside) }
    }

    /// Opens the folders that stay open after the first unlock of a boot, if an earlier torpord had opened them.
    private func reopenFirst() {
        let chosen = protected.filter { $0.specification.data.protection.kind == .firstUnlock }
        guard supervisor.recovery.isFirstUnlockOver, !chosen.isEmpty else { return }
        runs.open(folders(chosen)) { [weak self] result in
            guard let self else { return }
            _ = settle(result, chosen, isOpening: true)
            lookForLaunches()
        }
    }

    package func added(_ app: AppRuntime) {
        if app.specification.data.protection.kind != nil, supervisor.takeover.isOver { configure() }
    }

    private func handle(_ event: ProtectionEdge.Event) {
        for action in edge.handle(event, now: now) { perform(action) }
    }

    private func perform(_ action: ProtectionEdge.Action) {
        switch action {
        case .record(let recorded): supervisor.recovery.protection = recorded
        case .warn: warn()
        case .arm(let time):
            if timer == nil { timer = try? loop.timer { [weak self] in self?.isDue() } }
            timer?.arm(after: time)
        case .disarm: timer?.disarm()
        case .open: open()
        case .close: close()
        case .announceUnlocked: announceUnlocked()
        case .announceLocked(let isBusy): announceLocked(isBusy)
        case .stayLocked: stayLocked()
        }
    }

    private func isDue() {
        if edge.isWarning, !awaited.isEmpty {
            let names = apps.filter { awaited.contains($0.id) }.map(\.name).joined(separator: ", ")
            note(
                .dataBusy,
                text: "protected data is locked without the answers of \(names), which had "
                    + Quantity.text(edge.deadline) + " (protected_deadline)",
                level: .notice
            )
        }
        handle(.timeout)
    }

    // MARK: Locking

    private func warn() {
        awaited = []
        patience = [:]
        let signalled = Message.protectedDataWillBecomeUnavailable
        for app in locking where standings[app.name]?.state == .open {
            supervisor.wakes.notifications.tellProtectedData(false, to: app)
            guard app.specification.signals[signalled] != nil, !supervisor.hearsByChannel(app.id) else { continue }
            patience[app.id] = now + min(edge.deadline, Self.longestPatience)
        }
        supervisor.interruptions.coverAll()
        awaited = Set(locking.filter(isAwaited).map(\.id))
        if awaited.isEmpty { loop.later { [weak self] in self?.lookForAnswers() } }
    }

    /// The longest ``patience``. ``ProtectionEdge`` retries a lock for longer than this, so files that an app closes
    /// in time do not prevent the lock.
    private static let longestPatience = Duration.seconds(5)

    /// Whether the app was notified of the lock and can still answer. A suspended app cannot, and is not woken for
    /// that.
    private func isAwaited(_ app: AppRuntime) -> Bool {
        let machine = machine(app)
        guard machine.isAlive, app.run.tree != nil, machine.state != .suspended, machine.transition != .suspending,
            machine.transition != .terminating
        else { return false }
        return supervisor.mail(for: app).contains {
            $0.draft.message == Message.protectedDataWillBecomeUnavailable.rawValue
        }
    }

    private func lookForAnswers() {
        guard edge.isWarning else { return }
        awaited = awaited.filter { isAwaited(apps[$0]) }
        if awaited.isEmpty { handle(.answered) }
    }

    private func close() {
        let chosen = isFresh ? protected : locking
        isFresh = false
        runs.close(folders(chosen)) { [weak self] result in
            guard let self else { return }
            guard let found = settle(result, chosen, isOpening: false) else { return handle(.closed(isBusy: true)) }
            for standing in found { deal(with: standing) }
            handle(.closed(isBusy: found.contains(where: \.isBusy)))
        }
    }

    /// Ends apps that still hold files of a closed folder (evicts them if they are suspended), and reports other
    /// processes that hold such files.
    private func deal(with standing: FolderStanding) {
        var files: [AppID: [String]] = [:]
        for holder in standing.holders {
            guard let app = apps.first(where: { $0.run.tree?.contains(holder.pid) ?? false }) else {
                guard reported.insert(holder.pid).inserted else { continue }
                note(
                    .dataBusy,
                    text: "process \(holder.pid) (\(holder.name)) has \(Readable.count(holder.count, "file")) of the "
                        + "protected folder of \(standing.app) open: \(Self.list(holder.files)); it can still read "
                        + (holder.count == 1 ? "this file" : "these files") + " until it closes "
                        + (holder.count == 1 ? "it" : "them")
                )
                continue
            }
            files[app.id, default: []] += holder.files
        }
        for (id, names) in files {
            let app = apps[id]
            let machine = machine(app)
            guard machine.isAlive, machine.transition != .terminating else { continue }
            if let until = patience[id], now < until, machine.state != .suspended { continue }
            app.run.openProtectedFiles = Array(names.prefix(FileHolder.mostFiles))
            let request: Request = machine.state == .suspended ? .evict : .stop(.protectedDataOpen)
            supervisor.uninterrupted { [supervisor] in try? supervisor.request(request, of: id) }
        }
    }

    /// The reported reason if an app was ended because it kept protected files open.
    static func sentence(_ files: [String]) -> String {
        "had files of its protected folder open when it was locked: \(list(files))"
    }

    private static func list(_ files: [String]) -> String { files.joined(separator: ", ") }

    private func announceLocked(_ isBusy: Bool) {
        let why = isBusy ? busy : nil
        note(
            .dataLocked,
            text: "protected data is locked" + (why.map { ", " + $0 } ?? ""),
            level: isBusy ? .warning : .info
        )
        supervisor.interruptions.coverAll()
        supervisor.interruptions.look()
        lookForLaunches()
        let waiting = whenLocked
        whenLocked = []
        for body in waiting { body(why) }
        failUnlocks("data was locked again")
        engine.settle()
    }

    /// What keeps files of locked folders in use, such as `1 file busy: PID 4711 (less)`; nil if nothing does.
    private var busy: String? {
        let found = locking.compactMap { standings[$0.name] }.filter(\.isBusy)
        guard !found.isEmpty else { return nil }
        if let problem = found.lazy.compactMap(\.problem).first { return problem }
        return Self.busy(found)
    }

    static func busy(_ found: [FolderStanding]) -> String {
        var holders: [Int32: FileHolder] = [:]
        for holder in found.flatMap(\.holders) { holders[holder.pid] = holder }
        guard !holders.isEmpty else { return "files busy, by no process that could be found" }
        let count = holders.values.reduce(0) { $0 + $1.count }
        let list = holders.values.sorted { $0.pid < $1.pid }.prefix(8).map { "PID \($0.pid) (\($0.name))" }
        return "\(Readable.count(count, "file")) busy: \(list.joined(separator: ", "))"
    }

    // MARK: Unlocking

    private func open() {
        let chosen = protected
        runs.open(folders(chosen)) { [weak self] result in
            guard let self else { return }
            let found = settle(result, chosen, isOpening: true)
            // The unlock fails if torpor-protect failed, or if keys are missing and no folder is open. A folder that
            // cannot be protected at all does not count.
            let lacksKeys = found?.contains { $0.state == .withoutKey } ?? true
            handle(.opened(!lacksKeys || found?.contains { $0.state == .open } ?? false))
        }
    }

    private func announceUnlocked() {
        reported = []
        if !isQuiet {
            note(.dataUnlocked, text: "protected data is unlocked")
            for app in locking where isReadable(app) { supervisor.wakes.notifications.tellProtectedData(true, to: app) }
        }
        isQuiet = false
        supervisor.recovery.isFirstUnlockOver = true
        supervisor.interruptions.coverAll()
        lookForLaunches()
        let closed = protected.compactMap { app in
            isReadable(app) ? nil : standings[app.name]?.problem.map { "\(app.name) stays locked: \($0)" }
        }
        let waiting = whenUnlocked
        whenUnlocked = []
        for body in waiting { body(.success(closed.first)) }
        for body in whenLocked { body("it was unlocked again") }
        whenLocked = []
        engine.settle()
    }

    private func stayLocked() {
        let why =
            protected.lazy.compactMap { app in
                self.standings[app.name]?.problem.map { "\(app.name): \($0)" }
            }.first ?? "no folder could be opened"
        note(.dataLocked, text: "protected data stays locked: \(why)", level: .notice)
        isQuiet = false
        supervisor.interruptions.coverAll()
        lookForLaunches()
        failUnlocks(why)
        engine.settle()
    }

    private func failUnlocks(_ why: String) {
        let waiting = whenUnlocked
        whenUnlocked = []
        for body in waiting { body(.failure(Refusal(description: why))) }
    }

    /// Stores and returns the states of folders that torpor-protect reported. If torpor-protect failed, stores the
    /// error for all `chosen` apps, and returns nil.
    func settle(
        _ result: Result<[FolderStanding], LaunchError>,
        _ chosen: [AppRuntime],
        isOpening: Bool
    ) -> [FolderStanding]? {
        switch result {
        case .success(let found):
            for var standing in found {
                standing.isEncrypted = standing.isEncrypted ?? standings[standing.app]?.isEncrypted
                standings[standing.app] = standing
            }
            return found
        case .failure(let error):
            log.error("torpor-protect: \(error)")
            for app in chosen {
                var standing = FolderStanding(app: app.name, .refused)
                standing.isEncrypted = standings[app.name]?.isEncrypted
                standing.problem = "its folder could not be \(isOpening ? "opened" : "locked"): \(error)"
                standing.isBusy = !isOpening
                standings[app.name] = standing
            }
            return nil
        }
    }

    func folders(_ chosen: [AppRuntime]) -> [ProtectedFolder] {
        chosen.map { app in
            ProtectedFolder(
                app: app.name,
                mayFallBack: app.specification.data.protection.fallback == .permissions,
                user: app.specification.user ?? "",
                group: app.specification.group ?? ""
            )
        }
    }

    // MARK: What locks

    /// The state of the session and the machine, as logind reports it.
    struct Outside {
        let isLocked: Bool
        let isAsleep: Bool
        /// Whether there is a session that could be unlocked.
        let hasSession: Bool
        /// The user of that session; nil if that is not known yet.
        let user: UInt32?
    }

    /// Called when logind's state is known for the first time, and at each change.
    func follow(_ now: Outside) {
        outside = now
        guard edge.hasBegun else { return }
        let isOn = rules.lockWith.contains(.session) && now.isLocked || rules.lockWith.contains(.sleep) && now.isAsleep
        let wasOn = supervisor.recovery.isDataLockedFromOutside
        supervisor.recovery.isDataLockedFromOutside = isOn
        if isOn {
            if !wasOn || !isOutsideKnown { handle(.lock) }
            if now.isLocked { lockedUser = now.user }
        } else if wasOn, rules.lockWith.contains(.session), !now.hasSession || isOthers(now.user) {
            // The session has ended, another user's session (such as a login screen) is in its place, or logind does
            // not answer. None of this shows that the user has unlocked the session, so the data stays locked.
            supervisor.recovery.isDataLockedFromOutside = true
        } else if wasOn || !isOutsideKnown && now.hasSession {
            // The screen locker may have unlocked the data already, by ‘torpor protect unlock’.
            if !edge.isUnlocked { unlockFromOutside() }
        }
        isOutsideKnown = true
    }

    private func isOthers(_ user: UInt32?) -> Bool {
        if let user, let lockedUser { user != lockedUser } else { false }
    }

    /// Unlocks data because the session was unlocked or torpord starts. If a command is configured for that, it gives
    /// the passphrase to ‘torpor protect unlock’, which then requests the unlock as any client does.
    private func unlockFromOutside() {
        guard !rules.unlock.isEmpty else { return handle(.unlock) }
        runs.unlock(rules.unlock) { [weak self] why in
            guard let self, let why else { return }
            note(
                .dataLocked,
                text: "protected data stays locked: the command unlock of [supervisor.protected]: \(why)",
                level: .warning
            )
        }
    }

    /// Whether the machine must not sleep yet, because data is still being locked.
    var holdsSleep: Bool { edge.isLocking && outside?.isAsleep == true }

    /// Locks data. `completion` gets a sentence about what keeps files in use; nil if nothing does.
    package func lock(by person: String, _ completion: @escaping (String?) -> Void) {
        guard edge.hasBegun else { return completion("no app has protected data") }
        if edge.isLocked { return completion(busy) }
        log.info("\(person) locks protected data")
        whenLocked.append(completion)
        handle(.lock)
    }

    /// Unlocks data whose keys the kernel has. `completion` gets a sentence about a folder that stays locked, or nil.
    package func unlock(by person: String, _ completion: @escaping (Result<String?, Refusal>) -> Void) {
        guard edge.hasBegun else { return completion(.success("no app has protected data")) }
        guard closing == nil else { return completion(.failure(Refusal(description: "torpord is ending"))) }
        log.info("\(person) unlocks protected data")
        whenUnlocked.append(completion)
        handle(.unlock)
    }

    // MARK: Following apps

    package func touched(_ apps: [AppRuntime]) {
        if edge.isWarning, !awaited.isEmpty, apps.contains(where: { awaited.contains($0.id) }) { lookForAnswers() }
        guard !held.isEmpty else { return }
        held.removeAll { !coordinator.waitsForMemory($0) }
    }

    package func ended(_ app: AppRuntime, _ ending: Ending) {
        if edge.isWarning, awaited.contains(app.id) { lookForAnswers() }
    }

    package func forget(_ app: AppRuntime) {
        awaited.remove(app.id)
        held.removeAll { $0 == app.id }
        guard app.specification.data.protection.kind != nil else { return }
        standings[app.name] = nil
        // The app's data stays, and is locked until the app is in the configuration again.
        runs.close(folders([app])) { _ in }
    }

    // MARK: The end

    /// Locks all folders when torpord ends and all apps are gone. Returns whether the folders are locked. If they are
    /// not, calls ``Shutdown/finishWhenGone()`` when they are.
    func endAll() -> Bool {
        guard edge.hasBegun else { return true }
        switch closing {
        case .done: return true
        case .underWay: return false
        case nil: closing = .underWay
        }
        let chosen = protected
        supervisor.recovery.protection = .locking
        runs.close(folders(chosen)) { [weak self] result in
            guard let self else { return }
            for standing in settle(result, chosen, isOpening: false) ?? [] { deal(with: standing) }
            supervisor.recovery.protection = .locked
            closing = .done
            supervisor.shutdown.finishWhenGone()
        }
        return false
    }
}
