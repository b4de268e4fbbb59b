// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import EventLoop
package import Lifecycle
import Linux
package import TorporAPI

/// Apps' data folders: prepared before each launch, emptied of caches while the disk is full, measured and purged.
///
/// The event loop's thread never accesses the folders' content, because apps may store any number of files there.
package final class DataFolders: ShellRoom, LifecycleObserver {
    package unowned(unsafe) let supervisor: Supervisor
    /// A thread that measures, purges and evicts, one task after the other.
    let worker: BackgroundWorker
    private let commits: BackgroundWorker
    /// A lock for each app with data folders, by which only one thread at a time works in these folders.
    private var gates: [String: DataGate] = [:]
    /// For each app, the launch that has succeeded but is not recorded on disk yet.
    private var unkept: [String: DataLaunch] = [:]
    private var asked = 0
    private(set) lazy var eviction = CacheEviction(self)
    /// The data folders that are locked while the session is locked.
    private(set) lazy var protection = ProtectedData(supervisor)

    package init(_ supervisor: Supervisor) {
        self.supervisor = supervisor
        worker = BackgroundWorker(supervisor.loop, named: "data")
        commits = BackgroundWorker(supervisor.loop, named: "data-launches")
    }

    var root: String { supervisor.runtime.state + "/data" }

    func place(of app: AppRuntime) -> DataPlace { DataPlace(root: root, app: app.name) }

    /// The path of an app's data folders; nil for an app without data folders.
    package func folder(of app: AppRuntime) -> String? { app.specification.data.isWanted ? place(of: app).path : nil }

    func gate(of app: String) -> DataGate {
        if let gate = gates[app] { return gate }
        let gate = DataGate()
        gates[app] = gate
        return gate
    }

    /// The variables that tell an app where its folders are; empty for an app without data folders.
    func variables(of app: AppRuntime) -> [String: String] {
        app.specification.data.isWanted ? place(of: app).variables : [:]
    }

    // MARK: Launches

    /// Prepares the folders for a launch. The completion gets nil on success, otherwise the reason of the failure.
    /// Completes at once for an app without data folders.
    func prepare(_ app: AppRuntime, _ order: LaunchOrder, _ completion: @escaping (LaunchError?) -> Void) {
        let data = app.specification.data
        guard data.isWanted else { return completion(nil) }
        let place = place(of: app)
        let gate = gate(of: app.name)
        gate.stopEviction()
        let (names, known) = (Account.Names(app.specification), supervisor.launcher.accountOfRun(app))
        let (unkept, incarnation) = (unkept[app.name], order.incarnation)
        let work = TreeWork()
        let preparation = DataPreparation(work)
        app.dataPreparation = preparation
        preparation.timer = try? loop.timer { [weak self, weak app, weak preparation] in
            if let self, let app, let preparation { self.tellProgress(of: preparation, app) }
        }
        preparation.timer?.arm(after: Self.patience)
        supervisor.launcher.read(for: app) { () throws(LaunchError) -> DataPlace.Prepared in
            let account = try Account.find(names, known: known)
            return try gate.alone { () throws(LaunchError) in
                if let unkept { try? place.keep(unkept) }
                return try place.prepare(data, for: DataPlace.Owner(account), incarnation: incarnation, work)
            }
        } _: { [weak self, weak app] result in
            guard let self, let app else { return }
            preparation.timer?.cancel()
            app.dataPreparation = nil
            switch result {
            case .success(let prepared):
                app.run.dataLaunch = prepared.launch
                self.tell(prepared, of: app)
                self.eviction.begin()
                completion(nil)
            case .failure(let error): completion(error)
            }
        }
    }

    private static let patience = Duration.seconds(10)

    private func tellProgress(of preparation: DataPreparation, _ app: AppRuntime) {
        let work = preparation.work
        note(
            app,
            .dataCopied,
            text: "is not launched yet: its data folders are being prepared, \(Readable.count(work.entries, "file")) "
                + "and \(Bytes.text(work.bytes)) so far",
            level: .notice
        )
        preparation.timer?.arm(after: Self.patience * 6)
    }

    private func tell(_ prepared: DataPlace.Prepared, of app: AppRuntime) {
        for problem in prepared.problems { note(app, .dataNotCleared, text: problem) }
        guard let copied = prepared.copied else { return }
        let why =
            prepared.launch.isFirst
            ? "its first launch" : "the first launch of version \(app.specification.data.version ?? "")"
        var text =
            "got \(Readable.count(copied.made, "file")) (\(Bytes.text(copied.bytes))) of first_launch in its library "
            + "before \(why)"
        if copied.present > 0 { text += "; \(copied.present) that it had already were kept" }
        if let first = copied.firstSpecial {
            text += "; \(first) is a device, a FIFO or a socket, and is left out"
            if copied.special > 1 { text += ", as are \(copied.special - 1) more" }
        }
        note(app, .dataCopied, text: text)
    }

    /// Cancels the preparation of a launch that was superseded.
    func cancel(_ app: AppRuntime) {
        app.dataPreparation?.work.cancel()
        app.dataPreparation?.timer?.cancel()
    }

    /// What the app was told at its current launch about its data: whether the launch is the first, and the version
    /// that the app was updated from. If an earlier torpord launched the app, this is read from disk, once. Nil if
    /// nothing is known.
    func launch(of app: AppRuntime) -> DataLaunch? {
        guard app.specification.data.isWanted else { return nil }
        if let launch = app.run.dataLaunch { return launch }
        let machine = machine(app)
        // Read from disk only if an earlier torpord launched the app: otherwise this torpord knows the answer.
        guard machine.isAlive, app.dataPreparation == nil, !app.run.isDataSought else { return nil }
        app.run.isDataSought = true
        app.run.dataLaunch = place(of: app).pendingLaunch(machine.incarnation)
        return app.run.dataLaunch
    }

    /// Records launches that have succeeded. A launch has succeeded only when the app's transition from it is over:
    /// until then, an app may not be ready although its state is already inactive or background.
    package func touched(_ apps: [AppRuntime]) {
        for app in apps where app.specification.data.isWanted && !app.run.isDataLaunchKept {
            let machine = machine(app)
            guard machine.isAlive, machine.transition != .launching, machine.transition != .terminating else {
                continue
            }
            cameUp(app)
        }
    }

    package func ended(_ app: AppRuntime, _ ending: Ending) {
        if ending.reason == .exitSuccess, ending.cause != nil { cameUp(app) }
        eviction.lookSoon()
    }

    /// Records on a background thread that the app's launch has succeeded, so that its next launch is not the first.
    private func cameUp(_ app: AppRuntime) {
        guard let launch = launch(of: app), launch.isNews, !app.run.isDataLaunchKept else { return }
        app.run.isDataLaunchKept = true
        let (name, place, gate) = (app.name, place(of: app), gate(of: app.name))
        unkept[name] = launch
        commits.ask {
            gate.alone { () -> Errno? in
                do throws(Errno) {
                    try place.keep(launch)
                    return nil
                } catch {
                    return error
                }
            }
        } _: { [weak self] error in
            guard let self else { return }
            if let error {
                // torpord tries again to record this launch before the next launch of the app, so a warning is enough.
                return self.log.warning("\(name): cannot record its launch in \(place.root): \(error)")
            }
            if self.unkept[name] == launch { self.unkept[name] = nil }
        }
    }

    package func added(_ app: AppRuntime) { if app.specification.data.isWanted { eviction.begin() } }

    /// Removes the caches and temporary files of an app that leaves the configuration. Its other data is kept.
    package func forget(_ app: AppRuntime) {
        unkept[app.name] = nil
        guard app.specification.data.isWanted else { return }
        let (name, place, gate) = (app.name, place(of: app), gate(of: app.name))
        worker.ask {
            gate.alone { try? place.purge([.caches, .tmp], TreeWork()) }
        } _: { [weak self] emptied in
            guard let self else { return }
            if self.coordinator.id(of: name) == nil { self.gates[name] = nil }
            guard let emptied, emptied.left > 0 else { return }
            self.log.warning("\(name): \(emptied.left) of its caches and temporary files cannot be removed")
        }
    }

    /// Removes all data of an app that is gone for good. The completion gets nil, or a sentence about what was not
    /// removed.
    func erase(_ app: String, _ completion: @escaping (String?) -> Void) {
        let (place, gate) = (DataPlace(root: root, app: app), gate(of: app))
        gate.stopEviction()
        worker.ask {
            gate.alone { place.erase() }
        } _: { [weak self] trouble in
            if self?.coordinator.id(of: app) == nil { self?.gates[app] = nil }
            completion(trouble)
        }
    }

    /// Starts the checks of free space if an app has data folders.
    package func configure() {
        if apps.contains(where: { $0.specification.data.isWanted }) { eviction.begin() }
    }

    // MARK: What clients ask

    /// The most requests of clients that may wait for the disk.
    private static let mostAsked = 16

    private func ask<T: Sendable>(_ work: @escaping @Sendable () -> T, _ completion: @escaping (T) -> Void) -> Bool {
        guard asked < Self.mostAsked else { return false }
        asked += 1
        worker.ask(work) { [weak self] result in
            self?.asked -= 1
            completion(result)
        }
        return true
    }

    package static let isBusy = "the disk is slow, and \(mostAsked) requests wait for it: try again in a moment"

    /// How much space the folders of some apps take, or of all apps if none is named. `completion` gets nil if too
    /// many requests wait already.
    package func usage(of names: [String], _ completion: @escaping ([DataFoldersInfo]?) -> Void) {
        let root = root
        let configured = Set(apps.lazy.filter { $0.specification.data.isWanted }.map(\.name))
        let isTaken = ask {
            let there = DataPlace.apps(in: root)
            let chosen = names.isEmpty ? Array(configured.union(there)).sorted() : names
            return chosen.filter { configured.contains($0) || there.contains($0) }.map { name in
                DataPlace(root: root, app: name).usage(isConfigured: configured.contains(name), TreeWork())
            }
        } _: {
            completion($0)
        }
        if !isTaken { completion(nil) }
    }

    /// Removes data of an app. `completion` gets what was removed, or why the request failed, as a sentence.
    package func purge(
        _ request: PurgeDataRequest,
        by person: String,
        _ completion: @escaping (Result<Removal, PurgeFailure>) -> Void
    ) {
        let app = coordinator.id(of: request.app).map { apps[$0] }
        if let app, machine(app).isAlive || app.isPreparing {
            return completion(.failure(.refused("\(app.name) is running: stop it first (torpor stop \(app.name))")))
        }
        let place = DataPlace(root: root, app: request.app)
        let gate = gate(of: request.app)
        gate.stopEviction()
        let parts = request.folders.compactMap(DataPlace.Part.init)
        let isTaken = ask { () -> Result<Removal, PurgeFailure> in
            guard DataPlace.apps(in: place.root).contains(place.app) else { return .failure(.unknown) }
            return gate.alone {
                do throws(Errno) {
                    return .success(try place.purge(parts, TreeWork()))
                } catch {
                    return .failure(.refused("the data of \(place.app) cannot be removed from \(place.path): \(error)"))
                }
            }
        } _: { [weak self, weak app] result in
            if case .success(let emptied) = result {
                let what = parts.isEmpty ? "all its data" : parts.map(\.rawValue).joined(separator: " and ")
                let text = "had \(what) removed on request, \(Readable.count(emptied.removed, "file"))"
                if let app { self?.note(app, .dataPurged, text: text, reason: person) }
            }
            completion(result)
        }
        if !isTaken { completion(.failure(.refused(Self.isBusy))) }
    }
}

/// Why data was not removed.
package enum PurgeFailure: Error, Sendable {
    /// No app of that name has data.
    case unknown
    /// The reason, as a sentence.
    case refused(String)
}

/// Lets one thread at a time work in an app's folders.
final class DataGate: Sendable {
    private let lock = Monitor(())
    private let eviction = Monitor<TreeWork?>(nil)

    /// Calls `body` while no other thread works in the app's folders. Blocks until then, so never call this on the
    /// event loop.
    func alone<T: Sendable, Failure: Error>(_ body: () throws(Failure) -> T) throws(Failure) -> T {
        try lock.withLock { _ throws(Failure) in try body() }
    }

    /// Registers an eviction of caches, so that a launch of the app can cancel it.
    func evict(_ work: TreeWork) { eviction.withLock { $0 = work } }

    func stopEviction() { eviction.withLock { $0 }?.cancel() }
}

final class DataPreparation {
    let work: TreeWork
    var timer: TimerSource?

    init(_ work: TreeWork) { self.work = work }
}

extension AppRuntime {
    var dataPreparation: DataPreparation? {
        get { slots[DataPreparationSlot.self] }
        set { slots[DataPreparationSlot.self] = newValue }
    }
}

private enum DataPreparationSlot: Slot { typealias Value = DataPreparation }

extension Incarnation {
    /// What the app was told about its data at its launch; nil if the app has no data folders, or if torpord does not
    /// know.
    var dataLaunch: DataLaunch? {
        get { slots[DataLaunchSlot.self] }
        set { slots[DataLaunchSlot.self] = newValue }
    }
    /// Whether torpord has begun to record that the launch has succeeded.
    var isDataLaunchKept: Bool {
        get { slots[DataLaunchKeptSlot.self] ?? false }
        set { slots[DataLaunchKeptSlot.self] = newValue }
    }
    var isDataSought: Bool {
        get { slots[DataSoughtSlot.self] ?? false }
        set { slots[DataSoughtSlot.self] = newValue }
    }
}

private enum DataLaunchSlot: Slot { typealias Value = DataLaunch }
private enum DataLaunchKeptSlot: Slot { typealias Value = Bool }
private enum DataSoughtSlot: Slot { typealias Value = Bool }
