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

/// The protected folders of apps. All folders are unlocked together. Before they are locked, torpord notifies their
/// apps and waits for the answers.
///
/// ``ProtectionEdge`` decides when to lock and unlock; torpor-protect closes and opens the folders, one request after
/// the other. torpord itself never reads these folders, and never has a key.
package final class ProtectedData: ShellRoom, LifecycleObserver {
    package unowned(unsafe) let supervisor: Supervisor
    var edge = ProtectionEdge()
    /// The state of each app's folder, as torpor-protect last reported it.
    private(set) var standings: [String: FolderStanding] = [:]
    /// Apps that were notified of a lock and have not answered yet.
    private var awaited: Set<AppID> = []
    /// For apps that are notified by signals and cannot answer: until when they may keep their files open.
    private var patience: [AppID: Duration] = [:]
    private var timer: TimerSource?
    /// The launches that wait for an unlock, in order of arrival.
    var held: [AppID] = []
    /// Apps that wait to be launched while torpor-protect opens or closes their folders.
    var opening: Set<AppID> = []
    /// The pids of processes that belong to no app, and were reported since the last unlock because they have protected
    /// files open.
    private var reported: Set<Int32> = []
    /// The state of the session and the machine that logind last reported; nil if it is not known.
    var outside: OutsideLocks.State?
    /// Decides when the lock of the session and the sleep of the machine lock or unlock data.
    var locks = OutsideLocks(OutsideLocks.Recorded(session: false, sleep: false), isKnown: false)
    /// The time at which the machine sleeps even if torpord is not ready; nil if torpord delays no imminent sleep.
    var sleepsAt: Duration?
    /// Whether no folder was closed in this boot yet, so that the next lock must close all of them.
    private var isFresh = false
    /// Apps whose folders were open before torpor-protect opens all folders: they get no message about the unlock.
    private var readers: Set<AppID> = []
    /// Launches that are paused because data was locked after they began.
    var stopped: [StoppedLaunch] = []
    private var retryTimer: TimerSource?
    /// Whether an earlier torpord has announced the unlock, so that this torpord must not announce it again.
    private var isQuiet = false
    var whenLocked: [(Result<String?, Refusal>) -> Void] = []
    var whenUnlocked: [(Result<String?, Refusal>) -> Void] = []
    /// The progress of closing the folders when torpord ends; nil until then.
    var closing: Closing?
    let runs: ProtectRuns

    enum Closing { case underWay, done }

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

    var rules: SupervisorProtection { supervisor.configuration.supervisor.protection }

    /// The path by which a sandbox refers to the app's protected folder: the folder that contains it. It is not the
    /// protected folder itself, because the kernel cannot lock a folder that a sandbox refers to.
    func door(of app: AppRuntime) -> String { "\(runs.root)/\(app.name)" }

    func variables(of app: AppRuntime) -> [String: String] {
        folder(of: app).map { ["TORPOR_PROTECTED_DIRECTORY": $0] } ?? [:]
    }

    var protected: [AppRuntime] { apps.filter { $0.specification.data.protection.kind != nil } }
    var locking: [AppRuntime] { apps.filter { $0.specification.data.protection.kind == .complete } }

    /// Whether the app's folder is open, and no lock in progress will close it.
    func isReadable(_ app: AppRuntime) -> Bool {
        guard standings[app.name]?.state == .open else { return false }
        return app.specification.data.protection.kind == .firstUnlock || edge.isUnlocked
    }

    /// Whether the app stays out of the foreground until its data is unlocked.
    func covers(_ app: AppRuntime) -> Bool {
        app.specification.data.protection.kind == .complete && edge.hasBegun && !isReadable(app) && !isQuiet
    }

    // MARK: The edge

    /// Begins to protect data, if any app has protected data. Called after the takeover and after each change of the
    /// configuration.
    package func configure() {
        edge.deadline = rules.deadline
        guard !isEnding else { return }
        guard !edge.hasBegun else {
            sweep()
            // `lock_with` may have changed, so that other events than before lock data.
            if let outside { follow(outside, sleepsAt: sleepsAt) }
            return
        }
        let recorded = supervisor.recovery.protection
        guard !protected.isEmpty else {
            // No app has protected data. Close folders that an earlier torpord of this boot may have left open.
            if recorded != .nothing { runs.sweep(keeping: []) }
            return
        }
        // If the data was unlocked, do not notify the apps of the unlock: an earlier torpord has done that.
        isQuiet = recorded == .unlocked
        isFresh = recorded == .nothing
        if isFresh {
            supervisor.recovery.isFirstUnlockOver = false
            supervisor.recovery.outsideLocks = OutsideLocks.Recorded(session: false, sleep: false)
        } else {
            reopenFirst()
        }
        locks = OutsideLocks(supervisor.recovery.outsideLocks, isKnown: !isFresh)
        handle(.begun(recorded))
        runs.sweep(keeping: folders(protected))
        if isFresh, !rules.unlock.isEmpty { unlockFromOutside() }
        if let outside { follow(outside, sleepsAt: sleepsAt) }
    }

    /// Closes the folders of apps that are gone, or no longer have protected data.
    func sweep() {
        let kept = protected
        let names = Set(kept.map(\.name))
        let gone = standings.keys.filter { !names.contains($0) }
        guard !gone.isEmpty else { return }
        for name in gone { standings[name] = nil }
        runs.sweep(keeping: folders(kept))
    }

    /// Opens the folders that stay open after the first unlock of a boot, if that unlock has happened already.
    private func reopenFirst() {
        let chosen = protected.filter { $0.specification.data.protection.kind == .firstUnlock }
        guard supervisor.recovery.isFirstUnlockOver, !chosen.isEmpty else { return }
        runs.open(folders(chosen)) { [weak self] outcome in
            guard let self else { return }
            settle(outcome, chosen, isOpening: true)
            lookForLaunches()
        }
    }

    package func added(_ app: AppRuntime) {
        if app.specification.data.protection.kind != nil, supervisor.takeover.isOver { configure() }
    }

    func handle(_ event: ProtectionEdge.Event) {
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
        case .announceFailure: announceFailure()
        case .stayLocked: stayLocked()
        }
    }

    private func isDue() {
        if edge.isWarning, !awaited.isEmpty {
            let names = apps.filter { awaited.contains($0.id) }.map(\.name).joined(separator: ", ")
            note(
                .dataBusy,
                text: "protected data is locked without the answers of \(names), which had "
                    + (holdsSleep ? "no longer, since the machine sleeps" : Quantity.text(edge.deadline))
                    + " (protected_deadline)",
                level: .notice
            )
        }
        handle(.timeout)
    }

    // MARK: Locking

    private func warn() {
        awaited = []
        patience = [:]
        // For the lock, notify also the apps that an earlier torpord has told of the unlock.
        isQuiet = false
        let signalled = Message.protectedDataWillBecomeUnavailable
        for app in locking where standings[app.name]?.state == .open {
            supervisor.wakes.notifications.tellProtectedData(false, to: app)
            guard app.specification.signals[signalled] != nil, !supervisor.hearsByChannel(app.id) else { continue }
            patience[app.id] = min(edge.warnsUntil ?? now, now + Self.longestPatience)
        }
        supervisor.interruptions.coverAll()
        awaited = Set(locking.filter(isAwaited).map(\.id))
        if awaited.isEmpty { loop.later { [weak self] in self?.lookForAnswers() } }
    }

    /// The most time that an app may have to close its files (``patience``). ``ProtectionEdge`` retries a lock for
    /// longer than this, so an app that closes its files in time does not prevent the lock.
    private static let longestPatience = Duration.seconds(5)

    /// Whether the app was notified of the lock and can still answer. A suspended app cannot answer, and is not woken
    /// to do so.
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
        runs.close(folders(chosen)) { [weak self] outcome in
            guard let self else { return }
            let closed = settle(outcome, chosen, isOpening: false)
            // Each lock must close all folders until all were closed once in this boot. After that, a lock closes only
            // the folders of `complete`.
            if closed != .failed { isFresh = false }
            if closed != .whole { log.debug("protected folders could not be closed (\(closed))") }
            for standing in outcome.answer.standings { deal(with: standing) }
            handle(.closed(closed))
        }
    }

    /// Ends apps that still have files of a closed folder open (suspended apps are evicted), and reports other
    /// processes that do.
    func deal(with standing: FolderStanding) {
        var files: [AppID: [String]] = [:]
        var others = 0
        for holder in standing.holders {
            // torpor-protect reports each process with its cgroup, so torpord need not read /proc to find its app.
            guard let app = apps.first(where: { $0.run.tree?.contains(holder.pid, in: holder.cgroup) ?? false }) else {
                others += 1
                guard others <= FileHolder.mostNamed, reported.insert(holder.pid).inserted else { continue }
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
            // The configuration may forbid eviction only for lack of memory. An app that keeps protected files open is
            // ended in any case.
            let mayEvict = machine.state == .suspended && machine.rules.eviction != .never
            let request: Request = mayEvict ? .evict : .stop(.protectedDataOpen)
            supervisor.uninterrupted { [supervisor] in try? supervisor.request(request, of: id) }
        }
    }

    /// The reason in an app's report if the app was ended because it kept protected files open.
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
        answerLocks(.success(why))
        failUnlocks("data was locked again")
        engine.settle()
    }

    private func announceFailure() {
        let why = locking.lazy.compactMap { self.standings[$0.name]?.problem }.first ?? "a folder may still be open"
        note(.dataBusy, text: "protected data could not be locked, which is tried again: \(why)", level: .error)
        answerLocks(.failure(Refusal(description: why)))
        failUnlocks("data is being locked")
        engine.settle()
    }

    private func answerLocks(_ answer: Result<String?, Refusal>) {
        let waiting = whenLocked
        whenLocked = []
        for body in waiting { body(answer) }
    }

    /// What keeps files of locked folders in use, such as `1 file busy: PID 4711 (less)`; nil if nothing does.
    var busy: String? {
        let found = locking.compactMap { standings[$0.name] }.filter(\.isBusy)
        guard !found.isEmpty else { return nil }
        if let problem = found.lazy.compactMap(\.problem).first { return problem }
        return Self.busy(found)
    }

    // MARK: Unlocking

    private func open() {
        let chosen = protected
        readers = edge.isUnlocked ? Set(chosen.filter(isReadable).map(\.id)) : []
        runs.open(folders(chosen)) { [weak self] outcome in
            guard let self else { return }
            settle(outcome, chosen, isOpening: true)
            handle(.opened(isEnough(outcome, chosen)))
        }
    }

    /// Whether data counts as unlocked after this run of torpor-protect. If the key of some folder is missing, then at
    /// least one encrypted folder must have been opened: a folder without encryption opens in any case, and proves
    /// nothing. Folders of `first-unlock` count only if there are no others, because torpord opens them again without a
    /// user. A folder that cannot be protected does not prevent the unlock.
    private func isEnough(_ outcome: ProtectRuns.Outcome, _ chosen: [AppRuntime]) -> Bool {
        let complete = chosen.filter { $0.specification.data.protection.kind == .complete }
        // Use only the answers of this run. A folder that an earlier run has left open does not prove that the key is
        // present now.
        let found = Dictionary(outcome.answer.standings.map { ($0.app, $0) }, uniquingKeysWith: { $1 })
        let states = (complete.isEmpty ? chosen : complete).map { found[$0.name] }
        let open = states.compactMap(\.self).filter { $0.state == .open }
        if states.contains(where: { $0?.state == .withoutKey }) { return open.contains { $0.isEncrypted == true } }
        return !open.isEmpty || !states.contains { $0 == nil }
    }

    private func announceUnlocked() {
        reported = []
        if !isQuiet {
            note(.dataUnlocked, text: "protected data is unlocked")
            for app in locking where isReadable(app) && !readers.contains(app.id) {
                supervisor.wakes.notifications.tellProtectedData(true, to: app)
            }
        }
        readers = []
        isQuiet = false
        locks.isUnlocked()
        supervisor.recovery.outsideLocks = locks.recorded
        supervisor.recovery.isFirstUnlockOver = true
        supervisor.interruptions.coverAll()
        supervisor.interruptions.look()
        lookForLaunches()
        let closed = protected.compactMap { app in
            isReadable(app) ? nil : standings[app.name]?.problem.map { "\(app.name) stays locked: \($0)" }
        }
        let waiting = whenUnlocked
        whenUnlocked = []
        for body in waiting { body(.success(closed.first)) }
        answerLocks(.success("it was unlocked again"))
        engine.settle()
    }

    private func stayLocked() {
        let why =
            protected.lazy.compactMap { app in
                self.standings[app.name]?.problem.map { "\(app.name): \($0)" }
            }.first ?? "no folder could be opened"
        note(.dataLocked, text: "protected data stays locked: \(why)", level: .notice)
        isQuiet = false
        locks.staysLocked()
        supervisor.recovery.outsideLocks = locks.recorded
        supervisor.interruptions.coverAll()
        supervisor.interruptions.look()
        lookForLaunches()
        answerLocks(.success(busy))
        failUnlocks(why)
        engine.settle()
    }

    private func failUnlocks(_ why: String) {
        let waiting = whenUnlocked
        whenUnlocked = []
        for body in waiting { body(.failure(Refusal(description: why))) }
    }

    /// Stores what a run of torpor-protect has reported, even if the run failed before its end. For a run that closes
    /// folders, returns whether the folders are closed.
    @discardableResult
    func settle(
        _ outcome: ProtectRuns.Outcome,
        _ chosen: [AppRuntime],
        isOpening: Bool
    ) -> ProtectionEdge.Closed {
        for var standing in outcome.answer.standings {
            let before = standings[standing.app]
            standing.isEncrypted = standing.isEncrypted ?? before?.isEncrypted
            // If the folder was closed before this run, keep the earlier state and problem, which say why the folder
            // could not be opened.
            if !isOpening, standing.state == .closed, standing.problem == nil, let before, !before.isBusy,
                before.state == .withoutKey || before.state == .closed
            {
                (standing.state, standing.problem) = (before.state, before.problem)
            }
            standing.holders = Array(standing.holders.prefix(FileHolder.mostShown))
            standings[standing.app] = standing
        }
        if let problem = outcome.problem { log.error("torpor-protect: \(problem)") }
        let known = Set(outcome.answer.standings.map(\.app))
        for app in chosen where !known.contains(app.name) {
            // torpor-protect did not report this folder. Do not use the state `refused`, which makes a launch fail: a
            // retry may succeed, so the app waits.
            let before = standings[app.name]
            var standing = FolderStanding(app: app.name, isOpening && before?.state != .open ? .closed : .open)
            standing.isEncrypted = before?.isEncrypted
            let why = outcome.problem?.description ?? "torpor-protect did not say what became of it"
            standing.problem = "its folder could not be \(isOpening ? "opened" : "locked"): \(why)"
            standing.isBusy = !isOpening
            standings[app.name] = standing
        }
        let mine = chosen.compactMap { standings[$0.name] }
        if mine.contains(where: { $0.state == .open }) { return .failed }
        if !outcome.answer.isWhole, !isOpening {
            for app in chosen where standings[app.name]?.problem == nil && standings[app.name]?.isBusy != true {
                standings[app.name]?.problem = "the search for processes that have files of it open did not end"
                standings[app.name]?.isBusy = true
            }
            return .busy
        }
        return mine.contains(where: \.isBusy) ? .busy : .whole
    }

    /// Called when a folder could not be opened or closed for a launch, for a reason that may pass. Tries again after a
    /// while.
    func retryLaunches() {
        if retryTimer == nil {
            retryTimer = try? loop.timer { [weak self] in
                // Disarm the timer, because a timer that still has a deadline is not armed again at the next failure.
                self?.retryTimer?.disarm()
                self?.lookForLaunches()
            }
        }
        if retryTimer?.deadline == nil { retryTimer?.arm(after: ProtectionEdge.slowInterval) }
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

    // MARK: Following apps

    package func touched(_ apps: [AppRuntime]) {
        if edge.isWarning, !awaited.isEmpty, apps.contains(where: { awaited.contains($0.id) }) { lookForAnswers() }
        if !stopped.isEmpty { lookForStopped() }
        guard !held.isEmpty else { return }
        held.removeAll { !coordinator.waitsForMemory($0) }
    }

    package func ended(_ app: AppRuntime, _ ending: Ending) {
        if edge.isWarning, awaited.contains(app.id) { lookForAnswers() }
        // The app's next run may have no protected data, if the configuration has changed: then its folder must be
        // closed.
        if standings[app.name] != nil { loop.later { [weak self] in self?.sweep() } }
    }

    package func forget(_ app: AppRuntime) {
        awaited.remove(app.id)
        readers.remove(app.id)
        held.removeAll { $0 == app.id }
        stopped.removeAll { $0.app === app }
        guard edge.hasBegun, app.specification.data.protection.kind != nil || standings[app.name] != nil else { return }
        standings[app.name] = nil
        // The data of a removed app is kept. It stays locked until the app is in the configuration again.
        runs.sweep(keeping: folders(protected.filter { $0 !== app }))
    }
}
