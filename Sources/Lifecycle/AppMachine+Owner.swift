// SPDX-License-Identifier: Apache-2.0

/// Whether this machine owns an app whose rules say that it needs an owner.
public enum Ownership: UInt8, Sendable, Hashable, CaseIterable {
    /// Another machine may own the app: here, nothing launches or wakes it.
    case none = 0
    /// This machine owns the app.
    case owned = 1
    /// This machine does not own the app, but a user runs it all the same (`--force`), until it has ended.
    case forced = 2
}

/// An app that several machines are configured to run; only the machine that owns it may run it (`owner =
/// "external"`).
///
/// ``mayRun`` is the only answer to the question whether an app may be launched or woken here. All requests pass
/// ``requireOwner(for:now:)``; all other launches and restarts ask ``mayRun(at:)``; and while ``mayRun`` is false, the
/// goal that the app moves to is at most `suspended` (``effectiveGoal``).
extension AppMachine {
    /// Whether the app may be launched and woken on this machine.
    public var mayRun: Bool { rules.owner == .none || ownership != .none }

    /// Whether the app may be launched and woken on this machine now. Other than in ``mayRun``, an ownership whose time
    /// is over does not count, even if its deadline was not handled yet.
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

    /// Whether the app only stands by: this machine does not own it, but it is launched here, to be suspended.
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

    /// A user takes the decision to run the app, which this machine does not own.
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

    /// Ends the ownership of an app whose processes are gone, so that nothing has to be done about them.
    mutating func disownUnseen(now: Duration) {
        guard hasProcess else {
            // Without a process, no action follows.
            var actions: [Action] = []
            return disown(into: &actions, now: now)
        }
        ownership = .none
        ownedUntil = nil
    }

    /// Ends the ownership. An app that runs goes to the background, as with any suspension, and is then suspended
    /// whatever keeps it awake. A launch that has not begun is cancelled. One that has begun for the owner is ended:
    /// the app could be suspended only when it is ready.
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
            // The launch of a oneshot is its whole run.
            terminate(.evicted, politely: true, into: &actions, now: now)
            letScenesGo()
            setGoal(.notRunning)
        case .launching, .running:
            if case .running(var running) = phase {
                // What other processes did to it before does not count.
                running.stoppedAgain = 0
                phase = .running(running)
            }
            setGoal(.suspended)
            isForced = true
            walk(into: &actions, now: now)
        case .terminating(var terminating):
            if terminating.relaunch != nil {
                terminating.relaunch = nil
                // A user wanted it launched again, so it does not count as stopped where it is owned next.
                terminating.stoppedBy = .evicted
            }
            phase = .terminating(terminating)
            if goal != .notRunning { setGoal(.notRunning) }
        }
    }

    /// If the app has ended and no launch is planned, ends a user's decision to run it although this machine does not
    /// own it (`--force`).
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

    /// Launches the app only to be suspended.
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
