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

/// Scenes: apps that are made of a template when somebody opens them, whose sessions stay when their processes are gone.
///
/// A session is a small file in the state directory; the roster of all of them, with the configuration, says which apps
/// there are. A scene is an app like any other from then on. What is this room's is that it comes into being and goes, and
/// that of a template only so many run at a time: a launch beyond that waits until another scene is disconnected.
package final class Scenes: ShellRoom, LifecycleObserver {
    package unowned(unsafe) let supervisor: Supervisor
    /// Writes sessions, one after the other.
    private let disk: BackgroundWorker
    /// Those that apps show in their own process.
    package private(set) lazy var inner = InnerScenes(supervisor)
    /// Who waits until a session is on the disk, by the names of the apps.
    private var opening: [String: [(Result<(app: AppRuntime, isNew: Bool), SceneRefusal>) -> Void]] = [:]
    /// Launches that wait for a place, in the order in which they came.
    var waiting: [AppID] = []
    /// Scenes that have a process, of each template.
    var alive: [String: Set<AppID>] = [:]
    /// Launches that have one and have not begun.
    var admitted: Set<AppID> = []
    /// Scenes that are launched again, and keep the place that they had.
    var reserved: Set<AppID> = []
    /// Scenes that something has launched or woken, and that nobody has brought to the foreground.
    var stays: [AppID: Stay] = [:]
    /// When a client was last told to come again (`holding`), and when one was first.
    var comesAgain: [AppID: (first: Duration, last: Duration)] = [:]
    /// Looks again when one has stayed long enough.
    var stayTimer: TimerSource?
    var isLookingForPlaces = false
    /// Who waits until nothing is left of scenes that were discarded.
    private var awaitingErasure: [(names: Set<String>, then: () -> Void)] = []
    /// Discards sessions that nobody has used for long.
    var timer: TimerSource?
    /// `discard_after` of each template.
    var discardTimes: [String: Duration?]?
    /// What the clocks said when it was set last.
    var lastLook: (boot: Duration, wallClock: Int64)?

    var roster: SceneRoster { supervisor.inForce.roster }

    init(_ supervisor: Supervisor) {
        self.supervisor = supervisor
        disk = BackgroundWorker(supervisor.loop, named: "scenes")
    }

    /// Discarded scenes of which something could not be removed.
    private var failedErasures: Set<String> = []

    // MARK: What sessions there are

    /// The session of an app; nil for one that is no scene.
    package func session(of app: AppRuntime) -> SceneSession? {
        app.specification.scene != nil ? roster[app.name] : nil
    }

    /// The template of that name.
    package func template(_ name: String) -> AppSpecification? { supervisor.configuration.template(named: name) }

    package var templates: [AppSpecification] { supervisor.configuration.templates }

    /// The scenes of a template, or of all, by name.
    package func scenes(of template: String?) -> [AppRuntime] {
        apps.filter { $0.specification.scene != nil && (template == nil || $0.specification.template == template) }
    }

    /// What is wrong, and what goes on from an earlier torpord.
    func begin() {
        for trouble in roster.troubles { log.warning(trouble) }
        for app in scenes(of: nil) { note(app) }
        // When what an earlier torpord left of them has ended.
        engine.whenStarted { [weak self] in
            guard let self else { return }
            // An app that shows one is told first.
            for session in roster.sessions.values
            where session.isDiscarded && inner.owner(named: session.template) == nil {
                finishDiscarding(session.app)
            }
            armTimer()
        }
        configure()
    }

    /// Removes what an earlier torpord left of a scene; nothing but its session where an app has its name by now.
    private func finishDiscarding(_ app: String) {
        guard coordinator.id(of: app) != nil else { return erase(app) }
        let folder = roster.folder
        disk.ask({ folder.trouble { () throws(Errno) in try folder.remove(app) } }) { [weak self] _ in
            self?.roster[app] = nil
        }
    }

    /// Other templates are in force.
    package func configure() {
        let inside = inner.owners.map { ($0.name, $0.specification.innerScenes?.discardAfter) }
        let times = Dictionary(
            templates.map { ($0.name, $0.scenes?.discardAfter) } + inside,
            uniquingKeysWith: { $1 }
        )
        if let before = discardTimes {
            // A new time begins now: an edit of the configuration discards nothing at once.
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

    /// Changes a session, also on the disk.
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

    /// Calls back when all that was to be written by now is on the disk.
    func whenWritten(_ then: @escaping () -> Void) { disk.ask({ true }) { _ in then() } }

    /// What clients are shown of a scene.
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

    /// Makes the scene where there is none yet, and gives it when its session is on the disk.
    package func open(
        _ template: String,
        _ name: String,
        options: JSON,
        by person: String,
        _ completion: @escaping (Result<(app: AppRuntime, isNew: Bool), SceneRefusal>) -> Void
    ) {
        // One that says nothing is none.
        let options = options.objectValue?.members.isEmpty == true ? .null : options
        guard let found = self.template(template) else { return completion(.failure(.noTemplate(template))) }
        if let problem = AppName.problem(scene: name, of: template) {
            return completion(.failure(.refused("\(quoted(name)) is not a valid scene name: \(problem)")))
        }
        let app = found.scene(named: name)
        if let refusal = refusal(of: app.name, options) { return completion(.failure(.refused(refusal))) }
        // Whoever comes while it is written waits with the first.
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

    /// Makes a session, and calls back when it is on the disk, or could not be written.
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
            // It may be there, and not for good.
            if trouble != nil { try? folder.remove(made.app) }
            return trouble
        } _: { trouble in
            then(made, trouble)
        }
    }

    /// Why a scene cannot be opened with these options; nil where it can, or is not there yet.
    func refusal(of full: String, _ options: JSON) -> String? {
        guard let session = roster[full] else { return nil }
        if session.isDiscarded { return "\(full) is being discarded: open it again when that is done" }
        guard options != .null, options != session.options else { return nil }
        return
            "\(full) was opened with another session, and keeps it: open it without one, or discard it first (torpor "
            + "scene discard \(full))"
    }

    /// Why there can be no more scenes of a template; nil where there can.
    func refusalOfMore(of template: String, than most: Int) -> String? {
        let count = roster.counts[template] ?? 0
        guard count >= most else { return nil }
        return
            "\(template) has \(count) sessions, and may not have more (scenes.max_sessions): discard one that is not "
            + "needed (torpor scene list \(template) shows when each was used)"
    }

    /// Why there can be no scene of that name.
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
        // An apply may have come meanwhile, which has made the app already.
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

    /// One app more.
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

    /// Why a scene may not be disconnected; nil where it may.
    package func refusalToDisconnect(_ app: AppRuntime) -> String? {
        guard app.specification.scene != nil else { return "is not a scene" }
        let machine = machine(app)
        guard machine.isAlive, machine.state == .active || machine.state == .inactive else { return nil }
        return "is in the foreground: send it to the background first (torpor background \(app.name))"
    }

    /// Has scenes leave for good. Calls back when it is on the disk that they do; nothing has ended by then.
    package func discard(_ discarded: [AppRuntime], _ completion: @escaping () -> Void) {
        for app in discarded { change(app.name) { $0.isDiscarded = true } }
        disk.ask({ true }) { _ in completion() }
    }

    /// Ends a scene that is discarded, as a person would.
    package func end(_ app: AppRuntime) { engine.takeIn(coordinator.remove(app.id, now: now)) }

    package func forget(_ app: AppRuntime) {
        waiting.removeAll { $0 == app.id }
        admitted.remove(app.id)
        reserved.remove(app.id)
        stays[app.id] = nil
        comesAgain[app.id] = nil
        alive[app.specification.template]?.remove(app.id)
        guard let session = session(of: app) else { return }
        // One that is no longer there for another reason than that somebody discarded it comes back.
        guard session.isDiscarded else { return }
        // What other rooms have of it goes first.
        loop.later { [weak self] in self?.erase(session.app) }
    }

    /// Removes everything of a scene that is discarded; its session last, so that a torpord that dies over it is followed by
    /// one that goes on.
    func erase(_ app: String) {
        let state = supervisor.runtime.state
        let places = ["apps", "archives", "snapshots"].map { DataPlace(root: state + "/" + $0, app: app) }
        let (folder, logs) = (roster.folder, supervisor.runtime.logs)
        // Of one that an earlier torpord discarded nobody else does.
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

    /// Calls back when nothing is left of scenes that are discarded.
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
        // It is disconnected, also after the next boot, until somebody opens it or something wakes it.
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

    /// It is in use now. On the disk it is once a minute, unless it has to be.
    package func used(_ app: AppRuntime, isWritten: Bool = false) {
        if session(of: app) != nil { used(app.name, isWritten: isWritten) }
    }

    /// As ``used(_:isWritten:)``, of any scene.
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
    /// There is no template of that name.
    case noTemplate(String)
    /// A sentence.
    case refused(String)
}

extension SceneFolder {
    /// Does something; says what went wrong.
    func trouble(_ work: () throws(Errno) -> Void) -> String? {
        do throws(Errno) {
            try work()
            return nil
        } catch {
            return "\(error) (\(path))"
        }
    }
}
