// SPDX-License-Identifier: Apache-2.0

import Engine
import EventLoop
import Linux
import Output
import Supervisor
import TorporAPI
import Varlink
import VarlinkServer

/// Sends an app's log to one client, one page at a time, and on request also later lines. It reads the log file, not
/// the app's output. So a slow client may fall behind, and after an upgrade of torpord the client continues at its
/// cursor.
final class LogFollower: OutputFollower {
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
    private var gathered = GatheredLines(most: BoundedReply.mostBytes)
    /// The number of bytes that may still be searched for a client that takes a single reply.
    private var searchLeft = LogReader.mostBytes
    /// If the search is not done by this time, an empty reply tells the client that torpord is still searching.
    private var signAt = Clock.monotonic() + signInterval

    /// Called after the last reply was sent.
    var onDone: (() -> Void)?

    /// The maximum number of bytes sent before the event loop does other work.
    private static let pageBytes = 256 << 10
    /// The maximum number of bytes searched before the event loop does other work.
    private static let searchBytes = 1 << 20
    private static let signInterval = Duration.seconds(5)

    /// - Parameters:
    ///   - position: the position at which to begin; nil to search for the lines that the query asks for.
    ///   - follows: whether lines written later are sent too.
    init(
        _ reader: LogReader,
        _ query: LogQuery,
        from position: LogPosition?,
        follows: Bool,
        _ reply: Reply,
        _ loop: EventLoop
    ) {
        var query = query
        if !reply.more {
            query.count = min(query.count ?? .max, LogReader.mostLines)
            // As JSON, no line is shorter than in the file.
            query.bytes = BoundedReply.mostBytes
        }
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

    /// Called when the app was removed: sends the remaining lines and then ends.
    func end() {
        guard !reply.isClosed else { return }
        follows = false
        // Once the app is removed, it no longer refers to this object. The closure keeps the object alive until all
        // lines are sent.
        reply.onRead = { self.step() }
        step()
    }

    /// Sends the next lines, unless the client has not read the previous ones yet.
    func step() {
        guard !reply.isClosed, !reply.isUnread, !isAgain else { return }
        guard advance(), !reply.isClosed, !reply.isUnread else { return }
        isAgain = true
        loop.later {
            self.isAgain = false
            self.step()
        }
    }

    /// Searches or sends one page. Returns whether the next page can be handled at once.
    private func advance() -> Bool {
        switch phase {
        case .searching(var search):
            reader.lookBack(&search, limit: Self.searchBytes)
            position = search.start
            searchLeft -= Self.searchBytes
            let isDone = search.isDone || (!reply.more && searchLeft <= 0)
            if isDone, search.isCut || !search.isDone { gathered.isCut = true }
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
                // Send a page even if it has no lines: it tells the client that the existing lines end here.
                send(page.lines.map(\.forClients), more: page.more, continues: page.more || follows)
            } else if isGathered {
                gathered.append(page.lines.map(\.forClients))
                if !page.more { sendGathered() }
            } else {
                send(page.lines.map(\.forClients), more: page.more)
            }
        case .following:
            let page = next()
            // A page may be full although no line matches the query. Send it too, so that the client's cursor
            // advances.
            let isNews = !page.lines.isEmpty || page.more
            if isNews || !follows { send(page.lines.map(\.forClients), continues: page.more || follows) }
            return page.more
        }
        return true
    }

    private func next(to search: LogSearch? = nil) -> LogPage {
        let page = reader.follow(from: position, query, to: search, limit: Self.pageBytes)
        position = page.next
        return page
    }

    private func send(_ lines: [LogLine], more: Bool = false, continues: Bool = false) {
        reply.send(Replies.logs(lines, cursor: position.text, more: more), continues: continues)
        if reply.isClosed { onDone?() }
    }

    private func sendGathered() {
        let cursor = position.text
        reply.sendText { gathered.append(to: &$0, cursor: cursor) }
        onDone?()
    }
}

extension StampedLine {
    /// The log line, in the form for clients.
    var forClients: LogLine { LogLine(at: time, text: text) }

    /// The log line, in the form for clients, with a text of at most `most` bytes as JSON.
    func shortened(to most: Int) -> LogLine { LogLine(at: time, text: text.shortened(toSerialised: most)) }
}
