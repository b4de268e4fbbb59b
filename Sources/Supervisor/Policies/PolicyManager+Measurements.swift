// SPDX-License-Identifier: Apache-2.0

import Engine
import EventLoop
import Lifecycle
import Linux
import Policies
import PolicyHost
import Processes
package import TorporPolicyABI

/// Measures apps and the machine for policies.
extension PolicyManager {
    /// A new round of measuring begins only if the last one began longer ago than this. Otherwise policies get the last
    /// measurements.
    private static let freshness = Duration.seconds(1)

    package func policiesWillBeAsked(_ events: [torpor_policy_event], needs: UInt64, _ ready: @escaping () -> Void) {
        let wanted = MeasurementNeeds(rawValue: needs)
        let now = supervisor.loop.now
        let isOld = measuredAt.map { now - $0 >= Self.freshness } ?? true
        // Do not measure before a question about a launch: the launch would have to wait for the measurements.
        let isUrgent = events.contains { $0.kind == TORPOR_EVENT_LAUNCH.rawValue }
        guard !wanted.isDisjoint(with: [.memory, .processor, .connections, .system]), isOld, !isUrgent else {
            refresh()
            return ready()
        }
        measuredAt = now
        measurements.begin(supervisor.apps.compactMap(measured), wanted)
        goOnMeasuring(ready)
    }

    private func measured(_ app: AppRuntime) -> MeasuredApp? {
        guard let tree = app.run.tree else { return nil }
        let machine = supervisor.coordinator.machine(app.id)
        let isSuspended = machine.state == .suspended && machine.transition == nil
        let since = isSuspended ? Duration.microseconds(app.times.since.4) : nil
        let saving = supervisor.processControl.saving(app)
        return MeasuredApp(id: app.id, tree: tree, suspendedSince: since, saving: saving)
    }

    /// Measures in steps, so that the event loop can serve other events in between.
    private func goOnMeasuring(_ ready: @escaping () -> Void) {
        guard measurements.step() else {
            return supervisor.loop.later { [weak self] in self?.goOnMeasuring(ready) }
        }
        showMeasurements()
        refresh()
        ready()
    }

    private func showMeasurements() {
        measurements.system?.fill(&view.system)
        for app in supervisor.apps where view.isPresent(app.id) {
            guard let tree = app.run.tree, let measurement = measurements.measurement(of: app.id, tree) else {
                AppMeasurement.clear(&view[app.id])
                continue
            }
            measurement.fill(&view[app.id])
            // Whether such an app listens decides whether it counts as one that no event wakes.
            if supervisor.coordinator.hasDependents(app.id) { unseen.insert(app.id) }
        }
    }
}
