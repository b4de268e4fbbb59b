// SPDX-License-Identifier: Apache-2.0

package import Engine
import EventLoop
import Lifecycle
import Linux
import Processes

/// Pauses the deadlines of an app while a debugger traces it.
extension Supervisor {
    /// Whether a debugger traces the app. If one does, pauses the app's deadlines until it detaches.
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
        // torpord itself may have started the tracer to sample stacks. Such a tracer does not count as a debugger.
        return tracer != 0 && tracer != app.run.stackSampler?.tool
    }
}

extension Incarnation {
    /// Fires once a second while a debugger traces the app, to check whether it has detached.
    var tracerTimer: TimerSource? {
        get { slots[TracerTimerSlot.self] }
        set { slots[TracerTimerSlot.self] = newValue }
    }
}

private enum TracerTimerSlot: Slot { typealias Value = TimerSource }
