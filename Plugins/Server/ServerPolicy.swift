// SPDX-License-Identifier: Apache-2.0

public import TorporPolicyKit

/// The entry point for the supervisor.
@c(torpor_policy_entry)
public func entry(_ abi: UInt32) -> UnsafePointer<torpor_policy>? { Server.exported(to: abi) }

/// Suspends idle apps.
///
/// An active app that was not used for `idle_after` goes to the background. When its background time is over, it is
/// suspended unless it was used again. An app that no event could wake keeps running in the background, since it
/// could answer no request while suspended. These count as use: an open connection or data on one, processor time, and
/// heartbeats of an app without a watchdog. Where traffic cannot be measured, the policy learns from how soon clients
/// wake a suspended app. torpord asks the policy when the next app could be idle, and
/// otherwise only about events.
struct Server: Policy {
    private let rules: Rules
    private let suspended: Suspended

    /// The usage of each app, by the app's index in the view.
    private var usage: [Usage?] = []
    /// Apps to check again when no other app requires them and nothing keeps them from being suspended.
    private var needed: Set<UInt32> = []
    /// The time at which the policy has requested to be asked again.
    private var asksAgain: Time?

    init(options: Options) throws(PolicyError) {
        rules = try Rules(options)
        suspended = try Suspended(options)
    }

    mutating func decide(_ event: Event, in view: View, advice: inout Advice) -> Verdict {
        switch event {
        case .started, .appsChanged:
            let protected = Set(usage.indices.filter { usage[$0]?.rule == Rules.protected })
            for place in usage.indices { usage[place]?.rule = nil }
            needed = []
            bringBackProtected(except: protected, in: view, &advice)
            bringBackStranded(in: view, &advice)
            lookAtAll(in: view, &advice)
        case .timer:
            asksAgain = nil
            lookAtAll(in: view, &advice)
        case .goalChanged(let app, _, to: .active):
            usage[known(app, view)]!.wasUsed(at: view.now)
        case .stateChanged(let app, let from, let to):
            stateChanged(app, from, to, in: view, &advice)
        case .timeUsed(let app):
            timeUsed(app, in: view, &advice)
        default:
            break
        }
        return .continue
    }

    private mutating func stateChanged(
        _ app: App,
        _ from: State,
        _ to: State,
        in view: View,
        _ advice: inout Advice
    ) {
        switch to {
        case .active:
            let rule = rule(of: app, view)
            usage[known(app, view)]!.cameToFront(app, rule, at: view.now)
            lookAt([app.place], in: view, &advice)
        case .background:
            let rule = rule(of: app, view)
            usage[known(app, view)]!.cameToBackground(app, rule, isWoken: from == .suspended)
            if from == .suspended { lookAt([app.place], in: view, &advice) }
        case .suspended, .notRunning:
            if to == .notRunning, usage.indices.contains(Int(app.place)) { usage[Int(app.place)] = nil }
            // The app no longer needs the apps that it requires, so those may leave the foreground or be suspended now.
            guard !needed.isEmpty else { return }
            let places = needed.sorted()
            needed = []
            lookAt(places, in: view, &advice)
        case .inactive:
            break
        }
    }

    /// Brings apps back that are protected from now on, and that a policy had sent away before: nothing else would.
    private mutating func bringBackProtected(except known: Set<Int>, in view: View, _ advice: inout Advice) {
        for app in view.apps where rule(of: app, view) == nil && !known.contains(Int(app.place)) {
            guard app.isSentAway, app.goal == .background || app.goal == .suspended else { continue }
            advice.send(app, to: .active, because: "it is protected now, and had been sent away")
        }
    }

    /// Brings apps back that a policy had sent away, and that no event wakes any longer since their configuration has
    /// changed: they could answer no request.
    private mutating func bringBackStranded(in view: View, _ advice: inout Advice) {
        guard suspended == .wakeable else { return }
        for app in view.apps where app.state == .suspended && app.isSentAway && app.isNeverWoken {
            guard app.goal == .suspended, rule(of: app, view) != nil else { continue }
            advice.send(app, to: .active, because: "no event wakes it any longer")
        }
    }

    // MARK: The foreground

    /// Sends idle apps to the background, and requests to be asked again when the next app can be idle.
    private mutating func lookAtAll(in view: View, _ advice: inout Advice) {
        var next: Time?
        for app in view.apps {
            guard let time = look(app, in: view, &advice) else { continue }
            next = next.map { min($0, time) } ?? time
        }
        if let next { askAgain(at: next, view.now, &advice) }
    }

    private mutating func lookAt(_ places: [UInt32], in view: View, _ advice: inout Advice) {
        for place in places {
            guard let app = view[place], let time = look(app, in: view, &advice) else { continue }
            askAgain(at: time, view.now, &advice)
        }
    }

    private mutating func askAgain(at time: Time, _ now: Time, _ advice: inout Advice) {
        if let asked = asksAgain, asked > now, asked <= time { return }
        asksAgain = time
        advice.askAgain(after: time - now)
    }

    /// Checks an app. Returns when to check the app again; nil if an event must come first.
    private mutating func look(_ app: App, in view: View, _ advice: inout Advice) -> Time? {
        let now = view.now
        switch app.state {
        case .active:
            guard app.goal == .active, app.edge == .none, !app.isOneshot, !app.exitsOnSuspend,
                let rule = rule(of: app, view)
            else { return nil }
            guard !app.isRequired else {
                needed.insert(app.place)
                return nil
            }
            let place = known(app, view)
            let due = rule.unprotected(at: max(usage[place]!.idleAt(app, rule, now), now), view)
            guard due <= now else { return due }
            advice.send(app, to: .background, because: usage[place]!.idleness(app, rule, now))
            // If the app stays in the foreground nevertheless, the policy does not repeat its advice at once.
            usage[place]!.wasSent(at: now)
            return nil
        case .background:
            let isOverdue = usage[known(app, view)]!.isOverdue || app.grantEnds.map { $0 <= now } ?? false
            guard suspended != .none, let rule = rule(of: app, view) else { return nil }
            guard isOverdue else { return lookAtWoken(app, rule, view, &advice) }
            let due = rule.unprotected(at: now, view)
            if due <= now { timeUsed(app, in: view, &advice) }
            return due <= now ? nil : due
        case .notRunning, .inactive, .suspended:
            return nil
        }
    }

    // MARK: The background

    /// Checks an app that this policy has sent to the background and that an event has woken. The supervisor suspends
    /// the app again when its time for the event is over. If the app is still in use shortly before that, the policy
    /// brings it back to the foreground. Returns when to check the app again; nil if an event must come first.
    private mutating func lookAtWoken(_ app: App, _ rule: Rule, _ view: View, _ advice: inout Advice) -> Time? {
        let (now, place) = (view.now, known(app, view))
        guard usage[place]!.isSent, usage[place]!.isWoken else { return nil }
        // The time for the event begins only when the app has answered that it is resumed. Before that answer, the end
        // of that time is unknown.
        guard let end = app.grantEnds else { return app.edge == .none ? nil : now.advanced(byMicroseconds: 100_000) }
        guard now < end, app.edge == .none else { return nil }
        let whole = app.since(.background).map { (end - $0).microseconds } ?? 0
        let last = min(Self.lastPart, whole / 2)
        let due = end.advanced(byMicroseconds: -last)
        guard due <= now else { return due }
        if let sleep = usage[place]!.sleepBeforeUse(app, rule) {
            let reason = "it is in use again: a client woke it \(sleep.inWords) after it was suspended"
            advice.send(app, to: .active, because: reason)
            return nil
        }
        if let again = usage[place]!.waitForMeasurement(app, rule, now) { return again }
        guard usage[place]!.isFresh(app, rule, now), let use = usage[place]!.lastUse(app, rule, now, within: last)
        else {
            return nil
        }
        advice.send(app, to: .active, because: "it is in use again: \(use)")
        return nil
    }

    /// An app that an event woke has a limited time for that event. This long before the end of that time, in
    /// microseconds, the policy checks whether the app is in use. Within this interval, torpord measures again, and the
    /// new measurements no longer contain the app's work for the event itself.
    private static let lastPart: Int64 = 2_000_000

    private mutating func timeUsed(_ app: App, in view: View, _ advice: inout Advice) {
        guard suspended != .none, app.state == .background, let rule = rule(of: app, view) else { return }
        let now = view.now
        let place = known(app, view)
        usage[place]!.isOverdue = true
        let end = rule.unprotected(at: now, view)
        guard end <= now else { return askAgain(at: end, now, &advice) }
        guard app.canBeSuspended else {
            needed.insert(app.place)
            return
        }
        if let again = usage[place]!.waitForMeasurement(app, rule, now) { return askAgain(at: again, now, &advice) }
        guard usage[place]!.isFresh(app, rule, now) else {
            // The measurements do not show whether the app was used. Without a known use, leave the app in the
            // background.
            usage[place]!.isOverdue = false
            advice.grant(
                app,
                rule.idleAfter,
                because: "it may be in use: it was not measured since it came to the background"
            )
            return
        }
        guard let use = usage[place]!.useInBackground(app, rule, now) else {
            guard suspended.has(app) else {
                return askAgain(at: now.advanced(byMicroseconds: rule.idleTime), now, &advice)
            }
            advice.send(
                app,
                to: .suspended,
                because: "its time in the background is used up, and it was not used there"
            )
            return
        }
        usage[place]!.isOverdue = false
        if usage[place]!.isSent {
            advice.send(app, to: .active, because: "it is in use again: \(use)")
        } else {
            advice.grant(app, rule.idleAfter, because: "it is in use: \(use)")
        }
    }

    // MARK: What is known

    /// The index of the app's usage. Creates the usage for the current run if there is none.
    private mutating func known(_ app: App, _ view: View) -> Int {
        let place = Int(app.place)
        if place >= usage.count {
            usage += [Usage?](repeating: nil, count: max(place + 1, view.placeCount) - usage.count)
        }
        if usage[place].map({ !$0.isOf(app) }) ?? true { usage[place] = Usage(app, at: view.now) }
        return place
    }

    /// The rule for the app; nil if the option `protect` exempts it from this policy.
    private mutating func rule(of app: App, _ view: View) -> Rule? {
        let place = known(app, view)
        let index = usage[place]!.rule ?? rules.index(for: app)
        usage[place]!.rule = index
        return index == Rules.protected ? nil : rules.all[index]
    }
}
