// SPDX-License-Identifier: Apache-2.0

import Engine
import EventLoop
import Linux
import Output
import Supervisor
import TorporAPI
import VarlinkServer

/// One client that reads an app's log, and follows it if it wants to: what there was at its call comes a page at a time,
/// however much that is. It reads the file, not the output: so it can lag behind, and go on where another instance's
/// follower was.
final class LogFollower: OutputFollower {
    /// What it does.
    private enum Phase {
        /// Looks for where what there was begins.
        case searching(LogSearch)
        /// Sends what there was.
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
    /// The client takes one reply, and all that there was goes into it.
    private let isGathered: Bool
    private var gathered: [LogLine] = []
    /// So much is looked through yet for a client that takes one reply.
    private var searchLeft = LogReader.mostBytes
    /// When a client that waits for the first line is told that it is looked for.
    private var signAt = Clock.monotonic() + signInterval

    /// Called when the last reply was sent.
    var onDone: (() -> Void)?

    /// So much is sent before everything else has its turn.
    private static let pageBytes = 256 << 10
    /// So much goes into the one reply of a client that comes back with a cursor.
    private static let onePageBytes = 1 << 20
    /// So much is looked through before everything else has its turn.
    private static let searchBytes = 1 << 20
    private static let signInterval = Duration.seconds(5)

    /// - Parameters:
    ///   - position: where to begin; nil to begin with what the query asks for.
    ///   - follows: goes on with what comes later.
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

    /// The app is no more: what is left is sent, and nothing after it.
    func end() {
        guard !reply.isClosed else { return }
        follows = false
        // Nobody else keeps it now.
        reply.onRead = { self.step() }
        step()
    }

    /// Sends the next lines, if there are any and the client has read those before.
    func step() {
        guard !reply.isClosed, !reply.isUnread, !isAgain else { return }
        guard advance(), !reply.isClosed, !reply.isUnread else { return }
        isAgain = true
        loop.later {
            self.isAgain = false
            self.step()
        }
    }

    /// Whether there is more to do at once.
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
                // Also when there was nothing: it is followed from now on.
                send(page.lines.map(\.forClients), more: page.more, continues: page.more || follows)
            } else {
                gathered += page.lines.map(\.forClients)
                if !isGathered || !page.more { send(gathered, more: page.more) }
            }
        case .following:
            let page = next()
            // Lines that the query leaves out move the cursor too.
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
    /// As clients get it.
    var forClients: LogLine { LogLine(at: time, text: text) }
}
