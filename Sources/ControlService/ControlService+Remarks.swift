// SPDX-License-Identifier: Apache-2.0

import Archives
import Configuration
import Engine
import Lifecycle
import Supervisor

/// Remarks about an app that has reached the goal of a request.
extension ControlService {
    /// A text that says that the launch failed, if this call launched the app and the app reported the failure;
    /// otherwise empty. The app's state does not show such a failure.
    func failedLaunch(_ item: PendingCall.Item, _ app: AppRuntime, _ machine: AppMachine) -> String {
        guard machine.incarnation > item.incarnation,
            app.run.timeline.time(of: .answered(.didFinishLaunching, .failed)) != nil
        else { return "" }
        return "; it answered didFinishLaunching with failed (see ‘torpor history \(app.name)’)"
    }

    /// The text to add if an app in the background could not save its state, and has not saved it since; else empty.
    func unsaved(_ app: AppRuntime, _ machine: AppMachine) -> String {
        guard machine.state == .background || machine.state == .suspended,
            app.run.stateNotKeptIn == machine.incarnation
        else { return "" }
        return "; its state could not be saved (see ‘torpor history \(app.name)’)"
    }

    /// The text to add if an app with scenes inside stays in the background because none of its scenes is connected;
    /// else empty.
    func lacksScene(_ app: AppRuntime, _ machine: AppMachine) -> String {
        guard app.specification.innerScenes != nil, machine.state == .background, machine.sceneMachines.isEmpty else {
            return ""
        }
        return ", since none of its scenes is connected: ‘torpor scene open \(app.name)@NAME’ shows one"
    }

    /// The text to add if the app could not be told what a user has asked for, because its delegate is gone; else
    /// empty.
    func deaf(_ app: AppRuntime) -> String {
        supervisor.lacksDelegate(app)
            ? "; its delegate has closed its connection, so that it is told nothing and saves nothing: ‘torpor restart "
                + "\(app.name)’ launches it again" : ""
    }
}
