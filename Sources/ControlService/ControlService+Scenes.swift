// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventSources
import Lifecycle
import Linux
import Supervisor
import TorporAPI
import Varlink
import VarlinkServer

/// Requests about templates and their scenes.
extension ControlService {
    /// Throws if the verb is only for scenes and the app is not a scene, or if the app's launch would exceed the limit
    /// of live scenes.
    func requireScene(_ request: VerbRequest, _ app: AppRuntime) throws(RequestError) {
        let refusal: String? =
            switch request.verb {
            case .start, .foreground, .background, .restart, .resume: supervisor.scenes.refusalToLaunch(app)
            case .disconnect: supervisor.scenes.refusalToDisconnect(app)
            case .discard: app.specification.scene == nil ? "is not a scene" : nil
            case .stop, .suspend, .interrupt, .kill, .reset, .hold, .wait, .own, .disown: nil
            }
        if let refusal { throw RequestError(refusal) }
    }

    /// Brings scenes inside the app to the foreground, because the app comes to the foreground only together with a
    /// scene. Chooses the scenes that were last in the foreground or, if there are none, the scene that was used last.
    func requireScene(inside app: AppRuntime) throws(RequestError) {
        guard app.specification.innerScenes != nil, !machine(app).canComeToForeground else { return }
        let last = supervisor.innerScenes.toComeBack(with: app)
        guard !last.isEmpty else {
            throw RequestError("has no scenes to show: ‘torpor scene open \(app.name)@NAME’ opens one")
        }
        try show(last, inside: app)
    }

    /// Brings back the scenes that were in the foreground when the app ended, because a start launches the app into the
    /// foreground. If there are none, the app is launched without a scene, and stays in the background.
    func showScenesOfLastRun(inside app: AppRuntime) throws(RequestError) {
        guard app.specification.innerScenes != nil else { return }
        try show(supervisor.innerScenes.sessions(of: app).filter(\.returns), inside: app)
    }

    private func show(_ sessions: [SceneSession], inside app: AppRuntime) throws(RequestError) {
        guard let first = sessions.first else { return }
        try supervisor.innerScenes.move(first, to: .active, app)
        for other in sessions.dropFirst() { try? supervisor.innerScenes.move(other, to: .active, app) }
    }

    /// Creates a scene unless it exists. Then brings the scene to the foreground, or launches it in the background if
    /// the request says so.
    func openScene(_ request: OpenSceneRequest, for peer: Peer, _ reply: Reply) {
        guard supervisor.isStarted else {
            return supervisor.engine.whenStarted { [weak self] in self?.openScene(request, for: peer, reply) }
        }
        let owner = supervisor.innerScenes.owner(named: request.template)
        let kind = owner?.specification.innerScenes ?? supervisor.scenes.template(request.template)?.scenes
        if kind?.openedBy == .operators, supervisor.inForce.accounts.authority.isOnlyPoster(peer) {
            let sentence =
                "user \(peer.uid) may not open scenes of \(request.template): write opened_by = \"posters\" into its scenes"
            return reply.fail(ManagerInterface.ErrorName.notPermitted, ["message": .string(sentence)])
        }
        if let owner { return open(request, inside: owner, for: peer, reply) }
        supervisor.scenes.open(
            request.template,
            request.name,
            options: request.session,
            by: Self.name(of: peer)
        ) { [weak self] result in
            guard let self else { return }
            switch result {
            case .success((let app, _)) where request.remote:
                let refusal = refusalToConnect(app)
                if refusal == nil { supervisor.scenes.used(app) }
                let text = refusal ?? "has its sockets"
                reply.send(
                    Replies.results([self.result(app, ok: refusal == nil, text, refusal.map { _ in "refused" })])
                )
            case .success((let app, let isNew)):
                var verb = VerbRequest(verb: request.background ? .start : .foreground, apps: [app.name])
                verb.background = request.background
                verb.wait = request.wait
                verb.timeoutMilliseconds = request.timeoutMilliseconds
                verb.token = request.token
                // The scene is stored already. So if the limit of live scenes is reached, its launch waits instead of
                // being refused.
                carryOut(verb, [app], waitsForPlace: isNew, for: peer, reply)
            case .failure(.noTemplate(let name)): refuse(unknown: name, reply)
            case .failure(.refused(let sentence)): reply.fail(sentence)
            }
        }
    }

    /// Why a connection to the scene's sockets would get no answer; nil if it would get one.
    private func refusalToConnect(_ app: AppRuntime) -> String? {
        let machine = coordinator.machine(app.id)
        guard !machine.isAlive, !machine.isWaitingToLaunch else { return nil }
        if let refusal = supervisor.scenes.refusalToLaunch(app) { return refusal }
        if let block = machine.blocksWaking {
            return "\(block.text), and no connection launches it until ‘torpor start \(app.name)’"
        }
        let isWoken = app.specification.sockets.contains { $0.wake != .none }
        return isWoken ? nil : "has no socket at which a connection launches it"
    }

    func refuse(unknown template: String, _ reply: Reply) {
        if let scene = coordinator.id(of: template).map({ apps[$0] }), scene.specification.scene != nil {
            return reply.fail("\(template) is a scene: ‘torpor scene list \(scene.specification.template)’ lists it")
        }
        if apps.contains(where: { $0.specification.lacksTemplate && $0.specification.template == template }) {
            return reply.fail(
                "\(template) is not in the configuration any more: its scenes are kept for 30 days, and come back with it"
            )
        }
        if coordinator.id(of: template) != nil || apps.contains(where: { $0.specification.template == template }) {
            return reply.fail(
                "\(template) is not a template of scenes: add scenes = {} to [apps.\(template)], and put %s where a "
                    + "scene's name belongs"
            )
        }
        let nearest = Nearest.name(to: template, among: supervisor.scenes.templates.map(\.name))
        reply.fail(
            ManagerInterface.ErrorName.unknownApp,
            ["name": .string(template), "nearest": .optional(nearest)]
        )
    }

    /// A hint for the user if an unknown app name may be the name of a scene or of a template; otherwise nil.
    func sceneHint(_ name: String) -> String? {
        if let (app, session) = supervisor.innerScenes.scene(named: name) {
            return
                "\(session.app) is a scene inside \(app.name), not an app: ‘torpor scene list’ shows it, "
                + "‘torpor history \(app.name)’ its events"
        }
        if let (template, _) = AppName.sceneParts(name), supervisor.innerScenes.owner(named: template) != nil {
            return
                "there is no scene \(name): ‘torpor scene open \(name)’ creates it, ‘torpor scene list’ has the others"
        }
        if supervisor.scenes.template(name) != nil {
            return "\(name) has no scenes: ‘torpor scene open \(name)@NAME’ opens one"
        }
        guard let (template, _) = AppName.sceneParts(name), supervisor.scenes.template(template) != nil else {
            return nil
        }
        return
            "there is no scene \(name): ‘torpor scene open \(name)’ creates it, ‘torpor scene list’ has the others"
    }

    /// Removes scenes for good: marks them as discarded on disk, then ends their processes.
    func discard(_ request: VerbRequest, _ chosen: [AppRuntime], for peer: Peer, _ reply: Reply) {
        let scenes = chosen.filter { $0.specification.scene != nil }
        guard !scenes.isEmpty else { return carryOut(request, chosen, for: peer, reply) }
        supervisor.scenes.discard(scenes) { [weak self] in
            guard let self else { return }
            // A scene may have been removed while torpord wrote to disk that it is discarded.
            carryOut(request, chosen.filter { app in self.apps.contains { $0 === app } }, for: peer, reply)
        }
    }

    /// All templates, described for clients.
    var templates: [SceneTemplateInfo] {
        guard !supervisor.scenes.templates.isEmpty else { return [] }
        let scenes = Dictionary(grouping: supervisor.scenes.scenes(of: nil)) { $0.specification.template }
        return supervisor.scenes.templates.map { template in
            let scenes = scenes[template.name] ?? []
            return SceneTemplateInfo(
                name: template.name,
                live: Int64(scenes.count { supervisor.scenes.isLive($0) }),
                maxLive: template.scenes?.maxLive.map(Int64.init),
                sessions: Int64(scenes.count),
                maxSessions: Int64(template.scenes?.maxSessions ?? 0)
            )
        }
    }

    func scenes(of template: String?, _ reply: Reply) throws(Selection.Unknown) {
        let owners = supervisor.innerScenes.owners.filter { template == nil || $0.name == template }
        let templates = (templates + owners.map(owner)).filter { template == nil || $0.name == template }
        let scenes =
            supervisor.scenes.scenes(of: template).compactMap(supervisor.scenes.info)
            + owners.flatMap { app in
                supervisor.innerScenes.sessions(of: app).map { supervisor.innerScenes.info(of: $0, app) }
            }
        if let template, templates.isEmpty, scenes.isEmpty { return refuse(unknown: template, reply) }
        let names = JSON.array(templates.sorted { $0.name < $1.name }.map(\.json))
        let infos = scenes.sorted { $0.app < $1.app }.map(\.json)
        reply.send(BoundedReply.list("scenes", infos, with: ["templates": names]))
    }
}
