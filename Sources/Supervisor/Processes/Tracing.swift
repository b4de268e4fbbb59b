// SPDX-License-Identifier: Apache-2.0

package import Engine
import EventLoop
import Lifecycle
import Linux
import Processes

/// Debuggers: while one holds an app, its deadlines rest.
extension Supervisor {
    /// Whether the app is traced at this moment; then its deadlines rest until the tracer lets go.
    func restsForTracer(_ app: AppRuntime) -> Bool {
        guard isTraced(app) else { return false }
        deliver(.traced(true), to: app.id)
        app.run.tracerTimer = try? loop.timer { [weak self, weak app] in
            guard let self, let app else { return }
            if self.isTraced(app) {
                app.run.tracerTimer?.arm(after: .seconds(1))
            } else {
                app.run.tracerTimer = nil
                self.deliver(.traced(false), to: app.id)
            }
        }
        app.run.tracerTimer?.arm(after: .seconds(1))
        return true
    }

    package func isTraced(_ app: AppRuntime) -> Bool {
        guard let tree = app.run.tree else { return false }
        let tracer = (try? ProcFS.tracerPid(tree.main.pid)) ?? 0
        // Whom torpord itself has sent to look is no debugger.
        return tracer != 0 && tracer != app.run.stackSampler?.tool
    }
}

extension Incarnation {
    /// Looks once a second whether the debugger has let go.
    var tracerTimer: TimerSource? {
        get { slots[TracerTimerSlot.self] }
        set { slots[TracerTimerSlot.self] = newValue }
    }
}

private enum TracerTimerSlot: Slot { typealias Value = TimerSource }
