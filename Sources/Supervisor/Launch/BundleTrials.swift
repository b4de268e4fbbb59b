// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import Lifecycle
import Linux
import Processes
import WireText

/// Trials of new versions of bundles: if the first two launches of a version fail, torpord puts the previous version
/// back.
///
/// A launch counts as successful only some time after the app was ready, or when the app has exited successfully: most
/// apps count as ready as soon as their program is executed, so readiness alone proves little.
extension Launcher {
    private static let trial = Duration.seconds(10)
    /// After a failed launch, other launches from the bundle wait until torpor-verify has recorded the failure and put
    /// the previous version back, but not longer than this. Both steps take milliseconds, unless a disk hangs.
    private static let longestTrial = Duration.seconds(10)

    /// Called for all changed apps. Starts the timer after which the launch of a version on trial counts as successful.
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
        // If no process was launched from a verified bundle, `bundle` is nil.
        guard let bundle = app.run.bundle, bundle.isOnTrial, !app.run.hasComeUp else { return }
        switch ending.reason {
        case .exitSuccess where ending.transition != .launching || app.specification.rules.isOneshot: cameUp(app)
        // A full disk, or an account that no longer exists, is not the fault of the bundle's version.
        case .launchFailed where app.run.launchFailure == nil: break
        case .exitSuccess, .exitFailure, .signal, .coreDump, .unknown, .launchDeadline, .launchFailed, .watchdog,
            .unresponsive, .memoryLimit:
            failed(app, bundle)
        case .stopped, .exitsOnSuspend, .shutdown, .forceQuit, .replaced, .permissionChanged, .protectedDataOpen,
            .evicted,
            .backgroundDeadline, .taskExpired,
            .oomKill, .dependencyFailed, .lockWhileSuspending, .wakeStorm, .gpuInBackground, .noPurposeString:
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
        let trial = trials[bundle.name] ?? beginTrial(bundle)
        trial.open += 1
        runVerifier(["--failed", folder, bundle.version], of: app) { pidfd in
            trial.verifiers.append(pidfd)
            if trial.isOver { trial.kill() }
        } completion: { [weak self, weak app] result in
            guard let self else { return }
            if let problem = Self.problem(of: result) {
                self.log.warning("\(bundle.title): it cannot be recorded that it has failed: \(problem)")
            }
            guard case .success(let answer) = result, answer.code == 0, !answer.line.isEmpty,
                let clients = self.supervisor.clients
            else { return self.end(trial, of: bundle.name) }
            self.putBack[bundle.name] = (bundle.version, answer.line)
            if let app {
                let text =
                    "did not come up in the first two launches from \(bundle.title): version \(answer.line) was put back"
                self.note(app, .bundlePutBack, text: text)
            }
            clients.take(bundle: bundle.name, by: "a bundle that was put back") { [weak self] in
                trial.isPutBack = true
                self?.end(trial, of: bundle.name)
            }
        }
    }

    private func beginTrial(_ bundle: VerifiedBundle) -> BundleTrial {
        let trial = BundleTrial()
        trials[bundle.name] = trial
        trial.timer = try? loop.timer { [weak self, weak trial] in
            guard let self, let trial else { return }
            self.log.warning(
                "\(bundle.title): its failure could not be recorded within \(Quantity.text(Self.longestTrial))"
            )
            // The kill may come too late: torpor-verify may have put the previous version back. Apps then get that
            // version at a later launch.
            trial.open = 1
            trial.kill()
            self.end(trial, of: bundle.name)
        }
        trial.timer?.arm(after: Self.longestTrial)
        return trial
    }

    /// Continues a launch when the failure of its bundle's version is recorded. Passes to `next` whether the previous
    /// version was put back.
    func afterTrial(of app: AppRuntime, _ next: @escaping (_ isPutBack: Bool) -> Void) {
        guard let name = app.specification.bundle?.name, let trial = trials[name] else { return next(false) }
        app.run.trial = trial
        trial.waiting.append((app.run, next))
    }

    /// Continues a launch that was superseded while it waited for the end of a trial, so that this launch can end.
    func cancelTrialWait(_ app: AppRuntime) {
        guard let trial = app.run.trial else { return }
        app.run.trial = nil
        let mine = trial.waiting.filter { $0.run === app.run }
        trial.waiting.removeAll { $0.run === app.run }
        // Call `next` in a later turn of the event loop, when the caller has finished.
        loop.later { for wait in mine { wait.next(false) } }
    }

    private func end(_ trial: BundleTrial, of name: String) {
        guard !trial.isOver else { return }
        trial.open -= 1
        guard trial.open <= 0 else { return }
        trial.isOver = true
        trial.timer?.cancel()
        if trials[name] === trial { trials[name] = nil }
        let waiting = trial.waiting
        trial.waiting = []
        for wait in waiting {
            wait.run.trial = nil
            wait.next(trial.isPutBack)
        }
    }

    private static func problem(of result: Result<VerifierAnswer, LaunchError>) -> String? {
        switch result {
        case .success(let answer): answer.code == 0 ? nil : answer.line
        case .failure(let error): error.description
        }
    }
}

/// The handling of a failed launch of a bundle's version that is on trial. It is over when torpor-verify has recorded
/// the failure and, after the second failure, has put the previous version back. Other launches from the bundle wait
/// until then.
final class BundleTrial {
    /// The number of unfinished steps. A step is a run of torpor-verify, or the reading of the configuration that
    /// follows that run.
    var open = 0
    var verifiers: [Descriptor] = []
    /// Launches from the bundle that wait for the end of this trial.
    var waiting: [(run: Incarnation, next: (_ isPutBack: Bool) -> Void)] = []
    var timer: TimerSource?
    var isPutBack = false
    var isOver = false

    /// Kills the running processes of torpor-verify.
    func kill() {
        for verifier in verifiers { try? Pidfd.sendSignal(verifier.raw, Signal.kill) }
    }
}

extension Incarnation {
    /// The trial whose end this launch waits for; nil if it waits for none.
    var trial: BundleTrial? {
        get { slots[TrialSlot.self] }
        set { slots[TrialSlot.self] = newValue }
    }
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

private enum TrialSlot: Slot { typealias Value = BundleTrial }
private enum TrialFollowedSlot: Slot { typealias Value = Bool }
private enum ComeUpSlot: Slot { typealias Value = Bool }
private enum TrialTimerSlot: Slot { typealias Value = TimerSource }
