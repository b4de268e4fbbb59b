// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import Lifecycle
import Processes
import TorporAPI

/// Runs the commands of `on_failure` when an app has failed, so that people learn of it: outside the loop, as the app's
/// user, and each for a bounded time.
///
/// The commands of an app run one after the other. A failure of a command is recorded and has no other consequence:
/// it ends neither the app nor the commands after it, and is itself no failure of the app.
final class FailureCommands: ShellRoom, LifecycleObserver {
    unowned(unsafe) let supervisor: Supervisor
    /// Apps with a failure whose commands have not begun, in the order in which they failed.
    private var queue: [AppRuntime] = []
    /// Apps whose commands have begun and wait for a place again: they lost theirs when a command was killed.
    private var resuming: [AppRuntime] = []
    private var places = FailurePlaces()
    private var isAboutToBegin = false

    /// The name of the commands, as the configuration names them.
    static let names = "on_failure"

    init(_ supervisor: Supervisor) { self.supervisor = supervisor }

    /// Called when a run of an app has ended by a failure, with the report about it.
    func failed(_ app: AppRuntime, _ ending: Ending, _ report: Report) {
        // If a user stopped the app while it was being ended for a failure, the user knows.
        guard !isEnding, ending.reason.isFailure, machine(app).lastEnding?.wasAskedFor != true else { return }
        let isFinal = ending.isFinal
        guard app.specification.onFailure.contains(where: { isFinal || $0.each }) else { return }
        let failures = app.failures ?? AppFailures()
        app.failures = failures
        // That the app stays down is the more important news.
        if let waiting = failures.waiting, waiting.isFinal, !isFinal { return }
        if failures.waiting == nil { queue.append(app) }
        let user = app.specification.user ?? ""
        failures.waiting = Failure(isFinal: isFinal, user: user, variables: variables(of: app, ending, report))
        places.wants(user)
        // Start the commands later, when everything that follows from the ending is carried out.
        engine.whenStarted { [weak self] in self?.beginSoon() }
    }

    func forget(_ app: AppRuntime) {
        queue.removeAll { $0 === app }
        resuming.removeAll { $0 === app }
        app.failures?.waiting = nil
        if let run = app.failures?.run { supervisor.launcher.cancel(run, of: app) }
    }

    private func variables(of app: AppRuntime, _ ending: Ending, _ report: Report) -> [String: String] {
        var variables = Launcher.endVariables(ending.reason, app.run.exitRecord?.status)
        variables["TORPOR_INCARNATION"] = "\(ending.incarnation)"
        variables["TORPOR_NEXT"] = EndingText.word(ending.next)
        variables["TORPOR_FAILURE"] = Self.shortened("\(app.name) \(report.text ?? ending.reason.rawValue)")
        variables["TORPOR_LAST_OUTPUT"] = report.log.map { Self.shortened($0.text) }.joined(separator: "\n")
        return variables
    }

    /// The end of a text, without control characters: an environment has little room, and no NUL.
    static func shortened(_ text: String) -> String {
        var scalars = String.UnicodeScalarView()
        for scalar in text.unicodeScalars.suffix(1_000)
        where scalar == "\t" || scalar.properties.generalCategory != .control {
            scalars.append(scalar)
        }
        return String(scalars)
    }

    private func beginSoon() {
        guard !isAboutToBegin else { return }
        isAboutToBegin = true
        loop.later { [weak self] in
            self?.isAboutToBegin = false
            self?.beginNext()
        }
    }

    private func beginNext() {
        while let index = places.first(of: resuming, user: { $0.failures?.user ?? "" }, isReady: { _ in true }) {
            let app = resuming.remove(at: index)
            guard let failures = app.failures, let rest = failures.rest else { continue }
            failures.rest = nil
            takePlace(failures)
            runAll(rest.commands, of: app, failures, rest.failure)
        }
        while let index = places.first(of: queue, user: { $0.failures?.waiting?.user ?? "" }, isReady: isReady) {
            let app = queue.remove(at: index)
            guard let failures = app.failures, let failure = failures.waiting else { continue }
            failures.waiting = nil
            failures.isRunning = true
            failures.user = failure.user
            takePlace(failures)
            let commands = app.specification.onFailure.filter { failure.isFinal || $0.each }
            runAll(commands[...], of: app, failures, failure)
        }
        // Commands that could not be run have given their places back at once: look again.
        if !isAboutToBegin { places.settle() }
    }

    private func isReady(_ app: AppRuntime) -> Bool { app.failures?.isRunning != true }

    private func takePlace(_ failures: AppFailures) {
        failures.hasPlace = true
        places.take(for: failures.user)
    }

    /// Gives the place of an app, if it has one, to the next app.
    private func leavePlace(_ failures: AppFailures) {
        if failures.hasPlace {
            failures.hasPlace = false
            places.giveBack(for: failures.user)
        }
        beginSoon()
    }

    private func runAll(
        _ commands: ArraySlice<FailureCommand>,
        of app: AppRuntime,
        _ failures: AppFailures,
        _ failure: Failure
    ) {
        failures.run = nil
        guard let command = commands.first, app.isListed, !isEnding else {
            failures.isRunning = false
            // The app may have failed again.
            if let waiting = failures.waiting { places.wants(waiting.user) }
            return leavePlace(failures)
        }
        guard failures.hasPlace else {
            failures.rest = (commands, failure)
            resuming.append(app)
            places.wants(failures.user)
            return beginSoon()
        }
        let others = commands.dropFirst()
        var hook = HookCommand(command.command)
        hook.deadline = command.deadline
        do throws(LaunchError) {
            if !app.specification.declaredSettings.isEmpty {
                hook.command = try supervisor.settings.filled(hook.command, of: app)
            }
        } catch {
            note(app, .hookFailed, text: "\(Self.names): \(error)")
            return runAll(others, of: app, failures, failure)
        }
        var hasEnded = false
        let run = supervisor.launcher.run(
            hook,
            named: Self.names,
            of: app,
            variables: failure.variables,
            onKill: { [weak self] in
                // A killed command may hang in the kernel, for example on a disk. It must not keep the commands of
                // other apps from running.
                self?.leavePlace(failures)
            },
            { [weak self] problem in
                hasEnded = true
                guard let self else { return }
                if let problem, app.isListed { note(app, .hookFailed, text: problem) }
                runAll(others, of: app, failures, failure)
            }
        )
        if !hasEnded { failures.run = run }
    }
}

/// A failure of an app, for the commands of `on_failure`.
private struct Failure {
    /// Whether the app is not restarted.
    var isFinal: Bool
    /// The user whose place the commands take; empty for torpord's own.
    var user: String
    /// The variables of the commands.
    var variables: [String: String]
}

/// What `on_failure` of an app has to do.
private final class AppFailures {
    /// The newest failure whose commands have not begun.
    var waiting: Failure?
    /// Whether commands have begun and the last one has not ended.
    var isRunning = false
    /// The user whose place the commands have.
    var user = ""
    /// Whether the running command is one of those that may run at the same time. A killed command is not, even if it
    /// has not ended.
    var hasPlace = false
    /// The commands that follow a killed one, while they wait for a place.
    var rest: (commands: ArraySlice<FailureCommand>, failure: Failure)?
    /// The command that runs now.
    var run: HookRun?
}

extension Ending {
    /// Whether the app stays down after the ending.
    fileprivate var isFinal: Bool {
        switch next {
        case .rest, .gaveUp: true
        case .restart, .relaunch: false
        }
    }
}

extension AppRuntime {
    fileprivate var failures: AppFailures? {
        get { slots[FailuresSlot.self] }
        set { slots[FailuresSlot.self] = newValue }
    }
}

private enum FailuresSlot: Slot { typealias Value = AppFailures }
