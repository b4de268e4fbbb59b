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
/// Only ``mayRun`` decides whether an app may be launched or woken here. Every request passes ``requireOwner(for:)``,
/// every other launch or restart checks ``mayRun``, and while ``mayRun`` is false, an app that runs is suspended
/// whatever its goal is (``effectiveGoal``).
extension AppMachine {
    /// Whether the app may be launched and woken on this machine.
    public var mayRun: Bool { rules.owner == .none || ownership != .none }

    /// When the ownership ends unless it is renewed; nil for never.
    public internal(set) var ownedUntil: Duration? {
        get { lease }
        set { lease = newValue }
    }

    /// Whether the app only stands by: this machine does not own it, but it is launched here, to be suspended.
    public var standsBy: Bool { !mayRun && isAlive }

    /// Refuses a request that would launch or wake an app which this machine does not own.
    func requireOwner(for request: Request) throws(RequestError) {
        switch request {
        case .start, .restart, .foreground, .background, .resume, .wake, .scene(_, .active), .scene(_, .background),
            .interrupt(begin: true):
            try requireOwner()
        case .stop, .suspend, .forceSuspend, .hold, .release, .mode, .cover, .interrupt(begin: false), .forceQuit,
            .evict, .reset, .own, .runUnowned, .disown, .standby, .scene(_, .unattached):
            break
        }
    }

    func requireOwner() throws(RequestError) {
        guard !mayRun else { return }
        throw RequestError(
            "is not owned by this machine (owner = \"external\"), so nothing launches or wakes it: ‘torpor own’ says "
                + "that it is; ‘torpor start --force’ runs it all the same"
        )
    }

    mutating func own(until: Duration?) throws(RequestError) {
        guard rules.owner == .external else {
            throw RequestError(
                "needs no owner: write owner = \"external\" into its configuration, then ‘torpor apply --restart’"
            )
        }
        ownership = .owned
        ownedUntil = until
    }

    /// Ends the ownership. A running app goes to the background, as before any suspension, and is then suspended, even
    /// if tasks, holds or modes keep it awake. A launch that has not begun is cancelled.
    mutating func disown(into actions: inout [Action], now: Duration) {
        ownership = .none
        ownedUntil = nil
        comesBack = false
        guard rules.owner == .external else { return }
        switch phase {
        case .notRunning:
            cancelLaunch()
        case .launching where rules.isOneshot:
            // A oneshot does all its work while it is launching, when an app cannot be suspended: terminate it.
            terminate(.evicted, politely: true, into: &actions, now: now)
        case .launching, .running:
            setGoal(.suspended)
            isForced = true
            walk(into: &actions, now: now)
        case .terminating(var terminating):
            terminating.relaunch = nil
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
