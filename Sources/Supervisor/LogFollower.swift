import EventLoop
import Linux
import Output
import TorporAPI
import VarlinkServer

/// One client that follows an app's log. It reads the file, not the output: so it can lag behind, and go on where
/// another instance's follower was.
final class LogFollower {
    private let reader: LogReader
    private let query: LogQuery
    private let reply: Reply
    private let loop: EventLoop
    private var position: LogPosition
    private var isAgain = false

    /// So much is sent before everything else has its turn.
    private static let pageBytes = 256 << 10

    init(_ reader: LogReader, _ query: LogQuery, from position: LogPosition, _ reply: Reply, _ loop: EventLoop) {
        self.reader = reader
        self.query = query
        self.position = position
        self.reply = reply
        self.loop = loop
        reply.onRead = { [weak self] in self?.step() }
    }

    /// The app is no more: what is left is sent, and nothing after it.
    func end() {
        guard !reply.isClosed else { return }
        let page = reader.follow(from: position, query, limit: Self.pageBytes)
        reply.send(Replies.logs(page.lines.map(\.forClients), cursor: page.next.text))
    }

    /// Sends the next lines, if there are any and the client has read those before.
    func step() {
        guard !reply.isClosed, !reply.isUnread, !isAgain else { return }
        let page = reader.follow(from: position, query, limit: Self.pageBytes)
        let hasMoved = page.next != position
        position = page.next
        // Lines that the query leaves out move the cursor too.
        if !page.lines.isEmpty || (page.more && hasMoved) {
            reply.send(Replies.logs(page.lines.map(\.forClients), cursor: position.text), continues: true)
        }
        guard page.more, !reply.isClosed, !reply.isUnread else { return }
        isAgain = true
        loop.later { [weak self] in
            self?.isAgain = false
            self?.step()
        }
    }
}

extension StampedLine {
    /// As clients get it.
    var forClients: LogLine { LogLine(at: time, text: text) }
}
