// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import EventLoop
import Lifecycle
import Linux
import Processes

/// Limits of an app as a whole. The app's cgroup enforces each limit for which it has the controller. Without the
/// memory controller torpord checks the memory once a second; without the pids controller the number of tasks is not
/// limited. An app that comes near its memory limit is warned.
extension Shares {
    private static let lookInterval = Duration.seconds(1)
    /// The most apps to check in one turn of the event loop; checking them takes about a millisecond.
    private static let portion = 25
    /// The interval of checks if the kernel enforces all limits, so that checks only warn apps at 80 %.
    private static let slowInterval = Duration.seconds(5)

    /// Writes the limits to the cgroup into which an app is about to be launched.
    package func limit(_ app: AppRuntime, at path: String, isFresh: Bool) {
        var usage: UInt64?
        let (failures, _) = app.specification.appLimits.write(
            to: path,
            replacing: isFresh ? AppLimits() : nil,
            usage: &usage
        )
        tell(failures, of: app)
    }

    /// Applies limits that a new configuration has changed.
    func limitsChanged(_ app: AppRuntime, from old: AppLimits) {
        watchMemory(app)
        guard let path = app.run.tree?.cgroupPath else { return }
        var usage = app.run.loweredFrom
        let (failures, isUnfinished) = app.specification.appLimits.write(to: path, replacing: old, usage: &usage)
        tell(failures, of: app)
        guard isUnfinished else {
            app.run.loweredFrom = nil
            app.run.limitTimer = nil
            return
        }
        app.run.loweredFrom = usage
        app.run.limitTimer = try? loop.timer { [weak self, weak app] in
            guard let self, let app, app.run.tree?.cgroupPath == path else { return }
            // Pass `.max` as the old limit, so that the limit counts as changed and is written again.
            self.limitsChanged(app, from: AppLimits(memory: .max, tasks: app.specification.appLimits.tasks))
        }
        app.run.limitTimer?.arm(after: .milliseconds(20))
    }

    /// The limits of an app that cannot be enforced, in words.
    func missingLimits(_ app: AppRuntime) -> [String] {
        guard let tree = app.run.tree else { return [] }
        var missing: [String] = []
        if app.specification.memoryLimit != nil, !tree.hasMemoryController {
            missing.append("memory_limit by the kernel: torpord checks it once a second (no memory controller)")
        }
        if let tasks = app.specification.taskLimit, !tree.hasTaskController {
            missing.append("limits.tasks \(tasks) (no pids controller)")
        }
        return missing
    }

    private func tell(_ failures: [ProfileFailure], of app: AppRuntime) {
        for failure in failures where profiles.tells(failure) {
            let instead = failure.kind == .memoryLimit ? ", torpord checks it once a second instead" : ""
            let what = "\(failure.kind.rawValue) of \(app.name), like others'"
            log.info("\(what), is not enforced by the kernel: \(failure.text)\(instead)")
        }
    }

    // MARK: Coming near the limit, and beyond it

    /// Checks an app's memory from now on, while it runs and has a limit.
    func watchMemory(_ app: AppRuntime) {
        guard isToBeLookedAt(app) else { return }
        listenToPressure(of: app)
        if memoryTimer == nil { memoryTimer = try? loop.timer { [weak self] in self?.lookAtMemory() } }
        // The timer may be set to the long interval, which is too late for an app that was just launched.
        let next = loop.now + Self.lookInterval
        if memoryTimer?.deadline.map({ $0 > next }) ?? true { memoryTimer?.arm(at: next) }
    }

    private func isToBeLookedAt(_ app: AppRuntime) -> Bool {
        guard app.specification.memoryLimit != nil, app.run.tree != nil, app.run.exitRecord == nil else { return false }
        return coordinator[app.id].state != .suspended && coordinator[app.id].transition != .terminating
    }

    /// Asks the kernel to report when the app has to wait for memory, if the kernel enforces the app's memory limit.
    private func listenToPressure(of app: AppRuntime) {
        guard app.run.pressureSource == nil, let tree = app.run.tree, tree.hasMemoryController,
            let path = tree.cgroupPath,
            let trigger = try? PressureTrigger(of: path, on: .memory, stall: Self.ownStall, window: Self.ownWindow)
        else { return }
        let source = try? loop.watch(trigger.descriptor.raw, .priority) { [weak self, weak app] events in
            guard let self, let app else { return }
            if events.contains(.error) {
                app.run.pressureSource?.source.cancel()
                app.run.pressureSource = nil
            } else if self.isToBeLookedAt(app) {
                self.judge([app])
            }
        }
        if let source { app.run.pressureSource = (trigger, source) }
    }

    private static let ownStall = Duration.milliseconds(100)
    private static let ownWindow = PressureTrigger.ordinaryWindow

    private func lookAtMemory() {
        memoryTimer?.disarm()
        let apps = apps.filter { isToBeLookedAt($0) }
        if apps.isEmpty { memoryTimer = nil }
        guard !apps.isEmpty else { return }
        // Read /proc once for all apps without a cgroup.
        judge(apps.filter { $0.run.tree?.cgroupPath == nil })
        let isSlow = apps.allSatisfy { $0.run.tree?.hasMemoryController ?? true }
        look(
            at: apps.filter { $0.run.tree?.cgroupPath != nil }[...],
            again: isSlow ? Self.slowInterval : Self.lookInterval
        )
    }

    private func look(at rest: ArraySlice<AppRuntime>, again time: Duration) {
        judge(rest.prefix(Self.portion).filter { isToBeLookedAt($0) })
        let rest = rest.dropFirst(Self.portion)
        guard rest.isEmpty else { return loop.later { [weak self] in self?.look(at: rest, again: time) } }
        memoryTimer?.arm(after: time)
    }

    /// Ends the apps that exceed their memory limit, and warns those that come near it.
    private func judge(_ apps: [AppRuntime]) {
        guard !apps.isEmpty else { return }
        let usages = ProcessTree.usage(of: apps.compactMap(\.run.tree))
        for (app, usage) in zip(apps, usages) {
            app.run.usage = usage
            guard let limit = app.specification.memoryLimit, let tree = app.run.tree else { continue }
            let (isOver, bytes) = tree.hasMemoryController ? (false, usage.memoryBytes) : tree.exceeds(limit, usage)
            if isOver {
                end(app, bytes, limit)
            } else if app.run.isNearLimit == true {
                let (isNear, bytes) = tree.exceeds(limit / 100 * Self.calmPercent, usage)
                if !isNear { calm(app, bytes, limit) }
            } else {
                let (isNear, bytes) = tree.exceeds(limit / 100 * Self.warningPercent, usage)
                if isNear { warn(app, bytes, limit) }
            }
        }
    }

    /// An app is warned when its memory exceeds this, in percent of its memory limit.
    private static let warningPercent: UInt64 = 80
    /// A warned app can be warned again only after its memory has fallen below this, in percent of its memory limit.
    private static let calmPercent: UInt64 = 70

    private func end(_ app: AppRuntime, _ bytes: UInt64, _ limit: UInt64) {
        let text = "has \(bytes >> 10) KiB of memory, more than its memory_limit of \(limit >> 10) KiB: terminating it"
        note(app, .overLimit, text: text)
        let id = app.id
        uninterrupted { [weak self] in try? self?.request(.stop(.memoryLimit), of: id) }
    }

    private func warn(_ app: AppRuntime, _ bytes: UInt64, _ limit: UInt64) {
        app.run.isNearLimit = true
        note(app, .nearLimit, text: Self.text(bytes, of: limit))
        app.memoryWarning = "limit"
        let id = app.id
        uninterrupted { [self] in perform(engine.coordinator.warnOfMemory(id, now: now)) }
    }

    private func calm(_ app: AppRuntime, _ bytes: UInt64, _ limit: UInt64) {
        app.run.isNearLimit = nil
        note(app, .belowLimit, text: Self.text(bytes, of: limit) + " again")
    }

    private static func text(_ bytes: UInt64, of limit: UInt64) -> String {
        "has \(bytes >> 10) KiB of memory, \(bytes / max(1, limit / 100)) % of its memory_limit of \(limit >> 10) KiB"
    }
}

extension Incarnation {
    /// The app's memory in bytes at the last step, while torpord lowers it step by step to a new limit; otherwise nil.
    var loweredFrom: UInt64? {
        get { slots[LoweredFromSlot.self] }
        set { slots[LoweredFromSlot.self] = newValue }
    }

    /// Fires when it is time for the next step of lowering the app's memory.
    var limitTimer: TimerSource? {
        get { slots[LimitTimerSlot.self] }
        set { slots[LimitTimerSlot.self] = newValue }
    }

    /// Whether the app was warned, and its memory has not fallen below `calmPercent` since.
    var isNearLimit: Bool? {
        get { slots[IsNearLimitSlot.self] }
        set { slots[IsNearLimitSlot.self] = newValue }
    }

    /// Reports that the app waits for memory in its own cgroup.
    var pressureSource: (trigger: PressureTrigger, source: IOSource)? {
        get { slots[PressureSourceSlot.self] }
        set { slots[PressureSourceSlot.self] = newValue }
    }
}

private enum LoweredFromSlot: Slot { typealias Value = UInt64 }
private enum LimitTimerSlot: Slot { typealias Value = TimerSource }
private enum IsNearLimitSlot: Slot { typealias Value = Bool }
private enum PressureSourceSlot: Slot { typealias Value = (trigger: PressureTrigger, source: IOSource) }
