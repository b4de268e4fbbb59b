// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import Lifecycle
import Linux
import Mailbox
import Output
import Processes
import Recovery
import TorporAPI

/// Makes a termination report when an app has ended. Before that, gathers data about an app that fails to do something
/// in time.
final class Reports: ShellRoom {
    unowned(unsafe) let supervisor: Supervisor
    /// Runs commands when an app has failed.
    private(set) lazy var failureCommands = FailureCommands(supervisor)
    /// The number of apps whose stacks are being sampled now (``StackSampler``).
    var looks = 0

    init(_ supervisor: Supervisor) { self.supervisor = supervisor }

    /// Records what an app had to do by the deadline that it has missed, because this is no longer known when the
    /// report is made.
    func missedDeadline(_ missed: Deadline, _ app: AppRuntime, awaiting message: Message?) {
        switch missed.kind {
        case .launch, .transition, .background, .watchdog, .task, .message:
            // A deadline for heartbeats or tasks is not about the answer to a message.
            let isAnswer = missed.kind != .watchdog && missed.kind != .task
            app.run.missed = MissedDeadline(missed, at: loop.now, message: isAnswer ? message : nil)
        case .suspend, .willTerminate, .grace: break
        case .kill, .restart, .backgroundTime: return
        }
        counters.missed(missed.kind)
        trace(app, .missed(missed.kind))
    }

    // MARK: While it is being ended

    /// Takes a crash snapshot of an app that torpord ends because of a failure, once in each run of the app. If
    /// `looking`, also samples the stacks of an app that hangs, which takes some ten milliseconds; during that time
    /// ``Incarnation/stackSampler`` is set.
    func takeCrashSnapshot(_ app: AppRuntime, looking: Bool = true) {
        guard app.run.crashSnapshot == nil, let tree = app.run.tree, let reason = coordinator[app.id].endingReason
        else {
            return
        }
        let isStuck: Bool
        switch reason {
        case .launchDeadline, .backgroundDeadline, .watchdog, .taskExpired, .unresponsive: isStuck = true
        case .lockWhileSuspending, .memoryLimit, .wakeStorm, .gpuInBackground, .protectedDataOpen, .noPurposeString:
            isStuck = false
        case .exitSuccess, .exitFailure, .signal, .coreDump, .oomKill, .unknown, .dependencyFailed, .replaced,
            .permissionChanged, .evicted, .stopped, .exitsOnSuspend, .shutdown, .forceQuit, .launchFailed:
            return
        }
        guard !tree.mainHasEnded else { return }
        app.run.crashSnapshot = CrashSnapshot(of: tree)
        supervisor.lockWatch.rememberLocks(app)
        guard looking, isStuck, looks < StackSampler.most else { return }
        app.run.stackSampler = StackSampler(app, tree.main.pid, supervisor)
    }

    /// Whether a signal that ends the app must wait because the app's stacks are being sampled. Starts the sampling if
    /// it is needed. The signal is sent when the sampling is over, at most half a second later. The app's grace period
    /// keeps running during the sampling.
    func waitsForLook(_ app: AppRuntime, _ action: Action) -> Bool {
        takeCrashSnapshot(app)
        guard let look = app.run.stackSampler, !look.isOver else { return false }
        look.waiting.append(action)
        return true
    }

    /// Called when the sampling of stacks is over: performs the actions that waited for it.
    func lookIsOver(_ look: StackSampler, _ app: AppRuntime) {
        guard app.run.stackSampler === look else { return }
        app.run.crashSnapshot?.take(look.stacks)
        let waiting = look.waiting
        app.run.stackSampler = nil
        for action in waiting {
            supervisor.perform(action, of: app)
            app.undone.subtract(ActionMask(action))
        }
        if !waiting.isEmpty, let slot = app.slot { supervisor.recovery.setUndone(slot, app.undone.rawValue) }
    }

    // MARK: When it has ended

    /// What an app failed to do, as the words that follow the app's name in a sentence; nil if it did not fail.
    func failing(of app: AppRuntime, _ ending: Ending) -> String? {
        let rules = app.specification.rules
        func within(_ key: String, _ rule: Duration?) -> String {
            let time = app.run.missed.map(\.granted) ?? rule
            let extended = rule.flatMap { rule in time.map { $0 > rule } } ?? false ? ", extended," : ""
            return "within its \(key)" + (time.map { extended + " of " + Quantity.text($0) } ?? "")
        }
        switch ending.reason {
        case .launchDeadline:
            var what = "was not ready "
            if rules.readiness == .delegate {
                if app.run.timeline.firstMessage == nil { what = "did not attach to TORPOR_APP_SOCKET " }
                if let message = app.dueAtLaunch { what = "did not answer \(message.rawValue) " }
            }
            what += within("launch_deadline", rules.launchDeadline)
            if rules.readiness == .notify { what += " (it sent no READY=1)" }
            return what + (app.run.probe?.problem.map { " (it \($0))" } ?? "")
        case .backgroundDeadline:
            let message = app.run.missed?.message ?? .didEnterBackground
            return "did not answer \(message.rawValue) " + within("background_deadline", rules.backgroundDeadline)
        case .watchdog:
            if let verdict = app.run.health?.verdict { return verdict }
            guard let missed = app.run.missed, missed.deadline.kind == .watchdog else {
                return "set off its own watchdog"
            }
            return "gave no heartbeat (WATCHDOG=1) within its watchdog of \(Quantity.text(missed.granted))"
        case .unresponsive:
            guard let message = app.run.missed?.message else {
                return "said that it was stopping and did not end within its grace"
            }
            if app.run.missed?.deadline.kind == .message {
                return "did not answer \(message.rawValue) " + within("message_deadline", rules.messageDeadline)
            }
            return "did not answer \(message.rawValue) " + within("transition_deadline", rules.transitionDeadline)
        case .taskExpired:
            let names = ending.tasks.joined(separator: ", ")
            let limit = rules.taskTime.map { "its task_time of \(Quantity.text($0))" } ?? "its task_budget"
            return "did not end its task\(ending.tasks.count == 1 ? "" : "s") \(names) within \(limit)"
        case .lockWhileSuspending:
            return app.run.locksInTheWay?.first.map { "could not be suspended because \($0.sentence)" }
        case .noPurposeString: return app.run.undeclaredAccess
        case .protectedDataOpen: return app.run.openProtectedFiles.map(ProtectedData.sentence)
        case .memoryLimit:
            return app.specification.memoryLimit.map { "used more than its memory_limit of \(Bytes.text($0))" }
        case .dependencyFailed: return app.run.lostNetwork.map { "lost its network with the container of \($0)" }
        case .exitSuccess, .exitFailure, .signal, .coreDump, .oomKill, .unknown, .replaced,
            .permissionChanged, .wakeStorm, .evicted, .stopped, .exitsOnSuspend, .shutdown, .forceQuit,
            .launchFailed, .gpuInBackground:
            return nil
        }
    }

    func makeReport(_ app: AppRuntime, _ ending: Ending, _ exit: LastExit, _ text: String) -> Report {
        var report = Report(
            app: app.name,
            incarnation: Int64(ending.incarnation),
            at: exit.at ?? 0,
            reason: ending.reason.rawValue,
            state: ending.state.rawValue
        )
        report.code = ending.reason.code.map(Int64.init)
        report.text = text + coreHint(app, ending)
        report.exitCode = exit.code
        report.signal = exit.signal
        report.transition = ending.transition?.rawValue
        report.status = app.run.statusText
        report.errno = app.run.saidErrno
        if case .signaled(_, let coreDumped) = ending.cause { report.coreDumped = coreDumped }
        if let failure = app.run.launchFailure {
            report.stage = "\(failure.stage)"
            report.errno = failure.errno.rawValue
        }
        addDeadline(app, ending, to: &report)
        if let launched = app.run.launchedAt { report.wallSeconds = (loop.now - launched).inSeconds }
        addUsage(app, to: &report)
        report.tasks = ending.tasks
        report.locks = supervisor.lockWatch.reportedLocks(app)
        report.threads = app.run.crashSnapshot?.threads ?? []
        report.launch = LaunchTimes(app.run.timeline)
        report.timeline = app.run.timeline.all.map(TimelineEntry.init)
        // Report only where the journal has the app's output: clients that show the report can read the journal
        // themselves, so torpord need not wait for it.
        if app.specification.log == .journal, ending.cause != nil {
            report.journal = JournalPlace(of: app, supervisor.place.cgroups)
        }
        // Leave out lines of the app's earlier runs, which would mislead readers.
        let began = (exit.at ?? 0) - Int64((report.wallSeconds ?? 0) * 1_000_000) - 2_000
        let lines = (app.capture?.lastLines(10) ?? []).filter { $0.time.map { $0 >= began } ?? true }
        report.log = lines.map { LogLine(at: $0.time, text: $0.text) }
        report.shorten()
        return report
    }

    /// Signals whose default action is a core dump (signal(7)).
    private static let dumping = [
        "SIGQUIT", "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGSEGV", "SIGXCPU", "SIGXFSZ", "SIGSYS",
    ]

    /// A sentence that says how to get a core dump the next time, if the app's limit forbade one. In a container,
    /// podman sets that limit.
    private func coreHint(_ app: AppRuntime, _ ending: Ending) -> String {
        guard case .signaled(let signal, false) = ending.cause, Self.dumping.contains(Signal.name(signal)),
            app.specification.container == nil
        else { return "" }
        let own = app.specification.limits.first { $0.name == "core" }?.soft
        // If the limit is below one page, the kernel writes no core dump (do_coredump() in fs/coredump.c).
        guard (own ?? (try? ThisProcess.limit(4).soft) ?? .max) < 4096 else { return "" }
        return "; its limit allowed no core dump: limits = { core = \"unlimited\" } does"
    }

    /// If the app was ended for a missed deadline, adds what the app had to do, the time that it had, and how late it
    /// was.
    private func addDeadline(_ app: AppRuntime, _ ending: Ending, to report: inout Report) {
        guard let missed = app.run.missed else { return }
        let rules = app.specification.rules
        let rule: Duration?
        switch (missed.deadline.kind, ending.reason) {
        case (.launch, .launchDeadline):
            report.due = app.dueAtLaunch?.rawValue ?? "ready"
            rule = rules.launchDeadline
        case (.background, .backgroundDeadline): rule = rules.backgroundDeadline
        case (.transition, .unresponsive): rule = rules.transitionDeadline
        case (.message, .unresponsive): rule = rules.messageDeadline
        case (.watchdog, .watchdog):
            report.due = "heartbeat"
            rule = nil
        case (.task, .taskExpired):
            report.due = "tasks"
            rule = nil
        default: return
        }
        report.due = report.due ?? missed.message?.rawValue
        report.deadline = missed.deadline.kind.rawValue
        report.deadlineMilliseconds = missed.granted.microseconds / 1000
        if let rule, missed.granted > rule {
            report.extendedMilliseconds = (missed.granted - rule).microseconds / 1000
        }
        report.usedMilliseconds = (missed.at - missed.deadline.started).microseconds / 1000
        let end = missed.answeredAt ?? loop.now
        report.lateMilliseconds = max(0, (end - missed.deadline.at).microseconds / 1000)
        report.answered = missed.answeredAt != nil
    }

    private func addUsage(_ app: AppRuntime, to report: inout Report) {
        if let record = app.run.exitRecord {
            report.pid = record.pid
            report.cpuSeconds = record.processorTime.inSeconds
            report.maxMemoryBytes = Int64(clamping: record.maxResidentBytes)
        }
        report.memoryBytes = app.run.crashSnapshot?.memoryBytes
        // The cgroup counts the processor time of all its processes, including those that have ended. The kernel's
        // value for the main process includes only those children that it has waited for.
        if let time = app.run.tree?.processorTime(), app.run.exitRecord != nil {
            report.cpuSeconds = max(report.cpuSeconds ?? 0, time.inSeconds)
        }
        if let path = app.run.tree?.cgroupPath, supervisor.place.countsMemory(path),
            let peak = Cgroup.number(path, "memory.peak")
        {
            report.maxMemoryBytes = Int64(clamping: peak)
        }
        // Without a cgroup, the kernel's value is for a single process, so the memory that torpord has measured for all
        // processes together may be larger.
        let seen = max(report.memoryBytes ?? 0, Int64(clamping: app.run.mostMemory))
        let most = max(report.maxMemoryBytes ?? 0, seen)
        report.maxMemoryBytes = most > 0 ? most : nil
    }
}

extension AppRuntime {
    /// The launch message that the app received and did not answer in time; nil if it received none before the
    /// deadline.
    fileprivate var dueAtLaunch: Message? { run.timeline.firstMessage == nil ? nil : self.run.missed?.message }
}
