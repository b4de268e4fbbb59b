// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Lifecycle
import TorporAPI
import Varlink
import VarlinkServer

/// A call that waits until its apps are where it wants them.
final class PendingCall {
    struct Item {
        var app: AppID
        let target: Target
        /// Endings up to this incarnation do not concern the call, unless it is to end that one.
        var incarnation: UInt32
        var generation: Int
        /// The URL that it is to open, by its number.
        var url: Int64?
        /// The app that had the URL before this one, and did not handle it.
        var passedOnBy: String?
        /// It was carried out before, for the client that now asks again: what happened since has not been seen here.
        var isRepeated = false
        /// The app that was asked for, when this one is stopped because it requires it.
        var cause: String?
        var last: (AppState, Transition?, String?)?
        var result: VerbResult?
    }

    /// What the call waits for.
    enum Target: Hashable {
        /// Launched and in that goal's state.
        case goal(Goal)
        /// As `goal`, where an interruption began or ended: inactive is as good as active.
        case interruption(of: Goal)
        /// No process is left.
        case gone
        /// A later incarnation than this is where the goal is.
        case newIncarnation(after: UInt32)
        /// In that state, however it came there.
        case state(AppState)
        /// A scene inside the app is where it was wanted.
        case scene(SceneID, SceneGoal, name: String)
        /// Nothing: the answer is ready.
        case done
    }

    let reply: Reply
    private(set) var items: [Item]
    /// How many items have no result yet.
    private var unanswered: Int
    /// The places of each app among the items: an app is looked at whenever it is touched, in a call for a thousand apps too.
    private var places: [AppID: [Int]] = [:]
    var timer: TimerSource?
    /// Makes the last reply of the results.
    var render: ([VerbResult]) -> JSON = Replies.results
    /// What is waited for when all items have their results, before the last reply.
    var beforeReply: ((_ then: @escaping () -> Void) -> Void)?

    init(reply: Reply, items: [Item]) {
        self.reply = reply
        self.items = items
        unanswered = items.reduce(0) { $1.result == nil ? $0 + 1 : $0 }
        for (index, item) in items.enumerated() { places[item.app, default: []].append(index) }
    }

    var isDone: Bool { unanswered == 0 }

    /// The items that have no result yet: of one app, or all.
    func waiting(for app: AppID? = nil) -> [Int] {
        (app.map { places[$0] ?? [] } ?? Array(items.indices)).filter { items[$0].result == nil }
    }

    /// The URL of an item is another app's now.
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

    /// Gives an item its result, if it has none.
    func answer(_ index: Int, _ result: VerbResult) {
        guard items[index].result == nil else { return }
        items[index].result = result
        unanswered -= 1
    }

    /// Where the app of an item is now; false when that is known already.
    func isNews(_ index: Int, _ now: (AppState, Transition?, String?)) -> Bool {
        if let last = items[index].last, last == now { return false }
        items[index].last = now
        return true
    }
}
