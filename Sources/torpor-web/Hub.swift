// SPDX-License-Identifier: Apache-2.0

import HTTPServing
import Linux
import TorporAPI
import Varlink
import Web

/// Shares torpord's state with the open pages: apps, events, samples, and whether torpord is connected.
final class Hub: Sendable {
    struct State {
        var apps = AppTable()
        var events = EventRing(capacity: 1000)
        var samples = SampleRing(capacity: 1800, age: 3_600_000_000)
        var supervisor: JSON = ["connected": false, "message": "torpord was not reached yet"]
        var pages: [Int: HTTPStream] = [:]
        var nextPage = 1
        /// The time of the last request from a page.
        var lastLook = Clock.monotonic()
        /// Whether the apps must be listed again.
        var isStale = true
        /// The number of verbs in progress. While there are any, apps are listed more often.
        var underWay = 0
        var hasEnded = false
    }

    let state = Monitor(State())
    /// The most pages that may be open at the same time.
    static let mostPages = 64
    /// The most unsent bytes of a page; a page with more unsent bytes is disconnected.
    static let mostPending = 8 << 20
    /// How long sampling continues after the last request from a page.
    static let interest = Duration.seconds(600)

    /// Records that the dashboard is in use, so that sampling continues.
    func look() {
        let slept = state.withLock { state in
            let now = Clock.monotonic()
            defer { state.lastLook = now }
            return now - state.lastLook > .seconds(2)
        }
        if slept { state.wake() }
    }

    /// Requests a new list of apps. `change` is added to the number of verbs in progress.
    func refresh(underWay change: Int = 0) {
        state.withLock { state in
            state.isStale = true
            state.underWay += change
        }
        state.wake()
    }

    // MARK: What comes from torpord

    /// Adds the events of a reply.
    func take(events reply: JSON) {
        let isNews = state.withLock { state in
            let sequence = reply["sequence"]?.intValue ?? 0
            // The numbers have started over, so torpord has a new event log: forget the old events.
            if let newest = state.events.newest, sequence < newest { state.events = EventRing(capacity: 1000) }
            var isNews = false
            for event in reply["events"]?.arrayValue ?? [] {
                let number = event["sequence"]?.intValue ?? 0
                guard state.events.take(number, event) else { continue }
                isNews = true
                if Self.isEviction(event) { state.samples.mark(Self.mark(event)) }
                state.tell(ServerSentEvent.message("event", event, id: number))
            }
            state.events.begin(behind: sequence)
            return isNews
        }
        if isNews { refresh() }
    }

    /// Whether an event is the eviction of an app, by torpord's steps against memory shortage.
    private static func isEviction(_ event: JSON) -> Bool {
        guard event["app"]?.stringValue != nil, let reason = event["reason"]?.stringValue else { return false }
        let steps = ["evict", "end-background", "end-inactive", "end-active"]
        return event["kind"]?.stringValue == "memory" && steps.contains(reason)
    }

    private static func mark(_ event: JSON) -> JSON {
        ["at": event["at"] ?? .null, "app": event["app"] ?? .null, "text": event["text"] ?? .null]
    }

    /// Replaces the list of apps, and sends the changes to the pages.
    func take(apps: [JSON]) {
        state.withLock { state in
            let change = state.apps.take(apps)
            if !change.isEmpty { state.tell(ServerSentEvent.message("apps", change.json)) }
        }
    }

    /// Adds a sample.
    func take(_ sample: Sample) {
        state.withLock { state in
            state.samples.take(sample)
            state.tell(ServerSentEvent.message("sample", sample.json))
        }
    }

    /// Sets torpord's description, and sends it to the pages if it has changed.
    func take(supervisor: JSON) {
        state.withLock { state in
            guard supervisor != state.supervisor else { return }
            state.supervisor = supervisor
            state.tell(ServerSentEvent.message("supervisor", supervisor))
        }
    }

    // MARK: Pages

    /// Starts the stream of a page. If the page names the last event that it has, it first gets the events that it
    /// missed. Then it gets the whole state, then changes. `missed`: the missed events that are no longer in the ring.
    /// Returns false if too many pages are open.
    func open(_ stream: HTTPStream, number: Int, after last: Int64?, missed: [JSON]) -> Bool {
        state.withLock { state in
            guard state.pages.count < Self.mostPages, !state.hasEnded else { return false }
            stream.send(ServerSentEvent.retry(1000))
            var position = last
            for event in missed {
                position = event["sequence"]?.intValue ?? position
                stream.send(ServerSentEvent.message("event", event, id: position))
            }
            if let position {
                for (sequence, event) in state.events.events(after: position) ?? [] {
                    stream.send(ServerSentEvent.message("event", event, id: sequence))
                }
            }
            let snapshot: JSON = [
                "apps": .array(state.apps.all), "supervisor": state.supervisor,
                "sequence": .optional(state.events.newest), "at": .int(Clock.realtimeMicroseconds()),
            ]
            stream.send(ServerSentEvent.message("snapshot", snapshot, id: state.events.newest))
            state.pages[number] = stream
            return true
        }
    }

    /// Returns a unique number for a page that opens.
    func nextPage() -> Int {
        state.withLock { state in
            defer { state.nextPage += 1 }
            return state.nextPage
        }
    }

    /// Removes a page.
    func close(_ number: Int) { state.withLock { $0.pages[number] = nil } }

    /// Whether all events after this number are in the ring.
    func knows(eventsAfter number: Int64) -> Bool { state.withLock { $0.events.events(after: number) != nil } }

    /// Ends the streams of all pages.
    func end() {
        let pages = state.withLock { state in
            state.hasEnded = true
            return Array(state.pages.values)
        }
        for page in pages { page.end() }
    }
}

extension Hub.State {
    /// Sends a message to all pages.
    func tell(_ message: [UInt8]) {
        for page in pages.values { page.send(message) }
    }
}
