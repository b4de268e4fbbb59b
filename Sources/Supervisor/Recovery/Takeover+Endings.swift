// SPDX-License-Identifier: Apache-2.0

import Engine
import EventLoop
import Lifecycle
import Linux
import TorporAPI

extension Takeover {
    /// Reports an ending that the earlier torpord has recorded, but not reported. If it died while it reported the
    /// ending, people may learn of it twice.
    func reportEnding(of app: AppRuntime, _ machine: AppMachine) {
        let text = "ended while torpord was being replaced"
        note(
            app,
            machine.lastEnding.map { EventKind($0) } ?? .failed,
            to: AppState.notRunning.rawValue,
            text: text,
            reason: machine.lastEnding?.rawValue
        )
        // These were recorded when the main process was killed, but the app may have been stopped after that.
        if machine.lastEnding != .evicted { (app.wasCutShort, app.wasKilledAsleep) = (nil, nil) }
        guard let ending = machine.recordedEnding(now: loop.now) else { return }
        let exit = LastExit(reason: ending.reason.rawValue, at: Clock.realtimeMicroseconds())
        app.lastExit = exit
        guard ending.reason.isReported else { return }
        let report = supervisor.reports.makeReport(app, ending, exit, text)
        supervisor.persistence.file(report, app)
        supervisor.reports.failureCommands.failed(app, ending, report)
    }
}
