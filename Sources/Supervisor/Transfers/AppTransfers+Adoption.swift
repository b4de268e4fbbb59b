// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import Lifecycle
import Linux
import Processes
import TransferProtocol
import Transfers

/// Takes over helpers (torpor-transfer processes) of an earlier torpord, so that downloads are not interrupted. Uploads
/// would be lost otherwise, because no other process could continue them.
extension AppTransfers {
    /// The most transfers that a helper (a torpor-transfer process) can run, since `per_app` allows no more.
    private static let mostAtOnce = 1000

    /// Whether the process is a helper (a torpor-transfer process) that an earlier torpord left.
    func hasFound(_ pid: Int32) -> Bool { found.values.contains { $0.process.pid == pid } }

    /// Records the helpers of an app (torpor-transfer processes) that torpor-keeper still has. These helpers continue
    /// their transfers, and report their transfers when they are asked.
    func found(_ processes: [OrphanedProcess], of app: AppRuntime) {
        let name = app.name
        let (held, group) = (DescriptorName.transfers(name), CgroupTree.transfers(of: name))
        guard let taken = FoundCompanion.take(processes, heldAs: held, cgroup: group, supervisor) else { return }
        cgroupsFound.formUnion(taken.cgroups)
        self.processes.begun()
        found[name] = taken.companion
        let (process, cgroup) = (taken.companion.process, taken.companion.cgroup)
        // Note the helper's exit here until the helper is taken over, which replaces this handler.
        supervisor.launcher.helpers[process.pid] = { [weak self] _ in self?.foundEnded(process.pid, of: name, cgroup) }
    }

    private func foundEnded(_ pid: Int32, of name: String, _ cgroup: String?) {
        // The entry stays until `adopt` has checked the helper, so that no other helper starts for the app before that.
        if found[name]?.process.pid == pid { found[name]?.hasEnded = true }
        gone(name, cgroup)
    }

    /// Called when the stored transfers are loaded. Keeps each helper that has the arguments and the user that a new
    /// helper would get. Ends the others.
    func adoptHelpers() {
        for name in found.keys.sorted() {
            guard let id = coordinator.id(of: name) else {
                endHelper(of: name)
                continue
            }
            adopt(found[name]?.process, of: apps[id])
        }
    }

    private func adopt(_ process: Launched?, of app: AppRuntime) {
        guard let process else { return }
        let name = app.name
        let manner = manner(of: app)
        let expected = Self.arguments(parts(of: name), manner)
        starting.insert(name)
        findFacts(for: app) { [weak self, weak app] facts in
            guard let self else { return }
            // If the user cannot be looked up now, continue without: the folders of a running helper already have their
            // owner.
            let facts = try? facts.get()
            let pid = process.pid
            self.disk.ask {
                let user = facts.map { $0.account?.user?.uid ?? Users.effectiveUID }
                return FoundCompanion.isRunning(expected, as: user, pid)
            } _: { [weak self, weak app] isFit in
                guard let self else { return }
                self.starting.remove(name)
                guard let found = self.found.removeValue(forKey: name), let app else { return self.startAgain(name) }
                guard !found.hasEnded, !self.isEnding, self.coordinator.id(of: name) != nil else {
                    found.end()
                    self.supervisor.release(DescriptorName.transfers(name))
                    return self.schedule()
                }
                self.goOn(with: found, isFit: isFit && manner == self.manner(of: app), manner, facts, of: app)
            }
        }
    }

    private func goOn(
        with found: FoundCompanion,
        isFit: Bool,
        _ manner: TransferHelper.Manner,
        _ facts: TransferHelper.Facts?,
        of app: AppRuntime
    ) {
        let name = app.name
        if let facts { supervisor.launcher.adopt(facts.account, of: app) }
        let helper = TransferHelper(
            of: name,
            manner,
            minimumFree: facts?.minimumFree ?? 0,
            app.specification.profile(in: .background),
            cgroup: found.cgroup,
            supervisor,
            callbacks(of: name)
        )
        helper.adopt(found.process, found.socket)
        helpers[name] = helper
        if !isFit { helper.replace() }
        shareRate()
        restIfIdle(name)
    }

    /// Called when a helper of an earlier torpord reports its transfers. Marks these transfers as running, and tells
    /// the helper to forget those that have ended.
    func goOn(with ids: [Int64], _ version: Int64, of name: String) {
        guard let helper = helpers[name] else { return }
        guard version == TransferProtocol.version, ids.count <= Self.mostAtOnce else { return helper.replace() }
        var places = supervisor.configuration.supervisor.transfers.perApp - queue.running(of: name).count
        for id in ids where helpers[name] === helper {
            guard let transfer = queue[id], transfer.app.utf8.elementsEqual(name.utf8) else {
                helper.send(.discard(id: id))
                continue
            }
            if transfer.state == .running { continue }
            if places > 0 {
                places -= 1
                queue.set(id, .running)
            } else {
                helper.send(.stop(id: id))
            }
        }
        restIfIdle(name)
        schedule()
    }

    /// Kills all helpers (torpor-transfer processes) when torpord ends and no other torpord follows.
    func endHelpers() {
        for name in Set(helpers.keys).union(found.keys) { endHelper(of: name) }
    }
}
