import EventLoop
import Linux
import Output
import TorporAPI
import VarlinkServer

/// One client that reads an app's log, and follows it if it wants to: what there was at its call comes a page at a time,
/// however much that is. It reads the file, not the output: so it can lag behind, and go on where another instance's
/// follower was.
final class LogFollower {
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
    private let follows: Bool
    private let reply: Reply
    private let loop: EventLoop
    private var phase: Phase
    private var position: LogPosition
    private var isAgain = false
    /// Called when the last reply was sent.
    var onDone: (() -> Void)?

    /// So much is sent before everything else has its turn.
    private static let pageBytes = 256 << 10
    /// So much is looked through before everything else has its turn.
    private static let searchBytes = 1 << 20

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
        self.reader = reader
        self.query = query
        self.follows = follows
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
        if case .searching(let search) = phase { position = search.start }
        let page = reader.follow(from: position, query, limit: Self.pageBytes)
        reply.send(Replies.logs(page.lines.map(\.forClients), cursor: page.next.text))
    }

    /// Sends the next lines, if there are any and the client has read those before.
    func step() {
        guard !reply.isClosed, !reply.isUnread, !isAgain else { return }
        guard advance(), !reply.isClosed, !reply.isUnread else { return }
        isAgain = true
        loop.later { [weak self] in
            self?.isAgain = false
            self?.step()
        }
    }

    /// Whether there is more to do at once.
    private func advance() -> Bool {
        switch phase {
        case .searching(var search):
            reader.lookBack(&search, limit: Self.searchBytes)
            position = search.start
            phase = search.isDone ? .past(search) : .searching(search)
            return search.isDone ? advance() : true
        case .past(let search):
            let page = reader.follow(from: position, query, to: search, limit: Self.pageBytes)
            position = page.next
            if !page.more { phase = .following }
            // Also when there was nothing: it is followed from now on.
            send(page, isPast: true)
            return true
        case .following:
            let page = reader.follow(from: position, query, limit: Self.pageBytes)
            let hasMoved = page.next != position
            position = page.next
            // Lines that the query leaves out move the cursor too.
            if !page.lines.isEmpty || (page.more && hasMoved) { send(page, isPast: false) }
            return page.more
        }
    }

    private func send(_ page: LogPage, isPast: Bool) {
        let more = isPast && page.more
        reply.send(
            Replies.logs(page.lines.map(\.forClients), cursor: position.text, more: more),
            continues: more || follows
        )
        if reply.isClosed { onDone?() }
    }
}

extension StampedLine {
    /// As clients get it.
    var forClients: LogLine { LogLine(at: time, text: text) }
}
