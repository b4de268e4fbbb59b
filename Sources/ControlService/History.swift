// SPDX-License-Identifier: Apache-2.0

import Engine
import Linux
import Store
import Supervisor
import TorporAPI
import Varlink
import VarlinkServer

/// Answers one client that asks for events. Reads old events from the store, a page at a time, and the newest from the
/// log in memory. With `follow`, sends later events too. Each page begins after the last event sent, so that no event
/// is left out or sent twice.
final class History {
    private unowned(unsafe) let supervisor: Supervisor
    private let request: EventsRequest
    private let reply: Reply
    /// The sequence number of the last event sent.
    private var position: Int64
    /// The names of the apps whose events are sent; nil for all events.
    private let apps: [String]?
    /// The error if the configuration has no app of the requested name. It is sent only if the answer has no events.
    private var unknown: Selection.Unknown?
    /// A text that says which events are missing from the answer; nil if none are.
    private var incomplete: String?

    /// The maximum number of events in one reply. An answer may consist of several replies.
    private static let page = 500
    /// The maximum number of events in an answer; also the limit if the request has none.
    private static let most = 10_000

    init(_ supervisor: Supervisor, _ request: EventsRequest, _ reply: Reply) {
        self.supervisor = supervisor
        var request = request
        // A sequence number higher than the newest one comes from a history that was lost: ignore it.
        if let after = request.after, after > supervisor.events.sequence { request.after = nil }
        self.request = request
        self.reply = reply
        position = request.after ?? 0
        guard let app = request.app else {
            apps = nil
            return
        }
        do throws(Selection.Unknown) {
            apps = try supervisor.selection.resolve([app]).map(\.name)
        } catch {
            // For the name of a scene inside an app, send the app's events, which include those of the scene.
            if let (owner, _) = supervisor.innerScenes.scene(named: app) {
                apps = [owner.name]
                return
            }
            apps = [app]
            unknown = error
        }
    }

    /// Sends the existing events. If the request says `follow`, sends later events too.
    func begin() {
        let reachesBack = supervisor.events.reachesBack(since: request.since, after: request.after)
        if let limit {
            if reachesBack { return send(newest: limit, of: []) }
            var query = self.query
            query.limit = limit
            query.prefersNewest = true
            ask(query) { $0.send(newest: limit, of: $1) }
        } else if reachesBack {
            send(newest: nil, of: [])
        } else {
            nextPage()
        }
    }

    /// The maximum number of existing events to send; nil for all.
    private var limit: Int? {
        if let limit = request.limit { return Int(clamping: min(limit, Int64(Self.most))) }
        if request.since != nil || request.after != nil { return reply.more ? nil : Self.most }
        return request.follow ? 20 : Self.most
    }

    private var query: EventQuery {
        var query = EventQuery()
        query.apps = apps
        query.since = request.since
        query.until = request.until
        query.after = position
        return query
    }

    private func ask(_ query: EventQuery, _ completion: @escaping (History, [EventRecord]) -> Void) {
        supervisor.store.events(query) { result in
            guard !self.reply.isClosed else { return }
            switch result {
            case .success(let events): completion(self, events.map(EventRecord.init))
            case .failure(let error):
                self.incomplete = "older events cannot be read now: \(error)"
                completion(self, [])
            }
        }
    }

    private func nextPage() {
        var query = self.query
        query.limit = Self.page
        ask(query) { history, events in
            // A page that is not full is the store's last page. Later events, which the store does not have yet, are
            // in memory.
            guard events.count == Self.page else { return history.send(newest: nil, of: events) }
            history.sendPart(events.prefix(EventParts.fitting(events)))
            history.whenRead { $0.nextPage() }
        }
    }

    /// Sends a reply that is not the last one.
    private func sendPart(_ events: ArraySlice<EventRecord>) {
        position = events.last?.sequence ?? position
        reply.send(Replies.events(Array(events), sequence: position), continues: true)
    }

    /// Continues when the client has read the replies so far.
    private func whenRead(_ body: @escaping (History) -> Void) {
        guard reply.isUnread else { return body(self) }
        reply.onRead = { [self] in
            reply.onRead = nil
            body(self)
        }
    }

    /// Sends the newest events: those from the store, and later ones from memory.
    private func send(newest limit: Int?, of stored: [EventRecord]) {
        position = stored.last?.sequence ?? position
        let log = supervisor.events
        let recent = log.records(apps: apps, since: request.since, after: position, until: request.until)
        let all = stored + recent
        let chosen = limit.map { Array(all.suffix($0)) } ?? all
        if let unknown, position == 0, chosen.isEmpty { return reply.fail(unknown) }
        send(chosen[...], until: log.sequence)
    }

    /// Sends events in as many replies as it takes, and then the events that were recorded after the event with the
    /// number `sequence`.
    private func send(_ events: ArraySlice<EventRecord>, until sequence: Int64) {
        let count = reply.more ? EventParts.fitting(events) : events.count
        if count < events.count {
            sendPart(events.prefix(count))
            return whenRead { $0.send(events.dropFirst(count), until: sequence) }
        }
        guard supervisor.events.sequence > sequence else { return finish(with: Array(events)) }
        sendPart(events)
        position = max(position, sequence)
        nextPage()
    }

    /// Sends the last reply about existing events. If the request says `follow`, sends later events too.
    private func finish(with events: [EventRecord]) {
        var events = events
        let left = reply.more ? 0 : events.count - EventParts.fitting(events.reversed())
        if left > 0 {
            events.removeFirst(left)
            incomplete =
                "\(left) older events are left out: a reply without ‘more’ has at most "
                + "\(BoundedReply.mostBytes >> 20) MiB"
        }
        let log = supervisor.events
        reply.send(
            Replies.events(events, sequence: log.sequence, incomplete: incomplete),
            continues: request.follow
        )
        guard request.follow, reply.more, !reply.isClosed else { return }
        let apps = apps.map(Set.init)
        let token = log.follow { [weak reply] record in
            if let apps { guard let app = record.app, apps.contains(app) else { return } }
            reply?.send(Replies.events([record], sequence: record.sequence), continues: true)
        }
        reply.onClosed = { [weak log, reply] in
            _ = reply
            log?.unfollow(token)
        }
    }
}

extension EventRecord {
    /// A stored event, in the form for clients.
    init(_ event: StoredEvent) {
        self.init(
            at: event.at,
            app: event.app,
            incarnation: event.incarnation,
            kind: event.kind,
            from: event.from,
            to: event.to,
            text: event.text,
            reason: event.reason,
            details: event.details.flatMap { try? JSON.parse($0) } ?? .emptyObject
        )
        sequence = event.sequence
    }
}
