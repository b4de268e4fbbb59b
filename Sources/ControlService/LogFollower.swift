// SPDX-License-Identifier: Apache-2.0

import Engine
import EventLoop
import Linux
import Output
import Supervisor
import TorporAPI
import VarlinkServer

/// Sends an app's log to one client, a page at a time, and follows it on request. It reads the log file, not the
/// app's output. So it may fall behind, and after an upgrade of torpord it continues at the client's cursor.
final class LogFollower: OutputFollower {
    /// The current step.
    private enum Phase {
        /// Searches for the start of the existing lines to send.
        case searching(LogSearch)
        /// Sends existing lines.
        case past(LogSearch)
        case following
    }

    private let reader: LogReader
    private let query: LogQuery
    private let reply: Reply
    private let loop: EventLoop
    private var follows: Bool
    private var phase: Phase
    private var position: LogPosition
    private var isAgain = false
    /// Whether the client wants all existing lines in a single reply.
    private let isGathered: Bool
    private var gathered: [LogLine] = []
    /// How many more bytes are searched for a client that takes a single reply.
    private var searchLeft = LogReader.mostBytes
    /// When to send the next sign of life to a client that waits for the first line, if the search is not done by
    /// then.
    private var signAt = Clock.monotonic() + signInterval

    /// Called when the last reply was sent.
    var onDone: (() -> Void)?

    /// The most bytes to send before the loop does other work.
    private static let pageBytes = 256 << 10
    /// The most bytes in the single reply to a client that continues at a cursor.
    private static let onePageBytes = 1 << 20
    /// The most bytes to search before the loop does other work.
    private static let searchBytes = 1 << 20
    private static let signInterval = Duration.seconds(5)

    /// - Parameters:
    ///   - position: where to begin; nil to search for what the query asks for.
    ///   - follows: whether later lines are sent too.
    init(
        _ reader: LogReader,
        _ query: LogQuery,
        from position: LogPosition?,
        follows: Bool,
        _ reply: Reply,
        _ loop: EventLoop
    ) {
        var query = query
        if !reply.more { query.count = min(query.count ?? .max, LogReader.mostLines) }
        self.reader = reader
        self.query = query
        self.follows = follows
        isGathered = !reply.more && position == nil
        self.reply = reply
        self.loop = loop
        let search = reader.search(query)
        phase = position == nil ? .searching(search) : .past(search)
        self.position = position ?? search.start
        reply.onRead = { [weak self] in self?.step() }
    }

    /// The app was removed: sends the rest and then ends.
    func end() {
        guard !reply.isClosed else { return }
        follows = false
        // The closure keeps this object alive until all is sent: the app, which was removed, no longer does.
        reply.onRead = { self.step() }
        step()
    }

    /// Sends the next lines if there are any and the client has read the previous ones.
    func step() {
        guard !reply.isClosed, !reply.isUnread, !isAgain else { return }
        guard advance(), !reply.isClosed, !reply.isUnread else { return }
        isAgain = true
        loop.later {
            self.isAgain = false
            self.step()
        }
    }

    /// Does one step. Returns whether more can be done at once.
    private func advance() -> Bool {
        switch phase {
        case .searching(var search):
            reader.lookBack(&search, limit: Self.searchBytes)
            position = search.start
            searchLeft -= Self.searchBytes
            let isDone = search.isDone || (!reply.more && searchLeft <= 0)
            phase = isDone ? .past(search) : .searching(search)
            if isDone { return advance() }
            if reply.more, Clock.monotonic() >= signAt {
                signAt = Clock.monotonic() + Self.signInterval
                reply.send(Replies.logs([], cursor: "", more: true), continues: true)
            }
        case .past(let search):
            let page = next(to: search)
            if !page.more { phase = .following }
            if reply.more {
                // Send a page without lines too, to tell the client that following begins.
                send(page.lines.map(\.forClients), more: page.more, continues: page.more || follows)
            } else {
                gathered += page.lines.map(\.forClients)
                if !isGathered || !page.more { send(gathered, more: page.more) }
            }
        case .following:
            let page = next()
            // Send a full page of which no line matches the query too, so that the client's cursor moves.
            let isNews = !page.lines.isEmpty || page.more
            if isNews || !follows { send(page.lines.map(\.forClients), continues: page.more || follows) }
            return page.more
        }
        return true
    }

    private func next(to search: LogSearch? = nil) -> LogPage {
        let limit = reply.more || isGathered ? Self.pageBytes : Self.onePageBytes
        let page = reader.follow(from: position, query, to: search, limit: limit)
        position = page.next
        return page
    }

    private func send(_ lines: [LogLine], more: Bool = false, continues: Bool = false) {
        reply.send(Replies.logs(lines, cursor: position.text, more: more), continues: continues)
        if reply.isClosed { onDone?() }
    }
}

extension StampedLine {
    /// The form for clients.
    var forClients: LogLine { LogLine(at: time, text: text) }
}
