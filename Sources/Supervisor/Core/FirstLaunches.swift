// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
package import Lifecycle
import Linux
import TorporAPI

/// Launches apps when the supervisor starts.
extension Supervisor {
    /// How to launch an app when the supervisor starts: into the state that a user last requested, or else as the
    /// configuration says. Nil if the app must not be launched.
    func launchAtStart(_ app: AppRuntime) -> (app: AppID, foreground: Bool)? {
        let machine = coordinator.machine(app.id)
        guard !app.specification.lacksTemplate else { return nil }
        // If a client or an event has launched or stopped the app already, do not launch it here.
        guard machine.goalGeneration == 0, !machine.isAlive else { return nil }
        if !machine.mayRun {
            note(app, .keptDown, text: "is not launched at the start: this machine does not own it (‘torpor own’)")
            return nil
        }
        // A supervisor without its main app has no use. So a user who starts the supervisor also wants the main app,
        // even if that app was stopped before.
        let isMain = app.id == shutdown.mainApp
        if !isMain, let reason = staysDown(app, machine) {
            note(app, .keptDown, text: "is not launched at the start: \(reason)")
            return nil
        }
        switch app.kept.goalOfPerson {
        case .active, .inactive: return (app.id, true)
        case .background, .suspended: return (app.id, false)
        case .notRunning: if !isMain { return nil }
        case nil: break
        }
        switch app.specification.launch {
        case .foreground: return (app.id, true)
        case .background: return (app.id, false)
        case .onDemand: return nil
        }
    }

    func staysDown(_ app: AppRuntime, _ machine: AppMachine) -> String? {
        if machine.failed { return "it was restarted too often; start or reset it" }
        let isDown = app.kept.goalOfPerson == .notRunning
        if machine.isForceQuit || (isDown && app.lastExit?.reason == TerminationReason.forceQuit.rawValue) {
            return "it was force-quit"
        }
        return machine.isStopped || isDown ? "it was stopped" : nil
    }

    /// After the launches, suspends the apps that a user had left suspended.
    package func suspendAsBefore(_ launched: [AppID]) {
        for id in launched where coordinator.machine(id).isAlive || coordinator.machine(id).isWaitingToLaunch {
            switch apps[id].kept.goalOfPerson {
            case .suspended:
                note(apps[id], .asLeft, text: "will be suspended, as a user left it before this start")
                try? request(.suspend, of: id)
            case .background where apps[id].specification.launch == .foreground:
                note(apps[id], .asLeft, text: "stays in the background, as a user left it before this start")
            case .active, .inactive, .background, .notRunning, nil: break
            }
        }
    }
}
