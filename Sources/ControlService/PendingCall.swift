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
        /// The app's incarnation (launch number) when the call came; for a scene inside an app, the one to wait for.
        var incarnation: UInt32
        var generation: Int
        /// The number of the queued URL that the app should open.
        var url: Int64?
        /// The app that had the URL before this one and did not handle it.
        var passedOnBy: String?
        /// Whether a client repeated a request that was carried out before. What happened between the two requests
        /// was not
        /// observed.
        var isRepeated = false
        /// The app that the request named, if the item's app is only stopped because it requires that one.
        var cause: String?
        var last: (AppState, Transition?, String?)?
        var result: VerbResult?
    }

    /// What the call waits for.
    enum Target: Hashable {
        /// The app was launched, and is in the state of the goal.
        case goal(Goal)
        /// Like `goal`, for the begin or end of an interruption: an inactive app counts as active.
        case interruption(of: Goal)
        /// No process of the app is left.
        case gone
        /// A later incarnation (launch) of the app than `after` has reached its goal.
        case newIncarnation(after: UInt32)
        /// The app is in that state, for whatever reason.
        case state(AppState)
        /// A scene inside the app has reached its goal.
        case scene(SceneID, SceneGoal, name: String)
        /// Nothing: the result is known.
        case done
    }

    let reply: Reply
    private(set) var items: [Item]
    /// How many items have no result yet.
    private var unanswered: Int
    /// The indices of each app's items, so that an event of an app need not search through a call for a thousand
    /// apps.
    private var places: [AppID: [Int]] = [:]
    var timer: TimerSource?
    /// Builds the last reply from the results.
    var render: ([VerbResult]) -> JSON = Replies.results
    /// What else must be done after the last result, before the last reply is sent.
    var beforeReply: ((_ then: @escaping () -> Void) -> Void)?

    init(reply: Reply, items: [Item]) {
        self.reply = reply
        self.items = items
        unanswered = items.reduce(0) { $1.result == nil ? $0 + 1 : $0 }
        for (index, item) in items.enumerated() { places[item.app, default: []].append(index) }
    }

    var isDone: Bool { unanswered == 0 }

    /// The indices of items without a result: of one app, or of all.
    func waiting(for app: AppID? = nil) -> [Int] {
        (app.map { places[$0] ?? [] } ?? Array(items.indices)).filter { items[$0].result == nil }
    }

    /// Lets an item wait for another app, to which the item's URL was passed on.
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

    /// Sets the result of an item, unless it has one.
    func answer(_ index: Int, _ result: VerbResult) {
        guard items[index].result == nil else { return }
        items[index].result = result
        unanswered -= 1
    }

    /// Records the current state of an item's app; false if it has not changed.
    func isNews(_ index: Int, _ now: (AppState, Transition?, String?)) -> Bool {
        if let last = items[index].last, last == now { return false }
        items[index].last = now
        return true
    }
}
