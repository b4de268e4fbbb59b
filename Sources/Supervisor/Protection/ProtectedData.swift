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

/// The protected folders of apps: unlocked together, and locked after their apps were told and have answered.
///
/// ``ProtectionEdge`` decides; torpor-protect opens and closes the folders, one run after the other. torpord itself
/// looks into none of them, and never has a key.
package final class ProtectedData: ShellRoom, LifecycleObserver {
    package unowned(unsafe) let supervisor: Supervisor
    var edge = ProtectionEdge()
    /// What torpor-protect found last, by app.
    private(set) var standings: [String: FolderStanding] = [:]
    /// Apps that were told of a lock, and have not answered.
    private var awaited: Set<AppID> = []
    /// Until when apps that were told by a signal, which they cannot answer, may keep their files open.
    private var patience: [AppID: Duration] = [:]
    private var timer: TimerSource?
    /// The launches that wait for the unlock, in order of arrival.
    var held: [AppID] = []
    /// Launches whose folders are being opened.
    var opening: Set<AppID> = []
    /// Processes that were reported since the last unlock.
    private var reported: Set<Int32> = []
    /// What logind has said last; nil if that is not known.
    private var outside: Outside?
    /// Whether this torpord or an earlier one of this boot has followed a session: then only a change of it counts.
    private var isOutsideKnown = false
    /// The user whose session was locked last; nil if this torpord has seen no lock.
    private var lockedUser: UInt32?
    /// Whether no folder was closed since the boot, so that all must be.
    private var isFresh = false
    /// Whether the next unlock is only found, and was announced by an earlier torpord.
    private var isQuiet = false
    private var whenLocked: [(String?) -> Void] = []
    private var whenUnlocked: [(Result<String?, Refusal>) -> Void] = []
    /// At the supervisor's end, whether the folders are closed.
    private var closing: Closing?
    let runs: ProtectRuns

    private enum Closing { case underWay, done }

    /// Why data is not unlocked.
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

    /// The folder before it. A sandbox names this one: the kernel cannot lock a folder that a sandbox refers to.
    func door(of app: AppRuntime) -> String { "\(runs.root)/\(app.name)" }

    func variables(of app: AppRuntime) -> [String: String] {
        folder(of: app).map { ["TORPOR_PROTECTED_DIRECTORY": $0] } ?? [:]
    }

    private var protected: [AppRuntime] { apps.filter { $0.specification.data.protection.kind != nil } }
    private var locking: [AppRuntime] { apps.filter { $0.specification.data.protection.kind == .complete } }

    /// Whether the app can read its folder, and nobody is locking it.
    func isReadable(_ app: AppRuntime) -> Bool {
        guard standings[app.name]?.state == .open else { return false }
        return app.specification.data.protection.kind == .firstUnlock || edge.isUnlocked
    }

    /// Whether the app stays out of the foreground until its data is unlocked.
    func covers(_ app: AppRuntime) -> Bool {
        app.specification.data.protection.kind == .complete && edge.hasBegun && !isReadable(app) && !isQuiet
    }

    // MARK: The edge

    /// Called when torpord has taken over what exists, and after another configuration is in force.
    package func configure() {
        edge.deadline = rules.deadline
        guard !edge.hasBegun, !protected.isEmpty, !isEnding else { return }
        let recorded = supervisor.recovery.protection
        // Apps know already that their data is unlocked.
        isQuiet = recorded == .unlocked
        isOutsideKnown = recorded != .nothing
        isFresh = recorded == .nothing
        if isFresh { supervisor.recovery.isFirstUnlockOver = false } else { reopenFirst() }
        handle(.begun(recorded))
        if recorded == .nothing, !rules.unlock.isEmpty { unlockFromOutside() }
        if let outside { follow(outside) }
    }

    /// An earlier torpord had opened the folders that stay open after the first unlock.
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

    /// Shorter than the retries of ``ProtectionEdge``, so that the files are closed within them.
    private static let longestPatience = Duration.seconds(5)

    /// Whether the app was told of the lock and can still answer. A suspended app cannot without being woken.
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

    /// Ends or evicts apps that hold files of a closed folder, and reports other processes.
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

    /// What an app failed to do that was ended for its open files.
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

    /// What keeps files in use, such as `1 file busy: PID 4711 (less)`; nil if nothing does.
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
            // A folder that cannot be protected at all keeps no other one locked.
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

    /// Stores what a run found. Nil if it did not come to its end.
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

    /// A session and the machine, as logind has them.
    struct Outside {
        let isLocked: Bool
        let isAsleep: Bool
        /// Whether there is a session that could be unlocked.
        let hasSession: Bool
        /// The user of that session; nil if that is not known yet.
        let user: UInt32?
    }

    /// Called when logind's state is known, and whenever it changes.
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
            // The session has ended, another user's is in its place (a login screen is), or logind does not answer: none
            // of these says that a user has unlocked it.
            supervisor.recovery.isDataLockedFromOutside = true
        } else if wasOn || !isOutsideKnown && now.hasSession {
            // The screen locker may have unlocked it by ‘torpor protect unlock’ before.
            if !edge.isUnlocked { unlockFromOutside() }
        }
        isOutsideKnown = true
    }

    private func isOthers(_ user: UInt32?) -> Bool {
        if let user, let lockedUser { user != lockedUser } else { false }
    }

    /// Unlocks data without a person. The command gives the passphrase to ‘torpor protect unlock’, which then asks for
    /// the unlock like any client.
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

    /// Whether a sleep of the machine waits for the lock.
    var holdsSleep: Bool { edge.isLocking && outside?.isAsleep == true }

    /// Locks data. `completion` gets what keeps files in use.
    package func lock(by person: String, _ completion: @escaping (String?) -> Void) {
        guard edge.hasBegun else { return completion("no app has protected data") }
        if edge.isLocked { return completion(busy) }
        log.info("\(person) locks protected data")
        whenLocked.append(completion)
        handle(.lock)
    }

    /// Unlocks data, whose keys the kernel has.
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
        // What it has stays, locked until the app is back in the configuration.
        runs.close(folders([app])) { _ in }
    }

    // MARK: The end

    /// Locks all folders at the end of the supervisor, when its apps are gone. Returns whether they are locked;
    /// otherwise calls ``Shutdown/finishWhenGone()`` then.
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
