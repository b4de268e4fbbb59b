// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import EventSources
package import Lifecycle
import Linux
import Policies
package import PolicyHost
import Processes
package import TorporPolicyABI

/// Follows the advice of policies, or refuses to follow it.
extension PolicyManager: PolicyChainDelegate {
    package func take(_ decision: PolicyDecision) -> CounselOutcome {
        let advice = decision.advice
        guard let app = app(advice.app) else {
            return refuse(decision, nil, "there is no app in place \(advice.app)")
        }
        switch advice.kind {
        case TORPOR_ADVISE_GOAL.rawValue:
            guard let goal = Goal(policyCode: advice.value) else {
                return refuse(decision, app, "there is no state number \(advice.value)")
            }
            return send(app, to: goal, decision)
        case TORPOR_ADVISE_GRANT.rawValue:
            return follow(.grant(.microseconds(advice.time)), app, decision, "is granted \(Self.text(advice.time))")
        case TORPOR_ADVISE_RESTART.rawValue:
            guard isAnswer(decision, to: TORPOR_EVENT_ENDED) else { break }
            let time = Duration.microseconds(advice.time)
            return follow(.restart(after: time), app, decision, "starts again in \(Self.text(advice.time))")
        case TORPOR_ADVISE_GIVE_UP.rawValue:
            guard isAnswer(decision, to: TORPOR_EVENT_ENDED) else { break }
            return follow(.giveUp, app, decision, "stays down until ‘torpor start’ or ‘torpor reset’")
        case TORPOR_ADVISE_ADMIT.rawValue:
            guard isAnswer(decision, to: TORPOR_EVENT_LAUNCH) else { break }
            if !decision.onlyAdvises { admit(app.id) }
            return .idle
        case TORPOR_ADVISE_DELAY.rawValue:
            guard isAnswer(decision, to: TORPOR_EVENT_LAUNCH) else { break }
            return delay(app, decision)
        case TORPOR_ADVISE_REFUSE.rawValue:
            guard isAnswer(decision, to: TORPOR_EVENT_LAUNCH) else { break }
            let before = app.run.refusal
            if !decision.onlyAdvises { app.run.refusal = Self.because(decision) }
            let outcome = follow(.refuse, app, decision, "is not launched")
            // If the core has refused the advice, the app is launched. Then restore the earlier text in `refusal`:
            // otherwise the app's next ending would be reported with the text of this advice.
            if case .refused = outcome { app.run.refusal = before }
            if outcome == .taken, decision.event.reason == LaunchReason.event.policyCode {
                supervisor.wakes.refusedByPolicy(app)
            }
            return outcome
        case TORPOR_ADVISE_PROFILE.rawValue:
            guard let state = Goal(policyCode: advice.value) else {
                return refuse(decision, app, "there is no state number \(advice.value)")
            }
            return applyProfile(of: state, to: app, decision)
        case TORPOR_ADVISE_ORDER.rawValue:
            return refuse(decision, app, "no order of eviction was asked for")
        default:
            return refuse(decision, app, "there is no advice number \(advice.kind)")
        }
        return refuse(decision, app, "it does not answer what was asked")
    }

    package func policiesAnswered(_ events: [torpor_policy_event], _ decisions: [(PolicyDecision, CounselOutcome)]) {
        for event in events where event.kind == TORPOR_EVENT_LAUNCH.rawValue {
            guard let app = app(event.app), putOff[app.id] == nil else { continue }
            admit(app.id)
        }
        trace.tell(events, decisions, view)
    }

    package func policy(_ slot: PolicySlot, changed sentence: String, isTrouble: Bool) {
        let text = "policy \(slot.settings.name) \(sentence)"
        supervisor.note(.policyChanged, text: text, level: isTrouble ? .warning : .info)
        goOnWhenLoaded()
        let settled = whenSettled.filter { $0.name == slot.settings.name }
        whenSettled.removeAll { $0.name == slot.settings.name }
        for waiter in settled { waiter.work() }
    }

    package func policy(_ slot: PolicySlot, wrote line: String) {
        supervisor.log.info("policy \(slot.settings.name): \(line)")
    }

    package func policiesChanged() {
        watchClock()
        let supervisor = supervisor
        let asks = supervisor.coordinator.asksForAdmission
        // A policy that is being loaded may be one that decides about launches: until that is known, launches that wait
        // for a policy go on waiting. Then the policies are asked about them anew.
        if asks, mayBeGoverned {
            asksAnew = true
            return
        }
        let isNeeded = chain.isGoverned(TORPOR_EVENT_LAUNCH) || chain.isRecorded
        if isNeeded, asksAnew {
            for (app, reason) in supervisor.coordinator.waitingForAdmission { mayLaunch(supervisor.apps[app], reason) }
        }
        asksAnew = false
        guard isNeeded != asks else { return }
        supervisor.uninterrupted {
            supervisor.perform(supervisor.coordinator.setAsksForAdmission(isNeeded, now: supervisor.loop.now))
        }
    }

    /// Whether a policy that may turn out to decide about launches is being loaded.
    var mayBeGoverned: Bool { chain.slots.contains { $0.state == .loading && !$0.settings.onlyAdvises } }

    // MARK: One by one

    private func send(_ app: AppRuntime, to goal: Goal, _ decision: PolicyDecision) -> CounselOutcome {
        if supervisor.coordinator.isFollowed(.goal(goal), of: app.id) { return .idle }
        let now = supervisor.loop.now
        if !decision.onlyAdvises {
            if askedMeanwhile.contains(app.id) {
                return refuse(decision, app, "another request for it came first")
            }
            if let time = damping.heldUntil(app.id, goal: decision.advice.value, now: now) {
                askAgain(decision.event, app, at: time)
                tell(
                    decision,
                    app,
                    "has reversed its advice for \(app.name) too often: torpord does not follow it for a while"
                )
                return .damped
            }
        }
        let what = goal == .notRunning ? "is ended" : "is sent to \(goal.rawValue)"
        let endsIt = goal == .notRunning && !decision.onlyAdvises
        if endsIt { app.isEndedByPolicy = true }
        let (machine, lastAdvice) = (supervisor.coordinator.machine(app.id), app.lastAdvice)
        let before = machine.goal
        // Set before callers learn of the new goal.
        if !decision.onlyAdvises { app.lastAdvice = (decision.policy, machine.goalGeneration) }
        let outcome = follow(.goal(goal), app, decision, what)
        if endsIt, outcome != .taken { app.isEndedByPolicy = nil }
        if outcome != .taken { app.lastAdvice = lastAdvice }
        if outcome == .taken {
            damping.sent(app.id, goal: decision.advice.value, now: now)
            sent(app, from: before, to: goal, by: decision.policy)
        }
        return outcome
    }

    /// Notes which policy has sent an app away from the foreground, or that it was brought back.
    private func sent(_ app: AppRuntime, from before: Goal, to goal: Goal, by policy: String) {
        switch goal {
        case .background, .suspended: if before == .active || before == .inactive { app.sentAwayBy = policy }
        case .active, .inactive, .notRunning: app.sentAwayBy = nil
        }
        supervisor.record(app)
    }

    /// Asks the policy about this event again, at `time`.
    private func askAgain(_ event: torpor_policy_event, _ app: AppRuntime, at time: Duration) {
        guard damped[app.id] == nil else { return }
        let id = app.id
        damped[id] = try? supervisor.loop.timer { [weak self] in
            self?.damped[id] = nil
            self?.chain.post(event)
        }
        damped[id]?.arm(at: time)
    }

    /// Makes the core follow the advice, and reports that.
    private func follow(
        _ advice: Advice,
        _ app: AppRuntime,
        _ decision: PolicyDecision,
        _ what: String
    ) -> CounselOutcome {
        if decision.onlyAdvises {
            tell(decision, app, "would say that \(app.name) \(what)\(Self.reason(decision)) (mode = \"advise\")")
            return .told
        }
        let now = supervisor.loop.now
        if case .grant = advice, isRepetitive(decision, app) { return .damped }
        do throws(RequestError) {
            let actions = try supervisor.coordinator.advise(advice, of: app.id, now: now)
            supervisor.note(app, .advised, text: "\(what): \(Self.because(decision))", reason: decision.policy)
            supervisor.uninterrupted { [supervisor] in supervisor.perform(actions) }
        } catch {
            return refuse(decision, app, "it \(error)")
        }
        told[Self.key(decision)] = nil
        return .taken
    }

    /// Whether policies give advice of this kind about the app too often. If so, schedules another question to the
    /// policy for the time when such advice is permitted again. If not, counts the advice.
    private func isRepetitive(_ decision: PolicyDecision, _ app: AppRuntime) -> Bool {
        let now = supervisor.loop.now
        let key = UInt64(decision.advice.app) << 32 | UInt64(decision.advice.kind)
        if let time = repetition.heldUntil(key, now: now) {
            askAgain(decision.event, app, at: time)
            return true
        }
        repetition.count(key, now: now)
        return false
    }

    /// Continues a launch that has waited for a policy.
    package func admit(_ app: AppID) {
        let supervisor = supervisor
        guard supervisor.coordinator.waitsForAdmission(app) else { return }
        supervisor.uninterrupted {
            guard let actions = try? supervisor.coordinator.advise(.admit, of: app, now: supervisor.loop.now) else {
                return
            }
            supervisor.perform(actions)
        }
    }

    private func delay(_ app: AppRuntime, _ decision: PolicyDecision) -> CounselOutcome {
        guard decision.advice.time > 0 else {
            return refuse(decision, app, "its launch cannot be delayed by a time of 0 or less")
        }
        let what = "waits to be launched for \(Self.text(decision.advice.time))"
        if decision.onlyAdvises {
            tell(decision, app, "would say that \(app.name) \(what)\(Self.reason(decision)) (mode = \"advise\")")
            return .told
        }
        guard supervisor.coordinator.waitsForAdmission(app.id) else {
            return refuse(decision, app, "it does not wait to be launched")
        }
        tell(decision, app, "says that \(app.name) \(what)\(Self.reason(decision))")
        app.heldBack = Self.because(decision)
        let reason = LaunchReason.allCases.first { $0.policyCode == decision.event.reason } ?? .user
        putOff[app.id] = try? supervisor.loop.timer { [weak self, weak app] in
            guard let self, let app else { return }
            self.mayLaunch(app, reason)
        }
        let time = Duration.microseconds(decision.advice.time)
        putOff[app.id]?.arm(after: min(max(time, PolicyChain.shortestWait), Coordinator.longestAdvice))
        return .taken
    }

    private func applyProfile(of state: Goal, to app: AppRuntime, _ decision: PolicyDecision) -> CounselOutcome {
        guard app.run.tree != nil, let state = AppState(rawValue: state.rawValue), state != .notRunning else {
            let why = app.run.tree == nil ? "it is not running" : "an app that is not running has no resource profile"
            return refuse(decision, app, why)
        }
        let machine = supervisor.coordinator.machine(app.id)
        if let advised = app.run.advisedProfile, advised == (machine.state, state) { return .idle }
        let what = "gets the resource profile of \(state.rawValue) apps"
        if decision.onlyAdvises {
            tell(decision, app, "would say that \(app.name) \(what)\(Self.reason(decision)) (mode = \"advise\")")
            return .told
        }
        if isRepetitive(decision, app) { return .damped }
        // This profile replaces the profile of the app's current state until the app leaves that state.
        app.run.advisedProfile = (machine.state, state)
        let report = supervisor.shares.give(app, state, telling: true)
        let done = report == ProfileReport() ? "" : " (\(report))"
        supervisor.note(app, .advised, text: "\(what)\(done): \(Self.because(decision))", reason: decision.policy)
        return .taken
    }

    // MARK: In words

    private func isAnswer(_ decision: PolicyDecision, to kind: torpor_policy_event_kind) -> Bool {
        decision.event.kind == kind.rawValue && decision.event.app == decision.advice.app
    }

    private func refuse(_ decision: PolicyDecision, _ app: AppRuntime?, _ why: String) -> CounselOutcome {
        let about = app.map { " for \($0.name)" } ?? ""
        tell(decision, app, "is not followed\(about): \(why)\(Self.reason(decision))")
        return .refused(why)
    }

    /// Reports advice that has no effect, unless the last report for the same policy, app and kind of advice had the
    /// same text.
    private func tell(_ decision: PolicyDecision, _ app: AppRuntime?, _ sentence: String) {
        let key = Self.key(decision)
        guard told[key] != sentence else { return }
        if told.count >= 4096 { told = [:] }
        told[key] = sentence
        supervisor.note(app, .adviceNotTaken, text: "\(decision.policy) \(sentence)", reason: decision.policy)
    }

    private static func key(_ decision: PolicyDecision) -> String {
        "\(decision.policy)/\(decision.advice.app)/\(decision.advice.kind)"
    }

    private static func because(_ decision: PolicyDecision) -> String {
        decision.advice.reason.isEmpty ? "\(decision.policy) says so" : "\(decision.advice.reason) (\(decision.policy))"
    }

    private static func reason(_ decision: PolicyDecision) -> String {
        decision.advice.reason.isEmpty ? "" : ": \(decision.advice.reason)"
    }

    private static func text(_ microseconds: Int64) -> String {
        if microseconds % 1_000_000 == 0 { return "\(microseconds / 1_000_000) s" }
        return microseconds >= 1000 ? "\(microseconds / 1000) ms" : "\(microseconds) us"
    }
}
