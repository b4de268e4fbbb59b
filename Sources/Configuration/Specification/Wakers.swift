// SPDX-License-Identifier: Apache-2.0

import Lifecycle
import Linux

/// Lists the events that can wake a suspended app according to the configuration.
extension AppSpecification {
    /// Whether any event can wake the app: a connection, a timer, a changed path, a device, a post, a transfer, or an
    /// event of one of its background modes. If not, it is resumed only by users, policies and apps that require it.
    public var isWokenByEvents: Bool { isWokenByEvents(exceptAt: []) }

    /// Whether any event can wake the app while these sockets (``SocketSpecification/identity``) are not bound.
    public func isWokenByEvents(exceptAt unbound: Set<String>) -> Bool {
        // The background modes `audio` and `external-accessory` wake no app: they only keep a running app awake.
        self.wakeOnConnect != .none || !self.subscriptions.isEmpty
            || self.backgroundModes.contains { $0 != .audio && $0 != .externalAccessory }
            || sockets.contains { $0.wake != .none && !unbound.contains($0.identity) }
            || self.timers.contains { $0.wake != .none }
            || self.paths.contains { $0.wake != .none } || self.devices.contains { $0.wake != .none }
            || self.topics.values.contains { $0.wake != .none && !$0.refresh }
    }

    /// Whether only data on connections that the app makes itself can wake it: the background mode `voip`. While the
    /// app has no such connection, no event wakes it.
    public var isWokenOnlyByVoip: Bool {
        guard self.backgroundModes.contains(.voip), self.keepAlive == nil else { return false }
        var others = self
        others.backgroundModes.removeAll { $0 == .voip }
        return !others.isWokenByEvents
    }

    /// Whether the app can ever be suspended. A oneshot app cannot, nor can an app with `exits_on_suspend`.
    public var maySleep: Bool { !self.rules.isOneshot && !self.rules.exitsOnSuspend }

    /// The events that wake the app, as words for people. `connections` contains the addresses that `wake_on_connect`
    /// watches; they are known only while the app runs. `unbound` contains the sockets
    /// (``SocketSpecification/identity``) that are not bound, so that no connection arrives at them. `topics` are those
    /// to which the app has subscribed too; nil for those of the configuration.
    public func wakers(
        connections: [String] = [],
        exceptAt unbound: Set<String> = [],
        topics: [String: TopicRule]? = nil
    ) -> [String] {
        var wakers: [String] = []
        for socket in sockets where socket.wake != .none && !unbound.contains(socket.identity) {
            wakers.append("connections to \(socket.plan.address)")
        }
        wakers += connections
        for timer in self.timers where timer.wake != .none { wakers.append("timer \(timer.name)") }
        for path in self.paths where path.wake != .none { wakers.append("path \(path.name)") }
        for device in self.devices where device.wake != .none { wakers.append("device \(device.name)") }
        let topics = topics ?? self.topics
        for topic in topics.keys.sorted() {
            guard let rule = topics[topic], rule.wake != .none, !rule.refresh else { continue }
            wakers.append("\(rule.urgent ? "posts" : "urgent posts") to \(topic)")
        }
        for subscription in self.subscriptions { wakers.append("news of \(subscription.name)") }
        return wakers + self.backgroundModes.map(\.rawValue).sorted()
    }
}
