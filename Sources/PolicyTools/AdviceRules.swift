// SPDX-License-Identifier: Apache-2.0

import Policies
import TorporPolicyABI

/// What a supervisor would do with advice, judged by the view alone: a supervisor knows more and can refuse more.
struct AdviceRules {
    enum Verdict: Hashable {
        /// The advice changes something.
        case change
        /// The app is in the advised state already, or would reach it without any advice.
        case idle
        /// The policy has given the same advice before, and the app's state has not changed since.
        case repeated
        /// The supervisor would not follow the advice, for this reason.
        case refused(String)
    }

    /// The last advice of one kind about an app, and the app's state at that time.
    private struct Advice: Hashable {
        let verdict: Verdict
        let value: UInt32
        let state: UInt32
        let goal: UInt32
        let incarnation: UInt32
    }

    private struct Matter: Hashable {
        let app: UInt32
        let kind: UInt32
    }

    private var said: [Matter: Advice] = [:]

    mutating func verdict(
        on advice: PolicyAdvice,
        to event: torpor_policy_event,
        in view: PolicyView
    ) -> Verdict {
        let verdict = Self.verdict(on: advice, to: event, in: view)
        guard verdict != .idle,
            advice.kind == TORPOR_ADVISE_GOAL.rawValue || advice.kind == TORPOR_ADVISE_PROFILE.rawValue
        else { return verdict }
        let app = view.isPresent(Int(advice.app)) ? view[Int(advice.app)] : PolicyView.emptyApp
        let now = Advice(
            verdict: verdict,
            value: advice.value,
            state: app.state,
            goal: app.goal,
            incarnation: app.incarnation
        )
        let matter = Matter(app: advice.app, kind: advice.kind)
        defer { said[matter] = now }
        return said[matter] == now ? .repeated : verdict
    }

    private static func verdict(
        on advice: PolicyAdvice,
        to event: torpor_policy_event,
        in view: PolicyView
    ) -> Verdict {
        guard view.isPresent(Int(advice.app)) else { return .refused("there is no app in place \(advice.app)") }
        let app = view[Int(advice.app)]
        switch advice.kind {
        case TORPOR_ADVISE_GOAL.rawValue:
            return goal(advice.value, app)
        case TORPOR_ADVISE_GRANT.rawValue:
            if let problem = problem(advice.time) { return .refused(problem) }
            guard app.state == TORPOR_STATE_BACKGROUND.rawValue else {
                return .refused(
                    "it is \(PolicyWords.state(app.state)): only an app in the background is granted time"
                )
            }
            return .change
        case TORPOR_ADVISE_PROFILE.rawValue:
            guard advice.value < UInt32(TORPOR_STATE_COUNT) else {
                return .refused("there is no state number \(advice.value)")
            }
            return isAlive(app) ? .change : .refused("it is not running")
        case TORPOR_ADVISE_ADMIT.rawValue:
            return isAnswer(advice, to: TORPOR_EVENT_LAUNCH, event) ?? .idle
        case TORPOR_ADVISE_DELAY.rawValue where advice.time <= 0:
            return .refused("its launch cannot be delayed by a time of 0 or less")
        case TORPOR_ADVISE_DELAY.rawValue, TORPOR_ADVISE_REFUSE.rawValue:
            return isAnswer(advice, to: TORPOR_EVENT_LAUNCH, event) ?? .change
        case TORPOR_ADVISE_RESTART.rawValue, TORPOR_ADVISE_GIVE_UP.rawValue:
            if let refused = isAnswer(advice, to: TORPOR_EVENT_ENDED, event) { return refused }
            guard event.delay != Int64.min else { return .refused("it is not waiting for a delayed restart") }
            if advice.kind == TORPOR_ADVISE_RESTART.rawValue, let problem = problem(advice.time) {
                return .refused(problem)
            }
            return .change
        default:
            return .refused("there is no advice number \(advice.kind)")
        }
    }

    private static func goal(_ goal: UInt32, _ app: torpor_policy_app) -> Verdict {
        let lives = isAlive(app)
        if goal == app.goal, goal == TORPOR_STATE_NOT_RUNNING.rawValue || lives { return .idle }
        if app.edge == TORPOR_EDGE_TERMINATING.rawValue { return .refused("it is ending") }
        if app.flags & TORPOR_APP_TRACED != 0 { return .refused("it is being debugged: it is left alone") }
        switch goal {
        case TORPOR_STATE_ACTIVE.rawValue, TORPOR_STATE_BACKGROUND.rawValue:
            guard lives || app.flags & (TORPOR_APP_BY_PERSON_ONLY | TORPOR_APP_FAILED) == 0 else {
                return .refused("it was stopped by a user or restarted too often, so only a user starts it again")
            }
        case TORPOR_STATE_SUSPENDED.rawValue, TORPOR_STATE_NOT_RUNNING.rawValue:
            let ends = goal == TORPOR_STATE_NOT_RUNNING.rawValue
            guard lives else { return .refused(ends ? "it is not running" : "it is not running: start it first") }
            if ends, app.flags & TORPOR_APP_EVICT_NEVER != 0 {
                return .refused("it is protected from being ended (evict = \"never\")")
            }
            if app.flags & TORPOR_APP_REQUIRED != 0 {
                return .refused("it is required by an app that runs: it is not \(ends ? "ended" : "suspended")")
            }
        case TORPOR_STATE_INACTIVE.rawValue:
            return .refused(
                "it cannot be sent to inactive, through which apps only pass: choose active or background"
            )
        default:
            return .refused("there is no state number \(goal)")
        }
        return .change
    }

    private static func isAlive(_ app: torpor_policy_app) -> Bool {
        app.state != TORPOR_STATE_NOT_RUNNING.rawValue || app.edge == TORPOR_EDGE_LAUNCHING.rawValue
    }

    private static func isAnswer(
        _ advice: PolicyAdvice,
        to kind: torpor_policy_event_kind,
        _ event: torpor_policy_event
    ) -> Verdict? {
        event.kind == kind.rawValue && event.app == advice.app ? nil : .refused("it does not answer what was asked")
    }

    private static func problem(_ time: Int64) -> String? {
        (0...366 * 86_400_000_000).contains(time)
            ? nil : "it cannot be given a time that is negative or longer than a year"
    }
}
