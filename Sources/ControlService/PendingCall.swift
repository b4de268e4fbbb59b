// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Lifecycle
import TorporAPI
import Varlink
import VarlinkServer

/// A call that waits until its apps have reached a state.
final class PendingCall {
    struct Item {
        var app: AppID
        let target: Target
        /// The app's incarnation (launch number) when the call came. For a scene inside an app, the incarnation to
        /// wait for.
        var incarnation: UInt32
        var generation: Int
        /// The number of the queued message with the URL that the app should open; nil if there is none.
        var url: Int64?
        /// Whether ``url`` is the number of an activity that the app should continue.
        var isActivity = false
        /// The name of the app that got the URL first, but did not handle it; nil if there is none.
        var passedOnBy: String?
        /// Whether the request was carried out before and the client has repeated it. Changes of the app between the
        /// two requests were not observed.
        var isRepeated = false
        /// The name of the app in the request, if the item's app is stopped only because it requires that other app;
        /// otherwise nil.
        var cause: String?
        /// The names of the apps that are restarted too, because they require the item's app.
        var restartedToo: [String] = []
        /// The state, the transition and the text in the last progress report to the client.
        var last: (AppState, Transition?, String)?
        /// The apps for which the item's app waited at the last progress report, also those that these wait for.
        var blockers: [AppID] = []
        /// How often each of ``blockers`` had been restarted when the call first saw it. A later, lower number (of an app
        /// that ran for a while) takes its place.
        var restarts: [AppID: Int] = [:]
        var result: VerbResult?
    }

    /// What must happen to an app before the call is answered.
    enum Target: Hashable {
        /// The app was launched and has reached the goal.
        case goal(Goal)
        /// Like `goal`, for a request that begins or ends an interruption: an interrupted app with the goal `active`
        /// has reached its goal when it is inactive.
        case interruption(of: Goal)
        /// No process of the app is left.
        case gone
        /// This machine does not own the app, and the app is suspended or has ended; with `gone`, the app has ended.
        case standingBy(gone: Bool)
        /// A later incarnation (launch) of the app than `after` has reached its goal.
        case newIncarnation(after: UInt32)
        /// The app is in this state, even if another request brought it there.
        case state(AppState)
        /// A scene inside the app has reached its goal.
        case scene(SceneID, SceneGoal, name: String)
        /// Nothing: the result is known already.
        case done

        /// Whether the request changes the app's goal, which also counts after a reboot.
        var setsGoal: Bool {
            switch self {
            case .goal, .gone, .newIncarnation: true
            case .interruption, .standingBy, .state, .scene, .done: false
            }
        }
    }

    let reply: Reply
    private(set) var items: [Item]
    /// The number of items without a result.
    private var unanswered: Int
    /// For each app, the indices of its items, so that an event of an app does not require a search through a call
    /// for a thousand apps.
    private var places: [AppID: [Int]] = [:]
    /// The indices of the items whose apps wait for other apps.
    private var waitingForOthers: Set<Int> = []
    var timer: TimerSource?
    /// Whether the call ends for an app that waits for one which fails again and again, as for a failed one.
    var endsForFailing = false
    /// Builds the last reply from the results.
    var render: ([VerbResult]) -> JSON = Replies.results
    /// Work to do between the last result and the last reply. The reply is sent when this work calls `then`.
    var beforeReply: ((_ then: @escaping () -> Void) -> Void)?

    init(reply: Reply, items: [Item]) {
        self.reply = reply
        self.items = items
        unanswered = items.reduce(0) { $1.result == nil ? $0 + 1 : $0 }
        for (index, item) in items.enumerated() { places[item.app, default: []].append(index) }
    }

    var isDone: Bool { unanswered == 0 }

    /// The indices of the items without a result; with `app`, only of that app's items.
    func waiting(for app: AppID? = nil) -> [Int] {
        (app.map { places[$0] ?? [] } ?? Array(items.indices)).filter { items[$0].result == nil }
    }

    /// Makes an item wait for another app, because torpord passed the item's URL on to that app.
    func follow(_ index: Int, to app: AppID, url: Int64, incarnation: UInt32, generation: Int, from name: String) {
        places[items[index].app]?.removeAll { $0 == index }
        places[app, default: []].append(index)
        items[index].app = app
        items[index].url = url
        items[index].incarnation = incarnation
        items[index].generation = generation
        items[index].passedOnBy = name
        items[index].last = nil
    }

    /// Sets the result of an item, unless the item has one.
    func answer(_ index: Int, _ result: VerbResult) {
        guard items[index].result == nil else { return }
        items[index].result = result
        unanswered -= 1
        waitingForOthers.remove(index)
    }

    /// The indices of the items without a result whose apps wait for one of these apps.
    func blocked(by apps: [AppID]) -> [Int] {
        // Few apps wait for others. To search all items at each event would take quadratic time for a call with many.
        guard !waitingForOthers.isEmpty else { return [] }
        return waitingForOthers.sorted().filter { index in
            items[index].result == nil && items[index].blockers.contains { apps.contains($0) }
        }
    }

    /// Stores which apps the app of this item is waiting for.
    func note(_ blockers: [AppID], of index: Int) {
        items[index].blockers = blockers
        if blockers.isEmpty { waitingForOthers.remove(index) } else { waitingForOthers.insert(index) }
    }

    /// How often an app for which this item's app waits was restarted since the call first saw it.
    func restarts(of blocker: AppID, now restarts: Int, for index: Int) -> Int {
        let first = min(items[index].restarts[blocker] ?? restarts, restarts)
        items[index].restarts[blocker] = first
        return restarts - first
    }

    /// Records the progress of an item's app. Returns false if the progress has not changed since the last record.
    func isNews(_ index: Int, _ now: (AppState, Transition?, String)) -> Bool {
        if let last = items[index].last, last == now { return false }
        items[index].last = now
        return true
    }

    /// The results that are known so far. `areStored`: whether torpord can store new goals of apps, so that the goals
    /// survive a reboot.
    func results(areStored: Bool) -> [VerbResult] {
        items.compactMap { item in
            guard var result = item.result else { return nil }
            if result.ok, !areStored, item.target.setsGoal {
                result.message =
                    (result.message ?? "\(result.app) is \(result.state)")
                    + "; a reboot undoes this, since it cannot be stored: see ‘torpor doctor’"
            }
            return result
        }
    }
}
