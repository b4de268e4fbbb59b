// SPDX-License-Identifier: Apache-2.0

import Archives
import Configuration
package import Engine
import EventLoop
package import Lifecycle
import Linux
package import TorporAPI
package import Varlink

/// Scenes inside apps: sessions that an app shows in its own process, each with a lifecycle of its own.
///
/// The core moves them (`SceneMachine`), and knows them by numbers. What this room owns is whose number is whose, the
/// sessions on the disk, which ``Scenes`` keeps beside those of its own, and how many are connected at a time.
package final class InnerScenes: ShellRoom, LifecycleObserver {
    package unowned(unsafe) let supervisor: Supervisor
    /// By the full names of scenes, `APP@NAME`.
    private var numbers: [String: SceneID] = [:]
    private var names: [SceneID: String] = [:]
    private var lastNumber: SceneID = 0
    /// Who waits until a session is on the disk, by full names.
    private var opening: [String: [(Result<SceneSession, SceneRefusal>) -> Void]] = [:]
    /// Which scenes of an app were connected when it was looked at last.
    private var attached: [AppID: Set<SceneID>] = [:]
    /// What apps said of scenes that they did not want.
    private var refusals: [SceneID: String] = [:]
    /// Scenes that are being connected with a state that was saved of them.
    private var restoring: [AppID: SceneID] = [:]
    /// Scenes that are discarded, and that their apps still show.
    private var leaving: Set<String> = []

    private var roster: SceneRoster { supervisor.inForce.roster }

    init(_ supervisor: Supervisor) { self.supervisor = supervisor }

    // MARK: Which there are

    /// Apps that have scenes inside.
    package var owners: [AppRuntime] { apps.filter { $0.specification.innerScenes != nil && $0.isListed } }

    /// The app of that name, if it has scenes inside.
    package func owner(named name: String) -> AppRuntime? {
        coordinator.id(of: name).map { apps[$0] }.flatMap {
            $0.specification.innerScenes != nil && $0.isListed ? $0 : nil
        }
    }

    /// The sessions of an app's scenes, by name.
    package func sessions(of app: AppRuntime) -> [SceneSession] {
        roster.sessions.values.filter { $0.template == app.name && !$0.isDiscarded }.sorted { $0.app < $1.app }
    }

    /// A scene by its full name, with its app.
    package func scene(named name: String) -> (app: AppRuntime, session: SceneSession)? {
        guard let session = roster[name], !session.isDiscarded, let app = owner(named: session.template) else {
            return nil
        }
        return (app, session)
    }

    /// The number by which the core knows a scene.
    package func number(of name: String) -> SceneID {
        if let number = numbers[name] { return number }
        lastNumber += 1
        take(lastNumber, for: name)
        return lastNumber
    }

    /// As ``number(of:)``, where it has been given one.
    package func knownNumber(of name: String) -> SceneID? { numbers[name] }

    private func take(_ number: SceneID, for name: String) {
        numbers[name] = number
        names[number] = name
        lastNumber = max(lastNumber, number)
    }

    /// A scene's own name.
    func name(of scene: SceneID) -> String? { names[scene].flatMap(AppName.sceneParts)?.scene }

    /// The scene as the core has it; nil where that does not know it.
    package func machine(of scene: SceneID, _ app: AppRuntime) -> SceneMachine? {
        machine(app).sceneMachines.first { $0.id == scene }
    }

    /// What clients are shown of where a scene is.
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

    /// What clients are shown of a scene.
    package func info(of session: SceneSession, _ app: AppRuntime) -> SceneInfo {
        let state = stateText(of: session, app)
        return SceneInfo(
            app: session.app,
            template: session.template,
            name: session.name,
            state: state,
            openedAt: session.openedAt,
            usedAt: state == SceneInfo.unattached ? session.usedAt : Clock.realtimeMicroseconds(),
            session: session.options,
            discardedAt: end(of: session, app),
            lacksTemplate: false
        )
    }

    /// How many scenes an app has.
    package func count(of app: AppRuntime) -> Int { roster.counts[app.name] ?? 0 }

    /// How many scenes of an app are connected, or about to be.
    package func liveCount(of app: AppRuntime) -> Int { machine(app).sceneMachines.count }

    /// What the app's delegate is shown of its scenes; nil for an app that has none.
    func scenes(of app: AppRuntime) -> [AppScene]? {
        guard machine(app).rules.hasScenes else { return nil }
        return machine(app).sceneMachines.compactMap { scene in
            guard scene.state != .unattached, let name = name(of: scene.id) else { return nil }
            return AppScene(name: name, state: Self.text(scene.state))
        }
    }

    // MARK: Opening

    /// Makes the session where there is none yet, and gives it when it is on the disk.
    package func open(
        _ app: AppRuntime,
        _ name: String,
        options: JSON,
        by person: String,
        _ completion: @escaping (Result<SceneSession, SceneRefusal>) -> Void
    ) {
        let options = options.objectValue?.members.isEmpty == true ? .null : options
        if let problem = AppName.problem(scene: name, of: app.name) {
            return completion(.failure(.refused("\(quoted(name)) is no name of a scene: \(problem)")))
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
        opening[full] = [completion]
        supervisor.scenes.make(full, of: app.name, name, options) { [weak self, weak app] session, trouble in
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

    /// Wants a scene somewhere. Another one is disconnected for it where as many are connected as may be.
    package func move(_ session: SceneSession, to goal: SceneGoal, _ app: AppRuntime) throws(RequestError) {
        let number = number(of: session.app)
        if goal != .unattached { try makePlace(for: number, app) }
        refusals[number] = nil
        try request(.scene(number, goal), of: app.id)
        remember(goal, of: session.app)
        let machine = machine(app)
        if goal != .unattached || app.kept.goalOfPerson != nil { app.kept.goalOfPerson = machine.goal }
        record(app)
    }

    /// Where it is wanted outlives torpord and the boot.
    private func remember(_ goal: SceneGoal, of name: String) {
        let goal = goal == .unattached ? nil : goal
        if roster[name]?.goal != goal { supervisor.scenes.change(name) { $0.goal = goal } }
    }

    private func makePlace(for scene: SceneID, _ app: AppRuntime) throws(RequestError) {
        guard let most = app.specification.innerScenes?.maxLive else { return }
        let others = machine(app).sceneMachines.filter { $0.id != scene && $0.goal != .unattached }
        guard others.count >= most else { return }
        let last = others.filter { $0.goal == .background }.min { usedAt($0.id) < usedAt($1.id) }
        guard let last, let name = names[last.id] else {
            let count =
                most == 1 ? "a scene of \(app.name) is connected" : "\(most) scenes of \(app.name) are connected"
            throw RequestError(
                "cannot be connected: \(count) (scenes.max_live), and all are in the foreground: send one to the background "
                    + "(torpor background)"
            )
        }
        note(app, .sceneDisconnected, text: "its scene \(name) is disconnected for another: \(most) may be connected")
        try request(.scene(last.id, .unattached), of: app.id)
        remember(.unattached, of: name)
    }

    private func usedAt(_ scene: SceneID) -> Int64 { names[scene].flatMap { roster[$0]?.usedAt } ?? 0 }

    /// The scene that somebody used last; nil where the app has none.
    package func lastUsed(of app: AppRuntime) -> SceneSession? { sessions(of: app).max { $0.usedAt < $1.usedAt } }

    /// Why a scene may not be disconnected; nil where it may.
    package func refusalToDisconnect(_ session: SceneSession, _ app: AppRuntime) -> String? {
        guard let scene = numbers[session.app].flatMap({ machine(of: $0, app) }), scene.state > .background else {
            return nil
        }
        return "is in the foreground: send it to the background first (torpor background \(session.app))"
    }

    /// What the app said when it did not want the scene; nil where it said nothing, or wanted it.
    package func refusal(of scene: SceneID) -> String? { refusals[scene] }

    // MARK: Discarding

    /// Has scenes go for good. Calls back when it is on the disk that they do.
    package func discard(_ sessions: [SceneSession], _ completion: @escaping () -> Void) {
        for session in sessions {
            leaving.insert(session.app)
            supervisor.scenes.change(session.app) { $0.isDiscarded = true }
        }
        supervisor.scenes.whenWritten { [weak self] in
            self?.discardNow(sessions.map(\.app))
            completion()
        }
    }

    private func discardNow(_ names: [String]) {
        for name in names {
            if let number = numbers[name], let app = app(of: name), machine(of: number, app) != nil {
                try? request(.scene(number, .unattached), of: app.id)
            }
        }
        letGo()
    }

    private func app(of scene: String) -> AppRuntime? {
        roster[scene].flatMap { coordinator.id(of: $0.template) }.map { apps[$0] }
    }

    /// Removes everything of those scenes that nobody shows any more, and has their apps told.
    private func letGo() {
        /// Of which the apps have heard before.
        var gone: [AppID: [String]] = [:]
        for name in leaving.sorted() {
            let app = app(of: name)
            if let app, let number = numbers[name], machine(of: number, app)?.state ?? .unattached != .unattached {
                continue
            }
            leaving.remove(name)
            if let app, let own = AppName.sceneParts(name)?.scene, roster[name]?.wasConnected == true {
                gone[app.id, default: []].append(own)
            }
            if let number = numbers.removeValue(forKey: name) {
                names[number] = nil
                refusals[number] = nil
            }
            supervisor.scenes.erase(name)
        }
        for (app, names) in gone {
            let which = names.count == 1 ? "scene \(names[0]) is" : "scenes \(names.joined(separator: ", ")) are"
            note(apps[app], .sceneDiscarded, text: "its \(which) discarded")
            supervisor.mailboxes.tellDiscarded(names, apps[app])
        }
    }

    // MARK: What apps go through

    package func ended(_ app: AppRuntime, _ ending: Ending) {
        guard app.specification.innerScenes != nil || attached[app.id] != nil else { return }
        if let scene = restoring.removeValue(forKey: app.id), let name = name(of: scene), !ending.reason.wasAskedFor,
            ending.reason != .replaced
        {
            setStateAside(of: scene, name, app, "\(app.name) ended while it restored it")
        }
        look(at: app)
        switch ending.next {
        case .relaunch, .restart: break
        case .rest, .gaveUp:
            // The next start of the supervisor goes on where this one was.
            guard ending.reason != .shutdown else { break }
            for session in sessions(of: app) { remember(.unattached, of: session.app) }
        }
        if !leaving.isEmpty { loop.later { [weak self] in self?.letGo() } }
    }

    package func touched(_ touched: [AppRuntime]) {
        for app in touched where app.specification.innerScenes != nil || attached[app.id] != nil { look(at: app) }
        if !leaving.isEmpty { loop.later { [weak self] in self?.letGo() } }
    }

    /// Notes which scenes came and went.
    private func look(at app: AppRuntime) {
        let now = Set(machine(app).sceneMachines.filter { $0.state != .unattached }.map(\.id))
        let before = attached[app.id] ?? []
        guard now != before else { return }
        attached[app.id] = now.isEmpty ? nil : now
        for scene in now.symmetricDifference(before) {
            guard let name = names[scene] else { continue }
            if roster[name]?.wasConnected == false { supervisor.scenes.change(name) { $0.wasConnected = true } }
            supervisor.scenes.used(name, isWritten: now.contains(scene) == false)
        }
        supervisor.scenes.armTimer()
    }

    package func forget(_ app: AppRuntime) {
        attached[app.id] = nil
        restoring[app.id] = nil
    }

    /// A scene was not connected; a sentence about it.
    func refused(_ scene: SceneID, missed: Bool, _ app: AppRuntime) -> String {
        guard let name = names[scene] else { return "did not connect a scene" }
        if missed { refusals[scene] = "\(app.name) did not answer sceneWillConnect in time (launch_deadline)" }
        remember(.unattached, of: name)
        // One that the app never wanted leaves nothing behind.
        if !missed, let session = roster[name], !session.wasConnected { discard([session]) {} }
        return "did not connect its scene \(name)" + (refusals[scene].map { ": \($0)" } ?? "")
    }

    /// When a session is discarded by itself, microseconds since 1970.
    func end(of session: SceneSession, _ app: AppRuntime) -> Int64? {
        guard let time = app.specification.innerScenes?.discardAfter else { return nil }
        if let number = numbers[session.app], machine(of: number, app) != nil { return nil }
        return session.usedAt + time.microseconds
    }

    // MARK: What apps are told

    /// What a message to a scene says beside its name; nil for a scene that is no more.
    func parameters(of message: Message, _ scene: SceneID, _ app: AppRuntime) -> JSON? {
        guard let name = name(of: scene), let session = names[scene].flatMap({ roster[$0] }) else { return nil }
        guard message == .sceneWillConnect else { return ["scene": .string(name)] }
        let state = supervisor.savedStates.found(of: app, scene: name)
        restoring[app.id] = state == nil ? nil : scene
        return [
            "scene": .string(name),
            "options": [
                "session": session.options,
                "foreground": .bool(machine(of: scene, app)?.connectsInForeground ?? false),
                "new": .bool(!session.wasConnected),
            ],
            "state": state.map { ["path": .string($0.path), "bytes": .int(Int64(clamping: $0.bytes))] } ?? .null,
        ]
    }

    /// The app has answered a message to a scene.
    func answered(_ message: Message, _ scene: SceneID, _ answer: AppAnswer, _ app: AppRuntime) {
        let failed = answer.result == .failed
        let name = name(of: scene)
        if message == .sceneWillConnect {
            let wasRestoring = restoring.removeValue(forKey: app.id) == scene
            if failed {
                refusals[scene] = "\(app.name) does not want it" + (answer.text.map { " (\($0))" } ?? "")
                if wasRestoring, !answer.declines.contains(.restoration), let name {
                    setStateAside(of: scene, name, app, "the app could not restore it")
                }
            }
        }
        if message == .sceneDidEnterBackground, answer.declines.contains(.snapshot), let name {
            supervisor.snapshots.declineSnapshot(of: app, scene: name)
        }
        deliver(.scene(scene, .answered(message, failed: failed)), to: app.id)
    }

    private func setStateAside(of scene: SceneID, _ name: String, _ app: AppRuntime, _ why: String) {
        supervisor.savedStates.setAside(of: app, scene: name, why)
    }

    /// Why nothing can be kept of a scene; nil where it can.
    func refusalToKeep(of scene: String, _ app: AppRuntime) -> String? {
        guard app.specification.innerScenes != nil || machine(app).rules.hasScenes else {
            return "\(app.name) has no scenes inside (scenes = { inside = true })"
        }
        guard AppName.problem(scene: scene, of: app.name) == nil, let session = roster[AppName.scene(app.name, scene)],
            !session.isDiscarded
        else { return "\(app.name) has no scene of that name" }
        return nil
    }

    /// Whether what a scene shows may be kept now; a sentence where it may not.
    func refusalOfSnapshot(of scene: String, _ app: AppRuntime) -> String? {
        if let refusal = refusalToKeep(of: scene, app) { return refusal }
        let found = numbers[AppName.scene(app.name, scene)].flatMap { machine(of: $0, app) }
        if found?.awaiting == .sceneDidEnterBackground || found?.state == .background { return nil }
        return "a snapshot is of a scene in the background, and \(scene) is \(Self.text(found?.state ?? .unattached))"
    }

    // MARK: Over torpords and boots

    /// What the next torpord has to know of the scenes of an app.
    func ledger(of app: AppRuntime) -> [SceneEntry] {
        var entries: [SceneEntry] = []
        for scene in machine(app).sceneMachines {
            if let name = names[scene.id] { entries.append(SceneEntry(name: name, scene: scene)) }
        }
        return entries
    }

    /// Goes on with what an earlier torpord knew.
    func restore(_ entries: [SceneEntry], of app: AppRuntime) {
        for entry in entries { take(entry.scene.id, for: entry.name) }
        coordinator.restore(app.id, scenes: entries.map(\.scene), now: now)
    }

    /// Takes scenes where they were wanted before this start.
    func begin() {
        for app in owners {
            let known = Set(machine(app).sceneMachines.map(\.id))
            let isAlive = machine(app).isAlive
            var scenes = machine(app).sceneMachines
            for session in roster.sessions.values.sorted(by: { $0.app < $1.app }) where session.template == app.name {
                if session.isDiscarded {
                    if let number = numbers[session.app], known.contains(number) { leaving.insert(session.app) }
                    continue
                }
                guard !isAlive, let goal = session.goal, !known.contains(number(of: session.app)) else { continue }
                let scene = SceneMachine(
                    id: number(of: session.app),
                    state: .unattached,
                    goal: goal,
                    awaiting: nil,
                    connectsInForeground: false,
                    returns: false,
                    isPrepared: false
                )
                scenes.append(scene)
            }
            if scenes.count > known.count { coordinator.restore(app.id, scenes: scenes, now: now) }
            attached[app.id] = Set(scenes.filter { $0.state != .unattached }.map(\.id))
        }
        for app in apps where machine(app).isAlive && machine(app).rules.hasScenes {
            deliver(.scenesRestored, to: app.id)
        }
        discardNow(leaving.sorted())
    }
}
