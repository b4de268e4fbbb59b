// SPDX-License-Identifier: Apache-2.0

package import Engine
import EventSources
import Lifecycle
import Linux
import Processes
import Recovery

/// The write-ahead log: the core's decisions are written to the recovery file before they are carried out.
extension Supervisor {
    /// Records the apps whose state the core has changed, with the actions that will be carried out for them.
    func recordAhead(of outputs: [AppAction]) {
        for output in outputs { apps[output.app].undone.formUnion(ActionMask(output.action)) }
        for id in coordinator.takeUnrecorded() { record(apps[id]) }
    }

    /// Records that the actions were carried out.
    func recordDone(_ outputs: [AppAction]) {
        for output in outputs {
            let app = apps[output.app]
            // An action is not done yet if it waits until the app's stacks are sampled.
            let left = app.undone.subtracting(ActionMask(output.action))
                .union(app.run.stackSampler?.owed ?? [])
                .union(engine.decidedActions(of: output.app))
            guard left != app.undone else { continue }
            app.undone = left
            if case .ended = output.action {
                // Write the record again, because how the app ended is known only now. Writing it cannot remove actions
                // from those that are left to do, so set these afterwards.
                record(app)
                if let slot = app.slot { recovery.setUndone(slot, left.rawValue) }
                forgetExits(app)
            } else if let slot = app.slot {
                recovery.setUndone(slot, left.rawValue)
            }
        }
    }

    /// Writes the whole record of an app, which takes some hundred nanoseconds.
    package func record(_ app: AppRuntime) {
        guard let slot = slot(of: app) else { return }
        appSockets.keepLedger(of: app)
        var fields = AppRecord(of: app)
        if !engine.coordinator.machine(app.id).isAlive { fields.outdatedDigest = app.lastLaunchDigest }
        if !fields.tokens.isRecorded { app.tokens.isRecorded = true }
        let coordinator = engine.coordinator
        recovery.write(slot, undone: app.undone.rawValue) { memory in
            var writer = RecordWriter(memory)
            coordinator.encode(app.id, into: &writer)
            fields.encode(into: &writer)
            coordinator.encodeLater(app.id, into: &writer)
            ChannelRecord(of: app).encode(into: &writer)
            coordinator.encodeWake(app.id, into: &writer)
            coordinator.encodeWait(app.id, into: &writer)
            wakes.sockets.encode(app, into: &writer)
            return writer.count
        }
    }

    /// Records which state's profile was applied to the app last, without writing the app's whole record again.
    func recordProfile(of app: AppRuntime) {
        let code = AppRecord.code(of: app.run.profileState)
        guard code > 0, let slot = app.slot, recovery.amend(slot, code) else { return record(app) }
    }

    private func slot(of app: AppRuntime) -> Int? {
        if let slot = app.slot { return slot }
        if let slot = takeover.slotsOfRemoved.removeValue(forKey: app.name) {
            app.slot = slot
            return slot
        }
        do throws(Errno) {
            app.slot = try recovery.add(app.name)
        } catch {
            log.error("\(app.name) cannot be recorded in \(runtime.recovery) (\(error)): a crash would lose it")
        }
        return app.slot
    }

    /// Called when it is recorded that the app has ended. From now on, torpor-keeper need not remember how the app's
    /// processes ended.
    private func forgetExits(_ app: AppRuntime) {
        for exit in app.keptExits { keeper.forget(exit) }
        app.keptExits = []
    }
}
