// SPDX-License-Identifier: Apache-2.0

import Archives
import Configuration
package import Engine
import EventLoop
package import Lifecycle
import Linux
package import TorporAPI
package import Varlink

/// Scenes inside apps: sessions that an app shows in its own process, each with its own lifecycle.
///
/// The core moves scenes between states (`SceneMachine`), and identifies them by numbers. This class maps the numbers
/// to names, handles the scenes' sessions, which ``Scenes`` keeps on disk, and limits how many scenes are connected.
package final class InnerScenes: ShellRoom, LifecycleObserver {
    package unowned(unsafe) let supervisor: Supervisor
    /// The core's number of each scene, by the scene's full name, `APP@NAME`.
    var numbers: [String: SceneID] = [:]
    var names: [SceneID: String] = [:]
    private var lastNumber: SceneID = 0
    /// Callers that wait until the session of a new scene is on disk, by the scene's full name.
    private var opening: [String: [(Result<SceneSession, SceneRefusal>) -> Void]] = [:]
    /// The scenes of each app at the last call of ``look(at:)``, for comparison with the scenes at the next call.
    var seen: [AppID: [SceneMachine]] = [:]
    /// Why apps refused to connect scenes, by scene.
    var refusals: [SceneID: String] = [:]
    /// For each app that is connecting a scene with saved state, that scene.
    var restoring: [AppID: SceneID] = [:]
    /// For each app that is connecting a scene, that scene.
    var connecting: [AppID: SceneID] = [:]
    /// How many runs in a row have ended while they connected the scene.
    var ends: [SceneID: Int] = [:]
    /// Discarded scenes whose data is not erased yet, for example because their apps still show them.
    var leaving: Set<String> = []
    private(set) lazy var cgroups = SceneCgroups(self)

    var roster: SceneRoster { supervisor.inForce.roster }

    init(_ supervisor: Supervisor) { self.supervisor = supervisor }

    // MARK: Which there are

    /// Apps that have scenes inside.
    package var owners: [AppRuntime] { apps.filter { $0.specification.innerScenes != nil && $0.isListed } }

    /// Whether there is any scene, connected or not. If not, a request names apps only.
    package var hasSessions: Bool { !roster.sessions.isEmpty }

    /// The app with that name; nil if there is none, or if it shows no scenes in its process.
    package func owner(named name: String) -> AppRuntime? {
        coordinator.id(of: name).map { apps[$0] }.flatMap {
            $0.specification.innerScenes != nil && $0.isListed ? $0 : nil
        }
    }

    /// The sessions of an app's scenes, sorted by the scenes' names.
    package func sessions(of app: AppRuntime) -> [SceneSession] {
        roster.sessions.values.filter { $0.template == app.name && !$0.isDiscarded }.sorted { $0.app < $1.app }
    }

    /// A scene by its full name, with its app; nil if it does not exist or is being discarded.
    package func scene(named name: String) -> (app: AppRuntime, session: SceneSession)? {
        guard let session = roster[name], !session.isDiscarded, let app = owner(named: session.template) else {
            return nil
        }
        return (app, session)
    }

    /// The number by which the core knows a scene. A scene without a number gets the next one.
    package func number(of name: String) -> SceneID {
        if let number = numbers[name] { return number }
        lastNumber += 1
        take(lastNumber, for: name)
        return lastNumber
    }

    /// The number of a scene, as ``number(of:)``, but nil if the scene has no number yet.
    package func knownNumber(of name: String) -> SceneID? { numbers[name] }

    /// Assigns to a scene the number that an earlier torpord has assigned.
    func take(_ number: SceneID, for name: String) {
        numbers[name] = number
        names[number] = name
        lastNumber = max(lastNumber, number)
    }

    /// A scene's own name; nil if the number belongs to no scene.
    func name(of scene: SceneID) -> String? { names[scene].flatMap(AppName.sceneParts)?.scene }

    /// The core's state machine of a scene; nil if the core does not know the scene.
    package func machine(of scene: SceneID, _ app: AppRuntime) -> SceneMachine? {
        machine(app).sceneMachines.first { $0.id == scene }
    }

    /// A scene's state, as clients see it.
    package func stateText(of session: SceneSession, _ app: AppRuntime) -> String {
        let state = numbers[session.app].flatMap { machine(of: $0, app)?.state } ?? .unattached
        if state == .background, machine(app).state == .suspended { return AppState.suspended.rawValue }
        return Self.text(state)
    }

    static func text(_ state: SceneState) -> String {
        switch state {
        case .unattached: SceneInfo.unattached
        case .background: AppState.background.rawValue
        case .inactive: AppState.inactive.rawValue
        case .active: AppState.active.rawValue
        }
    }

    /// A scene, as clients see it.
    package func info(of session: SceneSession, _ app: AppRuntime) -> SceneInfo {
        let state = stateText(of: session, app)
        var info = SceneInfo(
            app: session.app,
            template: session.template,
            name: session.name,
            state: state,
            openedAt: session.openedAt,
            usedAt: isInUse(session, app) ? Clock.realtimeMicroseconds() : session.usedAt,
            session: session.options,
            discardedAt: end(of: session, app),
            lacksTemplate: false
        )
        if let contents = numbers[session.app].flatMap({ cgroups.contents(of: $0, app) }) {
            (info.processes, info.isFrozen) = (Int64(contents.processes), contents.isFrozen)
        }
        return info
    }

    /// Whether a scene is in the foreground.
    private func isInUse(_ session: SceneSession, _ app: AppRuntime) -> Bool {
        numbers[session.app].flatMap { machine(of: $0, app) }.map { $0.state > .background } ?? false
    }

    /// How many scenes an app has.
    package func count(of app: AppRuntime) -> Int { roster.counts[app.name] ?? 0 }

    /// How many scenes of an app are connected, or about to be.
    package func liveCount(of app: AppRuntime) -> Int { machine(app).sceneMachines.count }

    /// The connected scenes, in the form for the app's delegate; nil for an app without scenes.
    func scenes(of app: AppRuntime) -> [AppScene]? {
        guard machine(app).rules.hasScenes else { return nil }
        return machine(app).sceneMachines.compactMap { scene in
            guard scene.state != .unattached, let name = name(of: scene.id) else { return nil }
            return AppScene(name: name, state: Self.text(scene.state))
        }
    }

    // MARK: Opening

    /// Creates the scene's session, unless it exists. `completion` gets the session when it is on disk, or the reason
    /// for a refusal.
    package func open(
        _ app: AppRuntime,
        _ name: String,
        options: JSON,
        by person: String,
        _ completion: @escaping (Result<SceneSession, SceneRefusal>) -> Void
    ) {
        let options = options.objectValue?.members.isEmpty == true ? .null : options
        if let problem = AppName.problem(scene: name, of: app.name) {
            return completion(.failure(.refused("\(quoted(name)) is not a valid scene name: \(problem)")))
        }
        let full = AppName.scene(app.name, name)
        if let refusal = supervisor.scenes.refusal(of: full, options) { return completion(.failure(.refused(refusal))) }
        if opening[full] != nil {
            opening[full]?.append(completion)
            return
        }
        if let session = roster[full] { return completion(.success(session)) }
        let most = app.specification.innerScenes?.maxSessions ?? 0
        if let refusal = supervisor.scenes.refusalOfMore(of: app.name, than: most) {
            return completion(.failure(.refused(refusal)))
        }
        if coordinator.id(of: full) != nil { return completion(.failure(.refused("there is an app \(full) already"))) }
        if let refusal = refusalToConnect(nil, app) { return completion(.failure(.refused("\(full) \(refusal)"))) }
        opening[full] = [completion]
        supervisor.scenes.make(full, of: app.name, name, options, isInside: true) {
            [weak self, weak app] session, trouble in
            guard let self else { return }
            let waiters = opening.removeValue(forKey: full) ?? []
            let result: Result<SceneSession, SceneRefusal>
            if let trouble {
                roster[full] = nil
                result = .failure(.refused("the session of \(full) cannot be written: \(trouble)"))
            } else if let app, app.isListed {
                note(app, .sceneOpened, text: "has a new scene, \(name)", reason: person)
                result = .success(session)
            } else {
                result = .failure(.noTemplate(session.template))
            }
            for waiter in waiters { waiter(result) }
        }
    }

    // MARK: Moving

    /// Moves a scene to a goal (the state that it should reach). If the limit of connected scenes is reached, first
    /// disconnects the least recently used scene in the background. Throws a sentence that says why the scene is not
    /// moved.
    package func move(_ session: SceneSession, to goal: SceneGoal, _ app: AppRuntime) throws(RequestError) {
        let number = number(of: session.app)
        refusals[number] = nil
        do throws(RequestError) {
            if goal != .unattached {
                if let refusal = refusalToConnect(number, app) { throw RequestError(refusal) }
                try makePlace(for: number, app)
            }
            try request(.scene(number, goal), of: app.id)
        } catch {
            // Discard the session only if this request has created it. If the core knows the scene already, another
            // request has created it.
            if machine(of: number, app) == nil { forgetNew(session.app) }
            throw error
        }
        if goal == .active {
            // The user has chosen this scene, so the scenes that were in the foreground when the app ended no longer
            // return with the app.
            for other in sessions(of: app) where other.returns && other.app != session.app {
                supervisor.scenes.change(other.app) { $0.returns = false }
            }
        }
        supervisor.scenes.used(session.app, isWritten: false)
        keepGoal(goal, app)
        record(app)
    }

    /// Stores the state that the app gets at the next start of the supervisor.
    private func keepGoal(_ goal: SceneGoal, _ app: AppRuntime) {
        let kept = app.kept.goalOfPerson
        switch goal {
        case .active: app.kept.goalOfPerson = .active
        case .background where kept == nil || kept == .notRunning: app.kept.goalOfPerson = .background
        case .background, .unattached:
            if kept == .active, machine(app).goal == .background { app.kept.goalOfPerson = .background }
        }
    }

    /// Discards a session that was never connected.
    private func forgetNew(_ name: String) {
        guard let session = roster[name], !session.wasConnected, !session.isDiscarded else { return }
        discard([session]) {}
    }

    /// Why no further scene can be connected; nil if one can, even if another scene must be disconnected first.
    private func refusalToConnect(_ scene: SceneID?, _ app: AppRuntime) -> String? {
        if coordinator.isShuttingDown { return "is not connected, since torpord is shutting down: start torpord again" }
        let machine = machine(app)
        if machine.isAlive, !machine.rules.hasScenes {
            return "cannot be connected: \(app.name) runs without scenes inside until it is launched again"
        }
        let others = rivals(of: scene, app)
        guard let most = app.specification.innerScenes?.maxLive, others.count >= most else { return nil }
        guard others.count(where: { $0.goal == .background }) <= others.count - most else { return nil }
        let count = most == 1 ? "a scene of \(app.name) is connected" : "\(most) scenes of \(app.name) are connected"
        return
            "cannot be connected: \(count) (scenes.max_live), and all are in the foreground: send one to the background "
            + "(torpor background)"
    }

    /// The connected scenes that count toward the limit if `scene` is connected as well. Empty if `scene` is connected
    /// already, because then the number of connected scenes does not change.
    private func rivals(of scene: SceneID?, _ app: AppRuntime) -> [SceneMachine] {
        let all = machine(app).sceneMachines.filter { $0.goal != .unattached }
        return all.contains { $0.id == scene } ? [] : all
    }

    private func makePlace(for scene: SceneID, _ app: AppRuntime) throws(RequestError) {
        guard let most = app.specification.innerScenes?.maxLive else { return }
        try disconnect(rivals(of: scene, app).count - most + 1, of: app)
    }

    /// Disconnects `count` of the app's scenes in the background, the least recently used first.
    private func disconnect(_ count: Int, of app: AppRuntime) throws(RequestError) {
        guard count > 0 else { return }
        let away = machine(app).sceneMachines.filter { $0.goal == .background }
        for scene in away.sorted(by: { usedAt($0.id) < usedAt($1.id) }).prefix(count) {
            let most = app.specification.innerScenes?.maxLive ?? 0
            let name = name(of: scene.id) ?? ""
            note(app, .sceneDisconnected, text: "has its scene \(name) disconnected: only \(most) may be connected")
            try request(.scene(scene.id, .unattached), of: app.id)
        }
    }

    /// Disconnects scenes if a new configuration allows fewer connected scenes than there are.
    func configure() {
        for app in owners {
            guard let most = app.specification.innerScenes?.maxLive else { continue }
            try? disconnect(machine(app).sceneMachines.count { $0.goal != .unattached } - most, of: app)
        }
    }

    private func usedAt(_ scene: SceneID) -> Int64 { names[scene].flatMap { roster[$0]?.usedAt } ?? 0 }

    /// The scenes that come to the foreground with the app if the request names none: the scenes that were in the
    /// foreground last; otherwise the most recently used scene, preferably a connected one. Empty if the app has no
    /// scenes.
    package func toComeBack(with app: AppRuntime) -> [SceneSession] {
        let all = sessions(of: app)
        let last = all.filter(\.returns)
        if !last.isEmpty { return last }
        // Prefer connected scenes. A scene that was just disconnected was used more recently, but the user has probably
        // closed it.
        let connected = rivals(of: nil, app).compactMap { names[$0.id].flatMap { roster[$0] } }.filter {
            !$0.isDiscarded
        }
        return (connected.isEmpty ? all : connected).max { $0.usedAt < $1.usedAt }.map { [$0] } ?? []
    }

    /// Why a scene may not be disconnected; nil if it may.
    package func refusalToDisconnect(_ session: SceneSession, _ app: AppRuntime) -> String? {
        guard let scene = numbers[session.app].flatMap({ machine(of: $0, app) }), scene.state > .background else {
            return nil
        }
        return "is in the foreground: send it to the background first (torpor background \(session.app))"
    }

    /// Why the app refused to connect the scene; nil if it did not refuse, or gave no reason.
    package func refusal(of scene: SceneID) -> String? { refusals[scene] }

    // MARK: What apps go through

    package func ended(_ app: AppRuntime, _ ending: Ending) {
        guard app.specification.innerScenes != nil || seen[app.id] != nil else { return }
        // Other ends say nothing about the scene that the app was working on.
        let isOwnFault =
            !ending.reason.wasAskedFor && !ending.reason.isReplacement
            && ![.unknown, .dependencyFailed, .protectedDataOpen].contains(ending.reason)
        if let scene = restoring.removeValue(forKey: app.id), isOwnFault, let name = name(of: scene) {
            supervisor.savedStates.setAside(of: app, scene: name, "\(app.name) ended while restoring it")
        }
        if let scene = connecting.removeValue(forKey: app.id), isOwnFault { ended(app, connecting: scene) }
        look(at: app)
        cgroups.forget(app)
    }

    package func touched(_ touched: [AppRuntime]) {
        for app in touched where app.specification.innerScenes != nil || seen[app.id] != nil {
            look(at: app)
            cgroups.look(at: app)
        }
    }

    /// Stores which scenes of an app have connected, disconnected or changed their goal, so that the next torpord knows
    /// this, even after a reboot.
    func look(at app: AppRuntime) {
        let now = machine(app).sceneMachines
        let before = seen[app.id] ?? []
        guard now != before else { return }
        seen[app.id] = now.isEmpty ? nil : now
        // If the app is ending, keep the entry, because ``ended(_:_:)`` needs it to decide whether the saved state is
        // at fault.
        if machine(app).transition != .terminating, let scene = connecting[app.id] ?? restoring[app.id],
            machine(of: scene, app)?.awaiting != .sceneWillConnect
        {
            connecting[app.id] = nil
            restoring[app.id] = nil
        }
        for id in Set(now.map(\.id)).union(before.map(\.id)) {
            guard let name = names[id], roster[name] != nil else { continue }
            let (new, old) = (now.first { $0.id == id }, before.first { $0.id == id })
            follow(name, old, new, app)
        }
        if !leaving.isEmpty { loop.later { [weak self] in self?.letGo() } }
    }

    private func follow(_ name: String, _ old: SceneMachine?, _ new: SceneMachine?, _ app: AppRuntime) {
        let (was, state) = (old?.state ?? .unattached, new?.state ?? .unattached)
        if was != state { supervisor.scenes.used(name, isWritten: state == .unattached) }
        if state > .unattached, let new { ends[new.id] = nil }
        guard let session = roster[name], !session.isDiscarded else {
            if state > .unattached, roster[name]?.wasConnected == false {
                supervisor.scenes.change(name) { $0.wasConnected = true }
            }
            return
        }
        var changed = session
        if state > .unattached { changed.wasConnected = true }
        // Store the goal, which the next start of the supervisor restores.
        if !coordinator.isShuttingDown {
            let goal = new.flatMap { $0.goal == .unattached ? nil : $0.goal }
            if let new, goal != nil {
                changed.returns = new.returns
            } else if session.goal != nil {
                let isOver = !machine(app).isAlive || machine(app).transition == .terminating
                changed.returns = isOver && (session.goal == .active || session.returns)
            }
            changed.goal = goal
        }
        if changed != session { supervisor.scenes.change(name) { $0 = changed } }
        if new == nil, isStarted, let end = end(of: changed, app) { supervisor.scenes.armTimer(for: end) }
    }

    package func forget(_ app: AppRuntime) {
        seen[app.id] = nil
        restoring[app.id] = nil
        connecting[app.id] = nil
        cgroups.forget(app)
    }

    /// Called when an app has not connected a scene; returns a sentence about that.
    func refused(_ scene: SceneID, missed: Bool, _ app: AppRuntime) -> String {
        guard let name = names[scene] else { return "did not connect a scene" }
        if missed { refusals[scene] = "\(app.name) did not answer sceneWillConnect in time (launch_deadline)" }
        forgetNew(name)
        return "did not connect its scene \(name)" + (refusals[scene].map { ": \($0)" } ?? "")
    }

    /// The time at which an unused session is discarded, in microseconds since 1970; nil if it is never discarded, or
    /// if its scene is connected.
    func end(of session: SceneSession, _ app: AppRuntime) -> Int64? {
        guard let time = app.specification.innerScenes?.discardAfter else { return nil }
        if let number = numbers[session.app], machine(of: number, app) != nil { return nil }
        return session.usedAt + time.microseconds
    }

    // MARK: What apps are told

    /// The parameters of a message to a scene; nil for a scene that no longer exists.
    func parameters(of message: Message, _ scene: SceneID, _ app: AppRuntime) -> JSON? {
        guard let name = name(of: scene), let session = names[scene].flatMap({ roster[$0] }) else { return nil }
        guard message == .sceneWillConnect else {
            cgroups.wake(scene, for: message, app)
            return ["scene": .string(name)]
        }
        let state = supervisor.savedStates.found(of: app, scene: name)
        restoring[app.id] = state == nil ? nil : scene
        connecting[app.id] = scene
        return [
            "scene": .string(name),
            "options": [
                "session": session.options,
                "foreground": .bool(machine(of: scene, app)?.connectsInForeground ?? false),
                "new": .bool(!session.wasConnected),
                "cgroup": .optional(cgroups.make(for: scene, named: name, app)),
            ],
            "state": state.map { ["path": .string($0.path), "bytes": .int(Int64(clamping: $0.bytes))] } ?? .null,
        ]
    }

    /// Handles the app's answer to a message to a scene.
    func answered(_ message: Message, _ scene: SceneID, _ answer: AppAnswer, _ app: AppRuntime) {
        let failed = answer.result == .failed
        let name = name(of: scene)
        if message == .sceneWillConnect {
            let wasRestoring = restoring.removeValue(forKey: app.id) == scene
            if connecting[app.id] == scene { connecting[app.id] = nil }
            if failed {
                refusals[scene] = "\(app.name) refused it" + (answer.text.map { " (\($0))" } ?? "")
                if wasRestoring, !answer.declines.contains(.restoration), let name {
                    supervisor.savedStates.setAside(of: app, scene: name, "the app could not restore it")
                }
            }
        }
        if message == .sceneDidEnterBackground, answer.declines.contains(.snapshot), let name {
            supervisor.snapshots.declineSnapshot(of: app, scene: name)
        }
        // The app declined a snapshot of this scene, so a snapshot of the whole app must not show the scene either.
        if message == .sceneDidEnterBackground, answer.declines.contains(.snapshot), app.specification.snapshot != nil {
            supervisor.snapshots.declineSnapshot(of: app)
        }
        deliver(.scene(scene, .answered(message, failed: failed)), to: app.id)
    }

    /// Why data of a scene cannot be stored; nil if it can be.
    func refusalToKeep(of scene: String, _ app: AppRuntime) -> String? {
        guard app.specification.innerScenes != nil || machine(app).rules.hasScenes else {
            return "\(app.name) has no scenes inside (scenes = { inside = true })"
        }
        guard AppName.problem(scene: scene, of: app.name) == nil, roster[AppName.scene(app.name, scene)] != nil else {
            return "\(app.name) has no scene of that name"
        }
        return nil
    }

    /// Whether a scene is being discarded for good. Data that such a scene saves is dropped.
    func isDiscarded(_ scene: String, of app: AppRuntime) -> Bool {
        roster[AppName.scene(app.name, scene)]?.isDiscarded ?? false
    }

    /// Why no snapshot of a scene can be stored now; nil if one can be.
    func refusalOfSnapshot(of scene: String, _ app: AppRuntime) -> String? {
        if let refusal = refusalToKeep(of: scene, app) { return refusal }
        let found = numbers[AppName.scene(app.name, scene)].flatMap { machine(of: $0, app) }
        if found?.awaiting == .sceneDidEnterBackground || found?.state == .background { return nil }
        return "only a scene in the background has a snapshot: \(scene) is \(Self.text(found?.state ?? .unattached))"
    }
}
