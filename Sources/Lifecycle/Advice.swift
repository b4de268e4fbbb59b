// SPDX-License-Identifier: Apache-2.0

/// What a policy advises for an app. torpord follows the advice only where the app's rules allow it.
public enum Advice: Sendable, Hashable {
    /// Move the app to this state: launch the app if it is not running; terminate it if the state is `not-running`.
    case goal(Goal)
    /// Let the app stay in the background for this long from now.
    case grant(Duration)
    /// Delay the app's pending restart until this long from now.
    case restart(after: Duration)
    /// Cancel the app's pending restart.
    case giveUp
    /// Allow the launch that the policy was asked about.
    case admit
    /// Refuse the launch that the policy was asked about.
    case refuse
}

extension Coordinator {
    /// The longest time that a policy's advice may contain: 366 days.
    public static let longestAdvice = Duration.seconds(366 * 86_400)

    /// Whether a policy must allow (``Advice/admit``) or refuse each launch. The action ``Action/askForAdmission(_:)``
    /// tells the caller to ask the policy.
    public var asksForAdmission: Bool { admission.isNeeded }

    /// Sets whether a policy must allow each launch. If `isNeeded` is false, launches that wait for a policy's answer
    /// begin now.
    public func setAsksForAdmission(_ isNeeded: Bool, now: Duration) -> [AppAction] {
        admission.isNeeded = isNeeded
        guard !isNeeded else { return [] }
        for app in admission.waiting {
            admission.forget(app)
            tryLaunch(app, isFirst: false, now: now)
        }
        return finish(now: now)
    }

    /// The apps whose launches wait for a policy to admit or refuse them, with the reason of each launch.
    public var waitingForAdmission: [(app: AppID, reason: LaunchReason)] {
        admission.waiting.map { ($0, nodes[$0].machine.launchReason) }
    }

    /// Whether the launch of the app waits for a policy to admit or refuse it.
    public func waitsForAdmission(_ app: AppID) -> Bool { admission.isAsked(app) }

    /// Whether another app requires this app and is running (not suspended) or waits for its launch.
    public func isRequired(_ app: AppID) -> Bool { graph.requiredBy[app].contains { needsRequirements($0) } }

    /// Whether any app, running or not, requires this app. If such an app is launched or wakes, torpord launches or
    /// wakes this app too.
    public func hasDependents(_ app: AppID) -> Bool { !graph.requiredBy[app].isEmpty }

    /// The apps, running or not, that require this app, in the order of their ids.
    public func dependents(_ app: AppID) -> [AppID] { graph.requiredBy[app].sorted() }

    private func needsRequirements(_ app: AppID) -> Bool {
        let machine = nodes[app].machine
        return machine.isWaitingToLaunch || machine.isAlive && machine.state != .suspended
    }

    /// Throws if the app must not be suspended (without force), because another app requires it and keeps running.
    ///
    /// - Throws: ``RequestError``, which names an app that requires this one and keeps running.
    public func requireSuspendable(_ app: AppID) throws(RequestError) {
        guard nodes[app].machine.isAlive || nodes[app].machine.isWaitingToLaunch, nodes[app].machine.goal != .suspended,
            let other = graph.requiredBy[app].first(where: { needsRequirements($0) && goesOn($0) })
        else { return }
        let dependent = nodes[other].definition.name
        let state = nodes[other].machine.isAlive ? nodes[other].machine.state.rawValue : "about to be launched"
        throw RequestError(
            "is required by \(dependent), which is \(state): suspend \(dependent) too, or suspend it with --force"
        )
    }

    /// Whether the app will run after its pending requests. If a stop of the app is pending, this is true if the stop
    /// is part of a restart. Otherwise it is true if the app's goal is active, inactive or background.
    private func goesOn(_ app: AppID) -> Bool {
        if let stop = nodes[app].pendingStop { return Self.comesBack(after: stop) }
        switch nodes[app].machine.goal {
        case .active, .inactive, .background: return true
        case .suspended, .notRunning: return false
        }
    }

    /// Sorts apps so that each comes after the apps that require it; otherwise keeps the given order.
    public func dependentsFirst(_ apps: [AppID]) -> [AppID] {
        let wanted = Set(apps)
        return graph.dependentsFirst(apps).filter(wanted.contains)
    }

    /// The same apps, sorted so that each app comes after those that must be launched before it (`requires` and
    /// `after`).
    public func earlierFirst(_ apps: [AppID]) -> [AppID] {
        let wanted = Set(apps)
        return graph.earlierFirst(apps).filter(wanted.contains)
    }

    /// Whether the app already has the goal that the advice names, so that there is nothing to do; false if the
    /// advice names no goal.
    public func isFollowed(_ advice: Advice, of app: AppID) -> Bool {
        guard case .goal(let goal) = advice else { return false }
        let machine = nodes[app].machine
        if goal == .notRunning { return machine.goal == .notRunning }
        return machine.goal == goal && (machine.isAlive || machine.isWaitingToLaunch)
    }

    /// Whether a policy may terminate the app now: the app runs, its rules allow its termination, and no running app
    /// requires it.
    public func mayEnd(_ app: AppID) -> Bool { (try? request(for: .notRunning, of: app)) != nil }

    /// Applies a policy's advice.
    ///
    /// - Throws: ``RequestError`` when the app's rules forbid the advice or the advice comes too late; then nothing
    ///   changes.
    public func advise(_ advice: Advice, of app: AppID, now: Duration) throws(RequestError) -> [AppAction] {
        guard nodes[app].standing == .declared else { throw RequestError("is no longer in the configuration") }
        guard !isShuttingDown else { throw RequestError("is being ended: the supervisor is shutting down") }
        switch advice {
        case .goal(let goal):
            if goal == .active || goal == .background { try nodes[app].machine.requireOwner(now: now) }
            // The app may have got a message since the policy was asked, for which the advice is refused below.
            if goal == .suspended { nodes[app].machine.repeatBackgroundTimeUsed() }
            guard let request = try request(for: goal, of: app) else {
                forgetPending(app)
                let foreground = goal == .active
                absorb(nodes[app].machine.launch(foreground: foreground, reason: .policy, now: now), of: app, now: now)
                break
            }
            let machine = nodes[app].machine
            let comesBack = machine.isCovered && (machine.goal == .active || machine.comesBack)
            let actions = try self.request(request, of: app, now: now)
            nodes[app].machine.comesBack = comesBack && (goal == .background || goal == .suspended)
            return actions
        case .grant(let time):
            try check(time)
            try nodes[app].machine.grant(time, now: now)
            touch(app)
        case .restart(let delay):
            try check(delay)
            absorb(try nodes[app].machine.delayRestart(delay, now: now), of: app, now: now)
        case .giveUp:
            try nodes[app].machine.giveUp()
            absorb([], of: app, now: now)
        case .admit:
            try requireQuestion(app)
            admission.admit(app)
            tryLaunch(app, isFirst: false, now: now)
        case .refuse:
            try requireQuestion(app)
            absorb(nodes[app].machine.refuseLaunch(), of: app, now: now)
        }
        return finish(now: now)
    }

    private func requireQuestion(_ app: AppID) throws(RequestError) {
        guard admission.isAsked(app), nodes[app].machine.isWaitingForPermission else {
            throw RequestError("is not waiting for a policy to allow its launch")
        }
    }

    private func check(_ time: Duration) throws(RequestError) {
        guard time >= .zero, time <= Self.longestAdvice else {
            throw RequestError("cannot be given a time that is negative or longer than a year")
        }
    }

    /// The request that moves the app to `goal`; `nil` if the app is not running and must be launched. Throws if a
    /// policy may not move the app to `goal` now.
    private func request(for goal: Goal, of app: AppID) throws(RequestError) -> Request? {
        let machine = nodes[app].machine
        let lives = machine.isAlive || machine.isWaitingToLaunch
        let isEnding = machine.transition == .terminating && !machine.isWaitingToLaunch
        if isEnding || nodes[app].pendingStop != nil { throw RequestError("is ending") }
        if machine.isTraced { throw RequestError("is being debugged: it is left alone") }
        switch goal {
        case .inactive:
            throw RequestError("cannot be sent to inactive, through which apps only pass: choose active or background")
        case .active, .background:
            guard lives else {
                guard machine.allowsLaunchByEvent else {
                    throw RequestError("was stopped by a user or restarted too often, so only a user starts it again")
                }
                return nil
            }
            return goal == .active ? .foreground : .background
        case .suspended:
            if machine.awaitsVerdict { throw RequestError("stays awake until its health check has come to a verdict") }
            if machine.isBusyWithMessage { throw RequestError("stays awake until it has answered a message") }
            try requireUnneeded(app, "suspended")
            return .suspend
        case .notRunning:
            guard lives else { throw RequestError("is not running") }
            guard machine.rules.eviction != .never else {
                throw RequestError("is protected from being ended (evict = \"never\")")
            }
            try requireUnneeded(app, "ended")
            return machine.state == .suspended && machine.transition == nil ? .evict : .stop(.evicted)
        }
    }

    private func requireUnneeded(_ app: AppID, _ what: String) throws(RequestError) {
        let dependents = graph.requiredBy[app].filter { other in
            // If the other app is suspended, this app may be suspended too. But this app may not be terminated, because
            // a required app must have processes.
            needsRequirements(other) || what == "ended" && nodes[other].machine.isAlive
        }
        guard let first = dependents.first else { return }
        throw RequestError("is required by \(nodes[first].definition.name), which runs: it is not \(what)")
    }
}

extension AppMachine {
    /// Sets the rest of the app's background time to `time`, counted from now.
    mutating func grant(_ time: Duration, now: Duration) throws(RequestError) {
        guard case .running(let running) = phase, running.state == .background, running.edge?.transition != .suspending
        else { throw RequestError("is \(state.rawValue): only an app in the background is granted time") }
        grant = Deadline(.backgroundTime, time, now: now)
    }

    mutating func delayRestart(_ delay: Duration, now: Duration) throws(RequestError) -> [Action] {
        try requireDelayedRestart()
        guard delay > .zero else {
            var actions: [Action] = []
            edgeDeadline = nil
            restart(into: &actions)
            return actions
        }
        edgeDeadline = Deadline(.restart, delay, now: now)
        return []
    }

    mutating func giveUp() throws(RequestError) {
        try requireDelayedRestart()
        edgeDeadline = nil
        phase = .notRunning(.resting)
        failed = true
        goal = .notRunning
        endForcedRun()
    }

    private func requireDelayedRestart() throws(RequestError) {
        guard case .notRunning(.delayed) = phase else {
            throw RequestError("is not waiting for a delayed restart")
        }
    }

    /// Cancels the app's launch before it begins, because a policy refused it or the machine has too little memory for
    /// it.
    mutating func refuseLaunch() -> [Action] {
        guard case .notRunning(.waiting) = phase else { return [] }
        return endBeforeLaunch(.launchFailed)
    }
}

extension AppMachine {
    /// The number of restarts within the backoff window. Above the rules' `backoff.limit` the app is marked failed.
    public func restartsInWindow(now: Duration) -> Int { ledger.count { now - $0 < rules.backoff.window } }
}
