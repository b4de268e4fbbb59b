// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import EventSources
import Lifecycle
import Linux
import Mailbox
import Schedules
import TransferProtocol
import Transfers
import Varlink

/// Subscriptions: URLs that torpord checks for apps, even while the apps sleep. Each subscription is a transfer that
/// never ends. When its interval is over, it makes a conditional request, which downloads the content only if the
/// content has changed, and tells its app only then.
extension AppTransfers {
    /// The most bytes of a subscription's content.
    private static let mostBytes: Int64 = 4 << 20
    /// The most seconds that one check of a subscription may take. There is a limit because running checks count as
    /// running transfers, whose number is limited.
    private static let mostSeconds: Int64 = 600

    /// The topic of messages about a subscription. It is also the name of the session under which lists of transfers
    /// show the subscription.
    static func topic(ofFeed name: String) -> String { "torpor.feed:\(name)" }

    /// The folder for the downloaded content of an app's subscriptions.
    func feedsPlace(of app: String) -> DataPlace { DataPlace(root: supervisor.runtime.state + "/feeds", app: app) }

    /// Adds, changes and removes subscriptions as the configuration says.
    func matchFeeds() {
        guard isLoaded else { return }
        for app in apps { matchFeeds(of: app) }
    }

    func matchFeeds(of app: AppRuntime) {
        var wanted = Self.permissionProblem(app) == nil ? app.specification.subscriptions : []
        for id in queue.feeds(of: app.name) {
            guard let transfer = queue[id], var feed = transfer.feed else { continue }
            let index = wanted.firstIndex { subscription in
                subscription.name.utf8.elementsEqual(feed.name.utf8)
                    && subscription.url.utf8.elementsEqual(transfer.order.url.utf8)
            }
            // If no wanted subscription has the same name and URL, drop this one. A subscription with another URL is a
            // new one, because nothing that is known about the old URL applies to it.
            guard let index else {
                drop(id)
                continue
            }
            let subscription = wanted.remove(at: index)
            guard feed.every != subscription.every else { continue }
            feed.every = subscription.every
            queue.update(id) { $0.feed = feed }
            if transfer.state != .running { queue.set(id, waiting(feed)) }
            save(id)
        }
        for subscription in wanted { subscribe(app, to: subscription) }
    }

    private func subscribe(_ app: AppRuntime, to subscription: SubscriptionSpecification) {
        var order = TransferOrder(
            id: nextID(),
            direction: .download,
            url: subscription.url,
            root: 0,
            file: subscription.name,
            method: "GET"
        )
        order.isDiscretionary = true
        var transfer = Transfer(
            order: order,
            app: app.name,
            session: Self.topic(ofFeed: subscription.name),
            createdAt: Clock.realtimeMicroseconds()
        )
        transfer.events = false
        transfer.feed = TransferFeed(name: subscription.name, every: subscription.every)
        queue.add(transfer)
        save(transfer.id)
    }

    func waiting(_ feed: TransferFeed) -> Transfer.State {
        feed.due(now: supervisor.clocks).map { .waiting(.interval, until: $0) } ?? .queued
    }

    /// Completes the order by which torpor-transfer checks a subscription: makes the request conditional, and sets
    /// limits.
    func order(_ feed: TransferFeed, _ order: inout TransferOrder, of app: AppRuntime) {
        order.root = folders(of: app).count
        order.validator = nil
        order.unless = feed.version
        order.sizeLimit = Self.mostBytes
        order.timeLimit = Self.mostSeconds
    }

    /// Handles the result of a check of a subscription, also if the check has failed.
    func looked(_ end: TransferEnd, at id: Int64) {
        guard let transfer = queue[id], var feed = transfer.feed,
            let app = coordinator.id(of: transfer.app).map({ apps[$0] })
        else { return }
        let result: FetchResult
        switch end.outcome {
        case .done where end.status == 304: result = .noData
        case .done:
            // torpor-transfer is not trusted, so use the reported sum only if it is a valid SHA-256.
            let sum = end.sha256.flatMap { Self.isSHA256($0) ? $0 : nil }
            result = sum == feed.sha256 ? .noData : .newData
            feed.version = transfer.order.validator?.version
            feed.sha256 = sum
        default:
            result = .failed
            if feed.failures == 0 {
                let why = transfer.error ?? "it failed"
                note(app, .transfer, text: "has a subscription that cannot be checked: \(feed.name): \(why)")
            }
        }
        feed.looked(result, now: supervisor.clocks)
        queue.update(id) {
            $0.feed = feed
            $0.failures = 0
            if result != .failed { ($0.reason, $0.error) = (nil, nil) }
        }
        // Tell the app before the result is durable. If torpord is killed in between, the next torpord tells the app
        // again.
        if result == .newData { tell(app, of: feed, transfer.order.url) }
        queue.set(id, end.outcome == .retry ? waiting(feed, after: end) : waiting(feed))
        save(id)
    }

    /// The state of a subscription after a failed check. The server may be reachable again soon, for example after a
    /// reboot. So the check is retried after the same delays as a transfer, and at the latest when the subscription's
    /// interval is over.
    private func waiting(_ feed: TransferFeed, after end: TransferEnd) -> Transfer.State {
        let soon = Clock.realtimeMicroseconds() + delay(after: end, Int64(feed.failures))
        return .waiting(cause(of: end), until: min(soon, feed.due(now: supervisor.clocks) ?? soon))
    }

    private func tell(_ app: AppRuntime, of feed: TransferFeed, _ url: String) {
        var mail: MailDraft?
        if hears(app, .didReceiveEvent) {
            mail = MailDraft(
                topic: Self.topic(ofFeed: feed.name),
                message: Message.didReceiveEvent.rawValue,
                payload: [
                    "path": .string(feedsPlace(of: app.name).path + "/" + feed.name), "url": .string(url),
                ],
                coalescing: .latest,
                sender: "torpord"
            )
            mail?.wake = .background
        }
        supervisor.wakes.tell(
            WakeEvent(.transfer, feed.name, "new content of its subscription \(feed.name)", mail: mail, at: loop.now),
            for: app
        )
    }
}
