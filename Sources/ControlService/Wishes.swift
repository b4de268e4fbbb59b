// SPDX-License-Identifier: Apache-2.0

import Archives
import Configuration
import Engine
import EventSources
import Lifecycle
import Supervisor
import TorporAPI
import VarlinkServer

/// Users' requests to apps. The goal that a user has set for an app survives a restart of torpord. The history records
/// all requests.
extension ControlService {
    /// Stores the goal that a user's request sets for the app. `goal`: the app's goal before the request. Call this
    /// before the request is carried out, because carrying it out writes the app's record, which must contain the new
    /// goal.
    func personAsks(_ request: VerbRequest, of app: AppRuntime, goal: Goal) {
        switch request.verb {
        case .start, .foreground, .background, .resume, .restart, .reset: supervisor.wakes.startedByPerson(app)
        case .suspend, .stop, .kill, .disconnect, .discard, .interrupt, .hold, .wait, .own, .disown: break
        }
        switch request.verb {
        // A cluster engine, not a user, requests that an app stands by. So keep the goal that the user has set.
        case .start where request.standby: return
        case .start: app.kept.goalOfPerson = request.background ? (goal == .notRunning ? .background : goal) : .active
        case .foreground: app.kept.goalOfPerson = .active
        case .background, .resume: app.kept.goalOfPerson = .background
        case .suspend:
            app.kept.goalOfPerson = .suspended
            let machine = coordinator.machine(app.id)
            if machine.hasProcess, machine.transition != .launching { app.run.isAskedToSleep = true }
        case .stop, .kill:
            // After a stop that ends with this boot, the app goes again where the user wanted it before.
            if !request.untilBoot { app.kept.goalOfPerson = .notRunning }
            app.keepsStateWhenStopped = request.keepState ? true : nil
            if !request.keepState {
                supervisor.savedStates.personEnds(app)
            } else if !coordinator.machine(app.id).isAlive {
                supervisor.savedStates.keepArchive(of: app)
            }
        case .disconnect, .discard: app.kept.goalOfPerson = nil
        case .restart:
            // The restart of an app that is not to run is a start.
            if goal == .notRunning || app.kept.goalOfPerson == .notRunning { app.kept.goalOfPerson = .active }
        case .reset:
            let machine = coordinator.machine(app.id)
            guard !machine.isAlive, machine.isStopped || machine.isForceQuit else { return }
            app.kept.goalOfPerson = nil
        case .interrupt, .hold, .wait, .own, .disown: return
        }
        // With `exits_on_suspend`, the app exits in the background. The configuration, not the user's goal, then
        // decides whether the app is launched again, so forget the user's goal.
        if app.specification.rules.exitsOnSuspend, [.background, .suspended].contains(app.kept.goalOfPerson) {
            app.kept.goalOfPerson = nil
        }
    }

    /// Stores whether a stop of the app, and of the apps that require it, ends with this boot. A stop that has no end
    /// does not get one by a second stop: that would launch at the boot what another user wants to stay down.
    func noteDuration(of stop: VerbRequest, _ app: AppRuntime, _ before: AppMachine, _ along: [AppRuntime]) {
        let isDown = !before.isAlive && before.isStopped
        for app in along { app.kept.isStoppedUntilBoot = stop.untilBoot }
        if !stop.untilBoot || !isDown { app.kept.isStoppedUntilBoot = stop.untilBoot }
    }

    /// Stores whether the apps that a stop or restart of another app ends too keep their states: as that app does.
    /// An app that is about to end already, since a user stopped it with `--keep-state` for example, keeps its state.
    func noteStates(_ request: VerbRequest, _ along: [AppRuntime]) {
        for app in along {
            if request.keepState {
                app.keepsStateWhenStopped = true
                if !coordinator.machine(app.id).isAlive { supervisor.savedStates.keepArchive(of: app) }
            } else if !coordinator.isToEnd(app.id) {
                app.keepsStateWhenStopped = nil
            }
        }
    }

    /// Whether the request brings the app to the foreground, so that a user sees it.
    static func isForSight(_ request: VerbRequest) -> Bool {
        request.verb == .foreground || request.verb == .start && !request.background
    }

    /// Records in the history who made the request. Call this before the results of the request are recorded.
    func noteAsked(_ request: VerbRequest, of app: AppRuntime, by peer: Peer) {
        let what: String
        switch request.verb {
        case .wait: return
        case .start where request.standby: what = "stand by"
        case .start: what = request.background ? "start in the background" : "start"
        case .interrupt: what = request.end ? "end an interruption" : "be interrupted"
        case .kill: what = "be force-quit"
        case .foreground, .background: what = "go to the \(request.verb.rawValue.lowercased())"
        case .reset: what = "be reset"
        case .hold where request.end: what = "be held no longer"
        case .hold:
            let time = request.forMilliseconds.map { " for " + Quantity.text(.milliseconds($0)) } ?? ""
            what = "be kept in the background\(time)" + (request.reason.map { ": \($0)" } ?? "")
        // An owner renews its ownership often, so only a change of ownership is an event (`owned`).
        case .own: return
        case .disown: what = request.stop ? "be disowned and stopped" : "be disowned"
        case .stop where request.untilBoot: what = "stop until the next boot"
        case .disconnect: what = "be disconnected"
        case .discard: what = "be discarded"
        case .stop, .restart, .suspend, .resume: what = request.verb.rawValue.lowercased()
        }
        note(app, .asked, text: "is asked to \(what)", reason: Self.name(of: peer))
    }

    /// The requester's name in the history.
    static func name(of peer: Peer) -> String { peer.uid == 0 ? "root" : "uid \(peer.uid)" }
}
