// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import Lifecycle
import Linux
import Processes
import TransferProtocol
import Transfers

/// The helper of an app, as an earlier torpord left it.
struct FoundHelper {
    let process: Launched
    /// The socket to it; nil if that is lost.
    let socket: Descriptor?
    /// Its cgroup; nil if it has none of its own.
    let cgroup: String?
    /// It has ended since it was found.
    var hasEnded = false
    /// Kills it, because it is not needed.
    func end() { try? Pidfd.sendSignal(process.pidfd.raw, Signal.kill) }
}

/// Takes over running helpers: an upload cannot be continued by another process, and a download need not.
extension AppTransfers {
    /// The most transfers that a helper can have: per_app allows no more.
    private static let mostAtOnce = 1000

    /// Whether a process is one of the helpers that were found.
    func hasFound(_ pid: Int32) -> Bool { found.values.contains { $0.process.pid == pid } }

    /// The keeper has helpers of an app. A helper continues what it was told to do, and reports when it is asked. If
    /// there are two, the earlier one had been told to end.
    func found(_ processes: [OrphanedProcess], of app: AppRuntime) {
        let name = app.name
        let inOrder = processes.sorted { $0.startTime < $1.startTime }
        if let cgroups = supervisor.place.cgroups {
            cgroupsFound.formUnion(inOrder.compactMap { cgroups.transfers(of: name, around: $0.pid) })
        }
        for process in inOrder.dropLast() { try? Pidfd.sendSignal(process.pidfd.raw, Signal.kill) }
        guard let process = inOrder.last else { return }
        let socket = supervisor.inheritance.take(DescriptorName.transfers(name)).first
        processCount += 1
        let cgroup = supervisor.place.cgroups?.transfers(of: name, around: process.pid)
        found[name] = FoundHelper(process: process.launched, socket: socket, cgroup: cgroup)
        // Replaced when the helper is adopted.
        supervisor.launcher.helpers[process.pid] = { [weak self] _ in self?.foundEnded(process.pid, of: name, cgroup) }
    }

    private func foundEnded(_ pid: Int32, of name: String, _ cgroup: String?) {
        // Nothing starts for its app until it was checked: see `adopt`.
        if found[name]?.process.pid == pid { found[name]?.hasEnded = true }
        gone(name, cgroup)
    }

    /// The stored transfers are loaded: keeps each helper that is as it would be launched now, and ends the others.
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
            // The folders have their owner already, even if that user cannot be looked up now.
            let facts = try? facts.get()
            let pid = process.pid
            self.disk.ask {
                Self.isRunning(expected, as: facts.map(\.account), pid)
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
        with found: FoundHelper,
        isFit: Bool,
        _ manner: TransferHelper.Manner,
        _ facts: TransferHelper.Facts?,
        of app: AppRuntime
    ) {
        let name = app.name
        if let facts { supervisor.launcher.adopt(facts.account, of: app) }
        let helper = TransferHelper(
            adopting: found.process,
            found.socket,
            of: name,
            manner,
            minimumFree: facts?.minimumFree ?? 0,
            app.specification.profile(in: .background),
            cgroup: found.cgroup,
            supervisor,
            callbacks(of: name)
        )
        helpers[name] = helper
        if !isFit { helper.replace() }
        shareRate()
        restIfIdle(name)
    }

    /// Whether a process has these arguments, and runs as that user if it is known. Call it on a background thread.
    private static func isRunning(_ arguments: [String], as account: Account??, _ pid: Int32) -> Bool {
        guard let words = try? File.read("/proc/\(pid)/cmdline", limit: 1 << 16),
            let user = try? ProcFS.realUser(pid)
        else { return false }
        let expected = Array(arguments.map { Array($0.utf8) + [0] }.joined())
        guard words.elementsEqual(expected) else { return false }
        guard let account else { return true }
        return user == account?.user?.uid ?? Users.effectiveUID
    }

    /// A helper of an earlier torpord reports what it does: those transfers are running. It must forget those that
    /// have ended.
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

    /// torpord ends, and no other torpord follows.
    func endHelpers() {
        for name in Set(helpers.keys).union(found.keys) { endHelper(of: name) }
    }
}
