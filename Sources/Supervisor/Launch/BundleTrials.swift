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
/// Most apps count as ready as soon as they are executed. So a launch counts as successful only some time after the
/// app was ready, or when the app has ended successfully.
extension Launcher {
    private static let trial = Duration.seconds(10)
    /// How long launches wait until a failure is recorded and the version before is put back. Both take milliseconds,
    /// unless a disk hangs.
    private static let longestTrial = Duration.seconds(10)

    /// This function is called often, so it makes only one test for apps that are not on trial.
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
        // Without this value, no process was launched from a verified bundle.
        guard let bundle = app.run.bundle, bundle.isOnTrial, !app.run.hasComeUp else { return }
        switch ending.reason {
        case .exitSuccess where ending.transition != .launching || app.specification.rules.isOneshot: cameUp(app)
        // A full disk, or an account that no longer exists, is no fault of the version.
        case .launchFailed where app.run.launchFailure == nil: break
        case .exitSuccess, .exitFailure, .signal, .coreDump, .unknown, .launchDeadline, .launchFailed, .watchdog,
            .unresponsive, .memoryLimit:
            failed(app, bundle)
        case .stopped, .exitsOnSuspend, .shutdown, .forceQuit, .replaced, .permissionChanged, .protectedDataOpen,
            .evicted,
            .backgroundDeadline, .taskExpired,
            .oomKill, .dependencyFailed, .lockWhileSuspending, .wakeStorm, .gpuInBackground:
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
                "\(bundle.title): it was not recorded within \(Quantity.text(Self.longestTrial)) that it has failed"
            )
            // If the version before is put back later, that counts at the launch after the next.
            trial.open = 1
            trial.kill()
            self.end(trial, of: bundle.name)
        }
        trial.timer?.arm(after: Self.longestTrial)
        return trial
    }

    /// Continues a launch when it is known whether the version of its bundle is put back.
    func afterTrial(of app: AppRuntime, _ next: @escaping (_ isPutBack: Bool) -> Void) {
        guard let name = app.specification.bundle?.name, let trial = trials[name] else { return next(false) }
        app.run.trial = trial
        trial.waiting.append((app.run, next))
    }

    /// Ends the wait of a launch that was superseded.
    func cancelTrialWait(_ app: AppRuntime) {
        guard let trial = app.run.trial else { return }
        app.run.trial = nil
        let mine = trial.waiting.filter { $0.run === app.run }
        trial.waiting.removeAll { $0.run === app.run }
        // Later, when the caller has finished what it was doing.
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

/// A version of a bundle that did not come up, until that is recorded, and the version before is put back if need be.
final class BundleTrial {
    /// Runs of torpor-verify, and what follows from them, that are not done.
    var open = 0
    var verifiers: [Descriptor] = []
    /// Launches that wait.
    var waiting: [(run: Incarnation, next: (_ isPutBack: Bool) -> Void)] = []
    var timer: TimerSource?
    var isPutBack = false
    var isOver = false

    /// Kills what runs.
    func kill() {
        for verifier in verifiers { try? Pidfd.sendSignal(verifier.raw, Signal.kill) }
    }
}

extension Incarnation {
    /// What the launch waits for.
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
