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
            return try supervisor.own(app, for: time, by: Self.name(of: peer))
        }
        let wasAlive = coordinator.machine(app.id).isAlive
        try supervisor.disown(app, by: Self.name(of: peer))
        // The reason is not `stopped`, as for a user's stop: then the app would stay stopped when it is owned again.
        if request.stop, wasAlive { try self.request(.stop(.evicted), of: app.id) }
    }

    /// The result of an Own or Disown that needs no wait; nil for other verbs.
    func owning(_ request: VerbRequest) -> String? {
        switch request.verb {
        case .own:
            let time = request.forMilliseconds.map { " for \(Quantity.text(.milliseconds($0)))" } ?? ""
            return "is owned by this machine\(time)"
        case .disown: return "is not owned by this machine"
        default: return nil
        }
    }

    /// Adds to the app's summary whether this machine owns the app.
    func addOwner(of machine: AppMachine, to summary: inout AppSummary) {
        guard machine.rules.owner == .external else { return }
        summary.owner = machine.ownership == .none ? "none" : machine.ownership == .owned ? "here" : "forced"
        summary.ownedMilliseconds = machine.ownedUntil.map { max(0, ($0 - loop.now).microseconds / 1000) }
    }

    // MARK: State archives

    /// Replies with a part of the state that the app saved.
    func exportState(of app: AppRuntime, at offset: Int64, _ reply: Reply) {
        supervisor.savedStates.export(app, at: UInt64(clamping: offset)) { reply.send($0.json) }
    }

    /// Stores a part of an imported state, which the app gets at its next launch.
    func importState(_ request: ImportStateRequest, of app: AppRuntime, _ reply: Reply) {
        guard !coordinator.machine(app.id).isAlive else {
            let how = coordinator.machine(app.id).standsBy ? "disown \(app.name) --stop" : "stop \(app.name)"
            return reply.fail("\(app.name) runs, and only a launch gets a state: ‘torpor \(how)’ first")
        }
        supervisor.savedStates.take(request, for: app) { outcome in
            switch outcome {
            case .success(let bytes): reply.send(["bytes": .int(Int64(clamping: bytes))])
            case .failure(.tooLarge(let limit)):
                reply.fail("the state is larger than the state_limit of \(app.name), \(limit) bytes: raise that")
            case .failure(.refused(let text)), .failure(.failed(let text)): reply.fail(text)
            }
        }
    }
}
