// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import EventLoop
package import Lifecycle
import Linux
import Processes

/// Checks apps that have `health` in the configuration while they run. Ends an app that fails too many checks in a
/// row, in the same way as the app's watchdog would.
///
/// An app is not checked while it is suspended, since it cannot answer, or while it changes its state. The number of
/// its failures, and the time until its next check, survive the suspension: otherwise an app that hangs, and is
/// suspended whenever no client uses it, would never fail often enough. For the same reason the app is not suspended
/// automatically while its last check has failed, or while its first check after a suspension is under way.
package final class HealthChecks: ShellRoom, LifecycleObserver {
    package unowned(unsafe) let supervisor: Supervisor

    init(_ supervisor: Supervisor) { self.supervisor = supervisor }

    package func entered(_ app: AppRuntime, from: AppState, to: AppState) {
        if to == .suspended { app.run.health?.pause() }
        if to == .notRunning { app.run.health?.rest() }
    }

    package func touched(_ apps: [AppRuntime]) {
        for app in apps {
            let wanted = app.specification.check
            guard wanted != nil || app.run.health != nil else { continue }
            if let current = app.run.health, current.specification != wanted, current.verdict == nil {
                app.run.health = nil
                awaitVerdict(app, false)
            }
            guard let wanted, isChecked(app) else { continue }
            if app.run.health == nil { app.run.health = HealthCheck(wanted, app, self) }
            app.run.health?.watch()
        }
    }

    /// Follows the new configuration, which may have added, changed or removed checks.
    package func configure() { touched(Array(apps)) }

    package func forget(_ app: AppRuntime) { app.run.health = nil }

    /// Whether the app can be expected to answer a check now.
    func isChecked(_ app: AppRuntime) -> Bool {
        let machine = coordinator.machine(app.id)
        return machine.isAlive && machine.hasProcess && machine.transition == nil && machine.state != .suspended
            && !machine.isTraced && app.run.exitRecord == nil && !app.specification.rules.isOneshot
    }

    /// Whether a debugger, or a SIGSTOP that another process sent, keeps the app from answering.
    func isHeld(_ app: AppRuntime) -> Bool {
        guard let tree = app.run.tree else { return true }
        let state = (try? ProcFS.stat(tree.addressee.pid))?.state
        return state == "T" || state == "t" || supervisor.isTraced(app)
    }

    /// If `isAwaited`, keeps the app from being suspended automatically until its health check has a result; otherwise
    /// permits that again.
    func awaitVerdict(_ app: AppRuntime, _ isAwaited: Bool) {
        if coordinator.machine(app.id).awaitsVerdict != isAwaited { deliver(.awaitsVerdict(isAwaited), to: app.id) }
    }

    /// Ends an app that has reached the permitted number of failed health checks, in the same way as its watchdog
    /// does.
    func failed(_ app: AppRuntime) { deliver(.watchdogTriggered, to: app.id) }
}

/// The health check of one incarnation of an app.
package final class HealthCheck {
    /// The configuration that the health check was begun with.
    let specification: HealthSpecification
    private weak var app: AppRuntime?
    private unowned(unsafe) let checks: HealthChecks
    private var timer: TimerSource?
    private var current: ProbeTry?
    /// The running time left until the next check when the checks were paused; nil if they were not paused.
    private var left: Duration?
    /// Whether the app was suspended since its last check. True at first: an earlier torpord may have kept the app from
    /// being suspended until a check has a result, which the first check ends.
    private var hasSlept = true
    /// How many checks have failed in a row.
    private(set) var failures = 0
    /// Whether any check of this incarnation has had a result yet.
    package private(set) var isKnown = false
    /// Why the last check failed; nil if it succeeded.
    package private(set) var problem: String?
    /// Why torpord is ending the app because of failed checks; nil if it is not.
    private(set) var verdict: String?

    init(_ specification: HealthSpecification, _ app: AppRuntime, _ checks: HealthChecks) {
        self.specification = specification
        self.app = app
        self.checks = checks
    }

    /// The shortest time from the end of a suspension to the next check, so that the app can continue its work first.
    private static let waking = Duration.seconds(1)

    /// Begins to check the app at intervals, or continues after ``pause()``.
    func watch() {
        guard timer == nil, verdict == nil, let app else { return }
        let interval = specification.probe.interval
        timer = try? checks.loop.timer { [weak self] in self?.check() }
        timer?.arm(after: left.map { max($0, min(Self.waking, interval)) } ?? interval)
        left = nil
        if failures > 0 { checks.awaitVerdict(app, true) }
    }

    /// Stops the checks until ``watch()``, because the app is suspended, and keeps their results.
    func pause() {
        guard let timer else { return }
        left = current == nil ? timer.deadline.map { max(.zero, $0 - checks.loop.now) } ?? .zero : .zero
        hasSlept = true
        stop()
    }

    /// Stops the checks until ``watch()``, and discards their results.
    func rest() {
        stop()
        left = nil
        failures = 0
        problem = nil
        isKnown = false
    }

    private func stop() {
        timer?.cancel()
        timer = nil
        current = nil
    }

    private func check() {
        guard let app else { return }
        guard checks.isChecked(app) else { return timer?.arm(after: specification.probe.interval) ?? () }
        if hasSlept { checks.awaitVerdict(app, true) }
        hasSlept = false
        current = ProbeTry(specification.probe, of: app, checks.supervisor, isQuiet: true) { [weak self] problem in
            self?.checked(problem)
        }
    }

    private func checked(_ problem: String?) {
        current = nil
        guard let app, timer != nil else { return }
        timer?.arm(after: specification.probe.interval)
        // If the app was suspended or began to change its state during the check, ignore the result. If a debugger or
        // SIGSTOP kept the app from answering, ignore a failure.
        guard checks.isChecked(app), problem == nil || !checks.isHeld(app) else {
            if failures == 0 { checks.awaitVerdict(app, false) }
            return
        }
        let hadFailed = failures > 0
        isKnown = true
        self.problem = problem
        guard let problem else {
            failures = 0
            checks.awaitVerdict(app, false)
            if hadFailed { checks.note(app, .healthChecked, text: "passes its health check again") }
            return
        }
        failures += 1
        checks.awaitVerdict(app, true)
        checks.note(
            app,
            .healthChecked,
            text: "\(problem) (failure \(failures) of \(specification.failures) of its health check)"
        )
        guard failures >= specification.failures else { return }
        rest()
        verdict = "failed its health check \(Readable.count(specification.failures, "time")) in a row: it \(problem)"
        checks.failed(app)
    }
}

extension Incarnation {
    package var health: HealthCheck? {
        get { slots[HealthCheckSlot.self] }
        set { slots[HealthCheckSlot.self] = newValue }
    }
}

private enum HealthCheckSlot: Slot { typealias Value = HealthCheck }
