// SPDX-License-Identifier: Apache-2.0

import Archives
import Configuration
import Engine
import EventLoop
import Lifecycle
import Linux
import Supervisor
import TorporAPI
import Varlink
import VarlinkServer

/// Own and Disown, for apps with `owner = "external"`.
extension ControlService {
    /// Carries out an Own or Disown.
    func changeOwner(_ request: VerbRequest, of app: AppRuntime, by peer: Peer) throws(RequestError) {
        if request.verb == .own {
            let time = request.forMilliseconds.map { Duration.milliseconds($0) }
            return try supervisor.own(app, for: time, renews: request.renew, by: Self.name(of: peer))
        }
        let wasAlive = coordinator.machine(app.id).isAlive
        try supervisor.disown(app, by: Self.name(of: peer))
        // Do not use the reason `stopped`: after it, events would not launch the app when this machine owns it again.
        if request.stop, wasAlive { try self.request(.stop(.evicted), of: app.id) }
    }

    /// Whether a request must be dropped because its client has closed the connection. This concerns only Own: a
    /// client that gave up waiting may have let another machine own the app since.
    func isForsaken(_ request: VerbRequest, _ reply: Reply) -> Bool { request.verb == .own && reply.isClosed }

    /// The result of a Disown; nil while the app still runs.
    func judgeDisowned(
        _ item: PendingCall.Item,
        _ app: AppRuntime,
        _ machine: AppMachine,
        gone: Bool
    ) -> VerbResult? {
        guard !machine.mayRun else {
            return result(app, ok: false, "was overtaken by another request: it is owned again", "overtaken")
        }
        if !machine.isAlive {
            guard !machine.isWaitingToLaunch, !coordinator.isHeld(app.id) else { return nil }
            return result(app, ok: true, app.lastEnding?.text ?? "is not running")
        }
        guard !gone, machine.state == .suspended, machine.transition == nil else { return nil }
        return result(app, ok: true, "is suspended")
    }

    /// Withdraws the decision of a user to run an app that this machine does not own (Start with `force`), because the
    /// start was refused. `before`: the app's state before the request.
    func endRefusedRun(of app: AppRuntime, _ before: AppMachine) {
        let machine = coordinator.machine(app.id)
        guard machine.ownership == .forced, before.ownership != .forced else { return }
        try? self.request(.disown, of: app.id)
    }

    /// For an Own or Disown that takes effect at once: the text of its result. Nil for other verbs.
    func owning(_ request: VerbRequest) -> String? {
        switch request.verb {
        case .own:
            let time = request.forMilliseconds.map { " for \(Quantity.text(.milliseconds($0)))" } ?? ""
            return "is owned by this machine\(time)"
        case .disown: return "is not owned by this machine"
        default: return nil
        }
    }

    /// The word that tells clients who owns the app; nil for an app without `owner = "external"`, which needs no owner.
    static func owner(_ outline: AppOutline) -> String? {
        outline.ownership.map { $0 == .none ? "none" : $0 == .owned ? "here" : "forced" }
    }

    /// If another machine may own the app, fails the request. Returns whether it failed.
    func refuseUnowned(_ app: AppRuntime, _ reply: Reply) -> Bool {
        let machine = coordinator.machine(app.id)
        guard machine.rules.owner == .external, machine.ownership != .owned else { return false }
        reply.fail(
            ManagerInterface.ErrorName.notOwned,
            [
                "app": .string(app.name),
                "message": .string("\(app.name) is not owned by this machine: post to the machine that owns it"),
            ]
        )
        return true
    }

    /// Replies with all apps that several machines can own (`owner = "external"`). If the caller accepts several
    /// replies, then sends a reply for each app that changes.
    func owners(_ reply: Reply) {
        reply.send(ownerships, continues: true)
        guard reply.more, !reply.isClosed else { return }
        let states = supervisor.savedStates
        let log = supervisor.events
        let saves = states.follow { [weak self, weak reply] app in self?.tellOwner(of: app, isSaved: true, reply) }
        var tellsAll = false
        let events = log.follow { [weak self, weak reply] record in
            guard let self else { return }
            switch record.kind {
            case EventKind.owned.category, EventKind.launched.category, EventKind.ended.category:
                guard let id = record.app.flatMap({ self.coordinator.id(of: $0) }) else { return }
                tellOwner(of: apps[id], isSaved: false, reply)
            case EventKind.reconfigured.category where !tellsAll:
                // Send one reply for all changes of one apply.
                tellsAll = true
                loop.later { [weak self, weak reply] in
                    tellsAll = false
                    if let self { reply?.send(ownerships, continues: true) }
                }
            default: break
            }
        }
        reply.onClosed = { [weak log, weak states, reply] in
            _ = reply
            states?.unfollow(saves)
            log?.unfollow(events)
        }
    }

    private var ownerships: JSON {
        let all = apps.compactMap { app in
            Self.owner(coordinator[app.id].outline).map { owner in
                Ownership(app: app.name, owner: owner, saved: true, imported: app.importedDigest).json
            }
        }
        return ["apps": .array(all), "whole": true]
    }

    private func tellOwner(of app: AppRuntime, isSaved: Bool, _ reply: Reply?) {
        guard let owner = Self.owner(coordinator[app.id].outline) else { return }
        let one = Ownership(app: app.name, owner: owner, saved: isSaved, imported: app.importedDigest)
        reply?.send(["apps": [one.json], "whole": false], continues: true)
    }

    // MARK: State archives

    /// Replies with a part of the state that the app, or a scene inside it, saved.
    func exportState(
        of app: AppRuntime,
        scene: String? = nil,
        at offset: Int64,
        for peer: Peer,
        _ reply: Reply
    ) {
        // A client that is neither root nor an operator may read the saved states of only those apps that several
        // machines can own.
        if supervisor.inForce.accounts.authority.isOnlyPoster(peer),
            coordinator.machine(app.id).rules.owner != .external
        {
            return reply.fail(
                ManagerInterface.ErrorName.notPermitted,
                ["message": .string("user \(peer.uid) may read only the states of apps with owner = \"external\"")]
            )
        }
        supervisor.savedStates.export(app, scene: scene, at: UInt64(clamping: offset)) { reply.send($0.json) }
    }

    /// Stores a part of an imported state, which the app gets at its next launch.
    func importState(_ request: ImportStateRequest, of app: AppRuntime, _ reply: Reply) {
        guard !coordinator.machine(app.id).isAlive else {
            let how = coordinator.machine(app.id).standsBy ? "disown \(app.name) --stop" : "stop \(app.name)"
            return reply.fail("\(app.name) runs, and only a launch gets a state: ‘torpor \(how)’ first")
        }
        take(request, for: app, scene: nil, reply)
    }

    /// Stores a part of an imported state, which the scene inside the app gets when it connects next.
    func importState(_ request: ImportStateRequest, of session: SceneSession, inside app: AppRuntime, _ reply: Reply) {
        let scene = supervisor.innerScenes.knownNumber(of: session.app).flatMap {
            supervisor.innerScenes.machine(of: $0, app)
        }
        let isConnected = scene.map { $0.state > .unattached || $0.awaiting != nil || $0.goal != .unattached } ?? false
        guard !isConnected || !coordinator.machine(app.id).isAlive else {
            return reply.fail(
                "\(session.app) is connected, and gets a state only when it connects: "
                    + "‘torpor scene disconnect \(session.app)’ first"
            )
        }
        take(request, for: app, scene: session.name, reply)
    }

    private func take(_ request: ImportStateRequest, for app: AppRuntime, scene: String?, _ reply: Reply) {
        supervisor.savedStates.take(request, from: reply.connection, for: app, scene: scene) { outcome in
            switch outcome {
            case .success(let bytes): reply.send(["bytes": .int(Int64(clamping: bytes))])
            case .failure(.tooLarge(let limit)):
                reply.fail("the state is larger than the state_limit of \(app.name), \(limit) bytes: raise that")
            case .failure(.refused(let text)), .failure(.failed(let text)): reply.fail(text)
            }
        }
    }
}
