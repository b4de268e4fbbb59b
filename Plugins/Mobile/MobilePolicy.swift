// SPDX-License-Identifier: Apache-2.0

public import TorporPolicyKit

/// The entry point for the supervisor.
@c(torpor_policy_entry)
public func entry(_ abi: UInt32) -> UnsafePointer<torpor_policy>? { Mobile.exported(to: abi) }

/// Keeps a few apps in the foreground and suspends the others, like a phone.
///
/// If an app comes to the foreground and more than `max_active` apps are then in the foreground, the least recently
/// used one goes to the background. An app whose background time is used up is suspended.
struct Mobile: Policy {
    static let description = PolicyDescription(
        name: "mobile",
        version: "1.0",
        summary: "Keeps at most max_active apps in the foreground, and suspends those in the background in time.",
        events: [.started, .appsChanged, .stateChanged, .goalChanged, .timeUsed],
        options: [
            OptionDescription(
                "max_active",
                "integer",
                default: "1",
                "how many apps may be in the foreground, 1 to 10000; one-shots and apps of keep_active do not count"
            ),
            OptionDescription(
                "keep_active",
                "list of apps",
                default: "[]",
                "apps that stay in the foreground when others come there"
            ),
            OptionDescription(
                "suspend",
                "boolean",
                default: "true",
                "whether apps in the background are suspended when their time is used up"
            ),
            OptionDescription(
                "keep_running",
                "list of apps",
                default: "[]",
                "apps that are not suspended in the background"
            ),
        ]
    )

    private let maxActive: Int
    private let keepActive: [Selector]
    private let suspends: Bool
    private let keepRunning: [Selector]

    /// When the foreground was last requested for an app.
    private var wanted: [UInt32: Time] = [:]
    /// Apps that could not be suspended when their background time was used up.
    private var waiting: Set<UInt32> = []
    /// The apps that this policy has sent to the background in its answer to the question at the time `at`. One
    /// question of torpord can contain many events, but it shows the states that apps had before all of these events.
    /// So the policy must remember which apps it has sent already.
    private var sent: (at: Time, places: Set<UInt32>) = (Time(microseconds: .min), [])

    init(options: Options) throws(PolicyError) {
        maxActive = try options.integer("max_active", default: 1, in: 1...10_000)
        keepActive = try options.selectors("keep_active")
        suspends = try options.boolean("suspend", default: true)
        keepRunning = try options.selectors("keep_running")
        if !suspends, options.has("keep_running") {
            throw options.error("keep_running", "has no effect while suspend = false: remove one of them")
        }
    }

    mutating func decide(_ event: Event, in view: View, advice: inout Advice) -> Verdict {
        switch event {
        case .started, .appsChanged:
            wanted = wanted.filter { view[$0.key]?.isInFront ?? false }
            waiting = waiting.filter { view[$0]?.state == .background }
            makeRoom(in: view, &advice)
            suspendOverdue(in: view, &advice)
        case .goalChanged(let app, _, to: .active):
            wanted[app.place] = view.eventTime
        case .stateChanged(let app, let from, let to):
            if to != .background { waiting.remove(app.place) }
            if !to.isForeground { wanted[app.place] = nil }
            if to.isForeground, !from.isForeground || to == .active { makeRoom(in: view, &advice, for: app.place) }
            // The app no longer needs the apps that it requires, so those may be suspended now.
            if to == .suspended || to == .notRunning { suspendWaiting(in: view, &advice) }
        case .timeUsed(let app):
            timeUsed(app, &advice)
        default:
            break
        }
        return .continue
    }

    // MARK: The foreground

    private func counts(_ app: App) -> Bool {
        app.isInFront && !app.isOneshot && !app.matches(keepActive) && !sent.places.contains(app.place)
    }

    /// Sends apps to the background if there are too many in the foreground. `arrived`: the app that has just come to
    /// the foreground; the view may still show this app in transition.
    private mutating func makeRoom(in view: View, _ advice: inout Advice, for arrived: UInt32? = nil) {
        let now = view.now
        if sent.at != now { sent = (now, []) }
        var excess = -maxActive
        for app in view.apps where counts(app) { excess += 1 }
        guard excess > 0 else { return }
        // If two apps have the same time of last use, the app that is still in transition comes last, because the user
        // requested it after the other app.
        let apps = view.apps.filter { counts($0) }
            .map { app in
                let isComing = app.place != arrived && !app.state.isForeground
                return (lastUse: lastUse(app, now), later: isComing ? 1 : 0, app: app)
            }
            .sorted { ($0.lastUse, $0.later, $0.app.place) < ($1.lastUse, $1.later, $1.app.place) }
        guard let last = apps.last?.app.name else { return }
        let limit = maxActive == 1 ? "1 app" : "\(maxActive) apps"
        // The most recently used app stays in the foreground, even if a debugger is attached to the other apps, so that
        // they cannot be sent to the background.
        for (_, _, app) in apps.dropLast().filter({ !$0.app.isTraced }).prefix(excess) {
            advice.send(app, to: .background, because: "\(limit) may be in the foreground, and \(last) came after it")
            sent.places.insert(app.place)
        }
    }

    /// When a user last brought the app to the foreground. The time of its last use would not order these apps, because
    /// every app in the foreground counts as used now.
    private func lastUse(_ app: App, _ now: Time) -> Time {
        let arrived: Time?
        switch app.state {
        case .active: arrived = app.since(.active)
        // An interrupted app was active before the interruption.
        case .inactive: arrived = app.isInterrupted ? app.since(.active) : app.since(.inactive)
        // The app is on its way to the foreground.
        case .notRunning, .background, .suspended: arrived = now
        }
        return max(arrived ?? app.launchedAt ?? now, wanted[app.place] ?? Time(microseconds: .min))
    }

    // MARK: The background

    private mutating func timeUsed(_ app: App, _ advice: inout Advice) {
        guard suspends, app.state == .background, !app.matches(keepRunning) else { return }
        guard app.canBeSuspended else {
            waiting.insert(app.place)
            return
        }
        waiting.remove(app.place)
        advice.send(app, to: .suspended, because: "its time in the background is used up")
    }

    private mutating func suspendWaiting(in view: View, _ advice: inout Advice) {
        guard !waiting.isEmpty else { return }
        for place in waiting.sorted() {
            guard let app = view[place], app.canBeSuspended else { continue }
            timeUsed(app, &advice)
        }
    }

    /// Suspends apps whose background time was used up while this policy was not asked.
    private mutating func suspendOverdue(in view: View, _ advice: inout Advice) {
        let now = view.now
        for app in view.apps {
            guard app.state == .background, let end = app.grantEnds, end <= now else { continue }
            timeUsed(app, &advice)
        }
    }
}
