// SPDX-License-Identifier: Apache-2.0

import HTTPServing
import Linux
import TorporAPI
import Varlink
import Web

/// What pages that are open are told, and what one gets that opens: apps, events, samples, and whether torpord is there.
final class Hub: Sendable {
    struct State {
        var apps = AppTable()
        var events = EventRing(capacity: 1000)
        var samples = SampleRing(capacity: 1800, age: 3_600_000_000)
        var supervisor: JSON = ["connected": false, "message": "torpord was not reached yet"]
        var pages: [Int: HTTPStream] = [:]
        var nextPage = 1
        /// When somebody looked last.
        var lastLook = Clock.monotonic()
        /// The apps are to be listed anew.
        var isStale = true
        /// Things that are being done to apps: their steps are looked at often.
        var underWay = 0
        var hasEnded = false
    }

    let state = Monitor(State())
    /// So many pages may be open at a time.
    static let mostPages = 64
    /// So many bytes may wait for a page.
    static let mostPending = 8 << 20
    /// So long after somebody looked last it is sampled.
    static let interest = Duration.seconds(600)

    /// Somebody looks.
    func look() {
        let slept = state.withLock { state in
            let now = Clock.monotonic()
            defer { state.lastLook = now }
            return now - state.lastLook > .seconds(2)
        }
        if slept { state.wake() }
    }

    /// The apps are to be listed soon.
    func refresh(underWay change: Int = 0) {
        state.withLock { state in
            state.isStale = true
            state.underWay += change
        }
        state.wake()
    }

    // MARK: What comes from torpord

    /// Takes a reply of Events.
    func take(events reply: JSON) {
        let isNews = state.withLock { state in
            let sequence = reply["sequence"]?.intValue ?? 0
            // Another log than before: numbers begin anew.
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

    /// Whether an app was ended for want of memory: the step of the memory ladder, which says why.
    private static func isEviction(_ event: JSON) -> Bool {
        guard event["app"]?.stringValue != nil, let reason = event["reason"]?.stringValue else { return false }
        let steps = ["evict", "end-background", "end-inactive", "end-active"]
        return event["kind"]?.stringValue == "memory" && steps.contains(reason)
    }

    private static func mark(_ event: JSON) -> JSON {
        ["at": event["at"] ?? .null, "app": event["app"] ?? .null, "text": event["text"] ?? .null]
    }

    /// Takes a list of all apps.
    func take(apps: [JSON]) {
        state.withLock { state in
            let change = state.apps.take(apps)
            if !change.isEmpty { state.tell(ServerSentEvent.message("apps", change.json)) }
        }
    }

    /// Takes a sample.
    func take(_ sample: Sample) {
        state.withLock { state in
            state.samples.take(sample)
            state.tell(ServerSentEvent.message("sample", sample.json))
        }
    }

    /// What is known of torpord; what was known before is not told again.
    func take(supervisor: JSON) {
        state.withLock { state in
            guard supervisor != state.supervisor else { return }
            state.supervisor = supervisor
            state.tell(ServerSentEvent.message("supervisor", supervisor))
        }
    }

    // MARK: Pages

    /// Opens a page's stream: what it missed, if it says which event it had last, then everything as it is, then what
    /// comes. `missed` are older events than those that are kept here. False: too many are open.
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

    /// A number for a page that is to be opened.
    func nextPage() -> Int {
        state.withLock { state in
            defer { state.nextPage += 1 }
            return state.nextPage
        }
    }

    /// A page is gone.
    func close(_ number: Int) { state.withLock { $0.pages[number] = nil } }

    /// Whether the events behind a number are here.
    func knows(eventsAfter number: Int64) -> Bool { state.withLock { $0.events.events(after: number) != nil } }

    /// Ends every page's stream.
    func end() {
        let pages = state.withLock { state in
            state.hasEnded = true
            return Array(state.pages.values)
        }
        for page in pages { page.end() }
    }
}

extension Hub.State {
    /// Tells every page.
    func tell(_ message: [UInt8]) {
        for page in pages.values { page.send(message) }
    }
}
