import Linux
import TorporAPI

/// What happened, newest last, bounded; and those who follow it.
final class EventLog {
    /// How many are kept.
    static let capacity = 10_000

    private var records: [EventRecord] = []
    private var start = 0
    private var followers: [(token: Int, call: (EventRecord) -> Void)] = []
    private var nextToken = 0

    func append(_ record: EventRecord) {
        if records.count < Self.capacity {
            records.append(record)
        } else {
            records[start] = record
            start = (start + 1) % Self.capacity
        }
        for follower in followers { follower.call(record) }
    }

    /// Those of an app, or of all, since a time in microseconds since 1970.
    func records(app: String?, since: Int64?) -> [EventRecord] {
        let ordered = records[start...] + records[..<start]
        return ordered.filter { record in
            if let app, record.app != app { return false }
            if let since, record.at < since { return false }
            return true
        }
    }

    func follow(_ call: @escaping (EventRecord) -> Void) -> Int {
        nextToken += 1
        followers.append((nextToken, call))
        return nextToken
    }

    func unfollow(_ token: Int) { followers.removeAll { $0.token == token } }
}
