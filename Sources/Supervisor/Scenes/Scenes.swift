// SPDX-License-Identifier: Apache-2.0

package import Configuration
package import Engine
import EventLoop
import EventSources
package import Lifecycle
import Linux
import MemoryPressure
import Output
import Store
package import TorporAPI
package import Varlink

/// Scenes: apps that are made from a template when a client opens them. Their sessions are kept when their processes
/// have ended.
///
/// A session is a small file in the state directory. Together, the sessions and the configuration define which apps
/// exist; otherwise a scene is an app like any other. This class creates and discards scenes, and limits how many
/// scenes of a template run at the same time: a launch beyond this limit waits until another scene is disconnected.
package final class Scenes: ShellRoom, LifecycleObserver {
    package unowned(unsafe) let supervisor: Supervisor
    /// A thread that writes sessions, one after the other.
    private let disk: BackgroundWorker
    /// Scenes that apps show in their own process.
    package private(set) lazy var inner = InnerScenes(supervisor)
    /// Callers that wait until the session of a new scene is on disk, by the name of the scene's app.
    private var opening: [String: [(Result<(app: AppRuntime, isNew: Bool), SceneRefusal>) -> Void]] = [:]
    /// Launches that wait because as many scenes of the template run as `max_live` allows, in order of arrival.
    var waiting: [AppID] = []
    /// The scenes of each template that have a process.
    var alive: [String: Set<AppID>] = [:]
    /// Launches that were admitted under `max_live` and have not begun.
    var admitted: Set<AppID> = []
    /// Scenes that are being restarted. They count toward `max_live` during the restart, so that no other scene is
    /// launched instead.
    var reserved: Set<AppID> = []
    /// Scenes that were launched or woken into the background, and so are not disconnected for other scenes for a
    /// while.
    var stays: [AppID: Stay] = [:]
    /// The times at which torpor-holding (`holding`) has first and last told a client of each scene to try again.
    var comesAgain: [AppID: (first: Duration, last: Duration)] = [:]
    /// Fires when the time is over for which a scene must not be disconnected for another one.
    var stayTimer: TimerSource?
    var isLookingForPlaces = false
    /// Callers that wait until all data of discarded scenes is removed.
    private var awaitingErasure: [(names: Set<String>, then: () -> Void)] = []
    /// Fires when the next unused session must be discarded.
    var timer: TimerSource?
    /// The `discard_after` of each template, as last applied, to find out which ones a new configuration changes.
    var discardTimes: [String: Duration?]?
    /// The times of both clocks at the last check for unused sessions. Their difference shows whether the wall clock
    /// was set since.
    var lastLook: (boot: Duration, wallClock: Int64)?

    var roster: SceneRoster { supervisor.inForce.roster }

    init(_ supervisor: Supervisor) {
        self.supervisor = supervisor
        disk = BackgroundWorker(supervisor.loop, named: "scenes")
    }

    /// Discarded scenes whose data could not be removed completely.
    private var failedErasures: Set<String> = []

    // MARK: What sessions there are

    /// The session of a scene; nil if the app is not a scene.
    package func session(of app: AppRuntime) -> SceneSession? {
        app.specification.scene != nil ? roster[app.name] : nil
    }

    package func template(_ name: String) -> AppSpecification? { supervisor.configuration.template(named: name) }

    package var templates: [AppSpecification] { supervisor.configuration.templates }

    /// The scenes of a template, or of all templates if it is nil, sorted by name.
    package func scenes(of template: String?) -> [AppRuntime] {
        apps.filter { $0.specification.scene != nil && (template == nil || $0.specification.template == template) }
    }

    /// Reports unreadable sessions, and continues removals that an earlier torpord has begun.
    func begin() {
        for trouble in roster.troubles { log.warning(trouble) }
        for app in scenes(of: nil) { note(app) }
        // Wait until the orphans of an earlier torpord have ended, because they may still write data of discarded
        // scenes.
        engine.whenStarted { [weak self] in
            guard let self else { return }
            // Skip discarded scenes inside apps: ``InnerScenes`` removes them, after their apps were told.
            for session in roster.sessions.values
            where session.isDiscarded && inner.owner(named: session.template) == nil {
                finishDiscarding(session.app)
            }
            armTimer()
        }
        configure()
    }

    /// Removes the remaining data of a scene that an earlier torpord has discarded. If a configured app now has the
    /// same name, that app's data is kept, and only the scene's session is removed.
    private func finishDiscarding(_ app: String) {
        guard coordinator.id(of: app) != nil else { return erase(app) }
        let folder = roster.folder
        disk.ask({ folder.trouble { () throws(Errno) in try folder.remove(app) } }) { [weak self] _ in
            self?.roster[app] = nil
        }
    }

    /// Applies the templates of the configuration in force.
    package func configure() {
        let inside = inner.owners.map { ($0.name, $0.specification.innerScenes?.discardAfter) }
        let times = Dictionary(
            templates.map { ($0.name, $0.scenes?.discardAfter) } + inside,
            uniquingKeysWith: { $1 }
        )
        if let before = discardTimes {
            // If `discard_after` has changed, its time begins now, so that an edit of the configuration does not
            // discard sessions at once.
            let changed = Set(times.filter { name, time in before[name].map { $0 != time } ?? false }.keys)
            for app in scenes(of: nil) where changed.contains(app.specification.template) && !machine(app).isAlive {
                used(app, isWritten: true)
            }
            for entry in innerEnds where changed.contains(entry.session.template) {
                used(entry.session.app, isWritten: true)
            }
        }
        discardTimes = times
        for template in templates { disconnectSurplus(of: template) }
        if isStarted { inner.configure() }
        for session in roster.sessions.values where !session.isDiscarded {
            guard template(session.template) == nil, inner.owner(named: session.template) == nil else {
                if session.templateGoneAt != nil { change(session.app) { $0.templateGoneAt = nil } }
                continue
            }
            guard session.templateGoneAt == nil else { continue }
            change(session.app) { $0.templateGoneAt = Clock.realtimeMicroseconds() }
        }
        for app in scenes(of: nil) where app.specification.lacksTemplate {
            guard machine(app).isAlive || machine(app).isWaitingToLaunch else { continue }
            try? request(.stop(.evicted), of: app.id)
        }
        lookForPlaces()
        armTimer()
    }

    /// Changes a session, in memory and on disk.
    func change(_ app: String, _ body: (inout SceneSession) -> Void) {
        guard var session = roster[app] else { return }
        body(&session)
        roster[app] = session
        let (folder, changed) = (roster.folder, session)
        disk.ask {
            folder.trouble { () throws(Errno) in try folder.write(changed) }
        } _: { [weak self] trouble in
            if let trouble { self?.log.warning("the session of \(app) cannot be written: \(trouble)") }
        }
    }

    /// Calls back when all changes made so far are on disk.
    func whenWritten(_ then: @escaping () -> Void) { disk.ask({ true }) { _ in then() } }

    /// A scene, as clients see it; nil if the app is not a scene.
    package func info(of app: AppRuntime) -> SceneInfo? {
        guard let session = session(of: app) else { return nil }
        let machine = machine(app)
        return SceneInfo(
            app: app.name,
            template: session.template,
            name: session.name,
            state: machine.isAlive ? machine.state.rawValue : SceneInfo.unattached,
            openedAt: session.openedAt,
            usedAt: machine.isAlive ? Clock.realtimeMicroseconds() : session.usedAt,
            session: session.options,
            discardedAt: end(of: session, app),
            lacksTemplate: app.specification.lacksTemplate
        )
    }

    // MARK: Opening

    /// Creates a scene, unless it exists. `completion` gets the scene's app when the scene's session is on disk, or the
    /// reason for a refusal.
    package func open(
        _ template: String,
        _ name: String,
        options: JSON,
        by person: String,
        _ completion: @escaping (Result<(app: AppRuntime, isNew: Bool), SceneRefusal>) -> Void
    ) {
        // Treat empty options as if there were none.
        let options = options.objectValue?.members.isEmpty == true ? .null : options
        guard let found = self.template(template) else { return completion(.failure(.noTemplate(template))) }
        if let problem = AppName.problem(scene: name, of: template) {
            return completion(.failure(.refused("\(quoted(name)) is not a valid scene name: \(problem)")))
        }
        let app = found.scene(named: name)
        if let refusal = refusal(of: app.name, options) { return completion(.failure(.refused(refusal))) }
        // If an earlier request is still creating this scene, wait for the result of that request.
        if opening[app.name] != nil {
            opening[app.name]?.append(completion)
            return
        }
        if let id = coordinator.id(of: app.name), roster[app.name] != nil {
            return completion(.success((apps[id], false)))
        }
        if let refusal = refusal(of: app, found) { return completion(.failure(.refused(refusal))) }
        opening[app.name] = [completion]
        make(app.name, of: template, name, options) { [weak self] session, trouble in
            self?.opened(session, trouble, by: person)
        }
    }

    /// Creates a session. `then` is called when the session is on disk, or could not be written.
    func make(
        _ full: String,
        of template: String,
        _ name: String,
        _ options: JSON,
        isInside: Bool = false,
        _ then: @escaping (SceneSession, _ trouble: String?) -> Void
    ) {
        var session = SceneSession(app: full, template: template, name: name, openedAt: Clock.realtimeMicroseconds())
        session.options = options
        session.isInside = isInside
        roster[full] = session
        let (folder, made) = (roster.folder, session)
        disk.ask {
            let trouble = folder.trouble { () throws(Errno) in try folder.write(made) }
            // If writing has failed, the file may exist without being durable: remove it.
            if trouble != nil { try? folder.remove(made.app) }
            return trouble
        } _: { trouble in
            then(made, trouble)
        }
    }

    /// Why an existing scene cannot be opened with these options; nil if it can be, or if there is no such scene.
    func refusal(of full: String, _ options: JSON) -> String? {
        guard let session = roster[full] else { return nil }
        if session.isDiscarded { return "\(full) is being discarded: open it again when that is done" }
        guard options != .null, options != session.options else { return nil }
        return
            "\(full) was opened with another session, and keeps it: open it without one, or discard it first (torpor "
            + "scene discard \(full))"
    }

    /// Why no further scene of a template can be created; nil if one can be.
    func refusalOfMore(of template: String, than most: Int) -> String? {
        let count = roster.counts[template] ?? 0
        guard count >= most else { return nil }
        return
            "\(template) has \(count) sessions, and may not have more (scenes.max_sessions): discard one that is not "
            + "needed (torpor scene list \(template) shows when each was used)"
    }

    /// Why a new scene with that name cannot be created; nil if it can be.
    private func refusal(of app: AppSpecification, _ template: AppSpecification) -> String? {
        if let refusal = refusalOfMore(of: template.name, than: template.scenes?.maxSessions ?? 0) { return refusal }
        if coordinator.id(of: app.name) != nil { return "there is an app \(app.name) already" }
        return app.addressProblem ?? fullRefusal(template, for: nil).map { "\(app.name) cannot be launched: \($0)" }
    }

    private func opened(_ session: SceneSession, _ trouble: String?, by person: String) {
        let waiters = opening.removeValue(forKey: session.app) ?? []
        func tell(_ result: Result<(app: AppRuntime, isNew: Bool), SceneRefusal>) {
            for waiter in waiters { waiter(result) }
        }
        // If the configuration was changed while the session was being written, the scene's app exists already.
        let made = coordinator.id(of: session.app).map { apps[$0] }
        if let trouble {
            if let made { end(made) }
            roster[session.app] = nil
            return tell(.failure(.refused("the session of \(session.app) cannot be written: \(trouble)")))
        }
        guard !isEnding, !coordinator.isShuttingDown else {
            return tell(.failure(.refused("torpord is shutting down: the scene is there again when torpord is")))
        }
        guard let template = template(session.template) else {
            if let made {
                roster[session.app]?.isDiscarded = true
                end(made)
            } else {
                roster[session.app] = nil
                erase(session.app)
            }
            return tell(.failure(.noTemplate(session.template)))
        }
        if let made { return tell(.success((made, true))) }
        do throws(DependencyError) {
            let app = try add(template.scene(named: session.name))
            note(app, .sceneOpened, text: "was opened as a new scene of \(session.template)", reason: person)
            tell(.success((app, true)))
        } catch {
            roster[session.app] = nil
            erase(session.app)
            tell(.failure(.refused("\(error)")))
        }
    }

    private func add(_ specification: AppSpecification) throws(DependencyError) -> AppRuntime {
        let actions = try coordinator.add(AppChange(AppDefinition(specification)), now: now)
        guard let id = coordinator.id(of: specification.name) else {
            throw .unknown(app: specification.name, names: specification.name)
        }
        let filled = supervisor.settings.filled(specification, of: nil)
        let app = AppRuntime(id: id, specification: filled, owner: supervisor)
        engine.add(app)
        engine.takeIn(actions)
        record(app)
        return app
    }

    // MARK: Going

    /// Why a scene may not be disconnected; nil if it may.
    package func refusalToDisconnect(_ app: AppRuntime) -> String? {
        guard app.specification.scene != nil else { return "is not a scene" }
        let machine = machine(app)
        guard machine.isAlive, machine.state == .active || machine.state == .inactive else { return nil }
        return "is in the foreground: send it to the background first (torpor background \(app.name))"
    }

    /// Marks scenes as discarded. Calls `completion` when that is on disk; after that, the caller must call ``end(_:)``
    /// for each scene.
    package func discard(_ discarded: [AppRuntime], _ completion: @escaping () -> Void) {
        for app in discarded { change(app.name) { $0.isDiscarded = true } }
        disk.ask({ true }) { _ in completion() }
    }

    /// Ends a discarded scene, and removes its app from the core.
    package func end(_ app: AppRuntime) { engine.takeIn(coordinator.remove(app.id, now: now)) }

    package func forget(_ app: AppRuntime) {
        waiting.removeAll { $0 == app.id }
        admitted.remove(app.id)
        reserved.remove(app.id)
        stays[app.id] = nil
        comesAgain[app.id] = nil
        alive[app.specification.template]?.remove(app.id)
        guard let session = session(of: app) else { return }
        // If the scene was not discarded, its template was removed: keep its session, because the template may return.
        guard session.isDiscarded else { return }
        // Erase the data in a later turn of the event loop, because the other parts of the supervisor must forget the
        // app first.
        loop.later { [weak self] in self?.erase(session.app) }
    }

    /// Removes all data of a discarded scene. The session is removed last, so that the next torpord continues the
    /// removal if this one dies.
    func erase(_ app: String) {
        let state = supervisor.runtime.state
        let places = ["apps", "archives", "snapshots"].map { DataPlace(root: state + "/" + $0, app: app) }
        let (folder, logs) = (roster.folder, supervisor.runtime.logs)
        // If an earlier torpord has discarded the scene, the scene has no app here, so remove it from the store
        // explicitly.
        supervisor.store.remove(app: app)
        supervisor.dataFolders.erase(app) { [weak self] trouble in
            guard let self else { return }
            if let trouble { return isLeft(of: app, trouble) }
            disk.ask { () -> String? in
                for place in places { if let trouble = place.erase() { return trouble } }
                LogFile.removeAll(at: logs + "/" + app + ".log")
                return folder.trouble { () throws(Errno) in try folder.remove(app) }
            } _: { [weak self] trouble in
                guard let self else { return }
                if let trouble { return isLeft(of: app, trouble) }
                supervisor.batch.forgetLoss(of: logs + "/" + app + ".log")
                if coordinator.id(of: app) == nil { roster[app] = nil }
                lookForErased()
            }
        }
    }

    private func isLeft(of app: String, _ trouble: String) {
        failedErasures.insert(app)
        log.warning("not all files of \(app) could be removed, so the next start tries again: \(trouble)")
        lookForErased()
    }

    /// Calls `then` when all data of these discarded scenes is removed, or could not be removed.
    package func whenErased(_ names: Set<String>, _ then: @escaping () -> Void) {
        awaitingErasure.append((names, then))
        lookForErased()
    }

    private func lookForErased() {
        let waiting = awaitingErasure
        awaitingErasure = []
        for entry in waiting {
            let isLeft = entry.names.contains { roster[$0]?.isDiscarded == true && !failedErasures.contains($0) }
            if isLeft { awaitingErasure.append(entry) } else { entry.then() }
        }
    }

    // MARK: What apps go through

    package func ended(_ app: AppRuntime, _ ending: Ending) {
        guard session(of: app) != nil else { return }
        used(app, isWritten: true)
        // A scene that was evicted is not launched again after a reboot. Only a client that opens it, or an event,
        // launches it again.
        if ending.reason == .evicted, case .rest = ending.next { app.kept.goalOfPerson = nil }
        if app.specification.scenes?.maxLive != nil {
            switch ending.next {
            case .relaunch, .restart: reserved.insert(app.id)
            case .rest, .gaveUp: break
            }
        }
        if isStarted, let session = roster[app.name], let end = end(of: session, app) { armTimer(for: end) }
    }

    package func touched(_ apps: [AppRuntime]) {
        var isAny = false
        for app in apps where app.specification.scene != nil {
            note(app)
            isAny = true
        }
        if isAny { lookForPlaces() }
    }

    /// Records that the scene is in use now. Writes the time to disk if the last write was at least a minute ago, or if
    /// `isWritten`.
    package func used(_ app: AppRuntime, isWritten: Bool = false) {
        if session(of: app) != nil { used(app.name, isWritten: isWritten) }
    }

    /// The same as ``used(_:isWritten:)``, but for any scene, including scenes inside apps.
    func used(_ name: String, isWritten: Bool) {
        guard let session = roster[name] else { return }
        let time = Clock.realtimeMicroseconds()
        roster[name]?.usedAt = time
        guard isWritten || abs(time - session.usedAt) >= Self.granularity.microseconds else { return }
        let folder = roster.folder
        disk.ask({ folder.trouble { () throws(Errno) in try folder.touch(name) } }) { (_: String?) in }
    }

    private static let granularity = Duration.seconds(60)
}

/// Why a scene was not opened.
package enum SceneRefusal: Error, Sendable {
    /// There is no template with that name.
    case noTemplate(String)
    /// The reason, as a sentence.
    case refused(String)
}

extension SceneFolder {
    /// Calls `work`. Returns a sentence about the error that it throws; nil if it throws none.
    func trouble(_ work: () throws(Errno) -> Void) -> String? {
        do throws(Errno) {
            try work()
            return nil
        } catch {
            return "\(error) (\(path))"
        }
    }
}
