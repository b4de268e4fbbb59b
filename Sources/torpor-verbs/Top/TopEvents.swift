// SPDX-License-Identifier: Apache-2.0

import Linux
import TopView
import TorporAPI
import Varlink

/// Receives events as they happen, on its own connection and thread. Also requests earlier events.
final class TopEvents: Sendable {
    private let path: String
    private let inbox: TopInbox
    private let feed: TopFeed
    private let since: Int64

    init(path: String, since: Int64, feed: TopFeed, inbox: TopInbox) {
        (self.path, self.since, self.feed, self.inbox) = (path, since, feed, inbox)
    }

    /// The maximum number of past events that are requested at the start.
    private static let most: Int64 = 4000

    func start() throws(Errno) { try WorkerThread.start(named: "top-events") { self.run() } }

    private func run() {
        var sequence: Int64?
        var pause = Duration.milliseconds(20)
        while true {
            var request = EventsRequest()
            request.follow = true
            // If the supervisor was replaced, continue after the last event that the old one sent.
            request.after = sequence
            if sequence == nil { (request.since, request.limit) = (since, Self.most) }
            // Do not report errors here, because the feed gets and reports the same ones.
            if let client = try? VarlinkClient(path: path, timeout: .seconds(5)) {
                _ = try? client.callMore(ManagerRequest.events(request).call) { reply in
                    pause = .milliseconds(20)
                    sequence = reply["sequence"]?.intValue ?? sequence
                    let events = (reply["events"]?.arrayValue ?? []).compactMap { try? EventRecord(json: $0) }
                    guard !events.isEmpty else { return }
                    inbox.put(.events(events))
                    feed.hurry(memory: events.contains { $0.kind == "memory" })
                }
            }
            ThisProcess.sleep(pause)
            pause = min(pause * 2, .seconds(1))
        }
    }

    /// Requests all events since a time, for the timeline.
    func ask(since: Int64) {
        let (path, inbox) = (path, inbox)
        try? WorkerThread.start(named: "top-history") {
            var request = EventsRequest()
            request.since = since
            request.limit = 50_000
            var events: [EventRecord] = []
            func take(_ reply: JSON) {
                events += (reply["events"]?.arrayValue ?? []).compactMap { try? EventRecord(json: $0) }
            }
            do throws(VarlinkClientError) {
                let client = try VarlinkClient(path: path, timeout: .seconds(5))
                take(
                    try client.callMore(ManagerRequest.events(request).call, timeoutMilliseconds: 10_000, onReply: take)
                )
                inbox.put(.history(events, since: since))
            } catch {
                inbox.put(.said(TopFeed.sentence(error), .error))
            }
        }
    }
}
