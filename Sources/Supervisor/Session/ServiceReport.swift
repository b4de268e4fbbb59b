// SPDX-License-Identifier: Apache-2.0

package import Engine
import EventLoop
package import Lifecycle
import Linux
import Processes

/// Reports to the service manager through torpor-keeper (sd_notify(3)): when the apps of the start are launched, the
/// states of all apps, and when a configuration is being read. Extends the service manager's timeout while a start or
/// a stop waits for deadlines of apps.
///
/// Without a service manager, nothing is sent, and only ``isReady`` is maintained.
package final class ServiceReport: LifecycleObserver {
    private unowned(unsafe) let supervisor: Supervisor
    private let isHeard: Bool
    private var timer: TimerSource?
    /// Apps whose launch at the start is not over; nil until launching has begun.
    private var starting: Set<AppID>?
    /// Whether the launches of the start are over: each app has been launched, or has failed its first launch, or has
    /// no deadline for its launch. An app that waits for a failed dependency does not delay this.
    package private(set) var isReady = false
    private var isStopping = false
    private var status = ""
    private var statusAt = Duration.zero
    private var extendedAt = Duration.zero
    /// Why the configuration on disk is not in force; nil if it is.
    private var trouble: String?

    package init(_ supervisor: Supervisor) {
        self.supervisor = supervisor
        isHeard = supervisor.keeper.isUnderManager
    }

    /// By how much the service manager's timeout is extended each time, and the interval between two extensions.
    private static let extensionTime = Duration.seconds(30)
    private static let extensionInterval = Duration.seconds(5)
    private static let statusInterval = Duration.seconds(1)
    /// The delay of a check after a launch: launches come in bursts, which are checked together.
    private static let launchInterval = Duration.milliseconds(10)

    // MARK: What happens

    /// Called at the start of torpord while it waits for the end of orphans of an earlier torpord. Extends the
    /// service manager's timeout for that time.
    package func begin() {
        guard isHeard else { return }
        extend()
        tick(within: Self.extensionInterval)
    }

    /// Sets which apps the start launches.
    package func launch(_ apps: [AppID]) {
        starting = Set(apps)
        look()
    }

    package func touched(_ apps: [AppRuntime]) {
        if !isReady, starting != nil { tick(within: Self.launchInterval) }
        if isReady, isHeard { tick(within: Self.statusInterval) }
    }

    package func forget(_ app: AppRuntime) {}

    /// Updates the status line for the service manager after users have begun or ceased to see alerts.
    package func changed() { if isReady, isHeard { tick(within: Self.statusInterval) } }

    /// Tells the service manager that a configuration is being read.
    package func reload() {
        guard isReady else { return }
        tell("RELOADING=1\nMONOTONIC_USEC=\(Clock.monotonic().microseconds)")
    }

    /// Tells the service manager that the configuration was read. `trouble`: why that configuration is not used, as a
    /// clause.
    package func reloaded(trouble: String? = nil) {
        self.trouble = trouble
        guard isReady else { return }
        status = text()
        tell("READY=1\nSTATUS=\(status)")
    }

    /// Tells the service manager that the supervisor ends. With `leavingApps` the apps keep running for the next
    /// torpord; otherwise they are terminated first.
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

    /// Checks the state of the apps again after `delay`, or earlier.
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

    /// Extends the service manager's timeout. Does nothing if the supervisor is stopping and no app has a deadline
    /// left.
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

    /// Whether an app's launch at the start has not ended yet.
    private func isStarting(_ id: AppID) -> Bool {
        let machine = supervisor.coordinator.machine(id)
        if machine.transition == .launching { return !machine.hasProcess || machine.nextDeadline != nil }
        // A launch that waits for an unlock by a user does not count: the user may be away for days.
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
        // An earlier torpord may have found the configuration on disk invalid.
        let trouble = trouble ?? (supervisor.recovery.isDiskInvalid ? Supervisor.diskIsInvalid : nil)
        return trouble.map { text + "; " + $0 } ?? text
    }
}
