// SPDX-License-Identifier: Apache-2.0

/// A background task: work that an app wants to finish. It keeps the app in the background until the task ends.
public struct BackgroundTask: Sendable, Hashable {
    /// The number of the task within the app's incarnation, from 1.
    public let token: UInt32
    /// What the task is for, as text that the app chose.
    public let name: String
    /// Whether the app was warned that the task's time is nearly over.
    public internal(set) var isWarned = false

    /// A task that has begun.
    public init(token: UInt32, name: String, isWarned: Bool = false) {
        self.token = token
        self.name = name
        self.isWarned = isWarned
    }
}

/// An operator's order to keep an app in the background.
public struct Hold: Sendable, Hashable {
    /// Why the operator keeps the app in the background, as text that the operator wrote.
    public let reason: String
    /// When the hold ends; nil if it lasts until the operator ends it.
    public let until: Duration?

    /// A hold until that time; nil for no limit.
    public init(reason: String, until: Duration?) {
        self.reason = reason
        self.until = until
    }
}

/// The rules for names of background tasks.
public enum TaskName {
    /// The longest name, in bytes of UTF-8.
    public static let longest = 128

    /// Why a task may not have this name, as the rest of a sentence; nil if it may.
    public static func problem(_ name: String) -> String? {
        guard 1...longest ~= name.utf8.count else { return "must have 1 to \(longest) bytes" }
        let hasControls = name.utf8.contains { $0 < 0x20 || $0 == 0x7f }
        return hasControls ? "must not contain control characters, such as a newline" : nil
    }
}

/// What keeps an app in the background, and how much time its tasks have used. Most apps have no tasks, holds, modes or
/// locks, and store no such value.
///
/// The clock measures the time that tasks use. It runs while the app has tasks and is in the background.
/// ``AppMachine/settleTasks(now:)`` starts or stops the clock after every change of the app's state.
struct BackgroundTime: Sendable, Hashable {
    var tasks: [BackgroundTask] = []
    var holds: [Hold] = []
    /// The background modes whose condition is true.
    var modes: BackgroundModes = []
    var lastToken: UInt32 = 0
    /// Names of the tasks that were running when the app started to end.
    var leaked: [String] = []
    /// The time that tasks have used since the app entered the background. The time since `clock` is not included.
    @Packed var used: Duration = .zero
    /// The time that tasks have used since `budgetBegan`. The time since `clock` is not included.
    @Packed var budgetUsed: Duration = .zero
    @OptionallyPacked var budgetBegan: Duration?
    /// When the clock that measures the time of tasks was started; nil while it is stopped.
    @OptionallyPacked var clock: Duration?
    /// When the app's file locks first prevented its suspension. `lockRetry` is the time at which torpord tries again
    /// to suspend the app.
    @OptionallyPacked var lockedSince: Duration?
    @OptionallyPacked var lockRetry: Duration?
    /// The deadline of the snapshot in progress; nil if there is none.
    @OptionallyPacked var snapshotDue: Duration?
    /// When the message that the app works on was sent, and when its answer is overdue. Both are nil without such a
    /// message; `messageDue` is nil if the time is unlimited. Not recorded: a new torpord gives the app the full time
    /// again.
    @OptionallyPacked var messageSince: Duration?
    @OptionallyPacked var messageDue: Duration?
    /// Whether a health check of the app is in progress, or the last one failed. Not recorded: a new torpord repeats
    /// the check.
    var awaitsVerdict = false

    static let day = Duration.seconds(86_400)
    /// The most background tasks that an app may have at once, so that a faulty app cannot use up torpord's memory.
    static let mostTasks = 64
    static let mostHolds = 16

    init() {}

    /// Whether all values are the initial ones, so that the app need not store this value.
    var isEmpty: Bool {
        tasks.isEmpty && holds.isEmpty && modes.isEmpty && leaked.isEmpty && budgetBegan == nil && lockedSince == nil
            && lockRetry == nil && snapshotDue == nil && !awaitsVerdict && used == .zero && clock == nil
            && lastToken == 0 && messageSince == nil && messageDue == nil
    }

    /// Whether some of these values have to be written to the app's record.
    var isRecorded: Bool {
        var recorded = self
        recorded.awaitsVerdict = false
        recorded.messageSince = nil
        recorded.messageDue = nil
        return !recorded.isEmpty
    }

    /// The running time that is left for all tasks together; nil for no limit.
    func remaining(_ rules: AppRules, now: Duration) -> Duration? {
        let running = clock.map { now - $0 } ?? .zero
        var left = rules.taskTime.map { $0 - used - running }
        if let budget = rules.taskBudget {
            let isNewDay = budgetBegan.map { now - $0 >= Self.day } ?? true
            let rest = isNewDay ? budget : budget - budgetUsed - running
            left = left.map { min($0, rest) } ?? rest
        }
        return left.map { max($0, .zero) }
    }

    mutating func startClock(now: Duration) {
        guard clock == nil else { return }
        if budgetBegan.map({ now - $0 >= Self.day }) ?? true {
            budgetBegan = now
            budgetUsed = .zero
        }
        clock = now
    }

    mutating func stopClock(now: Duration) {
        guard let since = clock else { return }
        clock = nil
        used += now - since
        budgetUsed += now - since
    }
}

extension AppMachine {
    // MARK: What can be read

    /// The app's background tasks, in the order in which they began.
    public var tasks: [BackgroundTask] { backgroundTime?.value.tasks ?? [] }

    /// The holds that operators placed on the app.
    public var holds: [Hold] { backgroundTime?.value.holds ?? [] }

    /// The names of the tasks that were running when the app started to end.
    public var leakedTasks: [String] { backgroundTime?.value.leaked ?? [] }

    /// Whether tasks, modes or holds keep the app in the background.
    public var isHeld: Bool {
        guard let backgroundTime else { return false }
        let (hasTasks, hasHolds) = (!backgroundTime.value.tasks.isEmpty, !backgroundTime.value.holds.isEmpty)
        return hasTasks || hasHolds || !backgroundTime.value.modes.isEmpty
    }

    /// Whether torpord must not suspend the app by itself, because a health check of the app is in progress or the last
    /// one failed. A user may still suspend the app.
    public var awaitsVerdict: Bool { backgroundTime?.value.awaitsVerdict ?? false }

    /// What keeps the app in the background, as text such as `the task upload`.
    public var holders: [String] {
        heldByTasks + modes.modes.map { "the mode \($0.rawValue)" }
            + holds.map { $0.reason.isEmpty ? "an operator" : "an operator (\($0.reason))" }
    }

    /// The tasks as text, each name once.
    private var heldByTasks: [String] {
        var names: [String] = []
        var counts: [String: Int] = [:]
        for task in tasks {
            if counts[task.name] == nil { names.append(task.name) }
            counts[task.name, default: 0] += 1
        }
        return names.map { name in
            let count = counts[name] ?? 1
            return "the task \(name)" + (count == 1 ? "" : " (\(count) times)")
        }
    }

    /// The error that refuses to suspend the app; nil if nothing keeps the app in the background. The error names the
    /// task, hold or mode that keeps the app in the background, and says how to suspend the app nevertheless.
    var refusalWhileHeld: RequestError? {
        guard isHeld else { return nil }
        let isHeldByItself = !tasks.isEmpty || !modes.modes.isEmpty
        var remedies: [String] = []
        if isHeldByItself { remedies.append("wait until that is over") }
        if !holds.isEmpty { remedies.append("end the hold with ‘hold --end’") }
        let remedy = remedies.joined(separator: " and ")
        return RequestError(
            "is held by \(holders.joined(separator: ", ")), so it is not suspended: \(remedy), or suspend it with --force"
        )
    }

    /// How much longer the app's background tasks may run. Nil if there is no limit, as in the foreground, or if the
    /// app does not run.
    public func taskTimeLeft(now: Duration) -> Duration? {
        switch phase {
        case .running(let running) where running.state == .background || running.state == .suspended:
            return (backgroundTime?.value ?? BackgroundTime()).remaining(rules, now: now)
        case .notRunning, .launching, .running, .terminating:
            return nil
        }
    }

    /// When the time of the background tasks is over; nil if there are no tasks, their time is unlimited, or it is
    /// not being measured (see `clock`).
    var taskDeadline: Deadline? {
        guard let time = backgroundTime?.value, !time.tasks.isEmpty, let since = time.clock,
            let left = time.remaining(rules, now: since)
        else { return nil }
        return Deadline(kind: .task, started: since, at: since + left)
    }

    /// The earliest deadline of the app's locks, snapshot, holds and background tasks.
    var nextBackgroundDeadline: Duration? {
        guard let time = backgroundTime?.value else { return nil }
        var next = time.lockRetry
        func sooner(_ at: Duration) { next = next.map { min($0, at) } ?? at }
        if let due = time.snapshotDue { sooner(due) }
        // While the app is suspended, the deadline of its message is paused.
        if let due = time.messageDue, suspendedSince == nil { sooner(due) }
        for hold in time.holds { if let until = hold.until { sooner(until) } }
        if let end = taskDeadline?.at {
            sooner(time.tasks.contains { !$0.isWarned } ? end - rules.expiryWarning : end)
        }
        return next
    }

    // MARK: Tasks

    /// Begins a task.
    ///
    /// - Throws: ``RequestError`` when the app is not running, the name is invalid, or no time is left for a task.
    public mutating func beginTask(_ name: String, now: Duration) throws(RequestError) -> (UInt32, [Action]) {
        switch phase {
        case .notRunning: throw RequestError("is not running, so it begins no task")
        case .terminating: throw RequestError("is being terminated, so it begins no task")
        case .launching, .running: break
        }
        if let problem = TaskName.problem(name) { throw RequestError("begins no task: its name \(problem)") }
        if tasks.count >= BackgroundTime.mostTasks {
            throw RequestError("has \(BackgroundTime.mostTasks) tasks already, which is the most: end one first")
        }
        if backgroundTime?.value.lastToken == .max { throw RequestError("has begun too many tasks in this run") }
        if let left = taskTimeLeft(now: now), left <= .zero { throw RequestError("has no background time left") }
        var token: UInt32 = 0
        changeBackgroundTime { time in
            time.lastToken += 1
            token = time.lastToken
            time.tasks.append(BackgroundTask(token: token, name: name))
        }
        repeatBackgroundTimeUsed()
        var actions: [Action] = []
        // If the app is about to be suspended, the new background task prevents that: continue from the app's new
        // state.
        walk(into: &actions, now: now)
        settleTasks(now: now)
        return (token, actions)
    }

    /// Ends a task; returns nil if no task has that token.
    public mutating func endTask(_ token: UInt32, now: Duration) -> [Action]? {
        guard tasks.contains(where: { $0.token == token }) else { return nil }
        changeBackgroundTime { $0.tasks.removeAll { $0.token == token } }
        var actions: [Action] = []
        released(into: &actions, now: now)
        settleTasks(now: now)
        return actions
    }

    /// Called after a task, hold, mode or health check has ended. Moves the app towards its goal if nothing else keeps
    /// it awake.
    mutating func released(into actions: inout [Action], now: Duration) {
        guard !isHeld, !awaitsVerdict, !isBusyWithMessage else { return }
        walk(into: &actions, now: now)
        guard grantIsOver, case .running(let running) = phase, running.state == .background, running.edge == nil else {
            return
        }
        grantIsOver = false
        backgroundTimeIsOver(into: &actions, now: now)
    }

    /// Reports again that the background time is used up as soon as what keeps the app awake now is over. The policy
    /// that was told of it cannot suspend the app now, and asks for nothing by itself.
    mutating func repeatBackgroundTimeUsed() {
        guard isHeld || awaitsVerdict || isBusyWithMessage, state == .background, transition == nil, grant == nil,
            !sleepsAgain, rules.backgroundTime != nil
        else { return }
        grantIsOver = true
    }

    // MARK: Holds

    /// Adds a hold. If a hold with the same reason exists, that hold gets the later of the two end times instead.
    mutating func hold(
        _ reason: String,
        until: Duration?,
        into actions: inout [Action],
        now: Duration
    ) throws(RequestError) {
        if let index = holds.firstIndex(where: { $0.reason == reason }) {
            let end = holds[index].until.flatMap { earlier in until.map { max(earlier, $0) } }
            changeBackgroundTime { $0.holds[index] = Hold(reason: reason, until: end) }
            return walk(into: &actions, now: now)
        }
        guard holds.count < BackgroundTime.mostHolds else {
            throw RequestError(
                "has \(BackgroundTime.mostHolds) holds already, which is the most: end them with ‘hold --end’ first"
            )
        }
        changeBackgroundTime { $0.holds.append(Hold(reason: reason, until: until)) }
        repeatBackgroundTimeUsed()
        walk(into: &actions, now: now)
    }

    mutating func releaseHolds(into actions: inout [Action], now: Duration) throws(RequestError) {
        guard !holds.isEmpty else { throw RequestError("is not held: there is nothing to end") }
        changeBackgroundTime { $0.holds = [] }
        released(into: &actions, now: now)
    }

    // MARK: Health checks

    /// Prevents torpord from suspending the app by itself while a health check is in progress or the last one failed.
    mutating func awaitVerdict(_ isAwaited: Bool, into actions: inout [Action], now: Duration) {
        guard awaitsVerdict != isAwaited else { return }
        if isAwaited {
            guard case .running(let running) = phase, running.state != .suspended else { return }
        }
        changeBackgroundTime { $0.awaitsVerdict = isAwaited }
        guard !isAwaited else { return }
        // A policy may have tried to suspend the app during the check and was refused. Report again that the background
        // time is used up, so that the policy can retry.
        if state == .background, transition == nil, grant == nil, !sleepsAgain, rules.backgroundTime != nil {
            grantIsOver = true
        }
        released(into: &actions, now: now)
    }

    // MARK: Locks

    /// Called when the app holds a lock that another process waits for, while the app is suspended or about to be
    /// suspended.
    mutating func lockHeld(into actions: inout [Action], now: Duration) {
        guard case .running(let running) = phase,
            running.edge?.transition == .suspending || running.state == .suspended && running.edge == nil
        else { return }
        // An app that another machine may own must not run, not even to release a lock.
        guard mayRun else { return }
        switch rules.onLock {
        case .ignore:
            break
        case .terminate:
            terminate(.lockWhileSuspending, politely: false, into: &actions, now: now)
        case .defer:
            changeBackgroundTime { time in
                time.lockedSince = time.lockedSince ?? now
                time.lockRetry = now + .seconds(1)
            }
            if running.state == .suspended {
                beginResuming(into: &actions, now: now)
            } else {
                abandonSuspending(into: &actions, now: now)
            }
        }
    }

    /// Whether the app's file locks prevent its suspension for now.
    var waitsForLocks: Bool { backgroundTime?.value.lockRetry != nil }

    mutating func forgetLocks() {
        guard let time = backgroundTime?.value, time.lockedSince != nil || time.lockRetry != nil else { return }
        changeBackgroundTime { time in
            time.lockedSince = nil
            time.lockRetry = nil
        }
    }

    // MARK: Deadlines

    mutating func backgroundDeadline(into actions: inout [Action], now: Duration) {
        missSnapshot(into: &actions, now: now)
        guard let time = backgroundTime?.value else { return }
        if let retry = time.lockRetry, retry <= now {
            changeBackgroundTime { $0.lockRetry = nil }
            if let since = time.lockedSince, let limit = rules.taskTime, now - since >= limit {
                terminate(.lockWhileSuspending, politely: false, into: &actions, now: now)
            } else {
                walk(into: &actions, now: now)
            }
        }
        if time.holds.contains(where: { $0.until.map { $0 <= now } ?? false }) {
            changeBackgroundTime { $0.holds.removeAll { $0.until.map { $0 <= now } ?? false } }
            actions.append(.report(.holdEnded))
            released(into: &actions, now: now)
        }
        guard let end = taskDeadline?.at, case .running = phase else { return }
        if end <= now {
            terminate(.taskExpired, politely: false, into: &actions, now: now)
        } else if end - rules.expiryWarning <= now {
            for index in time.tasks.indices where !time.tasks[index].isWarned {
                changeBackgroundTime { $0.tasks[index].isWarned = true }
                actions.append(.warn(time.tasks[index].token))
            }
        }
    }

    // MARK: The account

    /// Starts or stops the clock of the background tasks. Call this after every change of the app's state.
    mutating func settleTasks(now: Duration) {
        guard let time = backgroundTime?.value else { return }
        let runs: Bool
        if case .running(let running) = phase {
            runs =
                running.state == .background && running.edge?.transition != .enteringForeground && !time.tasks.isEmpty
        } else {
            runs = false
        }
        if runs != (time.clock != nil) {
            changeBackgroundTime { if runs { $0.startClock(now: now) } else { $0.stopClock(now: now) } }
        }
    }

    mutating func grantTasks(_ time: Duration, since: Duration?, now: Duration) {
        guard let clock = backgroundTime?.value.clock, let end = taskDeadline?.at, end < now + time else { return }
        let missing = now + time - end
        let granted = since.map { min(missing, now - max($0, clock)) } ?? missing
        guard granted > .zero else { return }
        // The clock must not begin in the future: its deadline would give more time than its limit. So some of the time
        // counts as not used.
        let start = min(now, clock + granted)
        let excess = clock + granted - start
        changeBackgroundTime { account in
            account.clock = start
            account.used -= excess
            account.budgetUsed -= excess
            for index in account.tasks.indices { account.tasks[index].isWarned = false }
        }
    }

    /// Gives the background tasks their full time again, because the app enters the background.
    mutating func beginStay() {
        guard let time = backgroundTime?.value, time.used != .zero || time.tasks.contains(where: \.isWarned) else {
            return
        }
        changeBackgroundTime { time in
            time.used = .zero
            for index in time.tasks.indices { time.tasks[index].isWarned = false }
        }
    }

    /// Records which background tasks are still running when the app begins to end.
    mutating func leakTasks() {
        dropSnapshot()
        guard !tasks.isEmpty else { return }
        changeBackgroundTime { $0.leaked = $0.tasks.map(\.name) }
    }

    /// Removes tasks and modes after the incarnation has ended. Holds stay, and so does the time that tasks have used
    /// of the daily budget.
    mutating func endTasks(now: Duration) {
        guard backgroundTime != nil else { return }
        changeBackgroundTime { time in
            time.stopClock(now: now)
            time.tasks = []
            time.modes = []
            time.lastToken = 0
            time.leaked = []
            time.used = .zero
            time.lockedSince = nil
            time.lockRetry = nil
            time.snapshotDue = nil
            time.messageSince = nil
            time.messageDue = nil
            time.awaitsVerdict = false
        }
    }

    /// Restores tasks and holds, which are stored outside the record because records have no room for names.
    public mutating func restore(tasks: [BackgroundTask], holds: [Hold]) {
        guard !tasks.isEmpty || !holds.isEmpty else { return }
        changeBackgroundTime { time in
            time.tasks = tasks
            time.holds = holds
            time.lastToken = max(time.lastToken, tasks.map(\.token).max() ?? 0)
        }
    }

    mutating func changeBackgroundTime(_ change: (inout BackgroundTime) -> Void) {
        var time = backgroundTime ?? Shared(BackgroundTime())
        backgroundTime = nil
        change(&time.value)
        backgroundTime = time.value.isEmpty ? nil : time
    }
}
