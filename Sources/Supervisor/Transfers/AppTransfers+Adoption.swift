// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import Lifecycle
import Linux
import Processes
import TransferProtocol
import Transfers

/// The process that transfers for an app, as an earlier torpord left it.
struct FoundHelper {
    let process: Launched
    /// By which it speaks; nil where that is lost.
    let socket: Descriptor?
    /// It has ended meanwhile.
    var hasEnded = false
    /// Nobody needs it.
    func end() { try? Pidfd.sendSignal(process.pidfd.raw, Signal.kill) }
}

/// Going on with what runs: an upload cannot go on in another process, and a download need not.
extension AppTransfers {
    /// Whether a process is one of those.
    func hasFound(_ pid: Int32) -> Bool { found.values.contains { $0.process.pid == pid } }

    /// The keeper has one. It does what it was told, and says what comes of it once it is asked.
    func found(_ process: OrphanedProcess, of app: AppRuntime) {
        let name = app.name
        let socket = supervisor.inheritance.take(DescriptorName.transfers(name)).first
        let earlier = found.updateValue(FoundHelper(process: process.launched, socket: socket), forKey: name)
        earlier?.end()
        supervisor.launcher.helpers[process.pid] = { [weak self] _ in self?.foundEnded(process.pid, of: name) }
    }

    private func foundEnded(_ pid: Int32, of name: String) {
        // Nothing begins for its app before it is known what it is: see `adopt`.
        if found[name]?.process.pid == pid { found[name]?.hasEnded = true }
    }

    /// The transfers are known: each process goes on if it is what would be launched now, and is ended otherwise.
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
            guard let self, let app else { return }
            let account = (try? facts.get())?.account
            let pid = process.pid
            self.disk.ask {
                Self.isRunning(expected, as: account, pid)
            } _: { [weak self, weak app] isFit in
                guard let self, let app else { return }
                self.starting.remove(name)
                guard let found = self.found.removeValue(forKey: name) else { return }
                guard !self.isEnding else { return found.end() }
                guard !found.hasEnded, let facts = try? facts.get(), self.coordinator.id(of: name) != nil else {
                    found.end()
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
        _ facts: TransferHelper.Facts,
        of app: AppRuntime
    ) {
        let name = app.name
        supervisor.launcher.adopt(facts.account, of: app)
        let helper = TransferHelper(
            adopting: found.process,
            found.socket,
            of: name,
            manner,
            minimumFree: facts.minimumFree,
            supervisor,
            callbacks(of: name)
        )
        helpers[name] = helper
        if !isFit { helper.replace() }
        shareRate()
        restIfIdle(name)
    }

    /// Beside the loop: whether a process runs with these arguments, as that user.
    private static func isRunning(_ arguments: [String], as account: Account?, _ pid: Int32) -> Bool {
        guard let words = try? File.read("/proc/\(pid)/cmdline", limit: 1 << 16),
            let user = try? ProcFS.realUser(pid)
        else { return false }
        let expected = Array(arguments.map { Array($0.utf8) + [0] }.joined())
        return words.elementsEqual(expected) && user == account?.user?.uid ?? Users.effectiveUID
    }

    /// A process of an earlier torpord says what it does: that runs. What is over meanwhile, it is to forget.
    func goOn(with ids: [Int64], _ version: Int64, of name: String) {
        guard let helper = helpers[name] else { return }
        guard version == TransferProtocol.version else { return helper.replace() }
        for id in ids {
            guard let transfer = queue[id], transfer.app.utf8.elementsEqual(name.utf8) else {
                helper.send(.discard(id: id))
                continue
            }
            if transfer.state != .running { queue.set(id, .running) }
        }
        restIfIdle(name)
        schedule()
    }

    /// torpord ends, and nobody comes after it.
    func endHelpers() {
        for name in Set(helpers.keys).union(found.keys) { endHelper(of: name) }
    }
}
