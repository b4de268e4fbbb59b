// SPDX-License-Identifier: Apache-2.0

import CalendarTime
public import TorporPolicyKit

/// The entry point for the supervisor.
@c(torpor_policy_entry)
public func entry(_ abi: UInt32) -> UnsafePointer<torpor_policy>? { Schedule.exported(to: abi) }

/// Changes the states of apps by the calendar: inside and outside of windows of time.
///
/// The policy only advises when a window begins or ends. If a user or an event changes the state of an app in between,
/// the app keeps that state until a window begins or ends again.
struct Schedule: Policy {
    static let description = PolicyDescription(
        name: "schedule",
        version: "1.0",
        summary: "Makes apps active, background, suspended or not running at times by the calendar.",
        events: [.started, .appsChanged, .stateChanged, .goalChanged, .timer],
        options: [
            OptionDescription(
                "rules",
                "list of tables",
                default: "none, at least one is needed",
                "which apps are in which state, and when; the first that names an app and applies at the time decides"
            ),
            OptionDescription("rules.*.apps", "list of apps", default: "none, needed", "the apps of the rule"),
            OptionDescription(
                "rules.*.from",
                "calendar expression",
                default: "none, needed",
                "when its window begins, in the syntax of systemd's OnCalendar=: \"Mon..Fri 08:00\""
            ),
            OptionDescription(
                "rules.*.to",
                "calendar expression",
                default: "none, needed",
                "when its window ends"
            ),
            OptionDescription(
                "rules.*.state",
                "state",
                default: "none, needed",
                "the state of its apps in the window: active, background, suspended or not-running"
            ),
            OptionDescription(
                "rules.*.otherwise",
                "state",
                default: "none: it does not apply then",
                "their state outside the window"
            ),
            OptionDescription("rules.*.name", "string", default: "none", "the window's name in reasons: office hours"),
            OptionDescription(
                "timezone",
                "time zone",
                default: "the machine's",
                "the time zone of expressions that name none: \"Europe/Berlin\""
            ),
        ]
    )

    /// The longest time after which the policy requests to be asked again. It must check the calendar this often,
    /// because the clock may be set and the machine may sleep.
    private static let longestWait = Duration.seconds(3_600)
    /// If the difference between the clocks changes by more than this, in microseconds, the wall clock was set: drift
    /// is smaller.
    private static let jump: UInt64 = 500_000

    private let zone: TimeZone
    private var rules: [Rule] = []
    /// What the policy knows about each app, by the app's index in the view.
    private var standings: [UInt32: Standing] = [:]
    /// Indices of apps that could not be stopped in time because other apps require them.
    private var waiting: Set<UInt32> = []
    /// The wall clock minus the monotonic clock, in microseconds, at the last check of the calendar.
    private var clockDifference: Int64?
    /// When the timer that this policy has requested is due.
    private var due: Time?

    /// What the policy knows about an app.
    private struct Standing {
        var name: String
        /// The indices of the rules for the app, in their order.
        var rules: [Int]
        /// The last decision about the app.
        var decision: Decision?
        /// Whether a user or an event has changed the app's state since the last decision.
        var isHeld = false
    }

    /// The rule that decides about an app, and since when its window is in the present phase.
    private struct Decision: Equatable {
        var rule: Int
        var since: Int64?
    }

    init(options: Options) throws(PolicyError) {
        let known = SystemTimeZones()
        if options.has("timezone") {
            let name = try options.string("timezone", default: "")
            guard let zone = known.zone(named: name) else {
                throw options.error(
                    "timezone",
                    "is \"\(name)\", which is not a time zone known to this system: "
                        + "write for instance Europe/Berlin or UTC"
                )
            }
            self.zone = zone
        } else {
            zone = known.local
        }
        for (index, table) in try options.tables("rules").enumerated() {
            rules.append(try Rule(number: index + 1, options: table, zones: known.with(local: zone)))
        }
        guard !rules.isEmpty else {
            throw options.error("rules", "is missing: write which apps are in which state, and when")
        }
    }

    mutating func decide(_ event: Event, in view: View, advice: inout Advice) -> Verdict {
        // If the machine's time is unknown, the policy cannot advise.
        guard view.machine.microsecondsSince1970 > 0 else { return .continue }
        var isNews = look(in: view)
        switch event {
        case .started:
            meet(view.apps)
            leaveWhatWasMoved(in: view)
            isNews = true
        case .appsChanged:
            meet(view.apps)
            isNews = true
        case .goalChanged(let app, _, let goal):
            hold(app, goal)
        case .stateChanged(let app, let from, let to):
            if from == .notRunning { comeBack(app, in: view, &advice) }
            if to == .notRunning || to == .suspended { retry(in: view, &advice) }
        case .timer:
            due = nil
            retry(in: view, &advice)
        default:
            break
        }
        if isNews { decideAll(in: view, &advice) }
        askAgain(in: view, &advice)
        return .continue
    }

    // MARK: The calendar

    /// Whether a window began or ended since the last check, or the clock was set.
    private mutating func look(in view: View) -> Bool {
        let moment = view.machine.microsecondsSince1970
        let difference = moment &- view.now.microseconds
        let isSteady = clockDifference.map { (difference &- $0).magnitude <= Self.jump } ?? false
        clockDifference = difference
        if !isSteady { for index in rules.indices { rules[index].forget() } }
        var isNews = false
        for index in rules.indices where rules[index].look(at: moment) { isNews = true }
        return isNews
    }

    /// Requests to be asked at the next begin or end of a window, unless an earlier time was requested.
    private mutating func askAgain(in view: View, _ advice: inout Advice) {
        let moment = view.machine.microsecondsSince1970
        var wait = Self.longestWait
        for rule in rules {
            if let until = rule.phase.until { wait = min(wait, .microseconds(until - moment)) }
        }
        wait = max(wait, .milliseconds(100))
        let wanted = view.now + wait
        // If a requested timer is more than a second overdue, the request was lost: request the timer again.
        if let due, due <= wanted, due + .seconds(1) > view.now { return }
        due = wanted
        advice.askAgain(after: wait)
    }

    // MARK: Apps

    /// Updates the list of apps. Keeps what is known about the apps that remain, even if their indices change.
    private mutating func meet(_ apps: View.Apps) {
        var known: [String: Standing] = [:]
        for standing in standings.values { known[standing.name] = standing }
        standings = [:]
        waiting = []
        for app in apps {
            let name = app.name
            let meant = rules.indices.filter { app.matches(rules[$0].apps) }
            guard !meant.isEmpty else { continue }
            standings[app.place] = Standing(
                name: name,
                rules: meant,
                decision: known[name]?.decision,
                isHeld: known[name]?.isHeld ?? false
            )
        }
    }

    /// Stops advising about apps that have changed their state in the present run since the window began: a user or an
    /// event has changed it, or the app has ended. The view has these times, so this also works after a restart of the
    /// policy.
    private mutating func leaveWhatWasMoved(in view: View) {
        let difference = view.machine.microsecondsSince1970 &- view.now.microseconds
        for (place, standing) in standings {
            guard let app = view[place], let decision = decision(of: standing), let since = decision.since,
                let launched = app.launchedAt, let arrived = app.since(app.state), arrived > launched,
                arrived.microseconds &+ difference > since
            else { continue }
            let others = [State.active, .background, .suspended].filter { $0 != app.state }
            let wasElsewhere = others.contains { state in app.since(state).map { $0 >= launched } ?? false }
            guard app.state == .notRunning || wasElsewhere else { continue }
            standings[place]?.decision = decision
            standings[place]?.isHeld = true
        }
    }

    /// The decision of the first rule that decides about an app now.
    private func decision(of standing: Standing) -> Decision? {
        guard let index = standing.rules.first(where: { rules[$0].target != nil }) else { return nil }
        return Decision(rule: index, since: rules[index].phase.since)
    }

    /// Advises about the apps for which the decision has changed.
    private mutating func decideAll(in view: View, _ advice: inout Advice) {
        for app in view.apps {
            guard let standing = standings[app.place] else { continue }
            let decision = decision(of: standing)
            guard decision != standing.decision else { continue }
            standings[app.place]?.decision = decision
            standings[app.place]?.isHeld = false
            waiting.remove(app.place)
            if decision != nil { send(app, in: view, &advice) }
        }
    }

    /// Advises the state that was decided for an app.
    private mutating func send(_ app: App, in view: View, _ advice: inout Advice) {
        guard let decision = standings[app.place]?.decision, let target = rules[decision.rule].target else { return }
        guard !isThere(app, target) else { return }
        if target == .notRunning || target == .suspended, app.isRequired {
            waiting.insert(app.place)
            return
        }
        let reason = rules[decision.rule].reason(at: view.machine.microsecondsSince1970, in: zone)
        advice.send(app, to: target, because: reason)
    }

    /// Whether there is nothing to advise: the app is in that state, has it as its goal, or cannot reach it.
    private func isThere(_ app: App, _ target: State) -> Bool {
        let runs = app.state != .notRunning || app.edge != .none
        switch target {
        case .notRunning: return !runs || app.goal == .notRunning
        case .suspended: return !runs || app.goal == .suspended
        case .active, .background, .inactive:
            if runs || app.nextRestart != nil { return app.goal == target }
            // The app does not run. If a user stopped it or it has failed, only a user starts it again.
            return app.isStartedByPersonOnly || app.hasFailed
        }
    }

    // MARK: What happens between

    /// Called when a user or an event has requested a state for an app: the app keeps that state until the next
    /// decision.
    private mutating func hold(_ app: App, _ goal: State) {
        guard let decision = standings[app.place]?.decision else { return }
        standings[app.place]?.isHeld = rules[decision.rule].target != goal
        waiting.remove(app.place)
    }

    /// Called when an app was launched: stops the app again if it should not run and no user has requested it.
    private mutating func comeBack(_ app: App, in view: View, _ advice: inout Advice) {
        guard let standing = standings[app.place], !standing.isHeld, let decision = standing.decision,
            rules[decision.rule].target == .notRunning
        else { return }
        send(app, in: view, &advice)
    }

    /// Stops apps that could not be stopped before because other apps required them.
    private mutating func retry(in view: View, _ advice: inout Advice) {
        guard !waiting.isEmpty else { return }
        for place in waiting.sorted() {
            waiting.remove(place)
            guard let app = view[place] else { continue }
            send(app, in: view, &advice)
        }
    }
}
