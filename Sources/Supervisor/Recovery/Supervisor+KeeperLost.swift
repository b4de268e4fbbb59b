// SPDX-License-Identifier: Apache-2.0

import Engine
import EventLoop
import EventSources
import Linux
import Notify
import Output
import Processes
import Recovery
import Store
import VarlinkServer

/// Handles the loss of torpor-keeper. torpord has everything that torpor-keeper held, so the process of this torpord
/// executes torpor-keeper, which starts a new torpord as its child. If that is impossible, torpord ends all apps.
extension Supervisor {
    func keeperLost() {
        guard !isKeeperLost else { return }
        isKeeperLost = true
        if shutdown.isFinished { return loop.stop() }
        if keeper.isUnderManager {
            // torpor-keeper was the main process of the service, so the service manager restarts the service. The new
            // torpord then finds the apps.
            log.error("torpor-keeper is gone: torpord ends, to be started again by the service manager")
            return loop.stop()
        }
        log.error("torpor-keeper is gone: torpord becomes the keeper, and starts another torpord below it")
        persistence.close(quickly: true)
        let reason = Keeper.become(arguments: invocation.arguments, holding: allHeld(), lost: keeper)
        note(.keeperLost, text: "\(reason); nothing can be launched any more: ending every app, then torpord")
        takeover.leftOver += apps.compactMap { $0.run.tree.map { OrphanApp(tree: $0) } }
        takeover.leftOverGone = { [weak self] in self?.loop.stop() }
        if takeover.leftOver.isEmpty { loop.stop() } else { takeover.endAllLeftOver(takeover.leftOver) }
    }

    /// All descriptors that torpor-keeper held, and a pidfd for the main process of each app. The pidfds are needed
    /// because the new keeper is not the parent of these processes.
    private func allHeld() -> [(name: String, descriptors: [Int32])] {
        var all: [(name: String, descriptors: [Int32])] = [
            (DescriptorName.lock, [runtime.lock.raw]),
            (DescriptorName.recovery, [recovery.descriptor.raw]),
            (DescriptorName.batch, [batch.descriptor.raw]),
        ]
        if let journal = persistence.journal { all.append((DescriptorName.journal, [journal.descriptor.raw])) }
        if let listener = controlListener { all.append((DescriptorName.control, [listener.raw])) }
        if let file = inForce.file { all.append((DescriptorName.configuration, [file.raw])) }
        for source in wakes.sources { all += source.held }
        all += settings.held + activities.held + permissions.denials.held + launcher.environments.held
        for app in apps {
            if let socket = app.notifySocket { all.append((DescriptorName.notify(app.name), [socket.descriptor.raw])) }
            if let output = app.capture?.descriptorToHold { all.append((DescriptorName.output(app.name), [output])) }
            if let tree = app.run.tree, tree.main == tree.leader, let pidfd = tree.pidfd {
                all.append((DescriptorName.process(app.name), [pidfd.raw]))
            }
            for entry in app.store.entries {
                guard let hold = app.storeHolds[ObjectIdentifier(entry.descriptor)] else { continue }
                all.append((hold.name, [entry.descriptor.raw]))
            }
        }
        return all
    }
}
