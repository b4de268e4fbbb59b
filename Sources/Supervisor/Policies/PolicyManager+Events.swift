// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import EventLoop
package import Lifecycle
import Linux
import MemoryPressure
import Policies
import PolicyHost
import TorporPolicyABI

/// Sends events to policies.
extension PolicyManager {
    private func post(
        _ kind: torpor_policy_event_kind,
        _ app: AppRuntime? = nil,
        from: UInt32 = 0,
        to: UInt32 = 0,
        reason: UInt32 = 0,
        delay: Duration? = nil
    ) {
        guard chain.wants(kind) else { return }
        var event = PolicyChain.event(kind, at: supervisor.loop.now)
        event.app = app.map { UInt32(clamping: $0.id) } ?? UInt32.max
        event.from = from
        event.to = to
        event.reason = reason
        event.delay = delay?.microseconds ?? Int64.min
        chain.post(event)
    }

    /// Marks the entries of changed apps and of their dependencies as out of date in the view that policies read. The
    /// entries of dependencies change too, because they say whether apps use them.
    package func touched(_ apps: [AppRuntime]) {
        for app in apps {
            unseen.insert(app.id)
            unseen.formUnion(supervisor.coordinator.requirements(of: app.id))
        }
    }

    package func entered(_ app: AppRuntime, from: AppState, to: AppState) {
        if to == .active { app.sentAwayBy = nil }
        post(TORPOR_EVENT_STATE, app, from: from.policyCode, to: to.policyCode)
    }

    func timeUsed(_ app: AppRuntime) { post(TORPOR_EVENT_TIME_USED, app) }

    package func ended(_ app: AppRuntime, _ ending: Ending) {
        if supervisor.coordinator.machine(app.id).goal == .notRunning { app.sentAwayBy = nil }
        var delay: Duration?
        if case .restart(let after) = ending.next { delay = after }
        post(TORPOR_EVENT_ENDED, app, reason: Optional(ending.reason).policyCode, delay: delay)
    }

    /// Called when a user or an event has requested a state for an app. From now on, policies may again advise about
    /// the app without limits.
    ///
    /// - Parameter isRestart: whether only a new run was requested, which goes where the app was sent before.
    package func asked(_ app: AppRuntime, from: Goal, to: Goal, isRestart: Bool = false) {
        if !isRestart { app.sentAwayBy = nil }
        askedMeanwhile.insert(app.id)
        damping.forget(app.id)
        damped[app.id] = nil
        post(TORPOR_EVENT_GOAL, app, from: from.policyCode, to: to.policyCode)
    }

    /// Called when the core asks whether an app may be launched. Asks the policies. If no policy decides about
    /// launches, admits the launch.
    func mayLaunch(_ app: AppRuntime, _ reason: LaunchReason) {
        putOff[app.id] = nil
        app.heldBack = nil
        post(TORPOR_EVENT_LAUNCH, app, reason: reason.policyCode)
        if app.skipsAdmission != true {
            if chain.isGoverned(TORPOR_EVENT_LAUNCH) { return }
            if mayBeGoverned {
                asksAnew = true
                return
            }
        }
        // Keep `skipsAdmission` if the app waits for free memory: the core asks about memory next, and the app must
        // skip that wait too.
        if app.specification.memoryNeeded == nil { app.skipsAdmission = nil }
        let id = app.id
        // Answer in a later turn of the event loop: the core calls this function while it still handles an event, and
        // must not get the answer before it has finished.
        supervisor.loop.later { [weak self] in self?.admit(id) }
    }

    func heard(_ app: AppRuntime) {
        guard view.isPresent(app.id) else { return }
        lastHeartbeats[app.id] = supervisor.loop.now.microseconds
        unseen.insert(app.id)
    }

    /// Called after a change of the configuration: enters the changed apps into the data that policies see, and tells
    /// the policies that the apps have changed.
    func appsChanged() {
        for app in supervisor.apps where view.name(app.id) != app.name || view.tags(app.id) != app.specification.tags {
            let times = view.isPresent(app.id) && view.name(app.id) == app.name
            if !times { damping.forget(app.id) }
            show(app)
        }
        unseen.formUnion(supervisor.apps.map(\.id))
        post(TORPOR_EVENT_APPS)
    }

    package func added(_ app: AppRuntime) {
        damping.forget(app.id)
        show(app)
        post(TORPOR_EVENT_APPS)
    }

    package func forget(_ app: AppRuntime) {
        let app = app.id
        view.remove(app)
        unseen.remove(app)
        inUse.remove(app)
        damping.forget(app)
        putOff[app] = nil
        damped[app] = nil
        lastHeartbeats[app] = nil
        // Policies get no event about the end of an app that was removed. Tell them that the set of apps has changed,
        // because apps that the removed app required may not be needed any longer.
        post(TORPOR_EVENT_APPS)
    }

    /// Tells the policies that the memory pressure of the machine has changed.
    package func pressure(from: MemoryLevel, to: MemoryLevel) {
        view.system.pressure = to.policyCode
        post(TORPOR_EVENT_PRESSURE, from: from.policyCode, to: to.policyCode)
    }

    /// The name of the policy that decides the order in which apps are evicted; nil if there is none.
    var evictionPolicy: String? { chain.governor(of: TORPOR_EVENT_EVICTION) }

    /// Asks the policies in which order apps would be evicted if memory were short. `completion` gets the apps in this
    /// order, each with the policy's reason; it gets no apps if no policy decides the order.
    package func evictionOrder(_ completion: @escaping ([(app: AppRuntime, policy: String, reason: String)]) -> Void) {
        chain.ask(PolicyChain.event(TORPOR_EVENT_EVICTION, at: supervisor.loop.now)) { [weak self] decisions in
            guard let self else { return completion([]) }
            let ranked = decisions.filter { $0.advice.kind == TORPOR_ADVISE_ORDER.rawValue && !$0.onlyAdvises }
                .sorted { $0.advice.value < $1.advice.value }
            var seen: Set<UInt32> = []
            completion(
                ranked.compactMap { decision in
                    guard let app = self.app(decision.advice.app), seen.insert(decision.advice.app).inserted else {
                        return nil
                    }
                    guard self.supervisor.coordinator.mayEnd(app.id) else { return nil }
                    return (app, decision.policy, decision.advice.reason)
                }
            )
        }
    }

    /// The app with this index in the view that policies read; nil if there is none. Advice names apps by this index.
    package func app(_ place: UInt32) -> AppRuntime? {
        guard let place = Int(exactly: place), view.isPresent(place) else { return nil }
        return supervisor.apps[place]
    }
}
