// SPDX-License-Identifier: Apache-2.0

/// Stops and restarts apps. An app stops only after the apps that require it have stopped.
extension Coordinator {
    /// Stops or restarts apps. The apps that require them stop first.
    func stop(_ apps: [AppID], _ request: Request, now: Duration) {
        for app in apps { plan(request, for: app) }
        for app in passOn(apps).reversed() { stopWhenFree(app, now: now) }
    }

    /// Plans stops for the apps that directly or indirectly require the given apps, except those that are stopped
    /// already. Returns the given apps, followed by the apps that now have to stop too.
    func passOn(_ apps: [AppID]) -> [AppID] {
        var stopping = apps
        var next = 0
        while next < stopping.count {
            let app = stopping[next]
            next += 1
            guard let request = nodes[app].pendingStop else { continue }
            // An evicted app was not stopped by a user, and neither were its dependents, which stop because of the
            // eviction.
            let reason = request == .stop(.evicted) ? TerminationReason.evicted : .stopped
            let passedOn: Request = Self.comesBack(after: request) ? .restart : .stop(reason)
            for other in graph.requiredBy[app] where goesToo(other, passedOn) {
                let goal = nodes[other].machine.goal
                plan(passedOn, for: other)
                if reason == .evicted, goal != .suspended, goal != .notRunning {
                    nodes[other].retry = goal != .background
                }
                stopping.append(other)
            }
        }
        return stopping
    }

    static func comesBack(after stop: Request) -> Bool {
        if case .stop(let reason) = stop { reason.isReplacement } else { stop == .restart }
    }

    /// Handles a request for an app whose stop waits for its dependents to stop. That stop is not cancelled, because
    /// other stops depend on it. If the app is launched again after the stop (a restart), the request is carried out
    /// now. If not, a start request turns the stop into a restart, and other requests that move the app are refused.
    /// Returns false if the request needs no special treatment.
    func requestWhileHeld(
        _ app: AppID,
        _ request: Request,
        by stop: Request,
        now: Duration
    ) throws(RequestError) -> Bool {
        var startsAgain = Self.comesBack(after: stop)
        switch request {
        case .start, .foreground, .scene(_, .active): startsAgain = true
        case .background, .suspend, .forceSuspend, .resume, .interrupt, .wake, .standby, .scene(_, .background): break
        case .stop, .restart, .forceQuit, .evict, .reset, .hold, .release, .mode, .cover, .scene(_, .unattached),
            .own, .runUnowned, .disown:
            return false
        }
        guard startsAgain else { throw RequestError("is about to end and will not run: start it first") }
        absorb(try nodes[app].machine.request(request, now: now), of: app, now: now)
        if !Self.comesBack(after: stop) { nodes[app].pendingStop = .restart }
        return true
    }

    private func plan(_ stop: Request, for app: AppID) {
        forgetPending(app)
        nodes[app].pendingStop = stop
        touch(app)
    }

    /// Whether a stop or restart of an app also stops or restarts its dependent `app`.
    private func goesToo(_ app: AppID, _ passedOn: Request) -> Bool {
        let machine = nodes[app].machine
        if isResting(app) { return false }
        guard passedOn == .restart else {
            // Stop even a dependent that is terminating: if it were restarted, it would launch the app that must
            // stop.
            return nodes[app].pendingStop.map(Self.comesBack) ?? true
        }
        // No restart is needed for a dependent that waits for its launch, is terminating, or has a pending stop or
        // restart.
        return nodes[app].pendingStop == nil && machine.isAlive && machine.transition != .terminating
    }

    func stopWhenFree(_ app: AppID, now: Duration) {
        guard let request = nodes[app].pendingStop else { return }
        let dependents = isShuttingDown ? graph.before[app] : graph.requiredBy[app]
        guard dependents.allSatisfy({ !nodes[$0].machine.isAlive }) else { return }
        nodes[app].pendingStop = nil
        if let actions = try? nodes[app].machine.request(request, now: now) { absorb(actions, of: app, now: now) }
        if let foreground = nodes[app].comesBack {
            nodes[app].comesBack = nil
            absorb(nodes[app].machine.launch(foreground: foreground, reason: .user, now: now), of: app, now: now)
        }
    }
}
