import Configuration
import EventLoop
import Lifecycle
import Linux
import Output
import Processes
import SystemPackage
import TorporAPI

/// What the keeper reaped.
extension Supervisor {
    func exited(_ record: ExitRecord) {
        if let completion = helpers.removeValue(forKey: record.pid) {
            keeper.forget(record)
            return completion(record.status ?? .exited(255))
        }
        guard let id = coordinator.id(of: record.app), !leftOverExited(pid: record.pid), !record.isHelper,
            coordinator.machine(id).incarnation == record.incarnation, coordinator.machine(id).isAlive
        else { return keeper.forget(record) }
        let app = apps[id]
        // Kept by the keeper until its ending is recorded: a torpord that dies before that hears of it again.
        app.keptExits.append(record)
        let machine = coordinator.machine(id)
        if app.tree == nil, !machine.hasProcess {
            if let failure = record.launchFailure {
                return launched(app, machine.launchOrder, .failure(failure), cgroupPath: nil)
            }
            // It came and went while torpord was away.
            let tag = AppTag(app: app.name, incarnation: record.incarnation)
            let main = Identity(pid: record.pid, startTime: record.startTime)
            app.tree = tree(tag, main, nil, cgroup(of: app), isOurs: true)
            deliver(.launched, to: id)
        }
        guard let tree = app.tree else { return }
        // It may have named its successor (MAINPID) as the last thing it did.
        hear(app)
        guard tree.main.pid == record.pid else {
            // MAINPID has moved on: the first process may go.
            return sweepSoon(app)
        }
        mainExited(app, MainExit(record))
    }

    func orphanExited(_ record: OrphanRecord) {
        for app in apps {
            guard let tree = app.tree else { continue }
            if tree.main.pid == record.pid, tree.main.startTime == record.startTime {
                return mainExited(app, MainExit(record))
            }
        }
        if let name = record.app, let id = coordinator.id(of: name) { sweepSoon(apps[id]) }
    }

    func mainExited(_ app: AppRuntime, _ record: MainExit) {
        guard app.exitRecord == nil else { return }
        app.exitRecord = record
        // What it said before it went counts before that it went.
        hear(app)
        app.capture?.drain()
        deliver(.mainExited(cause(record, app)), to: app.id)
    }

    /// Watches a main process that the app named itself: as long as its own parent lives, the keeper does not reap it.
    func watchMain(_ app: AppRuntime) {
        guard let tree = app.tree else { return }
        let main = tree.main
        guard let pidfd = tree.pidfd else { return mainExited(app, MainExit(pid: main.pid, status: nil)) }
        app.mainSource = try? loop.watch(pidfd.raw, .readable) { [weak self, weak app] _ in
            guard let self, let app else { return }
            app.mainSource?.cancel()
            app.mainSource = nil
            guard app.exitRecord == nil, app.tree?.main == main else { return }
            if let stat = try? ProcFS.stat(main.pid), stat.startTime == main.startTime,
                stat.parent != ThisProcess.parent
            {
                return self.mainExited(app, MainExit(pid: main.pid, status: Self.statusOfZombie(main.pid)))
            }
            // Reaped, or about to be. If it was the keeper who did, its word is on the way.
            app.mainTimer = try? self.loop.timer { [weak self, weak app] in
                guard let self, let app, app.exitRecord == nil, app.tree?.main == main else { return }
                self.mainExited(app, MainExit(pid: main.pid, status: nil))
            }
            app.mainTimer?.arm(after: .milliseconds(500))
        }
    }

    /// What `exit_code`, the last field of /proc/PID/stat (proc(5)), says of a process that waits to be reaped.
    private static func statusOfZombie(_ pid: Int32) -> ExitStatus? {
        guard let text = try? File.readString("/proc/\(pid)/stat"),
            let code = text.split(whereSeparator: { $0 == " " || $0 == "\n" }).last.flatMap({ Int32($0) })
        else { return nil }
        let signal = code & 0x7f
        return signal == 0 ? .exited((code >> 8) & 0xff) : .signaled(signal, coreDumped: code & 0x80 != 0)
    }

    private func cause(_ record: MainExit, _ app: AppRuntime) -> ExitCause {
        switch record.status {
        case nil: return .unknown
        case .exited(let code): return .exited(code: code)
        case .signaled(let signal, let coreDumped):
            if signal == Signal.kill, let path = app.tree?.cgroupPath {
                switch Cgroup.memoryShortage(path) {
                case .ownLimit: return .memoryLimit
                case .machine: return .outOfMemory
                case nil: break
                }
            }
            return .signaled(signal, coreDumped: coreDumped)
        }
    }

    /// An incarnation is over: it is recorded, reported, and what it held is let go.
    func ended(_ app: AppRuntime, _ ending: Ending) {
        let at = Clock.realtimeMicroseconds()
        var exit = LastExit(reason: ending.reason.rawValue, at: at)
        switch ending.cause {
        case .exited(let code): exit.code = code
        case .signaled(let signal, _): exit.signal = Signal.name(signal)
        case .outOfMemory, .memoryLimit: exit.signal = Signal.name(Signal.kill)
        case .unknown, nil: break
        }
        app.lastExit = exit
        let text = EndingText.describe(ending, refusal: app.refusal, missing: missingRequirements(of: app))
        note(
            app,
            Happening(ending),
            to: AppState.notRunning.rawValue,
            text: text,
            reason: ending.reason.rawValue,
            fields: EndingText.fields(ending, app.launchFailure?.errno)
        )
        if !ending.reason.wasAskedFor, ending.reason != .exitSuccess {
            file(makeReport(app, ending, exit, text), app)
        }
        app.tracerTimer = nil
        app.probe = nil
        app.mainSource = nil
        app.mainTimer = nil
        app.passTimer?.cancel()
        app.passTimer = nil
        app.isStopping = false
        app.isReloading = false
        app.statusText = nil
        app.refusal = nil
        app.usage = .none
        if let path = app.tree?.cgroupPath { try? Cgroup.removeTree(path) }
        app.tree = nil
        app.profileState = nil
        app.advisedProfile = nil
        app.limitTimer = nil
        app.loweredFrom = nil
        app.heldBack = nil
        governance?.ended(app, ending)
        lastEndings[app.id] = (ending, text)
        forgetGoal(of: app, after: ending)
        takeNextSpecification(app)
    }

    /// What the app requires and is not there, nor on its way.
    private func missingRequirements(of app: AppRuntime) -> [String] {
        app.specification.requires.filter { name in
            guard let id = coordinator.id(of: name) else { return true }
            let machine = coordinator.machine(id)
            return !machine.isUp && !machine.isAlive && !machine.isWaitingToLaunch
        }
    }

    private func makeReport(_ app: AppRuntime, _ ending: Ending, _ exit: LastExit, _ text: String) -> Report {
        var report = Report(
            app: app.name,
            incarnation: Int64(ending.incarnation),
            at: exit.at ?? 0,
            reason: ending.reason.rawValue,
            state: ending.state.rawValue
        )
        report.code = ending.reason.code.map(Int64.init)
        report.text = text
        report.exitCode = exit.code
        report.signal = exit.signal
        report.transition = ending.transition?.rawValue
        report.status = app.statusText
        report.errno = app.saidErrno
        if case .signaled(_, let coreDumped) = ending.cause { report.coreDumped = coreDumped }
        if let failure = app.launchFailure {
            report.stage = "\(failure.stage)"
            report.errno = failure.errno.rawValue
        }
        if let deadline = app.missedDeadline {
            report.deadline = deadline.kind.rawValue
            report.deadlineMilliseconds = (deadline.at - deadline.started).microseconds / 1000
            report.usedMilliseconds = report.deadlineMilliseconds
        }
        if let launched = app.launchedAt { report.wallSeconds = (loop.now - launched).inSeconds }
        if let record = app.exitRecord {
            report.pid = record.pid
            report.cpuSeconds = record.processorTime.inSeconds
            report.maxMemoryBytes = Int64(clamping: record.maxResidentBytes)
        }
        report.threads = app.stacks
        app.stacks = []
        // What is in the journal, whoever shows the report can read, and need not wait for it in here.
        if app.specification.log == .journal, ending.cause != nil { report.journal = JournalPlace(of: app, cgroups) }
        // Lines of the runs before it would only mislead.
        let began = (exit.at ?? 0) - Int64((report.wallSeconds ?? 0) * 1_000_000) - 2_000
        let lines = (app.capture?.lastLines(10) ?? []).filter { $0.time.map { $0 >= began } ?? true }
        report.log = lines.map { LogLine(at: $0.time, text: $0.text) }
        return report
    }
}

/// How a main process ended, whether the keeper launched it or adopted it (MAINPID).
struct MainExit {
    let pid: Int32
    /// nil when nobody can tell.
    let status: ExitStatus?
    let processorTime: Duration
    let maxResidentBytes: UInt64

    init(pid: Int32, status: ExitStatus?) {
        self.pid = pid
        self.status = status
        processorTime = .zero
        maxResidentBytes = 0
    }

    init(_ record: ExitRecord) {
        pid = record.pid
        status = record.status
        processorTime = record.userTime + record.systemTime
        maxResidentBytes = record.maxResidentBytes
    }

    init(_ record: OrphanRecord) {
        pid = record.pid
        status = record.status
        processorTime = record.userTime + record.systemTime
        maxResidentBytes = record.maxResidentBytes
    }
}

/// Endings in words.
enum EndingText {
    /// For the journal, in the names that systemd uses for what it launches itself, where it has one.
    static func fields(_ ending: Ending, _ errno: Errno?) -> [(name: String, value: String)] {
        var fields: [(name: String, value: String)] = []
        switch ending.cause {
        case .exited(let code): fields += [("EXIT_CODE", "exited"), ("EXIT_STATUS", "\(code)")]
        case .signaled(let signal, let coreDumped):
            fields += [("EXIT_CODE", coreDumped ? "dumped" : "killed"), ("EXIT_STATUS", "\(signal)")]
        case .outOfMemory, .memoryLimit: fields += [("EXIT_CODE", "killed"), ("EXIT_STATUS", "\(Signal.kill)")]
        case .unknown, nil: break
        }
        if let errno, ending.reason == .launchFailed { fields.append(("ERRNO", "\(errno.rawValue)")) }
        switch ending.next {
        case .rest: fields.append(("TORPOR_NEXT", "rest"))
        case .relaunch: fields.append(("TORPOR_NEXT", "launch"))
        case .restart(let delay):
            fields.append(("TORPOR_NEXT", "restart"))
            fields.append(("TORPOR_RESTART_USEC", "\(max(0, delay.microseconds))"))
        case .gaveUp: fields.append(("TORPOR_NEXT", "give-up"))
        }
        return fields
    }

    static func describe(_ ending: Ending, refusal: String?, missing: [String]) -> String {
        var text: String
        switch ending.cause {
        case .exited(let code): text = "exited with status \(code)"
        case .signaled(let signal, let coreDumped):
            text = "was ended by \(Signal.name(signal))" + (coreDumped ? " and left a core" : "")
        case .outOfMemory: text = "was ended by the kernel for want of memory"
        case .memoryLimit: text = "was ended by the kernel at its memory_limit"
        case .unknown: text = "ended, nobody saw how"
        case nil:
            let which = missing.isEmpty ? "" : ": \(missing.joined(separator: ", "))"
            let isFailedDependency = ending.reason == .dependencyFailed
            text = "was not launched" + (isFailedDependency ? ": what it requires failed\(which)" : "")
        }
        if let refusal, ending.cause == nil { text = refusal }
        text += " (\(ending.reason.rawValue))"
        switch ending.next {
        case .rest: break
        case .relaunch: text += "; launched again at once"
        case .restart(let delay): text += "; starts again in \(max(0, delay.microseconds / 1000)) ms"
        case .gaveUp: text += "; it was restarted too often and is given up until somebody starts or resets it"
        }
        return text
    }
}
