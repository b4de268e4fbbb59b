// SPDX-License-Identifier: Apache-2.0

/// Handles memory shortage: warnings to apps, launches that wait for memory, and protection from eviction.
extension Coordinator {
    /// Sends an app didReceiveMemoryWarning; does nothing if the app cannot receive it now.
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

    /// Whether the pending or last launch of the app is into the foreground.
    public func launchesIntoForeground(_ app: AppID) -> Bool { nodes[app].machine.isToBeLaunchedIntoForeground }

    /// Continues a launch that waited for memory.
    public func admitMemory(_ app: AppID, now: Duration) -> [AppAction] {
        guard memoryAdmission.isAsked(app) else { return [] }
        memoryAdmission.admit(app)
        tryLaunch(app, isFirst: false, now: now)
        return finish(now: now)
    }

    /// Cancels a launch for which the machine will never have enough memory.
    public func refuseMemory(_ app: AppID, now: Duration) -> [AppAction] {
        guard waitsForMemory(app) else { return [] }
        absorb(nodes[app].machine.refuseLaunch(), of: app, now: now)
        return finish(now: now)
    }

    /// Why the app may not be terminated to free memory; nil if it may. An active app may be terminated only if
    /// `lastResort` is true.
    public func memoryProtection(_ app: AppID, lastResort: Bool) -> MemoryLadder.Protection? {
        let machine = nodes[app].machine
        if machine.rules.eviction == .never { return .never }
        if machine.isTraced { return .traced }
        if machine.transition != nil || nodes[app].pendingStop != nil { return .busy }
        if machine.state == .active, !lastResort { return .active }
        // A suspended dependent does not count: when it wakes, torpord relaunches the apps that it requires.
        if isRequired(app) { return .required }
        return nil
    }
}

extension AppMachine {
    /// The action that sends the memory warning; none if the app is suspended, not ready yet, or terminating.
    func memoryWarning() -> [Action] {
        guard case .running(let running) = phase, running.state != .suspended,
            running.edge?.transition != .suspending
        else { return [] }
        return [.tell(.didReceiveMemoryWarning)]
    }

    var isToBeLaunchedIntoForeground: Bool { launchInForeground }
}
