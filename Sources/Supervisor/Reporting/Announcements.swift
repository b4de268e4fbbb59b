// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import Lifecycle
import TorporAPI

/// Reports the states that apps enter, and transitions that take some time.
final class Announcements: Room, LifecycleObserver {
    unowned(unsafe) let engine: Engine
    unowned(unsafe) let recorder: Recorder

    init(_ engine: Engine, _ recorder: Recorder) {
        self.engine = engine
        self.recorder = recorder
    }

    func entered(_ app: AppRuntime, from: AppState, to: AppState) {
        // States that an app only passes through are logged at the level `debug`. The end of an incarnation is reported
        // by `Supervisor.ended`.
        let isThere = coordinator[app.id].goal.rawValue == to.rawValue && to != .notRunning
        note(
            app,
            .entered,
            from: from.rawValue,
            to: to.rawValue,
            text: "is \(to.rawValue)",
            level: isThere ? nil : .debug
        )
        if to != .notRunning { trace(app, .entered(to)) }
    }

    /// Called for changed apps. Reports a transition only if it is still in progress. If it ended at once, only the new
    /// state is reported.
    func touched(_ apps: [AppRuntime]) { for app in apps { announceTransition(app) } }

    func forget(_ app: AppRuntime) {}

    private func announceTransition(_ app: AppRuntime) {
        let transition = coordinator[app.id].transition
        guard transition != app.announced else { return }
        app.announced = transition
        guard let transition else { return app.run.timeline.rest() }
        trace(app, .began(transition))
        note(app, .changing, to: transition.rawValue, text: "is \(transition.rawValue)")
    }
}
