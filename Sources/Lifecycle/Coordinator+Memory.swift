// SPDX-License-Identifier: Apache-2.0

/// What the machine's memory has to do with apps.
extension Coordinator {
    /// Tells an app that memory is short; nothing when it cannot hear it now.
    public func warnOfMemory(_ app: AppID, now: Duration) -> [AppAction] {
        let actions = nodes[app].machine.memoryWarning()
        guard !actions.isEmpty else { return [] }
        absorb(actions, of: app, now: now)
        return finish(now: now)
    }

    /// Whether the launch of the app waits for memory, after ``Action/askForMemory``.
    public func waitsForMemory(_ app: AppID) -> Bool {
        memoryAdmission.isAsked(app) && nodes[app].machine.isWaitingForPermission
    }

    /// Whether its launch is a person's, or on behalf of one, into the foreground.
    public func launchesIntoForeground(_ app: AppID) -> Bool { nodes[app].machine.isToBeLaunchedIntoForeground }

    /// There is memory for the app: its launch goes on.
    public func admitMemory(_ app: AppID, now: Duration) -> [AppAction] {
        guard memoryAdmission.isAsked(app) else { return [] }
        memoryAdmission.admit(app)
        tryLaunch(app, isFirst: false, now: now)
        return finish(now: now)
    }

    /// There never will be: its launch comes to nothing.
    public func refuseMemory(_ app: AppID, now: Duration) -> [AppAction] {
        guard waitsForMemory(app) else { return [] }
        absorb(nodes[app].machine.refuseLaunch(), of: app, now: now)
        return finish(now: now)
    }

    /// Why the app may not be ended for its memory; nil: it may.
    public func memoryProtection(_ app: AppID, lastResort: Bool) -> MemoryLadder.Protection? {
        let machine = nodes[app].machine
        if machine.rules.eviction == .never { return .never }
        if machine.isTraced { return .traced }
        if machine.transition != nil || nodes[app].pendingStop != nil { return .busy }
        if machine.state == .active, !lastResort { return .active }
        // One that sleeps misses what is gone as soon as it wakes: it has what it requires launched then.
        if isRequired(app) { return .required }
        return nil
    }
}

extension AppMachine {
    /// The app hears that memory is short, unless it is stopped, not ready yet, or about to end.
    func memoryWarning() -> [Action] {
        guard case .running(let running) = phase, running.state != .suspended,
            running.edge?.transition != .suspending
        else { return [] }
        return [.tell(.didReceiveMemoryWarning)]
    }

    var isToBeLaunchedIntoForeground: Bool { launchInForeground }
}
