// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import Lifecycle
import Linux
import Processes
import WireText

/// New versions of bundles: one whose first two launches do not come up is replaced by the version before.
///
/// Most apps are ready as soon as they are executed, so a launch counts as come up only some time after it was ready, or
/// when the app has ended with success.
extension Launcher {
    private static let trial = Duration.seconds(10)

    /// Called often: costs one test for apps that are not on trial.
    func followTrials(_ apps: [AppRuntime]) {
        for app in apps where app.specification.bundle != nil && !app.run.isTrialFollowed {
            let machine = machine(app)
            guard machine.isAlive, machine.transition != .launching, machine.transition != .terminating else {
                continue
            }
            app.run.isTrialFollowed = true
            guard runningBundle(of: app)?.isOnTrial ?? false else { continue }
            let run = app.run
            run.trialTimer = try? loop.timer { [weak self, weak app, weak run] in
                guard let self, let app, app.run === run else { return }
                self.cameUp(app)
            }
            run.trialTimer?.arm(after: Self.trial)
        }
    }

    func trialEnded(_ app: AppRuntime, _ ending: Ending) {
        app.run.trialTimer?.cancel()
        app.run.trialTimer = nil
        // Without the slot no process was launched from a verified bundle.
        guard let bundle = app.run.bundle, bundle.isOnTrial, !app.run.hasComeUp else { return }
        switch ending.reason {
        case .exitSuccess where ending.transition != .launching || app.specification.rules.isOneshot: cameUp(app)
        // A full disk, or an account that is gone, is no fault of the version.
        case .launchFailed where app.run.launchFailure == nil: break
        case .exitSuccess, .exitFailure, .signal, .coreDump, .unknown, .launchDeadline, .launchFailed, .watchdog,
            .unresponsive, .memoryLimit:
            failed(app, bundle)
        case .stopped, .exitsOnSuspend, .shutdown, .forceQuit, .replaced, .permissionChanged, .protectedDataOpen,
            .evicted,
            .backgroundDeadline, .taskExpired,
            .oomKill, .dependencyFailed, .lockWhileSuspending, .wakeStorm:
            break
        }
    }

    private func cameUp(_ app: AppRuntime) {
        guard let bundle = app.run.bundle, let folder = app.specification.bundle?.folder else { return }
        app.run.hasComeUp = true
        runVerifier(["--ready", folder, bundle.version], of: app) { [weak self] result in
            guard let problem = Self.problem(of: result) else { return }
            self?.log.warning("\(bundle.title): it cannot be recorded that it has come up: \(problem)")
        }
    }

    private func failed(_ app: AppRuntime, _ bundle: VerifiedBundle) {
        guard let folder = app.specification.bundle?.folder else { return }
        trials[bundle.name, default: []] += []
        runVerifier(["--failed", folder, bundle.version], of: app) { [weak self, weak app] result in
            guard let self else { return }
            if let problem = Self.problem(of: result) {
                self.log.warning("\(bundle.title): it cannot be recorded that it has failed: \(problem)")
            }
            guard case .success(let answer) = result, answer.code == 0, !answer.line.isEmpty,
                let clients = self.supervisor.clients
            else { return self.endTrial(bundle.name, isPutBack: false) }
            self.putBack[bundle.name] = (bundle.version, answer.line)
            if let app {
                let text =
                    "did not come up in the first two launches from \(bundle.title): version \(answer.line) was put back"
                self.note(app, .bundlePutBack, text: text)
            }
            clients.take(bundle: bundle.name, by: "a bundle that was put back") { [weak self] in
                self?.endTrial(bundle.name, isPutBack: true)
            }
        }
    }

    /// Continues a launch when it is known whether the version of its bundle is put back.
    func afterTrial(of app: AppRuntime, _ next: @escaping (_ isPutBack: Bool) -> Void) {
        guard let name = app.specification.bundle?.name, trials[name] != nil else { return next(false) }
        trials[name]?.append(next)
    }

    private func endTrial(_ name: String, isPutBack: Bool) {
        for next in trials.removeValue(forKey: name) ?? [] { next(isPutBack) }
    }

    private static func problem(of result: Result<VerifierAnswer, LaunchError>) -> String? {
        switch result {
        case .success(let answer): answer.code == 0 ? nil : answer.line
        case .failure(let error): error.description
        }
    }
}

extension Incarnation {
    fileprivate var isTrialFollowed: Bool {
        get { slots[TrialFollowedSlot.self] ?? false }
        set { slots[TrialFollowedSlot.self] = newValue }
    }
    fileprivate var hasComeUp: Bool {
        get { slots[ComeUpSlot.self] ?? false }
        set { slots[ComeUpSlot.self] = newValue }
    }
    fileprivate var trialTimer: TimerSource? {
        get { slots[TrialTimerSlot.self] }
        set { slots[TrialTimerSlot.self] = newValue }
    }
}

private enum TrialFollowedSlot: Slot { typealias Value = Bool }
private enum ComeUpSlot: Slot { typealias Value = Bool }
private enum TrialTimerSlot: Slot { typealias Value = TimerSource }
