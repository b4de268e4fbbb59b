import Configuration
import EventLoop
import Lifecycle
import Linux
import Processes

/// Commands that run one after the other for an app, each under its deadline.
final class HookRun {
    let names: String
    var remaining: ArraySlice<HookCommand>
    var current: Descriptor?
    var timer: TimerSource?
    var isCancelled = false
    let completion: (String?) -> Void

    init(names: String, _ hooks: [HookCommand], _ completion: @escaping (String?) -> Void) {
        self.names = names
        self.remaining = hooks[...]
        self.completion = completion
    }
}

extension Supervisor {
    /// Runs the commands in order; the completion gets a sentence when one failed, which ends the run.
    func runHooks(
        _ app: AppRuntime,
        _ hooks: [HookCommand],
        named names: String,
        _ completion: @escaping (String?) -> Void
    ) {
        guard !hooks.isEmpty else { return completion(nil) }
        let run = HookRun(names: names, hooks, completion)
        app.hooks = run
        nextHook(app, run)
    }

    private func nextHook(_ app: AppRuntime, _ run: HookRun) {
        guard !run.isCancelled else { return finishHooks(app, run, "\(run.names) was given up") }
        guard let hook = run.remaining.popFirst() else { return finishHooks(app, run, nil) }
        let name = hook.command.first ?? ""
        runCommand(app, hook.command) { [weak self] pidfd in
            run.current = pidfd
            if run.isCancelled { try? Pidfd.sendSignal(pidfd.raw, Signal.kill) }
            guard let self, let deadline = hook.deadline else { return }
            run.timer = try? self.loop.timer {
                run.isCancelled = true
                try? Pidfd.sendSignal(pidfd.raw, Signal.kill)
            }
            run.timer?.arm(after: deadline)
        } completion: { [weak self] status in
            run.timer?.cancel()
            run.current = nil
            guard let self else { return }
            switch status {
            case .success(.exited(0)) where !run.isCancelled: self.nextHook(app, run)
            case .success(.exited(0)): self.finishHooks(app, run, "\(run.names) command \(name) ran out of time")
            case .success(.exited(let code)):
                self.finishHooks(app, run, "\(run.names) command \(name) failed with exit status \(code)")
            case .success(.signaled(let signal, _)):
                let why = run.isCancelled ? "was ended" : "died of \(Signal.name(signal))"
                self.finishHooks(app, run, "\(run.names) command \(name) \(why)")
            case .failure(let trouble): self.finishHooks(app, run, "\(run.names): \(trouble)")
            }
        }
    }

    private func finishHooks(_ app: AppRuntime, _ run: HookRun, _ failure: String?) {
        if app.hooks === run { app.hooks = nil }
        run.timer?.cancel()
        run.completion(failure)
    }

    /// Ends the commands that still run before a launch; those after a stop go on.
    func cancelHooks(_ app: AppRuntime) {
        guard let run = app.hooks, run.names == "before_start" else { return }
        run.isCancelled = true
        if let pidfd = run.current { try? Pidfd.sendSignal(pidfd.raw, Signal.kill) }
    }

    /// Runs a command for an app (as its user, in its directory) and hears how it ended. It writes into the app's log, or
    /// where `output` says.
    func runCommand(
        _ app: AppRuntime,
        _ command: [String],
        output given: Descriptor? = nil,
        started: @escaping (Descriptor) -> Void,
        completion: @escaping (Result<ExitStatus, LaunchTrouble>) -> Void
    ) {
        var plan: LaunchPlan
        let output: Descriptor?
        do throws(LaunchTrouble) {
            (plan, output) = try commandPlan(app, command)
        } catch {
            // Always later, so that the caller has finished what it was doing.
            loop.later { completion(.failure(error)) }
            return
        }
        if let given { plan.standardOutput = given.raw }
        keeper.launch(plan) { [weak self] result in
            switch result {
            case .success(let launched):
                self?.helpers[launched.pid] = { status in completion(.success(status)) }
                started(launched.pidfd)
            case .failure(let failure): completion(.failure(LaunchTrouble(failure.description)))
            }
        }
        withExtendedLifetime((output, given)) {}
    }
}
