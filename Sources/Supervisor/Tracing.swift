import EventLoop
import Lifecycle
import Linux
import Processes
import TorporAPI

/// Debuggers: while one holds an app, its deadlines rest.
extension Supervisor {
    /// Whether the app is traced at this moment; then its deadlines rest until the tracer lets go.
    func restsForTracer(_ app: AppRuntime) -> Bool {
        guard isTraced(app) else { return false }
        deliver(.traced(true), to: app.id)
        app.tracerTimer = try? loop.timer { [weak self, weak app] in
            guard let self, let app else { return }
            if self.isTraced(app) {
                app.tracerTimer?.arm(after: .seconds(1))
            } else {
                app.tracerTimer = nil
                self.deliver(.traced(false), to: app.id)
            }
        }
        app.tracerTimer?.arm(after: .seconds(1))
        return true
    }

    func isTraced(_ app: AppRuntime) -> Bool {
        guard let tree = app.tree else { return false }
        return ((try? ProcFS.tracerPid(tree.main.pid)) ?? 0) != 0
    }
}

/// Where the threads of a process stand in the kernel; only root may read that.
enum KernelStacks {
    static func read(_ pid: Int32) -> [ThreadStack] {
        let tasks = ((try? ProcFS.tasks(pid)) ?? []).prefix(32)
        return tasks.compactMap { task in
            guard let stat = try? ProcFS.taskStat(pid, task) else { return nil }
            let text = (try? File.readString("/proc/\(pid)/task/\(task)/stack")) ?? ""
            let frames = text.split(separator: "\n").map { line in
                line.split(separator: " ").last.map(String.init) ?? String(line)
            }
            return ThreadStack(tid: task, name: stat.comm, state: String(stat.state), stack: frames)
        }
    }
}
