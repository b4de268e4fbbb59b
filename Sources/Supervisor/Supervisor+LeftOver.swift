import EventLoop
import Lifecycle
import Linux
import Processes

/// An incarnation that an earlier torpord launched and this one knows nothing more of.
final class LeftOverApp {
    let tree: ProcessTree
    var timer: TimerSource?
    init(tree: ProcessTree) { self.tree = tree }
}

/// Until recovery takes them over in their states, apps that an earlier torpord left are ended before anything is
/// launched: never two incarnations.
extension Supervisor {
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
        guard !leftOver.isEmpty else { return completion() }
        log.warning("ending \(leftOver.count) apps that an earlier torpord has left")
        let killAt = loop.now + .seconds(5)
        for entry in leftOver {
            _ = try? entry.tree.signal(Signal.terminate, toAll: true)
            try? entry.tree.continue()
        }
        let timer = try? loop.timer { [weak self] in
            guard let self else { return }
            let hurry = self.loop.now >= killAt
            self.leftOver.removeAll { entry in
                hurry ? entry.tree.killPass() == .gone : entry.tree.mainHasEnded && entry.tree.isEmpty
            }
            if self.leftOver.isEmpty {
                self.leftOverTimer?.cancel()
                self.leftOverTimer = nil
                completion()
            } else {
                self.leftOverTimer?.arm(after: .milliseconds(10))
            }
        }
        leftOverTimer = timer
        timer?.arm(after: .milliseconds(1))
    }

    /// Whether the process was one of those.
    func leftOverExited(pid: Int32) -> Bool { leftOver.contains { $0.tree.main.pid == pid } }
}
