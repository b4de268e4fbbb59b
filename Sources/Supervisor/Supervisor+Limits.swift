import Configuration
import EventLoop
import Lifecycle
import Linux
import Processes

/// Limits of an app as a whole: by its cgroup where that has the controllers. Without the memory controller its memory
/// is looked at once a second; without the one for tasks there is no such limit.
extension Supervisor {
    private static let lookInterval = Duration.seconds(1)
    /// How many apps are looked at before others have their turn: a millisecond's worth.
    private static let portion = 25

    /// Limits a cgroup into which an app is about to be launched.
    func limit(_ app: AppRuntime, at path: String, isFresh: Bool) {
        var usage: UInt64?
        let (failures, _) = app.specification.appLimits.write(
            to: path,
            replacing: isFresh ? AppLimits() : nil,
            usage: &usage
        )
        tell(failures, of: app)
    }

    /// Limits it has been given by a new configuration.
    func limitsChanged(_ app: AppRuntime, from old: AppLimits) {
        watchMemory(app)
        guard let path = app.tree?.cgroupPath else { return }
        var usage = app.loweredFrom
        let (failures, isUnfinished) = app.specification.appLimits.write(to: path, replacing: old, usage: &usage)
        tell(failures, of: app)
        guard isUnfinished else {
            app.loweredFrom = nil
            app.limitTimer = nil
            return
        }
        app.loweredFrom = usage
        app.limitTimer = try? loop.timer { [weak self, weak app] in
            guard let self, let app, app.tree?.cgroupPath == path else { return }
            // Whatever it was, memory is to be lowered further.
            self.limitsChanged(app, from: AppLimits(memory: .max, tasks: app.specification.taskLimit))
        }
        app.limitTimer?.arm(after: .milliseconds(20))
    }

    /// What of an app's limits cannot be had, in words.
    func missingLimits(_ app: AppRuntime) -> [String] {
        guard let tree = app.tree else { return [] }
        var missing: [String] = []
        if app.specification.memoryLimit != nil, !tree.hasMemoryController {
            missing.append("memory_limit by the kernel: it is watched once a second (no memory controller)")
        }
        if let tasks = app.specification.taskLimit, !tree.hasTaskController {
            missing.append("limits.tasks \(tasks) (no pids controller)")
        }
        return missing
    }

    private func tell(_ failures: [ProfileFailure], of app: AppRuntime) {
        for failure in failures where profiles.tells(failure) {
            let instead = failure.kind == .memoryLimit ? ", it is watched once a second instead" : ""
            let what = "\(failure.kind.rawValue) of \(app.name), like others'"
            log.info("\(what), is not kept by the kernel: \(failure.text)\(instead)")
        }
    }

    // MARK: Memory without a controller

    /// Looks at an app's memory from now on, as long as it runs, where nobody else does.
    func watchMemory(_ app: AppRuntime) {
        guard isToBeLookedAt(app) else { return }
        if memoryTimer == nil { memoryTimer = try? loop.timer { [weak self] in self?.lookAtMemory() } }
        if memoryTimer?.deadline == nil { memoryTimer?.arm(after: Self.lookInterval) }
    }

    private func isToBeLookedAt(_ app: AppRuntime) -> Bool {
        guard app.specification.memoryLimit != nil, let tree = app.tree, app.exitRecord == nil else { return false }
        let machine = coordinator.machine(app.id)
        let runs = machine.state != .suspended && machine.transition != .terminating
        return runs && !tree.hasMemoryController
    }

    private func lookAtMemory() {
        memoryTimer?.disarm()
        let apps = apps.filter { isToBeLookedAt($0) }
        if apps.isEmpty { memoryTimer = nil }
        guard !apps.isEmpty else { return }
        // Those without a cgroup share one reading of /proc.
        end(apps.filter { $0.tree?.cgroupPath == nil })
        look(at: apps.filter { $0.tree?.cgroupPath != nil }[...])
    }

    private func look(at rest: ArraySlice<AppRuntime>) {
        end(rest.prefix(Self.portion).filter { isToBeLookedAt($0) })
        let rest = rest.dropFirst(Self.portion)
        guard rest.isEmpty else { return loop.later { [weak self] in self?.look(at: rest) } }
        memoryTimer?.arm(after: Self.lookInterval)
    }

    /// Ends those of them that have more than they may.
    private func end(_ apps: [AppRuntime]) {
        guard !apps.isEmpty else { return }
        let usages = ProcessTree.usage(of: apps.compactMap(\.tree))
        for (app, usage) in zip(apps, usages) {
            app.usage = usage
            guard let limit = app.specification.memoryLimit, let tree = app.tree else { continue }
            let (isOver, bytes) = tree.exceeds(limit, usage)
            guard isOver else { continue }
            let text = "has \(bytes >> 10) KiB of memory, more than its memory_limit of \(limit >> 10) KiB: it is ended"
            note(app, .overLimit, text: text)
            let id = app.id
            uninterrupted { [weak self] in try? self?.request(.stop(.memoryLimit), of: id) }
        }
    }
}
