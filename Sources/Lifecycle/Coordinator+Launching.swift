// SPDX-License-Identifier: Apache-2.0

/// Launches apps: an app's dependencies before the app, and only a limited number of launches at the same time.
extension Coordinator {
    /// How many launches may be between their start and their exec at once, at least 1; the others wait in a queue.
    /// The default is no limit.
    public var launchesAtOnce: Int {
        get { pacing.limit }
        set { pacing.limit = max(1, newValue) }
    }

    /// Whether launches wait because too many are in progress. If that lasts, call ``passOverLaunches(now:)``.
    public var isHoldingLaunches: Bool { pacing.isBlocked }

    /// Stops counting the launches that are in progress, because they take too long to reach their exec. The next
    /// launches can then begin.
    public func passOverLaunches(now: Duration) -> [AppAction] {
        pacing.passOver()
        return finish(now: now)
    }

    /// Launches the app if the apps that it requires are up (ready), or have done their work since the first attempt.
    /// Only an attempt that does not follow from a change of another app (`isFirst`) also launches the required apps:
    /// otherwise a dependency that keeps exiting would be launched forever. The first attempt launches those too that
    /// had done their work before, such as a oneshot.
    func tryLaunch(_ app: AppID, isFirst: Bool, now: Duration) {
        guard nodes[app].machine.isWaitingForPermission, nodes[app].pendingStop == nil, !isShuttingDown else { return }
        // A required app that comes up may have brought this launch about, and tries it before its first attempt.
        guard isFirst || nodes[app].hasLaunchedRequirements else { return }
        var ready = true
        let isRestart = nodes[app].machine.launchReason == .restart
        let needsWork = !nodes[app].hasLaunchedRequirements
        // Launch none if another one makes the launch fail: when the former is done, the launch is retried, and it would
        // be launched forever.
        let missing = graph.requires[app].filter { needsWork ? !isUp($0) || isResting($0) : !isUpOrDone($0) }
        if missing.contains(where: { isBeyondLaunch($0, now: now) }) { return failDependency(app, now: now) }
        for other in missing {
            ready = false
            if isFirst || nodes[other].machine.goal == .suspended { wake(other, now: now) }
            if isBeyondLaunch(other, now: now) || isOut(other) { return failDependency(app, now: now) }
        }
        if needsWork {
            nodes[app].hasLaunchedRequirements = true
            touch(app)
        }
        ready = ready && !graph.after[app].contains { isAboutToLaunch($0) } && !isFollowing(app)
        if !ready, !isRestart, pacing.hasRestarts { preferWhatItWaitsFor(app) }
        guard ready else { return }
        guard nodes[app].machine.isWaitingForPermission else { return }
        guard admission.isAdmitted(app) else {
            if admission.ask(app) { askForAdmission(of: app) }
            return
        }
        guard !nodes[app].definition.needsMemory || memoryAdmission.isAdmitted(app) else {
            if memoryAdmission.ask(app) { askForMemory(for: app) }
            return
        }
        guard pacing.hasRoom else {
            return pacing.wait(app, isRestart: isRestart)
        }
        pacing.begin(app)
        nodes[app].hasLaunchedRequirements = false
        absorb(nodes[app].machine.permitLaunch(now: now), of: app, now: now)
    }

    /// Whether the app neither runs nor is going to, and has not done its work.
    func isOut(_ app: AppID) -> Bool {
        isResting(app) && !isUpOrDone(app) && !(nodes[app].pendingStop.map(Self.comesBack) ?? false)
    }

    /// Whether another app that requires this one cannot launch it: it has failed, or may not run on this machine.
    func isBeyondLaunch(_ app: AppID, now: Duration) -> Bool {
        nodes[app].machine.failed || !nodes[app].machine.mayRun(at: now)
    }

    /// Whether the launch of the app waits for the end of a removed app.
    func isFollowing(_ app: AppID) -> Bool { !nodes[app].follows.isEmpty || nodes[app].followsOrphans }

    /// Moves pending restarts that the app's launch waits for, directly or indirectly, ahead of other restarts.
    private func preferWhatItWaitsFor(_ app: AppID) {
        var seen: Set<AppID> = []
        var left = [app]
        while let next = left.popLast() {
            guard nodes[next].machine.isWaitingForPermission, seen.insert(next).inserted else { continue }
            pacing.prefer(next)
            left += graph.requires[next].filter { !isUp($0) }
            left += graph.after[next].filter { isAboutToLaunch($0) }
        }
    }

    /// Called when a user requests the app. Clears the failed mark of required apps that were restarted too often, so
    /// that they may be launched again.
    func forgiveRequirements(of app: AppID, now: Duration) {
        for other in allRequirements(of: app) where isLost(other) {
            guard let actions = try? nodes[other].machine.request(.reset, now: now) else { continue }
            absorb(actions, of: other, now: now)
        }
    }

    /// The failed app for which this one is down: it requires that app, perhaps through others, and comes back when it
    /// does. Nil if there is none, or the app runs or is about to be launched.
    public func failedRequirement(of app: AppID) -> AppID? {
        let machine = nodes[app].machine
        guard machine.lastEnding == .dependencyFailed, !machine.isAlive, !machine.isWaitingToLaunch else { return nil }
        return allRequirements(of: app).first(where: isLost)
    }

    /// The apps that an app requires, and those that these require, and so on.
    private func allRequirements(of app: AppID) -> [AppID] {
        var all: [AppID] = []
        var seen: Set<AppID> = []
        var left = graph.requires[app]
        while let next = left.popLast() {
            guard seen.insert(next).inserted else { continue }
            all.append(next)
            left += graph.requires[next]
        }
        return all
    }

    /// Launches or resumes an app because another app requires it, at least into the background. Does nothing if the
    /// app is awake or being launched, will be stopped, has failed, or may not run on this machine.
    func wake(_ app: AppID, now: Duration) {
        let machine = nodes[app].machine
        if nodes[app].pendingStop == .stop(.stopped), nodes[app].standing == .declared {
            // A dependent needs the app again, so turn its pending stop into a restart. The app still stops first, once
            // its dependents have stopped.
            nodes[app].pendingStop = .restart
            touch(app)
        }
        guard nodes[app].pendingStop == nil, machine.mayRun(at: now), !machine.failed, !machine.isEndingByItself,
            !machine.isBeingReplaced
        else { return }
        if isResting(app) || (machine.transition == .terminating && !machine.isWaitingToLaunch) {
            // An app that was evicted returns as if it had been suspended: into the background, unless an app that
            // requires it is in the foreground.
            let slept = machine.lastEnding == .evicted && !isWantedInForeground(app)
            let foreground = nodes[app].definition.launchesIntoForeground && !slept
            absorb(
                nodes[app].machine.launch(foreground: foreground, reason: .dependency, now: now),
                of: app,
                now: now
            )
            if slept { nodes[app].broughtBy = nodes[app].machine.goalGeneration }
        } else if machine.goal == .suspended {
            // Check the goal, not the state: otherwise an app that is killed each time it is suspended would be woken
            // forever. Before this app, wake the apps that it requires.
            let sleeping = machine.isAlive ? graph.requires[app].filter { !isUpOrDone($0) && !isLost($0) } : []
            if !sleeping.isEmpty {
                // Wake the required apps only once: a required app that fails again at once would otherwise be woken
                // forever.
                guard nodes[app].pendingGoal == nil else { return }
                nodes[app].pendingGoal = .background
                touch(app)
                waking.append(contentsOf: sleeping)
            } else if let actions = try? nodes[app].machine.request(.background, now: now) {
                nodes[app].broughtBy = nodes[app].machine.goalGeneration
                absorb(actions, of: app, now: now)
            }
        }
    }

    /// Whether another app that requires this one is in the foreground or entering it.
    private func isWantedInForeground(_ app: AppID) -> Bool {
        graph.requiredBy[app].contains { other in
            switch nodes[other].pendingGoal {
            case .foreground, .start(background: false): return true
            default: break
            }
            let goal = nodes[other].machine.goal
            return goal == .active || goal == .inactive
        }
    }

    func failDependency(_ app: AppID, now: Duration) {
        let goal = nodes[app].machine.goal
        absorb(nodes[app].machine.handle(.dependencyFailed, now: now), of: app, now: now)
        nodes[app].retry = goal == .active || goal == .inactive
    }

    /// Launches an app again that ended, or was not launched, because of an app that it requires. Does nothing for
    /// others, and while the app is still ending. A launch that is retried does not launch what the app requires, and
    /// what has done its work since, once more.
    func retryLaunch(_ app: AppID, now: Duration) {
        guard let foreground = nodes[app].retry, isResting(app), !isShuttingDown else { return }
        nodes[app].retry = nil
        let hasLaunchedRequirements = nodes[app].hasLaunchedRequirements
        absorb(nodes[app].machine.launch(foreground: foreground, reason: .dependency, now: now), of: app, now: now)
        nodes[app].hasLaunchedRequirements = hasLaunchedRequirements
    }

    /// Applies a request for which the app's dependencies must be awake; the request waits until they are.
    func bring(_ app: AppID, _ request: Request, now: Duration) throws(RequestError) {
        let machine = nodes[app].machine
        let sleeping = machine.isAlive && graph.requires[app].contains { !isUpOrDone($0) }
        guard sleeping, machine.transition != .terminating, machine.transition != .launching else {
            let actions = try nodes[app].machine.request(request, now: now)
            forgetPending(app)
            absorb(actions, of: app, now: now)
            return
        }
        // Try the request on a copy, so that an invalid request is refused now and not after the wait.
        var trial = machine
        _ = try trial.request(request, now: now)
        forgetPending(app)
        if case .scene(let id, let goal) = request {
            // Set the scene's goal now; only the transition of the app waits for the dependencies.
            _ = nodes[app].machine.want(id, goal)
            nodes[app].pendingGoal = goal == .active ? .foreground : .wake(Wake())
        } else {
            nodes[app].pendingGoal = request
        }
        touch(app)
        for other in graph.requires[app] where !isUpOrDone(other) { wake(other, now: now) }
        bringWhenAwake(app, now: now)
    }

    func bringWhenAwake(_ app: AppID, now: Duration) {
        guard let request = nodes[app].pendingGoal else { return }
        guard nodes[app].machine.isAlive else {
            // The app may still restart and then become ready. If it does not restart, drop the request.
            if isResting(app) { nodes[app].pendingGoal = nil }
            return
        }
        // Wait only for dependencies that will be up soon. A running app does not wait for a dependency that neither
        // runs nor will be launched, or that stays suspended.
        guard graph.requires[app].allSatisfy({ isUp($0) || isResting($0) || isAsleep($0) }) else { return }
        nodes[app].pendingGoal = nil
        if let actions = try? nodes[app].machine.request(request, now: now) { absorb(actions, of: app, now: now) }
    }
}
