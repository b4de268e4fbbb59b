// SPDX-License-Identifier: Apache-2.0

package import Configuration
package import Engine
import EventLoop
import EventSources
package import Lifecycle
import Linux
import Processes
package import Store
package import TorporAPI
import Varlink
import VarlinkServer

/// An app's row in the store, including changes that are being written.
package struct PersistedApp {
    /// The state that a user requested for the app; nil if no user has requested one: then the configuration decides.
    package var goalOfPerson: Goal?
    /// Whether the last stop of the app, by a user or together with an app that it requires, ends with this boot.
    package var isStoppedUntilBoot = false
    /// Whether the app was adopted without a record, so that only the store knows what a user has requested.
    package var isWithoutRecord = false
    /// The hash of the row that was last saved or loaded; nil if there is none.
    private var fingerprint: Int?
    package private(set) var incarnation: Int64 = 0
    package private(set) var ledger: [Int64] = []
    /// The times from which `ledger` was computed, on the event loop's clock. Rows are compared by these times and not
    /// by those in `ledger`: times on the wall clock differ a little whenever they are computed.
    fileprivate private(set) var times: [Duration] = []

    /// Makes the next save write the row even if it is unchanged.
    fileprivate mutating func forget() { fingerprint = nil }

    /// Records that the row is being saved. Returns false if the row equals the one that was saved last.
    @discardableResult
    fileprivate mutating func take(_ row: AppRow, times: [Duration] = []) -> Bool {
        let hash = row.hashValue
        guard hash != fingerprint ?? AppRow(name: row.name).hashValue else { return false }
        fingerprint = hash
        incarnation = row.incarnation
        ledger = row.ledger
        self.times = times
        return true
    }
}

/// Loads and saves the state that must survive a reboot. The first launches wait until this state is loaded.
package final class Persistence: ShellRoom, LifecycleObserver {
    package unowned(unsafe) let supervisor: Supervisor
    package let store: Store
    /// Changes that are not in the store yet; nil if no journal could be made.
    package var journal: StoreJournal? { store.journal }
    /// Whether the apps have their stored data. Only then are changes saved.
    private(set) var isRemembered = false
    /// Whether everything that is stored has been loaded.
    package private(set) var isLoaded = false
    private var afterLoad: [() -> Void] = []
    /// The data of apps that were not in the configuration when the store was read. If such an app is added, for
    /// example because a folder of configurations was mounted late, it gets its data back.
    private var absent: [String: StoreContents] = [:]
    /// Why nothing can be stored now; nil if storing works.
    package private(set) var trouble: String?
    /// Which files of the store were replaced lately, so that settings and requests of users may be lost.
    package let losses: StoreLosses

    package init(_ supervisor: Supervisor, _ store: Store) {
        self.supervisor = supervisor
        self.store = store
        losses = StoreLosses(supervisor.loop, store: supervisor.runtime.state + "/torpor.db")
    }

    package func ended(_ app: AppRuntime, _ ending: Ending) { forgetGoal(of: app, after: ending) }

    package func touched(_ apps: [AppRuntime]) { for app in apps { keep(app) } }

    package func forget(_ app: AppRuntime) { store.remove(app: app.name) }

    /// Calls `body` when everything that is stored has been loaded: at once, unless the supervisor has only just
    /// started.
    package func whenLoaded(_ body: @escaping () -> Void) { if isLoaded { body() } else { afterLoad.append(body) } }

    /// Restores the stored state of an app that was not in the configuration when the store was read. Must be called
    /// before any decision about the app.
    package func recall(_ app: AppRuntime) {
        guard isLoaded, let contents = absent[app.name] else { return }
        if let row = contents.apps[app.name] { take(row, recall(row, app.specification.rules), app) }
        supervisor.wakes.timers.rememberMore(contents.schedules)
    }

    /// Gives an app that was added to the configuration its stored data, if the app was not in the configuration when
    /// the store was read.
    package func added(_ app: AppRuntime) {
        recall(app)
        guard isLoaded, let contents = absent.removeValue(forKey: app.name) else { return }
        supervisor.mailboxes.load(contents, of: app)
        supervisor.settings.load(contents, of: app)
        supervisor.transfers.load(contents, of: app)
        supervisor.alerts.load(contents, of: app)
        store.reports(app: app.name) { [weak self] in self?.takeReports($0) }
        loop.later { [weak self] in self?.supervisor.wakes.lookAgain() }
    }

    /// Adds the stored state of an app to the change that adds this app, since the state decides whether and how the
    /// app is launched. Does nothing if no state is stored, or if the app was in the configuration when the store was
    /// read.
    package func prepare(_ change: inout AppChange) {
        guard let row = absent[change.definition.name]?.apps[change.definition.name] else { return }
        change.remembered = recall(row, change.definition.rules)
        if row.isStopped || row.isForceQuit || row.isFailed {
            change.launchesNew = nil
            return
        }
        switch row.goal.flatMap(Goal.init) {
        case .active, .inactive: change.launchesNew = true
        // A suspended app is suspended again after its launch.
        case .background, .suspended: change.launchesNew = false
        case .notRunning: change.launchesNew = nil
        case nil: break
        }
    }

    /// The journal that an earlier torpord left, or a new one; nil if none can be made.
    static func openJournal(
        _ runtime: RuntimeDirectory,
        _ inheritance: InheritedDescriptors,
        _ log: DaemonLog
    ) -> StoreJournal? {
        let there = inheritance.take(DescriptorName.journal).first ?? (try? File.open(runtime.journal, .readWrite))
        if let there, let journal = StoreJournal(there) { return journal }
        do throws(Errno) {
            return try StoreJournal(creating: runtime.journal)
        } catch {
            log.warning("cannot make \(runtime.journal) (\(error)): if torpord dies, the last events are lost")
            return nil
        }
    }

    static func openStore(_ configuration: TorporConfiguration, _ startup: Startup, _ journal: StoreJournal?) -> Store {
        Store(
            path: configuration.supervisor.stateDirectory + "/torpor.db",
            machine: ThisProcess.machineID,
            boot: ThisProcess.bootID,
            retention: Retention(configuration.supervisor),
            journal: journal,
            // Until this torpord is in charge, hold back writes: if this start fails, the previous torpord continues to
            // use the store's file.
            holdsWrites: startup.keeper.instance > 1,
            loop: startup.loop
        )
    }

    private func rememberMail(_ contents: StoreContents) {
        recorder.events.sequence = max(recorder.events.sequence, contents.lastSequence)
        supervisor.mailboxes.rememberSubscriptions(contents)
        supervisor.mailboxes.load(contents)
        supervisor.permissions.load(contents)
        supervisor.settings.load(contents)
        supervisor.transfers.load(contents)
        supervisor.alerts.load(contents)
        supervisor.wakes.timers.remember(contents.schedules)
        absent = contents.byApp { coordinator.id(of: $0) == nil }
        isLoaded = true
        for body in afterLoad { body() }
        afterLoad = []
    }

    /// Loads the stored state. Only the apps in `fresh` need the stored history: they were found neither running nor in
    /// the recovery file.
    func remember(_ fresh: [AppRuntime], _ completion: @escaping () -> Void) {
        store.onNotice = { [weak self] in self?.storeSays($0) }
        store.onRowsWanted = { [weak self] in self?.keepAll() }
        losses.look {}
        // An app with a recovery record has its history already; loading it again would duplicate it.
        let isUnknown = Set(fresh.map(\.id).filter { coordinator.machine($0).incarnation == 0 })
        store.load(late: { [weak self] in self?.rememberMail($0) }) { [weak self] contents in
            guard let self else { return }
            self.recorder.events.sequence = max(self.recorder.events.sequence, contents.lastSequence)
            if contents.lastSequence == 0, contents.origin == .nobody, self.store.replayed == 0 {
                self.recorder.events.isWhole = self.recorder.events.isUnbroken
            }
            for app in self.apps {
                guard let row = contents.apps[app.name] else { continue }
                if isUnknown.contains(app.id) {
                    self.remember(app, row)
                } else {
                    app.kept.take(row)
                    if app.kept.isWithoutRecord { self.takeGoal(row, app) }
                }
            }
            self.isRemembered = true
            for app in self.apps { self.keep(app) }
            // Apps are launched even if the disk does not answer in time. In that case, mail and timers are loaded only
            // when the answer comes, because loading them from an empty store now would discard those that are stored.
            if self.store.isLoaded { self.rememberMail(contents) }
            completion()
            self.supervisor.shutdown.finishWhenGone()
        }
        store.reports { [weak self] in self?.takeReports($0) }
    }

    private func remember(_ app: AppRuntime, _ row: AppRow) {
        let known = recall(row, app.specification.rules)
        coordinator.remember(app.id, known)
        take(row, known, app)
    }

    /// What a stored row contains about an app's lifecycle.
    private func recall(_ row: AppRow, _ rules: AppRules) -> RememberedApp {
        let now = loop.now
        let wallClock = Clock.realtimeMicroseconds()
        let ledger = row.ledger(at: wallClock, window: rules.backoff.window.microseconds)
        var known = RememberedApp()
        known.incarnation = UInt32(clamping: row.incarnation)
        known.restarts = Int(clamping: max(0, row.restarts))
        known.attempt = Int(clamping: max(0, row.attempt))
        known.failed = row.isFailed
        known.ledger = ledger.map { now - .microseconds(wallClock - $0) }
        let reason = row.lastExit.flatMap { TerminationReason(rawValue: $0.reason) }
        // A stored force quit or stop counts only if the app must still not run because of it. If the app was started
        // again and the machine then lost power, the stored last exit is outdated.
        known.lastEnding =
            row.isForceQuit
            ? .forceQuit : row.isStopped ? .stopped : reason == .forceQuit || reason == .stopped ? nil : reason
        return known
    }

    private func take(_ row: AppRow, _ known: RememberedApp, _ app: AppRuntime) {
        var row = row
        row.ledger = row.ledger(
            at: Clock.realtimeMicroseconds(),
            window: app.specification.rules.backoff.window.microseconds
        )
        app.kept.take(row, times: known.ledger)
        takeGoal(row, app)
        if row.isStoppedUntilBoot { app.kept.isStoppedUntilBoot = true }
        if app.lastExit == nil {
            app.lastExit = row.lastExit.map {
                LastExit(reason: $0.reason, code: $0.code, signal: $0.signal, at: $0.at)
            }
        }
    }

    private func takeGoal(_ row: AppRow, _ app: AppRuntime) {
        if app.kept.goalOfPerson == nil { app.kept.goalOfPerson = row.goal.flatMap(Goal.init) }
    }

    // MARK: What changes

    /// Called when an incarnation has ended. Forgets the state that a user requested, if the app ended by itself and
    /// is not restarted.
    private func forgetGoal(of app: AppRuntime, after ending: Ending) {
        guard case .rest = ending.next, app.kept.goalOfPerson != .notRunning else { return }
        switch ending.reason {
        case .evicted, .shutdown, .dependencyFailed, .stopped, .forceQuit: break
        default: app.kept.goalOfPerson = nil
        }
    }

    /// Saves the app's row if it has changed.
    package func keep(_ app: AppRuntime) {
        guard isRemembered else { return }
        let known = coordinator[app.id].remembered
        var kept = app.kept
        var row = AppRow(name: app.name)
        row.incarnation = Int64(known.incarnation)
        // A user had stopped the app, but it was launched again because another app requires it, so the stop no longer
        // counts.
        if row.incarnation > kept.incarnation, kept.goalOfPerson == .notRunning,
            coordinator[app.id].goal != .notRunning
        {
            kept.goalOfPerson = nil
            app.kept.goalOfPerson = nil
        }
        row.goal = kept.goalOfPerson?.rawValue
        row.isStopped = coordinator[app.id].isStopped
        row.isStoppedUntilBoot = row.isStopped && kept.isStoppedUntilBoot
        row.isForceQuit = coordinator[app.id].isForceQuit
        row.isFailed = known.failed
        row.restarts = Int64(known.restarts)
        row.attempt = Int64(known.attempt)
        row.lastExit = app.lastExit.map {
            StoredExit(reason: $0.reason, code: $0.code, signal: $0.signal, at: $0.at ?? 0)
        }
        if known.ledger == kept.times {
            row.ledger = kept.ledger
        } else {
            let now = loop.now
            let wallClock = Clock.realtimeMicroseconds()
            row.ledger = known.ledger.map { wallClock - (now - $0).microseconds }
        }
        if kept.take(row, times: known.ledger) {
            app.kept = kept
            store.save(row)
        }
    }

    private func keepAll() {
        supervisor.mailboxes.keepAll()
        supervisor.settings.keepAll()
        supervisor.permissions.keepAll()
        supervisor.transfers.keepAll()
        supervisor.alerts.keepAll()
        supervisor.mailboxes.unhandled.loadAgain()
        for app in apps {
            app.kept.forget()
            keep(app)
        }
    }

    // MARK: Reports and news

    /// In memory, only this many of an app's reports (the newest) keep the stacks of the app's threads.
    private static let reportsWithThreads = 3

    /// Files a termination report: in memory for clients, and in the store for later. Of launches in a row that were
    /// refused for the same reason, only the first has one: ten of them would push out the reports of runs.
    package func file(_ report: Report, _ app: AppRuntime) {
        if let last = app.reports.last, Self.isSameRefusal(last, report) { return }
        app.reports.append(report)
        if app.reports.count > 10 { app.reports.removeFirst() }
        // Stacks take most of the memory of reports. An app that hangs at every launch makes many, so only the newest
        // stay in memory; the store has all.
        let old = app.reports.count - 1 - Self.reportsWithThreads
        if old >= 0 { app.reports[old].threads = [] }
        store.append(
            StoredReport(
                app: report.app,
                incarnation: report.incarnation,
                at: report.at,
                json: report.jsonText
            )
        )
    }

    private static func isSameRefusal(_ one: Report, _ other: Report) -> Bool {
        // What follows says when the app is launched again.
        func what(_ report: Report) -> Substring? { report.text?.prefix { $0 != ";" } }
        return one.reason == TerminationReason.launchFailed.rawValue && one.reason == other.reason && one.pid == nil
            && other.pid == nil && one.stage == other.stage && one.errno == other.errno && what(one) == what(other)
    }

    private func takeReports(_ stored: Result<[StoredReport], Store.Unavailable>) {
        guard case .success(let reports) = stored else { return }
        for stored in reports {
            guard let id = coordinator.id(of: stored.app), apps[id].reports.count < 10,
                !apps[id].reports.contains(where: { $0.at == stored.at && $0.incarnation == stored.incarnation }),
                let json = try? JSON.parse(stored.json), var report = try? Report(json: json)
            else { continue }
            if apps[id].reports.count >= Self.reportsWithThreads { report.threads = [] }
            // An earlier version may have stored it with longer texts.
            report.shorten()
            // Insert each report at the front: the store returns the newest reports first.
            apps[id].reports.insert(report, at: 0)
        }
    }

    private func storeSays(_ notice: StoreNotice) {
        let level: LogLevel
        switch notice.kind {
        case .available, .answers:
            trouble = nil
            level = .info
        case .unavailable, .hangs:
            trouble = notice.description
            level = .error
        case .setAside, .setAsideNewer:
            if let file = notice.file { losses.add(file) }
            level = .warning
        case .otherMachine: level = .warning
        }
        note(.storeChanged, text: notice.description, level: level)
    }

    /// Writes everything and ends the store's thread. Waits for the disk for at most 1 s, or 250 ms if `quickly`
    /// (another torpord waits to take over).
    package func close(quickly: Bool) {
        // If torpord ends before its start is complete, begin the timers now: timers that count from a start of torpord
        // must count from this one.
        supervisor.wakes.timers.begin()
        if !isRemembered {
            // torpord ends before the store was read. Save the states that users have requested since the start, or
            // that the recovery file contains.
            isRemembered = true
            for app in apps where app.kept.goalOfPerson != nil { keep(app) }
        }
        store.releaseWrites()
        if !store.close(within: quickly ? .milliseconds(250) : .seconds(1), quickly: quickly) {
            log.error("not everything could be written to the disk: some history is lost")
        }
    }
}

extension Retention {
    package init(_ supervisor: SupervisorSpecification) {
        self.init(
            maxAge: supervisor.historyMaxAge?.microseconds,
            maxCount: Int64(clamping: supervisor.historyMaxCount),
            maxBytes: supervisor.historyMaxSize.map { Int64(clamping: $0) }
        )
    }
}

extension AppRuntime {
    package var kept: PersistedApp {
        get { slots[KeptSlot.self, default: PersistedApp()] }
        _modify { yield &slots[KeptSlot.self, default: PersistedApp()] }
    }
}

private enum KeptSlot: Slot { typealias Value = PersistedApp }
