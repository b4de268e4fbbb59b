// SPDX-License-Identifier: Apache-2.0

import Engine
import EventLoop
import Lifecycle
import Linux
import Processes
import Recovery
import Store

/// Processes of an app that an earlier torpord has left running and that this torpord does not take over. They are
/// ended before any app is launched.
final class OrphanApp {
    private enum Place {
        /// The processes of an incarnation (run), whose main process is identified by a pidfd.
        case tree(ProcessTree)
        /// The processes in this cgroup; nothing else is known about them.
        case cgroup(String)
    }

    private let place: Place

    init(tree: ProcessTree) { place = .tree(tree) }
    init(cgroup: String) { place = .cgroup(cgroup) }

    /// The name of the app; nil if only the cgroup is known.
    var app: String? {
        if case .tree(let tree) = place { return tree.tag.app }
        return nil
    }

    /// The pid of the main process; nil if only the cgroup is known.
    var pid: Int32? {
        if case .tree(let tree) = place { return tree.main.pid }
        return nil
    }

    /// Sends SIGTERM to all processes, and continues those that are stopped, so that they can handle the signal.
    func terminate() {
        switch place {
        case .tree(let tree):
            _ = try? tree.signal(Signal.terminate, toAll: true)
            _ = try? tree.thaw()
            try? tree.continue()
        case .cgroup(let path):
            for pid in (try? Cgroup.procs(path)) ?? [] {
                guard let process = try? Pidfd.open(pid) else { continue }
                try? Pidfd.sendSignal(process.raw, Signal.terminate)
                try? Pidfd.sendSignal(process.raw, Signal.continue)
            }
            Cgroup.thawTree(path)
        }
    }

    /// Whether all processes have ended. If `byForce`, kills those that have not.
    func isGone(byForce: Bool) -> Bool {
        switch place {
        case .tree(let tree): return byForce ? tree.killPass() == .gone : tree.mainHasEnded && tree.isEmpty
        case .cgroup(let path):
            if byForce { try? Cgroup.kill(path) }
            return (try? Cgroup.events(path).populated) != true
        }
    }
}

extension Takeover {
    /// Ends processes that are not taken over, before any app is launched, because an app must never run twice.
    /// `entries` are the processes that torpor-keeper has launched. `strays` were launched by a keeper that was lost,
    /// and were found by their environment in /proc. All other processes are found here, by their cgroups.
    func endLeftOver(_ entries: [OrphanedProcess], _ strays: [AppTag: [Identity]]) {
        var ended: [OrphanApp] = []
        var trees = entries.map { entry in
            (
                AppTag(app: entry.app, incarnation: entry.incarnation),
                Identity(pid: entry.pid, startTime: entry.startTime)
            )
        }
        for (tag, members) in strays {
            for member in members { trees.append((tag, member)) }
        }
        let pinned = Dictionary(entries.map { ($0.pid, $0.pidfd) }, uniquingKeysWith: { $1 })
        for (tag, main) in trees {
            ended.append(
                OrphanApp(
                    tree: ProcessTree(
                        tag: tag,
                        main: main,
                        pidfd: pinned[main.pid] ?? (try? main.open()),
                        table: supervisor.processes,
                        adopter: pinned[main.pid] == nil ? nil : ThisProcess.parent
                    )
                )
            )
        }
        if let cgroups = supervisor.place.cgroups {
            // Leave out the cgroups of apps that are being launched: these apps have no process tree until `finish`
            // sets it.
            let alive = apps.filter { $0.run.tree != nil || coordinator.machine($0.id).isAlive }
            let known = Set(alive.map { cgroups.path(of: $0.name) }).union(supervisor.transfers.cgroupsFound)
                .union(supervisor.desktop.cgroupsFound)
            ended += cgroups.populated(except: known).map { OrphanApp(cgroup: $0) }
        }
        guard !ended.isEmpty else { return }
        leftOver += ended
        log.warning("ending \(ended.count == 1 ? "an orphaned process" : "\(ended.count) orphaned processes")")
        endAllLeftOver(ended)
    }

    /// Frees the slots of apps that are no longer configured, as soon as no process of them is left.
    func forgetSlots(of entries: [RecoveryFile.Entry]) {
        let ending = Set(leftOver.compactMap(\.app))
        for entry in entries {
            // If this keeper has had an earlier torpord, the app was removed from the configuration while the
            // supervisor was running, and has ended now: remove its data. A first torpord may only have been started
            // with another configuration, so it keeps the app's stored data.
            let wasRemoved = supervisor.keeper.instance > 1
            if wasRemoved { supervisor.store.remove(app: entry.name) }
            if wasRemoved, ending.contains(entry.name) {
                slotsOfRemoved[entry.name] = entry.slot
            } else {
                supervisor.recovery.remove(entry.slot)
            }
        }
    }

    /// Calls back when all orphans have ended; at once if there are none.
    func whenLeftOverIsGone(_ completion: @escaping () -> Void) {
        if leftOver.isEmpty { completion() } else { leftOverGone = completion }
    }

    func endAllLeftOver(_ entries: [OrphanApp]) {
        let killAt = loop.now + .seconds(5)
        for entry in entries { entry.terminate() }
        leftOverTimer = try? loop.timer { [weak self] in
            guard let self else { return }
            let hurry = self.loop.now >= killAt
            self.leftOver.removeAll { $0.isGone(byForce: hurry) }
            if self.leftOver.isEmpty {
                self.leftOverTimer?.cancel()
                self.leftOverTimer = nil
                for slot in self.slotsOfRemoved.values { self.supervisor.recovery.remove(slot) }
                self.slotsOfRemoved = [:]
                if !self.supervisor.isKeeperLost {
                    self.engine.takeIn(self.coordinator.orphansAreGone(now: self.loop.now))
                }
                self.leftOverGone?()
                self.leftOverGone = nil
            } else {
                self.leftOverTimer?.arm(after: .milliseconds(10))
            }
        }
        leftOverTimer?.arm(after: .milliseconds(1))
    }

    /// Whether the process was the main process of an orphan.
    func leftOverExited(pid: Int32) -> Bool { leftOver.contains { $0.pid == pid } }
}

extension Supervisor {
    /// The names of the removed apps whose processes an earlier torpord has left, and which are being ended, as far as
    /// they are known.
    package var removedAppsEnding: [String] {
        Set(takeover.leftOver.compactMap(\.app)).filter { coordinator.id(of: $0) == nil }.sorted()
    }
}
