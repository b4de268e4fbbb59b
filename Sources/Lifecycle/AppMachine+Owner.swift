// SPDX-License-Identifier: Apache-2.0

/// Whether this machine owns an app whose rules say that it needs an owner.
public enum Ownership: UInt8, Sendable, Hashable, CaseIterable {
    /// Another machine may own the app, so nothing launches or wakes the app on this machine.
    case none = 0
    /// This machine owns the app.
    case owned = 1
    /// This machine does not own the app, but a user has decided to run it here all the same (`--force`). This holds
    /// until the app has ended.
    case forced = 2
}

/// Ownership of an app that several machines are configured to run (`owner = "external"`): only the machine that owns
/// the app may run it.
///
/// ``mayRun`` is the only answer to the question whether an app may be launched or woken here. All requests pass
/// ``requireOwner(for:now:)``; all other launches and restarts ask ``mayRun(at:)``; and while ``mayRun`` is false, the
/// goal that the app moves to is at most `suspended` (``effectiveGoal``).
extension AppMachine {
    /// Whether the app may be launched and woken on this machine.
    public var mayRun: Bool { rules.owner == .none || ownership != .none }

    /// Whether the app may be launched and woken on this machine now. Unlike ``mayRun``, this is false once the time
    /// of the ownership is over, even if its deadline was not handled yet.
    public func mayRun(at now: Duration) -> Bool { mayRun && !isOwnershipOver(at: now) }

    /// Whether the time of the ownership is over.
    public func isOwnershipOver(at now: Duration) -> Bool {
        guard let until = ownedUntil, rules.owner == .external else { return false }
        return until <= now
    }

    /// When the ownership ends unless it is renewed; nil for never.
    public internal(set) var ownedUntil: Duration? {
        get { lease }
        set { lease = newValue }
    }

    /// Whether the app is on standby: it is launched here only to be suspended, because this machine does not own it.
    public var standsBy: Bool { !mayRun && isAlive }

    /// Refuses a request that would launch or wake an app which this machine does not own.
    func requireOwner(for request: Request, now: Duration) throws(RequestError) {
        switch request {
        case .start, .restart, .foreground, .background, .resume, .wake, .scene(_, .active), .scene(_, .background),
            .interrupt(begin: true):
            try requireOwner(now: now)
        case .stop, .suspend, .forceSuspend, .hold, .release, .mode, .cover, .interrupt(begin: false), .forceQuit,
            .evict, .reset, .own, .runUnowned, .disown, .standby, .scene(_, .unattached):
            break
        }
    }

    func requireOwner(now: Duration) throws(RequestError) {
        guard !mayRun(at: now) else { return }
        throw RequestError(
            "is not owned by this machine (owner = \"external\"), so nothing launches or wakes it: ‘torpor own’ says "
                + "that it is; ‘torpor start --force’ runs it all the same"
        )
    }

    mutating func own(until: Duration?, renews: Bool, now: Duration) throws(RequestError) {
        guard rules.owner == .external else {
            throw RequestError(
                "needs no owner: write owner = \"external\" into its configuration, then ‘torpor apply --restart’"
            )
        }
        if renews, ownership != .owned || isOwnershipOver(at: now) {
            throw RequestError(
                "is not owned by this machine, so there is nothing to renew: ‘torpor own’ without --renew owns it"
            )
        }
        ownership = .owned
        ownedUntil = until
    }

    /// Records that a user decided (`--force`) to run the app although this machine does not own it. Does nothing if
    /// the app may run here anyway.
    mutating func runUnowned(now: Duration) {
        guard !mayRun(at: now) else { return }
        ownership = .forced
        ownedUntil = nil
    }

    /// Ends an ownership whose time is over.
    mutating func endOverdueOwnership(into actions: inout [Action], now: Duration) {
        guard let until = ownedUntil, until <= now else { return }
        if rules.owner == .external { actions.append(.report(.ownershipExpired)) }
        disown(into: &actions, now: now)
    }

    /// Ends the ownership of an app whose process no longer exists, even if the phase does not show that yet. Causes no
    /// actions, because there is nothing to suspend or terminate.
    mutating func disownUnseen(now: Duration) {
        guard hasProcess else {
            // Without a process, `disown` produces no actions.
            var actions: [Action] = []
            return disown(into: &actions, now: now)
        }
        ownership = .none
        ownedUntil = nil
    }

    /// Ends the ownership. A running app goes to the background as before any suspension, and is then suspended even if
    /// a task, hold, mode or lock would keep it awake. A launch that has not begun is cancelled. An app that is being
    /// launched to run here is terminated, because it cannot be suspended before it is ready.
    mutating func disown(into actions: inout [Action], now: Duration) {
        let wasOwned = mayRun
        ownership = .none
        ownedUntil = nil
        comesBack = false
        guard rules.owner == .external else { return }
        switch phase {
        case .notRunning:
            cancelLaunch()
        case .launching where wasOwned || rules.isOneshot:
            // A oneshot cannot be suspended, because its whole run counts as its launch. So terminate it.
            terminate(.evicted, politely: true, into: &actions, now: now)
            letScenesGo()
            setGoal(.notRunning)
        case .launching, .running:
            if case .running(var running) = phase {
                // Count again from 0 how often another process continues the suspended app, because the earlier cases
                // happened while this machine still owned the app.
                running.stoppedAgain = 0
                phase = .running(running)
            }
            setGoal(.suspended)
            isForced = true
            walk(into: &actions, now: now)
        case .terminating(var terminating):
            if terminating.relaunch != nil {
                terminating.relaunch = nil
                // A launch was requested after the termination began, so an earlier stop by a user no longer applies.
                // If the app were recorded as stopped, events would not launch it once this machine owns it again.
                terminating.stoppedBy = .evicted
            }
            phase = .terminating(terminating)
            if goal != .notRunning { setGoal(.notRunning) }
        }
    }

    /// Ends a user's decision (`--force`) to run the app although this machine does not own it, if the app has ended
    /// and no launch is planned.
    mutating func endForcedRun() {
        if ownership == .forced, !isAlive, !isWaitingToLaunch { ownership = .none }
    }

    /// Cancels a restart or launch that has not begun.
    mutating func cancelLaunch() {
        guard isWaitingToLaunch else { return }
        edgeDeadline = nil
        scenes = nil
        phase = .notRunning(.resting)
        setGoal(.notRunning)
    }

    /// Launches the app, or lets a planned launch begin, only in order to suspend the app (standby). Refused if the app
    /// cannot be suspended, is terminating, or runs with a goal other than `suspended`.
    mutating func standBy(into actions: inout [Action], now: Duration) throws(RequestError) {
        if rules.exitsOnSuspend || rules.isOneshot {
            let key = rules.isOneshot ? "type = \"oneshot\"" : "exits_on_suspend"
            throw RequestError("cannot stand by (\(key)): it is launched where it is owned")
        }
        if transition == .terminating { throw RequestError("is ending: wait until it has ended") }
        guard !isAlive || goal == .suspended else {
            throw RequestError("is \(state.rawValue): ‘torpor suspend’ suspends it")
        }
        if case .notRunning(.resting) = phase { start(foreground: false, reason: .user, into: &actions, now: now) }
        if goal != .suspended { setGoal(.suspended) }
    }
}
