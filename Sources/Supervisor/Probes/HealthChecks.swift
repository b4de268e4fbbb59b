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
/// An app is not checked while it is suspended or changes its state: a suspended app cannot answer. When the app
/// wakes, its failures are counted from zero again, since it may need a moment to answer.
package final class HealthChecks: ShellRoom, LifecycleObserver {
    package unowned(unsafe) let supervisor: Supervisor

    init(_ supervisor: Supervisor) { self.supervisor = supervisor }

    package func entered(_ app: AppRuntime, from: AppState, to: AppState) {
        if to == .suspended || to == .notRunning { app.run.health?.rest() }
    }

    package func touched(_ apps: [AppRuntime]) {
        for app in apps {
            let wanted = app.specification.check
            guard wanted != nil || app.run.health != nil else { continue }
            if let current = app.run.health, current.specification != wanted, current.verdict == nil {
                app.run.health = nil
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
    /// How many checks have failed in a row.
    private(set) var failures = 0
    /// Whether any check has succeeded or failed yet.
    package private(set) var isKnown = false
    /// Why the last check failed; nil if it succeeded.
    package private(set) var problem: String?
    /// Why torpord ends the app because of failed checks; nil while it does not.
    private(set) var verdict: String?

    init(_ specification: HealthSpecification, _ app: AppRuntime, _ checks: HealthChecks) {
        self.specification = specification
        self.app = app
        self.checks = checks
    }

    /// Begins to check the app at intervals.
    func watch() {
        guard timer == nil, verdict == nil else { return }
        timer = try? checks.loop.timer { [weak self] in self?.check() }
        timer?.arm(after: specification.probe.interval)
    }

    /// Stops the checks until ``watch()``, and forgets their results.
    func rest() {
        timer?.cancel()
        timer = nil
        current = nil
        failures = 0
        problem = nil
        isKnown = false
    }

    private func check() {
        guard let app else { return }
        guard checks.isChecked(app) else { return timer?.arm(after: specification.probe.interval) ?? () }
        current = ProbeTry(specification.probe, of: app, checks.supervisor, isQuiet: true) { [weak self] problem in
            self?.checked(problem)
        }
    }

    private func checked(_ problem: String?) {
        current = nil
        guard let app, timer != nil else { return }
        timer?.arm(after: specification.probe.interval)
        // Ignore the result if the app was stopped, or began to end, during the check.
        guard checks.isChecked(app), problem == nil || !checks.isHeld(app) else { return }
        let hadFailed = failures > 0
        isKnown = true
        self.problem = problem
        guard let problem else {
            failures = 0
            if hadFailed { checks.note(app, .healthChecked, text: "passes its health check again") }
            return
        }
        failures += 1
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
