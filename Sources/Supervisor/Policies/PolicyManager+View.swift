// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import EventLoop
import EventSources
package import Lifecycle
import Linux
import Policies
import TorporPolicyABI

/// Updates the data about apps that policies read (the view).
extension PolicyManager {
    /// Adds an app to the view. If the app is there already, updates its tags.
    func show(_ app: AppRuntime) {
        if !view.put(app.id, name: app.name, tags: app.specification.tags) {
            supervisor.log.warning("\(app.name) is not shown to policies: there is no room for more apps")
        }
        unseen.insert(app.id)
    }

    /// Updates the entries of the view that are out of date.
    func refresh() {
        let now = supervisor.loop.now
        view.system.now = now.microseconds
        view.system.realtime = Clock.realtimeMicroseconds()
        for id in unseen where view.isPresent(id) {
            let app = supervisor.apps[id]
            fill(app, now: now)
            if app.times.isInUse { inUse.insert(id) } else { inUse.remove(id) }
        }
        for id in inUse { view[id].last_use = now.microseconds }
        unseen.removeAll(keepingCapacity: true)
        askedMeanwhile.removeAll(keepingCapacity: true)
    }

    private func fill(_ app: AppRuntime, now: Duration) {
        let machine = supervisor.coordinator.machine(app.id)
        let never = StateTimes.never
        view[app.id].flags = flags(app, machine)
        view[app.id].state = machine.state.policyCode
        view[app.id].edge = machine.transition.policyCode
        view[app.id].goal = machine.goal.policyCode
        view[app.id].incarnation = machine.incarnation
        view[app.id].priority = Int32(clamping: app.specification.priority)
        view[app.id].last_reason = machine.lastEnding.policyCode
        view[app.id].state_since = app.times.since
        view[app.id].last_use = app.times.lastUse
        view[app.id].launched_at = app.run.tree == nil ? never : app.run.launchedAt?.microseconds ?? never
        view[app.id].tasks = UInt32(clamping: machine.tasks.count)
        view[app.id].holds = UInt32(
            clamping: machine.holds.count + machine.modes.count + (machine.awaitsVerdict ? 1 : 0)
        )
        view[app.id].mail = UInt32(clamping: supervisor.mailboxes.waiting(for: app).count)
        view[app.id].unhandled = UInt32(clamping: supervisor.mailboxes.unhandled.count(of: app))
        view[app.id].grant_ends = never
        view[app.id].next_restart = never
        for deadline in machine.deadlines {
            if deadline.kind == .backgroundTime { view[app.id].grant_ends = deadline.at.microseconds }
            if deadline.kind == .restart { view[app.id].next_restart = deadline.at.microseconds }
        }
        // If the app has used up its background time, show the time when it entered the background as the end of that
        // time. Because this time is in the past, a policy that was not asked at the real end can still see that the
        // background time is over.
        let isUsedUp = machine.state == .background && machine.transition == nil && machine.rules.backgroundTime != nil
        if isUsedUp, view[app.id].grant_ends == never { view[app.id].grant_ends = app.times.since.3 }
        view[app.id].restarts_in_window = UInt32(clamping: machine.restartsInWindow(now: now))
        view[app.id].restart_limit = UInt32(clamping: machine.rules.backoff.limit)
        view[app.id].last_heartbeat = lastHeartbeats[app.id] ?? never
        if app.run.tree == nil { AppMeasurement.clear(&view[app.id]) }
    }

    /// Whether nothing would wake the app for those that use it. Apps that require it wake it, but if it listens, other
    /// programs may be its clients: without `wake_on_connect` they would wait for an answer until such an app wakes.
    package func isNeverWoken(_ app: AppRuntime) -> Bool {
        guard !app.specification.isWokenByEvents(exceptAt: supervisor.wakes.sockets.unbound(of: app)) else {
            return false
        }
        guard supervisor.coordinator.hasDependents(app.id) else { return true }
        return app.run.tree.flatMap { measurements.measurement(of: app.id, $0) }?.listens ?? false
    }

    private func flags(_ app: AppRuntime, _ machine: AppMachine) -> UInt32 {
        let all: [(Bool, UInt32)] = [
            (true, TORPOR_APP_PRESENT), (machine.failed, TORPOR_APP_FAILED),
            (machine.rules.isOneshot, TORPOR_APP_ONESHOT),
            (machine.rules.exitsOnSuspend, TORPOR_APP_EXITS_ON_SUSPEND),
            (machine.rules.eviction == .never, TORPOR_APP_EVICT_NEVER),
            (machine.isEvictedWithoutNotice, TORPOR_APP_EVICT_KILL),
            (supervisor.coordinator.isRequired(app.id), TORPOR_APP_REQUIRED),
            (!machine.isAlive && !machine.failed && !machine.allowsLaunchByEvent, TORPOR_APP_BY_PERSON_ONLY),
            (machine.deadlines.contains { $0.kind == .watchdog }, TORPOR_APP_WATCHED),
            (machine.isTraced, TORPOR_APP_TRACED), (machine.interruptions > 0, TORPOR_APP_INTERRUPTED),
            (isNeverWoken(app), TORPOR_APP_NEVER_WOKEN),
            (app.sentAwayBy != nil, TORPOR_APP_SENT_AWAY),
            (app.run.wasWokenUntraced, TORPOR_APP_WOKEN_UNTRACED),
        ]
        return all.reduce(0) { $1.0 ? $0 | $1.1 : $0 }
    }
}

extension AppState {
    var policyCode: UInt32 {
        switch self {
        case .notRunning: TORPOR_STATE_NOT_RUNNING.rawValue
        case .inactive: TORPOR_STATE_INACTIVE.rawValue
        case .active: TORPOR_STATE_ACTIVE.rawValue
        case .background: TORPOR_STATE_BACKGROUND.rawValue
        case .suspended: TORPOR_STATE_SUSPENDED.rawValue
        }
    }
}

extension Goal {
    var policyCode: UInt32 {
        switch self {
        case .notRunning: TORPOR_STATE_NOT_RUNNING.rawValue
        case .inactive: TORPOR_STATE_INACTIVE.rawValue
        case .active: TORPOR_STATE_ACTIVE.rawValue
        case .background: TORPOR_STATE_BACKGROUND.rawValue
        case .suspended: TORPOR_STATE_SUSPENDED.rawValue
        }
    }

    /// The state with this number in the header file for policies; nil if no state has it.
    package init?(policyCode: UInt32) {
        guard let goal = Goal.allCases.first(where: { $0.policyCode == policyCode }) else { return nil }
        self = goal
    }
}

extension Transition? {
    var policyCode: UInt32 {
        switch self {
        case nil: TORPOR_EDGE_NONE.rawValue
        case .launching: TORPOR_EDGE_LAUNCHING.rawValue
        case .activating: TORPOR_EDGE_ACTIVATING.rawValue
        case .deactivating: TORPOR_EDGE_DEACTIVATING.rawValue
        case .enteringBackground: TORPOR_EDGE_ENTERING_BACKGROUND.rawValue
        case .enteringForeground: TORPOR_EDGE_ENTERING_FOREGROUND.rawValue
        case .suspending: TORPOR_EDGE_SUSPENDING.rawValue
        case .resuming: TORPOR_EDGE_RESUMING.rawValue
        case .terminating: TORPOR_EDGE_TERMINATING.rawValue
        }
    }
}

extension TerminationReason? {
    /// The reason's number in the header file for policies. It is the reason's number in records plus 1; a test checks
    /// this.
    var policyCode: UInt32 {
        guard let self else { return TORPOR_REASON_NONE.rawValue }
        return UInt32(self.number) + 1
    }
}

extension LaunchReason {
    var policyCode: UInt32 {
        switch self {
        case .user: TORPOR_LAUNCH_BY_USER.rawValue
        case .boot: TORPOR_LAUNCH_AT_BOOT.rawValue
        case .restart: TORPOR_LAUNCH_AS_RESTART.rawValue
        case .dependency: TORPOR_LAUNCH_FOR_DEPENDENT.rawValue
        case .event: TORPOR_LAUNCH_FOR_EVENT.rawValue
        case .policy: TORPOR_LAUNCH_BY_POLICY.rawValue
        }
    }
}
