// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import Lifecycle
import Linux
import Permissions
import Processes

/// Commands that run one after the other for an app, each with a deadline of its own.
final class HookRun {
    let names: String
    /// The program of the running command, as the configuration names it.
    var program = ""
    var remaining: ArraySlice<HookCommand>
    var current: Descriptor?
    var timer: TimerSource?
    var isCancelled = false
    /// The time limit that the running command has exceeded, so that torpord kills the command; nil if it has exceeded
    /// none.
    var missed: Duration?
    /// Why there is no timer for the running command's deadline; nil if there is one, or no deadline.
    var timerError: Errno?
    /// The commands that continue if torpord is replaced; nil for commands that end with their torpord.
    var kind: OutlivingCommand.Kind?
    /// The pid of the running command, if an earlier torpord has launched it; nil for any other.
    var taken: Int32?
    /// How many of the commands were begun before the one that runs next.
    var begun = 0
    /// Called when the running command is killed, at its deadline for example: a command that hangs in the kernel ends
    /// much later, or never.
    var onKill: () -> Void = {}
    /// Whether `completion` was called. If a command starts only after that, its result is ignored.
    var isOver = false
    /// Variables of the commands, in place of those about the app's present run; nil for those.
    let variables: [String: String]?
    let completion: (String?) -> Void

    init(
        names: String,
        _ hooks: [HookCommand],
        variables: [String: String]? = nil,
        _ completion: @escaping (String?) -> Void
    ) {
        self.names = names
        self.remaining = hooks[...]
        self.variables = variables
        self.completion = completion
    }

    /// Why the current command was ended early, as the end of a sentence about that command.
    var cancellation: String {
        missed.map { "took longer than its deadline of \(Quantity.text($0)) and was killed" } ?? "was cancelled"
    }
}

extension Launcher {
    /// Runs the commands in order, and stops after the first command that fails. `completion` gets nil, or a sentence
    /// about the failure.
    func runHooks(
        _ app: AppRuntime,
        _ hooks: [HookCommand],
        as kind: OutlivingCommand.Kind,
        _ completion: @escaping (String?) -> Void
    ) {
        let names = kind.rawValue
        let found = takeFoundCommand(of: app, kind, among: hooks.count)
        guard !hooks.isEmpty else { return completion(nil) }
        var hooks = hooks
        if !app.specification.declaredSettings.isEmpty {
            do throws(LaunchError) {
                for index in hooks.indices {
                    hooks[index].command = try supervisor.settings.filled(hooks[index].command, of: app)
                }
            } catch {
                return completion("\(names): \(error)")
            }
        }
        let run = HookRun(names: names, hooks, completion)
        run.kind = kind
        app.hooks = run
        if let found { return resume(app, run, found) }
        // The next torpord must know when this run of the app has begun, to find out what is left of a deadline.
        record(app)
        nextHook(app, run)
    }

    /// Runs one command, even if other commands run for the app. `completion` gets nil, or a sentence if the command
    /// failed.
    func run(
        _ command: HookCommand,
        named name: String,
        of app: AppRuntime,
        variables: [String: String]? = nil,
        onKill: @escaping () -> Void = {},
        _ completion: @escaping (String?) -> Void
    ) -> HookRun {
        let run = HookRun(names: name, [command], variables: variables, completion)
        run.onKill = onKill
        nextHook(app, run)
        return run
    }

    func nextHook(_ app: AppRuntime, _ run: HookRun) {
        guard !run.isCancelled else { return finishHooks(app, run, "\(run.names) was cancelled") }
        guard let hook = run.remaining.popFirst() else { return finishHooks(app, run, nil) }
        let name = hook.command.first ?? ""
        run.program = name
        run.begun += 1
        run.timer = hook.deadline.flatMap { deadlineTimer(app, run, $0) }
        // Commands of `on_failure` must not run without a bound. The others belong to a launch or an ending.
        if run.names == FailureCommands.names, let error = run.timerError {
            let why = "was not run, since it would have no deadline (\(error))"
            return finishHooks(app, run, "\(run.names) command \(name) \(why)")
        }
        // `open_command` runs in the app's sandbox, because other programs choose the URLs that it gets.
        let isInside = run.names == "open_command"
        let number = run.kind.flatMap { kind in
            OutlivingCommand(kind, index: run.begun - 1, of: coordinator.machine(app.id).incarnation)?.number
        }
        runCommand(app, hook.command, isInside: isInside, variables: run.variables, outliving: number) { pidfd in
            run.current = pidfd
            if run.isCancelled {
                try? Pidfd.sendSignal(pidfd.raw, Signal.kill)
                if !run.isOver { run.onKill() }
            }
            if let deadline = hook.deadline { run.timer?.arm(after: deadline) }
        } completion: { [weak self] status in
            self?.ended(app, run, status)
        }
    }

    /// Called when the running command has ended, or could not be run.
    func ended(_ app: AppRuntime, _ run: HookRun, _ status: Result<ExitStatus, LaunchError>) {
        run.timer?.cancel()
        (run.current, run.taken) = (nil, nil)
        guard !run.isOver else { return }
        let name = run.program
        switch status {
        case .success(.exited(0)) where !run.isCancelled: nextHook(app, run)
        case .success(.exited(0)): finishHooks(app, run, "\(run.names) command \(name) \(run.cancellation)")
        case .success(.exited(let code)):
            finishHooks(app, run, "\(run.names) command \(name) failed with exit status \(code)")
        case .success(.signaled(let signal, _)):
            let why = run.isCancelled ? run.cancellation : "was killed by \(Signal.name(signal))"
            finishHooks(app, run, "\(run.names) command \(name) \(why)")
        case .failure(let trouble): finishHooks(app, run, "\(run.names): \(trouble)")
        }
    }

    func deadlineTimer(_ app: AppRuntime, _ run: HookRun, _ deadline: Duration) -> TimerSource? {
        do throws(Errno) {
            let timer = try loop.timer { [weak self, weak app] in
                guard let self, let app else { return }
                if !run.isCancelled { run.missed = deadline }
                let why = "could not be started within its deadline of \(Quantity.text(deadline))"
                end(run, of: app, "\(run.names) command \(run.program) \(why)")
            }
            timer.arm(after: deadline)
            return timer
        } catch {
            run.timerError = error
            return nil
        }
    }

    /// The variables of a command that runs after the app's main process has ended (`after_stop`): the reason of the
    /// ending, and the exit status or the signal. Empty for other commands.
    func endVariables(of app: AppRuntime) -> [String: String] {
        guard let reason = coordinator.machine(app.id).endingReason, let exit = app.run.exitRecord else { return [:] }
        return Self.endVariables(reason, exit.status)
    }

    static func endVariables(_ reason: TerminationReason, _ status: ExitStatus?) -> [String: String] {
        var variables = ["TORPOR_EXIT_REASON": reason.rawValue]
        switch status {
        case .exited(let code): variables["TORPOR_EXIT_STATUS"] = "\(code)"
        case .signaled(let signal, _): variables["TORPOR_EXIT_STATUS"] = Signal.name(signal)
        case nil: break
        }
        return variables
    }

    /// Kills the current command. If the command has not started yet, because a disk or torpor-keeper is slow, calls
    /// the completion now, and kills the command when it starts. A run of torpor-verify is killed without waiting for
    /// its end: it changes nothing of the app, and may hang together with a disk.
    private func end(_ run: HookRun, of app: AppRuntime, _ sentence: String) {
        run.isCancelled = true
        if let pidfd = run.current {
            try? Pidfd.sendSignal(pidfd.raw, Signal.kill)
            // After the completion, the caller may be running another command.
            if !run.isOver { run.onKill() }
            guard run.names == Self.bundle else { return }
        }
        finishHooks(app, run, sentence)
    }

    func finishHooks(_ app: AppRuntime, _ run: HookRun, _ failure: String?) {
        guard !run.isOver else { return }
        run.isOver = true
        if app.hooks === run { app.hooks = nil }
        run.timer?.cancel()
        run.completion(failure)
    }

    /// Cancels the commands of `before_start` and the verification of a bundle, whichever is running. Commands of
    /// `after_stop` continue.
    func cancelHooks(_ app: AppRuntime) {
        guard let run = app.hooks, run.kind == .beforeStart || run.names == Self.bundle else { return }
        cancel(run, of: app)
    }

    /// Kills the current command, and does not start the remaining ones.
    func cancel(_ run: HookRun, of app: AppRuntime) {
        guard !run.isCancelled, !run.isOver else { return }
        run.isCancelled = true
        // End the command in a later turn of the event loop, when the caller has finished.
        loop.later { [weak self, weak app] in
            guard let self, let app else { return }
            let isBundle = run.names == Self.bundle
            self.end(run, of: app, isBundle ? "its check \(run.cancellation)" : "\(run.names) was cancelled")
        }
    }

    /// Runs a command for an app, as the app's user and in its directory. The command writes to the app's log, or to
    /// `output`. A check, or a command with `isInside`, runs in the app's sandbox. `variables` take the place of those
    /// about the app's present run. `completion` gets the exit status, or why the command could not be run.
    ///
    /// If torpord ends, torpor-keeper kills the command, unless `number` is given (``OutlivingCommand``): then the next
    /// torpord finds the command by that number.
    ///
    /// When the command has ended, processes that it has left running in its session are killed. If a check has a
    /// cgroup of its own, all processes in that cgroup are killed after the check.
    func runCommand(
        _ app: AppRuntime,
        _ command: [String],
        output given: Descriptor? = nil,
        isCheck: Bool = false,
        isInside: Bool = false,
        variables: [String: String]? = nil,
        outliving number: UInt32? = nil,
        started: @escaping (Descriptor) -> Void,
        completion: @escaping (Result<ExitStatus, LaunchError>) -> Void
    ) {
        if isCheck || isInside, app.specification.sandbox.mode != nil, !supervisor.persistence.isLoaded {
            return supervisor.persistence.whenLoaded { [weak self, weak app] in
                guard let self, let app else { return }
                self.runCommand(
                    app,
                    command,
                    output: given,
                    isCheck: isCheck,
                    isInside: isInside,
                    variables: variables,
                    outliving: number,
                    started: started,
                    completion: completion
                )
            }
        }
        let specification = app.specification
        let (known, incarnation) = (accountOfRun(app), app.run)
        let order = isCheck || isInside ? sandboxOrder(of: app, specification, command.first ?? "") : nil
        reads.ask {
            do throws(LaunchError) {
                var facts = try LaunchFacts.find(specification, for: command, as: known)
                if var order {
                    order.places.executable = facts.executable
                    facts.sandbox = try order.make()
                }
                return Result<LaunchFacts, LaunchError>.success(facts)
            } catch {
                return .failure(error)
            }
        } _: { [weak self, weak app] facts in
            guard let self, let app else { return }
            do throws(LaunchError) {
                // A command that was cancelled may be read for so long that its app is removed by then.
                guard app.isListed else { throw LaunchError("the app was removed") }
                let facts = try facts.get()
                self.adopt(facts.account, of: app, in: incarnation)
                var (plan, output) = try self.commandPlan(app, command, facts, variables)
                if let number { (plan.incarnation, plan.isHelper) = (number, false) }
                if facts.sandbox != nil {
                    plan.limits = specification.processLimits.map { ($0.resource, $0.soft, $0.hard) }
                }
                let cgroup = isCheck ? self.makeCheckCgroup(app) : nil
                self.run(plan, output, given, cgroup, started: started, completion: completion)
                withExtendedLifetime(facts) {}
            } catch {
                completion(.failure(error))
            }
        }
    }

    /// Makes the cgroup of a check; nil if that is impossible. Without the cgroup, not all processes of a check would
    /// be found: those of ‘podman exec’, for example, leave the check's session.
    private func makeCheckCgroup(_ app: AppRuntime) -> (path: String, directory: Descriptor)? {
        do throws(Errno) {
            checks.count += 1
            guard let made = try makeCgroup(CgroupTree.check(checks.count, of: app.name)) else { return nil }
            checks.paths.insert(made.path)
            if app.specification.sandbox.mode != nil {
                var usage: UInt64?
                _ = app.specification.appLimits.write(to: made.path, replacing: AppLimits(), usage: &usage)
            }
            return (made.path, made.directory)
        } catch {
            log.warning("\(app.name): no cgroup of its own for its check (\(error))")
            return nil
        }
    }

    private func run(
        _ plan: LaunchPlan,
        _ output: Descriptor?,
        _ given: Descriptor?,
        _ cgroup: (path: String, directory: Descriptor)?,
        started: @escaping (Descriptor) -> Void,
        completion: @escaping (Result<ExitStatus, LaunchError>) -> Void
    ) {
        var plan = plan
        if let given { plan.standardOutput = given.raw }
        plan.cgroup = cgroup?.directory.raw
        let path = cgroup?.path
        let isPodmans = path != nil && plan.arguments.first == "podman"
        supervisor.keeper.launch(plan) { [weak self] result in
            switch result {
            case .success(let launched):
                self?.helpers[launched.pid] = { [weak self] status in
                    // Let remaining processes end by themselves if the command is a ‘podman exec’ that has exited: it
                    // leaves a process that cleans up after it.
                    var isDone = false
                    if case .exited = status { isDone = isPodmans }
                    self?.endRemains(of: launched, path, mayEndAlone: isDone)
                    completion(.success(status))
                }
                started(launched.pidfd)
            case .failure(let failure):
                if let path { self?.checks.remove(path) }
                completion(.failure(LaunchError(failure.description)))
            }
        }
        withExtendedLifetime((output, given, cgroup)) {}
    }

    /// Kills processes that a command has left running in its cgroup or session, because no other part of torpord ends
    /// them.
    func endRemains(of command: Launched, _ cgroup: String? = nil, mayEndAlone: Bool = false) {
        // Check whether there are any such processes first: most commands leave none, and reading /proc is slow.
        if let cgroup {
            if checks.remove(cgroup) { return }
        } else if !Signal.hasGroup(command.pid) {
            return
        }
        let tree = ProcessTree(
            tag: AppTag(app: "", incarnation: 0),
            main: Identity(pid: command.pid, startTime: command.startTime),
            pidfd: nil,
            cgroupPath: cgroup,
            table: supervisor.processes,
            adopter: ThisProcess.parent
        )
        let remains = CommandRemains(tree)
        remains.chances = mayEndAlone ? 7 : 0
        remains.timer = try? loop.timer { [weak self] in self?.endRemains(remains) }
        commandRemains.append(remains)
        endRemains(remains)
    }

    private func endRemains(_ remains: CommandRemains) {
        var isGone = false
        if remains.chances > 0 {
            remains.chances -= 1
        } else {
            isGone = remains.tree.killPass() == .gone
        }
        if let path = remains.tree.cgroupPath { isGone = checks.remove(path) }
        guard isGone else {
            remains.timer?.arm(after: remains.delay)
            remains.delay = min(remains.delay * 2, .seconds(10))
            return
        }
        remains.timer?.cancel()
        remains.timer = nil
        commandRemains.removeAll { $0 === remains }
    }
}

/// The cgroups of checks that are running, or whose processes have not all ended.
final class CheckCgroups {
    /// The number of check cgroups made so far, which becomes part of the next cgroup's name.
    var count: UInt64 = 0
    var paths: Set<String> = []
    /// The number of times that torpord's shutdown has waited for the cgroups of checks to become empty.
    var waits = 0
    var timer: TimerSource?

    /// Removes a cgroup, unless it has processes. Returns whether the cgroup is gone.
    @discardableResult
    func remove(_ path: String) -> Bool {
        guard !File.exists(path) || (try? Cgroup.removeTree(path)) != nil else { return false }
        paths.remove(path)
        return true
    }
}

extension Launcher {
    /// Kills the processes of all checks, because torpord ends. Returns whether they are gone, or torpord has waited
    /// long enough for that. If false, the shutdown continues later.
    func endChecks() -> Bool {
        for path in checks.paths where !checks.remove(path) { try? Cgroup.kill(path) }
        // Wait at most 50 times 10 ms, since a process that hangs in the kernel may never end.
        guard !checks.paths.isEmpty, checks.waits < 50 else { return true }
        checks.waits += 1
        if checks.timer == nil {
            checks.timer = try? loop.timer { [weak self] in self?.supervisor.shutdown.finishWhenGone() }
        }
        checks.timer?.arm(after: .milliseconds(10))
        return checks.timer == nil
    }
}

/// Processes that an ended command has left running, and that torpord is killing.
final class CommandRemains {
    let tree: ProcessTree
    var timer: TimerSource?
    /// The number of times that torpord still waits for the command's processes to end by themselves, before it kills
    /// them. The first wait is 10 ms and each one is twice as long as the last, so that 7 waits take 1.27 s.
    var chances = 0
    /// The delay before the next attempt to kill. It doubles each time, since a process that hangs in the kernel may
    /// never end.
    var delay = Duration.milliseconds(10)

    init(_ tree: ProcessTree) { self.tree = tree }
}

extension AppRuntime {
    var hooks: HookRun? {
        get { slots[HooksSlot.self] }
        set { slots[HooksSlot.self] = newValue }
    }

    /// The program of the `after_stop` command that runs, while no process of the app is left; nil if none runs.
    package var programAfterStop: String? {
        guard let run = hooks, run.kind == .afterStop else { return nil }
        return run.program
    }
}

private enum HooksSlot: Slot { typealias Value = HookRun }
