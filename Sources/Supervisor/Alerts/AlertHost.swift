// SPDX-License-Identifier: Apache-2.0

import CalendarTime
import Configuration
import Engine
import EventLoop
import EventSources
import Lifecycle
import Linux
import Processes
import Schedules
import Store

/// What alerts need from other parts of the supervisor.
protocol AlertHost: AnyObject {
    var store: Store { get }
    /// Calls `body` when everything that is stored has been loaded: at once, unless the supervisor has only just
    /// started.
    func whenLoaded(_ body: @escaping () -> Void)
    var mailboxes: Mailboxes { get }
    /// The settings in `[supervisor.alerts]`.
    var alertRules: AlertSpecification { get }
    var clocks: ClockPair { get }
    /// The machine's time zone.
    var timeZone: TimeZone { get }
    /// Whether no user sees the apps: the session is locked, or the machine is about to sleep.
    var isCovered: Bool { get }
    /// Whether a critical alert interrupts this app, which is in the foreground.
    func isInterrupted(_ app: AppRuntime, byAlertWithSound hasSound: Bool) -> Bool
    /// From now on, calls ``AppAlerts/clockChanged(isElsewhere:)`` when the clock is set or the time zone changes.
    func followClock()
    /// Brings the app to the foreground, because a user wants to see it.
    func bringToForeground(_ app: AppRuntime, for event: WakeEvent)
    /// The name of the user at the screen, for records of who answered.
    var personAtScreen: String { get }
    /// Carries out a user's answer to a permission question. The completion gets nil, or a sentence if that failed.
    func answerQuestion(
        _ permission: String,
        isAllowed: Bool,
        of app: AppRuntime,
        by person: String,
        _ completion: @escaping (String?) -> Void
    )
    /// Whether the question about this permission is still open: the app declares the permission, and no user has
    /// answered.
    func isAsked(_ permission: String, of app: AppRuntime) -> Bool
    /// Runs a command as the supervisor's user. The completion gets nil, or a sentence if the command failed.
    func runAlertCommand(
        _ command: [String],
        _ variables: [String: String],
        of app: AppRuntime,
        _ completion: @escaping (String?) -> Void
    )
}

extension Supervisor: AlertHost {
    var alertRules: AlertSpecification { configuration.supervisor.alerts }
    var timeZone: TimeZone { wakes.timers.zone }
    var isCovered: Bool { interruptions.coversApps }

    func isInterrupted(_ app: AppRuntime, byAlertWithSound hasSound: Bool) -> Bool {
        let sources = configuration.supervisor.interruptOn
        return sources.contains(.alert) || sources.contains(.audio) && hasSound && desktop.soundFocus.plays(app)
    }

    func followClock() {
        wakes.followClock { [weak self] isElsewhere in self?.alerts.clockChanged(isElsewhere: isElsewhere) }
    }

    /// Carries out a request that a user made in the desktop session, not by a command. If the request changes the
    /// app's goal, notifies policies, and lifts the limits on how often they may give advice about the app.
    func personRequests(_ request: Request, of app: AppRuntime) throws(RequestError) {
        let before = coordinator.machine(app.id)
        try self.request(request, of: app.id)
        let after = coordinator.machine(app.id)
        guard after.goalGeneration != before.goalGeneration else { return }
        policyManager?.asked(app, from: before.goal, to: after.goal)
    }

    func bringToForeground(_ app: AppRuntime, for event: WakeEvent) {
        wakes.startedByPerson(app)
        app.kept.goalOfPerson = .active
        let machine = coordinator.machine(app.id)
        let sleeps = machine.state == .suspended || machine.transition == .suspending || !machine.isAlive
        if sleeps { app.pendingWake = PendingWake(event: event, since: loop.now) }
        do throws(RequestError) {
            try personRequests(.foreground, of: app)
            desktop.raise(app)
        } catch {
            note(app, .refused, text: "does not come to the foreground for \(event.text): it \(error)")
        }
        mailboxes.deliver(to: app)
    }

    func runAlertCommand(
        _ command: [String],
        _ variables: [String: String],
        of app: AppRuntime,
        _ completion: @escaping (String?) -> Void
    ) {
        launcher.runOwn(command, variables, of: app, deadline: .seconds(10), completion)
    }
}

extension Launcher {
    /// Runs a command as the supervisor's own user, without output, and kills it after its deadline. The completion
    /// gets nil, or a sentence if the command failed.
    func runOwn(
        _ command: [String],
        _ variables: [String: String],
        of app: AppRuntime,
        deadline: Duration,
        _ completion: @escaping (String?) -> Void
    ) {
        let name = command.first ?? ""
        let path = LaunchEnvironment.path
        reads.ask {
            do throws(LaunchError) {
                return Result<String, LaunchError>.success(try Executable.find(name, path: path, directory: "/"))
            } catch {
                return .failure(error)
            }
        } _: { [weak self, weak app] found in
            guard let self, let app else { return completion(nil) }
            switch found {
            case .failure(let error): completion("\(error)")
            case .success(let program):
                var variables = variables
                variables[AppTag.helperVariable] = "1"
                variables["TORPOR_MANAGER_SOCKET"] = supervisor.runtime.socket
                variables["TORPOR_APP"] = app.name
                variables["TORPOR_INCARNATION"] = "\(machine(app).incarnation)"
                var plan = LaunchPlan(
                    app: app.name,
                    incarnation: machine(app).incarnation,
                    executable: program,
                    arguments: command,
                    environment: LaunchEnvironment.inherited.entries(adding: variables)
                )
                plan.directory = "/"
                plan.isHelper = true
                plan.oomScoreAdjust = ProcessTree.oomScoreForChildren
                run(plan, named: name, deadline, completion)
            }
        }
    }

    private func run(
        _ plan: LaunchPlan,
        named name: String,
        _ deadline: Duration,
        _ completion: @escaping (String?) -> Void
    ) {
        supervisor.keeper.launch(plan) { [weak self] result in
            guard let self else { return }
            switch result {
            case .failure(let failure): completion(failure.description)
            case .success(let launched):
                var isLate = false
                let timer = try? loop.timer {
                    isLate = true
                    try? Pidfd.sendSignal(launched.pidfd.raw, Signal.kill)
                }
                timer?.arm(after: deadline)
                helpers[launched.pid] = { [weak self] status in
                    timer?.cancel()
                    self?.endRemains(of: launched)
                    switch status {
                    case .exited(0): completion(nil)
                    case .exited(let code): completion("\(name) failed with exit status \(code)")
                    case .signaled(let signal, _):
                        completion(
                            isLate
                                ? "\(name) took longer than \(Quantity.text(deadline)) and was killed"
                                : "\(name) was killed by \(Signal.name(signal))"
                        )
                    }
                }
            }
        }
    }
}
