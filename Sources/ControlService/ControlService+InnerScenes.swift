// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import Lifecycle
import Linux
import Processes
import Supervisor
import TorporAPI
import Varlink
import VarlinkServer

/// Requests about scenes inside apps. Such a scene exists within the processes of its app and has no process of its
/// own.
extension ControlService {
    /// The entry of an app with scenes inside, for the list of templates that clients get.
    func owner(_ app: AppRuntime) -> SceneTemplateInfo {
        var info = SceneTemplateInfo(
            name: app.name,
            live: Int64(supervisor.innerScenes.liveCount(of: app)),
            maxLive: app.specification.innerScenes?.maxLive.map(Int64.init),
            sessions: Int64(supervisor.innerScenes.count(of: app)),
            maxSessions: Int64(app.specification.innerScenes?.maxSessions ?? 0)
        )
        info.inside = true
        return info
    }

    /// Opens a scene inside an app. If the scene does not exist, creates it.
    func open(_ request: OpenSceneRequest, inside app: AppRuntime, for peer: Peer, _ reply: Reply) {
        supervisor.innerScenes.open(app, request.name, options: request.session, by: Self.name(of: peer)) {
            [weak self] result in
            guard let self else { return }
            switch result {
            case .failure(.noTemplate(let name)): refuse(unknown: name, reply)
            case .failure(.refused(let sentence)): reply.fail(sentence)
            case .success(let session):
                var verb = VerbRequest(verb: request.background || request.remote ? .start : .foreground, apps: [])
                verb.background = request.background || request.remote
                verb.wait = request.wait
                verb.timeoutMilliseconds = request.timeoutMilliseconds
                verb.token = request.token
                carryOut(verb, [(app, session)], for: peer, reply)
            }
        }
    }

    /// Carries out a verb on scenes inside apps. Returns false, and does nothing, if the request names no such scene,
    /// or if it also names an app or scene that does not exist.
    func carryOutInside(_ request: VerbRequest, for peer: Peer, _ reply: Reply) -> Bool {
        let (scenes, others) = scenesInside(request)
        if scenes.isEmpty { return false }
        if let other = others.first {
            // If `other` is not an app either, the caller reports the unknown name.
            if (try? selection.resolve([other])) == nil { return false }
            reply.fail(
                "\(scenes[0].1.app) is a scene inside an app, and \(other) is not: name them in separate requests"
            )
        } else if let refusal = Self.refusal(of: request.verb) {
            reply.fail("\(scenes[0].1.app) is a scene inside \(scenes[0].0.name): \(refusal)")
        } else if request.verb == .discard {
            supervisor.innerScenes.discard(scenes.map(\.1)) { [weak self] in
                self?.carryOut(request, scenes, for: peer, reply)
            }
        } else {
            carryOut(request, scenes, for: peer, reply)
        }
        return true
    }

    /// The scenes inside apps that match the names in the request, without duplicates, and the names that match no
    /// such scene.
    private func scenesInside(_ request: VerbRequest) -> (scenes: [(AppRuntime, SceneSession)], others: [String]) {
        guard supervisor.innerScenes.hasSessions, request.apps.count(where: Self.isGlob) <= Selection.mostSearches
        else {
            return ([], request.apps)
        }
        let isForAll = request.verb == .disconnect || request.verb == .discard
        var scenes: [(AppRuntime, SceneSession)] = []
        var others: [String] = []
        var seen: Set<String> = []
        for name in request.apps {
            var found: [(AppRuntime, SceneSession)] = []
            if let scene = supervisor.innerScenes.scene(named: name) {
                found = [scene]
            } else if isForAll, let app = supervisor.innerScenes.owner(named: name) {
                found = supervisor.innerScenes.sessions(of: app).map { (app, $0) }
            } else if name.contains("@"), name.utf8.count <= 128, Self.isGlob(name) {
                for app in supervisor.innerScenes.owners {
                    found += supervisor.innerScenes.sessions(of: app).filter {
                        Selection.matches(Array($0.app.utf8)[...], Array(name.utf8)[...])
                    }.map { (app, $0) }
                }
            }
            if found.isEmpty { others.append(name) }
            scenes += found.filter { seen.insert($0.1.app).inserted }
        }
        return (scenes, others)
    }

    private static func isGlob(_ name: String) -> Bool { name.utf8.contains { $0 == 0x2a || $0 == 0x3f } }

    /// Why a verb cannot be used on scenes inside apps; nil if it can.
    private static func refusal(of verb: Verb) -> String? {
        switch verb {
        case .start, .foreground, .background, .disconnect, .discard: nil
        case .stop, .kill: "‘torpor scene disconnect’ and ‘torpor scene discard’ end scenes"
        case .restart, .suspend, .resume, .interrupt, .reset, .hold, .wait, .own, .disown:
            "it has no process of its own, and \(verb.rawValue.lowercased()) is for apps"
        }
    }

    private func carryOut(
        _ request: VerbRequest,
        _ scenes: [(app: AppRuntime, session: SceneSession)],
        for peer: Peer,
        _ reply: Reply
    ) {
        // A client that lost its connection to torpord repeats the request. Do not carry it out again, only wait for
        // the result.
        let asked = scenes.filter { $0.app.tokens.standing(of: request.token) != .unknown }.map(\.app.id)
        for (app, _) in scenes where !asked.contains(app.id) { app.tokens.take(request.token) }
        var carriedOut: Set<AppID> = []
        let items = scenes.map { app, session in
            var item = PendingCall.Item(app: app.id, target: .done, incarnation: 0, generation: 0)
            do throws(RequestError) {
                let goal = try goal(of: request, session, app)
                let machine = machine(app)
                // The incarnation (launch number) of the app in which the scene is to reach its goal: the current one,
                // or the next.
                let incarnation = machine.isAlive ? machine.incarnation : machine.incarnation + 1
                if !asked.contains(app.id), request.verb != .discard {
                    let text = "is asked to have its scene \(session.name) \(Self.text(goal))"
                    note(app, .asked, text: text, reason: Self.name(of: peer))
                    try supervisor.innerScenes.move(session, to: goal, app)
                }
                carriedOut.insert(app.id)
                // A discarded scene may no longer exist, and then has no number.
                let number = supervisor.innerScenes.knownNumber(of: session.app) ?? 0
                item = PendingCall.Item(
                    app: app.id,
                    target: .scene(number, goal, name: session.app),
                    incarnation: incarnation,
                    generation: 0
                )
            } catch {
                item.result = result(session.app, app, ok: false, "\(error)", "refused")
            }
            if item.result == nil, !request.wait { item.result = result(session.app, app, ok: true, "is on its way") }
            return item
        }
        for (app, _) in scenes where !asked.contains(app.id) && !carriedOut.contains(app.id) {
            app.tokens.giveBack(request.token)
        }
        let waiter = PendingCall(reply: reply, items: items)
        if request.verb == .discard, request.wait {
            let names = Set(scenes.map(\.session.app))
            waiter.beforeReply = { [weak self] then in self?.supervisor.scenes.whenErased(names, then) }
        }
        start(waiter, timeoutMilliseconds: request.timeoutMilliseconds)
    }

    private static func text(_ goal: SceneGoal) -> String {
        switch goal {
        case .active: "in the foreground"
        case .background: "in the background"
        case .unattached: "disconnected"
        }
    }

    /// The state to which the request brings the scene. Throws if the scene cannot reach this state now.
    private func goal(
        of request: VerbRequest,
        _ session: SceneSession,
        _ app: AppRuntime
    ) throws(RequestError) -> SceneGoal {
        let scenes = supervisor.innerScenes
        let scene = scenes.knownNumber(of: session.app).flatMap { scenes.machine(of: $0, app) }
        switch request.verb {
        case .start where request.background: return scene?.goal == .active ? .active : .background
        case .background:
            guard scene != nil else {
                throw RequestError("is unattached: ‘torpor scene open \(session.app) --background’ connects it")
            }
            return .background
        case .disconnect:
            if let refusal = scenes.refusalToDisconnect(session, app) { throw RequestError(refusal) }
            return .unattached
        case .discard: return .unattached
        default: return .active
        }
    }

    /// The result of a call for a scene inside an app; nil while the scene has not reached its goal yet.
    func judge(
        _ item: PendingCall.Item,
        _ scene: SceneID,
        _ goal: SceneGoal,
        _ name: String,
        _ app: AppRuntime
    ) -> VerbResult? {
        let machine = coordinator.machine(app.id)
        let found = machine.sceneMachines.first { $0.id == scene }
        let isOnItsWay = machine.isAlive || machine.isWaitingToLaunch || coordinator.isHeld(app.id)
        if goal == .unattached {
            guard found?.state ?? .unattached == .unattached, found?.awaiting == nil else {
                return found?.goal == .unattached ? nil : overtaken(name, found, app)
            }
            let isThere = supervisor.innerScenes.scene(named: name) != nil
            return result(name, app, ok: true, isThere ? "is disconnected" : "was discarded")
        }
        if found?.goal != goal, let refusal = supervisor.innerScenes.refusal(of: scene) {
            return result(name, app, ok: false, "is not connected: \(refusal)", "refused")
        }
        if item.incarnation != 0, machine.incarnation > item.incarnation || !isOnItsWay {
            let why = machine.lastEnding.map { " (\($0.rawValue))" } ?? ""
            return result(name, app, ok: false, "is not \(Self.text(goal)): \(app.name) has ended\(why)", "ended")
        }
        guard let found, found.goal == goal else { return overtaken(name, found, app) }
        if found.state == goal.state { return result(name, app, ok: true, "is \(Self.text(of: found, machine))") }
        guard goal == .active, machine.transition == nil, found.awaiting == nil, !coordinator.isHeld(app.id) else {
            return nil
        }
        if machine.isCovered {
            return result(name, app, ok: true, "comes to the foreground when the session is unlocked")
        }
        guard machine.interruptions > 0, found.state == .inactive else { return nil }
        let text = "is inactive, since \(app.name) is interrupted: ‘torpor interrupt --end \(app.name)’ ends that"
        return result(name, app, ok: false, text, "interrupted")
    }

    private static func text(of scene: SceneMachine, _ app: AppMachine) -> String {
        scene.state == .background && app.state == .suspended ? AppState.suspended.rawValue : "\(scene.state)"
    }

    private func overtaken(_ name: String, _ scene: SceneMachine?, _ app: AppRuntime) -> VerbResult {
        let wanted = Self.text(scene?.goal ?? .unattached)
        return result(name, app, ok: false, "was overtaken by another request: to be \(wanted)", "overtaken")
    }

    private func result(
        _ name: String,
        _ app: AppRuntime,
        ok: Bool,
        _ text: String,
        _ error: String? = nil
    ) -> VerbResult {
        let state = supervisor.innerScenes.scene(named: name).map {
            supervisor.innerScenes.stateText(of: $0.session, app)
        }
        return VerbResult(
            app: name,
            ok: ok,
            state: state ?? SceneInfo.unattached,
            pid: state ?? SceneInfo.unattached == SceneInfo.unattached ? nil : app.run.tree?.main.pid,
            message: "\(name) \(text)",
            error: error
        )
    }
}
