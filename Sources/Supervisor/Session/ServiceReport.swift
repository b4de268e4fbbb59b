// SPDX-License-Identifier: Apache-2.0

package import Engine
import EventLoop
package import Lifecycle
import Linux
import Processes

/// Reports to the service manager through torpor-keeper (sd_notify(3)): that the apps of the start are launched, the
/// states of all apps, and that a configuration is being read. While a start or a stop waits for deadlines of apps,
/// extends the service manager's timeout.
///
/// Without a service manager, nothing is sent, and only ``isReady`` is maintained.
package final class ServiceReport: LifecycleObserver {
    private unowned(unsafe) let supervisor: Supervisor
    private let isHeard: Bool
    private var timer: TimerSource?
    /// Apps that were launched at the start and whose launch is not over; nil until these launches begin.
    private var starting: Set<AppID>?
    /// Whether the launches at the start are over. The launch of an app is over if the app is launched, if its first
    /// launch has failed, or if its launch has no deadline. An app that waits for a failed dependency does not count.
    package private(set) var isReady = false
    private var isStopping = false
    private var status = ""
    private var statusAt = Duration.zero
    private var extendedAt = Duration.zero
    /// Why the configuration on disk is not in force; nil if it is in force.
    private var trouble: String?

    package init(_ supervisor: Supervisor) {
        self.supervisor = supervisor
        isHeard = supervisor.keeper.isUnderManager
    }

    /// The time by which the service manager's timeout is extended each time; `extensionInterval` is the time between
    /// two extensions.
    private static let extensionTime = Duration.seconds(30)
    private static let extensionInterval = Duration.seconds(5)
    private static let statusInterval = Duration.seconds(1)
    /// After a launch the state is checked with this delay, because launches come in bursts and one check is enough for
    /// all of them.
    private static let launchInterval = Duration.milliseconds(10)

    // MARK: What happens

    /// Called at the start of torpord. Extends the service manager's timeout while torpord waits for orphans of an
    /// earlier torpord to end.
    package func begin() {
        guard isHeard else { return }
        extend()
        tick(within: Self.extensionInterval)
    }

    /// Sets the apps that are launched at the start.
    package func launch(_ apps: [AppID]) {
        starting = Set(apps)
        look()
    }

    package func touched(_ apps: [AppRuntime]) {
        if !isReady, starting != nil { tick(within: Self.launchInterval) }
        if isReady, isHeard { tick(within: Self.statusInterval) }
    }

    package func forget(_ app: AppRuntime) {}

    /// Updates the status line for the service manager after a problem with showing alerts to users has begun or ended.
    package func changed() { if isReady, isHeard { tick(within: Self.statusInterval) } }

    /// Tells the service manager that a configuration is being read.
    package func reload() {
        guard isReady else { return }
        tell("RELOADING=1\nMONOTONIC_USEC=\(Clock.monotonic().microseconds)")
    }

    /// Tells the service manager that the configuration was read. `trouble`: a clause that says why this configuration
    /// is not in force; nil if it is.
    package func reloaded(trouble: String? = nil) {
        self.trouble = trouble
        guard isReady else { return }
        status = text()
        tell("READY=1\nSTATUS=\(status)")
    }

    /// Tells the service manager that the supervisor ends. If `leavingApps`, the apps keep running for the next
    /// torpord; otherwise the supervisor terminates them before it ends.
    package func stop(leavingApps: Bool) {
        isStopping = true
        status = leavingApps ? "stopping; the apps keep running" : text()
        tell("STOPPING=1\nSTATUS=\(status)")
        guard !leavingApps else { return }
        extend()
        tick(within: Self.statusInterval)
    }

    // MARK: What is told

    private func tell(_ state: String) { supervisor.keeper.tellManager(state) }

    /// Checks the state of the apps again, at the latest after `delay`.
    private func tick(within delay: Duration) {
        if timer == nil { timer = try? supervisor.loop.timer { [weak self] in self?.look() } }
        let at = supervisor.loop.now + delay
        if let timer, timer.deadline.map({ at < $0 }) ?? true { timer.arm(at: at) }
    }

    private func look() {
        timer?.disarm()
        if !isReady, let still = starting?.filter(isStarting) {
            starting = still
            isReady = still.isEmpty
            if isReady {
                starting = nil
                status = text()
                statusAt = supervisor.loop.now
                tell("READY=1\nSTATUS=\(status)")
            }
        }
        guard isHeard else { return }
        tellStatus()
        guard !isReady || isStopping else { return }
        if supervisor.loop.now - extendedAt >= Self.extensionInterval { extend() }
        tick(within: Self.extensionInterval)
    }

    private func tellStatus() {
        guard supervisor.loop.now - statusAt >= Self.statusInterval else { return tick(within: Self.statusInterval) }
        let now = text()
        guard now != status else { return }
        (status, statusAt) = (now, supervisor.loop.now)
        tell("STATUS=\(now)")
    }

    /// Extends the service manager's timeout. While the supervisor stops, does this only as long as some app has a
    /// deadline, so that the stop cannot take for ever.
    private func extend() {
        let now = supervisor.loop.now
        let isBounded = supervisor.apps.contains { app in
            app.hooks != nil
                || supervisor.coordinator.machine(app.id).deadlines.contains { $0.kind != .kill && $0.at > now }
        }
        guard !isStopping || isBounded else { return }
        extendedAt = now
        tell("EXTEND_TIMEOUT_USEC=\(Self.extensionTime.microseconds)")
    }

    /// Whether the launch of an app at the start is not over.
    private func isStarting(_ id: AppID) -> Bool {
        let machine = supervisor.coordinator.machine(id)
        if machine.transition == .launching { return !machine.hasProcess || machine.nextDeadline != nil }
        // A launch that waits until a user unlocks protected data does not count, because the user may be away for
        // days.
        guard machine.isWaitingForPermission, !supervisor.protection.holds(id) else { return false }
        return supervisor.coordinator.missingRequirements(of: id).allSatisfy { other in
            let other = supervisor.coordinator.machine(other)
            return other.transition == .launching || other.isWaitingForPermission
        }
    }

    /// The state of all apps in one line: `12 apps: 9 active, 2 suspended, 1 not running; failed: db`.
    private func text() -> String {
        var counts: [String: Int] = [:]
        var failed: [String] = []
        for app in supervisor.apps {
            let machine = supervisor.coordinator.machine(app.id)
            let isPassing = machine.transition == .launching || machine.transition == .terminating
            counts[isPassing ? machine.transition?.rawValue ?? "" : machine.state.rawValue, default: 0] += 1
            if machine.failed { failed.append(app.name) }
        }
        let order = ["launching", "active", "inactive", "background", "suspended", "terminating", "not-running"]
        let parts = order.compactMap { name in counts[name].map { "\($0) \(name)" } }
        var text = Readable.count(supervisor.apps.count, "app")
        if !parts.isEmpty { text += ": " + parts.joined(separator: ", ") }
        if !failed.isEmpty {
            text += "; failed: " + failed.prefix(3).joined(separator: ", ")
            if failed.count > 3 { text += " and \(failed.count - 3) more" }
        }
        if isStopping { return "stopping: " + text }
        if !isReady { return "starting: " + text }
        if let problem = supervisor.desktop.alertProblem, supervisor.alerts.hasOpen {
            text += "; alerts are on no desktop: \(problem.prefix(200))"
        }
        // Include the error of the configuration on disk even if an earlier torpord has found it.
        let trouble = trouble ?? (supervisor.recovery.isDiskInvalid ? Supervisor.diskIsInvalid : nil)
        return trouble.map { text + "; " + $0 } ?? text
    }
}
