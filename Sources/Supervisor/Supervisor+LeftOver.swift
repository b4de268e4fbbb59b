import EventLoop
import Lifecycle
import Linux
import Processes

/// Processes of an app that nobody supervises any more, until they are gone.
final class LeftOverApp {
    private enum Place {
        /// An incarnation whose main process is pinned.
        case tree(ProcessTree)
        /// A cgroup is all that is known.
        case cgroup(String)
    }

    private let place: Place

    init(tree: ProcessTree) { place = .tree(tree) }
    init(cgroup: String) { place = .cgroup(cgroup) }

    /// The main process, where it is known.
    var pid: Int32? {
        if case .tree(let tree) = place { return tree.main.pid }
        return nil
    }

    /// Asks every process to end, and continues those that are stopped.
    func terminate() {
        switch place {
        case .tree(let tree):
            _ = try? tree.signal(Signal.terminate, toAll: true)
            try? tree.thaw()
            try? tree.continue()
        case .cgroup(let path):
            for pid in (try? Cgroup.procs(path)) ?? [] {
                guard let process = try? Pidfd.open(pid) else { continue }
                try? Pidfd.sendSignal(process.raw, Signal.terminate)
                try? Pidfd.sendSignal(process.raw, Signal.continue)
            }
            try? Cgroup.freeze(path, false)
        }
    }

    /// Whether nothing is left; with `byForce` what is gets SIGKILL.
    func isGone(byForce: Bool) -> Bool {
        switch place {
        case .tree(let tree): return byForce ? tree.killPass() == .gone : tree.mainHasEnded && tree.isEmpty
        case .cgroup(let path):
            if byForce { try? Cgroup.kill(path) }
            return (try? Cgroup.events(path).populated) != true
        }
    }
}

extension Supervisor {
    /// Until recovery takes them over in their states, apps that an earlier torpord left are ended before anything is
    /// launched: never two incarnations. The keeper tells of those that it launched; where it was lost too, their
    /// cgroups do.
    func endLeftOver(_ completion: @escaping () -> Void) {
        leftOver = keeper.leftOver.map { entry in
            LeftOverApp(
                tree: ProcessTree(
                    tag: AppTag(app: entry.app, incarnation: entry.incarnation),
                    main: Identity(pid: entry.pid, startTime: entry.startTime),
                    pidfd: entry.pidfd,
                    cgroupPath: cgroups.map { $0.path(of: entry.app) }.flatMap { File.exists($0) ? $0 : nil },
                    table: processes,
                    adopter: ThisProcess.parent
                )
            )
        }
        if let cgroups {
            let known = Set(keeper.leftOver.map { cgroups.path(of: $0.app) })
            let paths = cgroups.populated().map { cgroups.base + "/" + $0 }.filter { !known.contains($0) }
            leftOver += paths.map { LeftOverApp(cgroup: $0) }
        }
        guard !leftOver.isEmpty else { return completion() }
        let count = leftOver.count == 1 ? "an app" : "\(leftOver.count) apps"
        log.warning("ending \(count) that an earlier torpord has left")
        endAllLeftOver(completion)
    }

    /// The keeper is gone, and with it the news of what ends: nothing is left running that nobody supervises.
    func keeperLost() {
        guard !isKeeperLost else { return }
        isKeeperLost = true
        log.error("torpor-keeper is gone: nothing can be launched any more; ending every app, then torpord")
        note(kind: "supervisor", text: "torpor-keeper is gone: ending every app")
        leftOver += apps.compactMap { $0.tree.map { LeftOverApp(tree: $0) } }
        endAllLeftOver { [weak self] in self?.loop.stop() }
    }

    private func endAllLeftOver(_ completion: @escaping () -> Void) {
        let killAt = loop.now + .seconds(5)
        for entry in leftOver { entry.terminate() }
        leftOverTimer = try? loop.timer { [weak self] in
            guard let self else { return }
            let hurry = self.loop.now >= killAt
            self.leftOver.removeAll { $0.isGone(byForce: hurry) }
            if self.leftOver.isEmpty {
                self.leftOverTimer?.cancel()
                self.leftOverTimer = nil
                completion()
            } else {
                self.leftOverTimer?.arm(after: .milliseconds(10))
            }
        }
        leftOverTimer?.arm(after: .milliseconds(1))
    }

    /// Whether the process was one of those.
    func leftOverExited(pid: Int32) -> Bool { leftOver.contains { $0.pid == pid } }
}
