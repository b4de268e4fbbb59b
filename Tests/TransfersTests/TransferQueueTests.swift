// SPDX-License-Identifier: Apache-2.0

import Testing
import TransferProtocol
import Varlink

@testable import Transfers

@Suite("Which transfer runs next") struct TransferQueueTests {
    private static let limits = TransferQueue.Limits(connections: 4, perApp: 2, perServer: 2)

    private static func transfer(
        _ id: Int64,
        _ app: String = "a",
        _ url: String = "https://h/",
        priority: Int64 = 0,
        isDiscretionary: Bool = false,
        session: String = "s"
    ) -> Transfer {
        var order = TransferOrder(id: id, direction: .download, url: url, root: 0, file: "f\(id)", method: "GET")
        order.isDiscretionary = isDiscretionary
        var transfer = Transfer(order: order, app: app, session: session, createdAt: id)
        transfer.priority = priority
        return transfer
    }

    /// All that run now, in the order in which they begin.
    private static func begin(
        _ queue: inout TransferQueue,
        _ limits: TransferQueue.Limits = limits,
        foreground: Set<String> = [],
        user: (String) -> String = { _ in "" },
        mayRun: (String, Transfer.Kind) -> Bool = { _, _ in true }
    ) -> [Int64] {
        var begun: [Int64] = []
        while let next = queue.next(limits, isInForeground: { foreground.contains($0) }, user: user, mayRun: mayRun) {
            queue.set(next.id, .running)
            begun.append(next.id)
        }
        return begun
    }

    @Test("As many as may, of an app, of a server and of all") func limits() {
        var queue = TransferQueue()
        for id in 1...3 as ClosedRange<Int64> { queue.add(Self.transfer(id, "a", "https://h\(id)/")) }
        for id in 4...6 as ClosedRange<Int64> { queue.add(Self.transfer(id, "b", "https://x/\(id)")) }
        queue.add(Self.transfer(7, "c", "https://x:443/"))
        queue.add(Self.transfer(8, "c", "http://x/"))
        #expect(Self.begin(&queue) == [1, 4, 7, 2], "two of each app, two of x, four of all")
        #expect(queue.runningCount == 4 && queue.running(of: "a") == [1, 2])
        queue.remove(4)
        #expect(Self.begin(&queue) == [5], "it is b's turn, and its server has a place")
        queue.remove(7)
        #expect(Self.begin(&queue) == [8], "at another port of that server")
        #expect(queue.count == 6 && queue.count(of: "b") == 2)
    }

    @Test("No user keeps another one waiting, by the number of its apps, or at a server") func users() {
        // Apps b1 to b3 are bob's, and so on.
        let user = { (app: String) in String(app.prefix(1)) }
        var queue = TransferQueue()
        var id: Int64 = 0
        func add(_ app: String, _ url: String) {
            id += 1
            queue.add(Self.transfer(id, app, url))
        }
        for app in ["b1", "b2", "b3"] { for _ in 0..<4 { add(app, "https://h\(id)/") } }
        #expect(Self.begin(&queue, user: user) == [1, 5, 9, 2], "alone it has all places")
        add("x1", "https://a/")
        add("x2", "https://b/")
        add("c1", "https://c/")
        #expect(Self.begin(&queue, foreground: ["b1"], user: user) == [15, 13], "one more for each user without any")
        add("b0", "https://d/")
        for ended in [1, 2, 15] as [Int64] { queue.remove(ended) }
        #expect(Self.begin(&queue, user: user) == [14], "a place is for the user that has fewer")
        queue = TransferQueue()
        for app in ["b1", "b2", "a1", "a2"] { add(app, "https://x/") }
        add("a1", "https://x/")
        let many = TransferQueue.Limits(connections: 8, perApp: 2, perServer: 2)
        #expect(Self.begin(&queue, many, user: user) == [19, 17, 20, 18], "two of each user at a server, in turn")
        queue.remove(19)
        #expect(Self.begin(&queue, many, user: user) == [21])
    }

    @Test("Users with one transfer each exceed the limit, but twice as many never run") func manyUsers() {
        var queue = TransferQueue()
        for id in 1...20 as ClosedRange<Int64> { queue.add(Self.transfer(id, "u\(id)", "https://h\(id)/")) }
        #expect(Self.begin(&queue, user: { $0 }).count == 2 * Self.limits.connections)
        queue.remove(1)
        #expect(Self.begin(&queue, user: { $0 }).count == 1)
        #expect(queue.runningCount == 8)
    }

    @Test("What waits for something is known by that, and no longer than it does") func waiting() {
        var queue = TransferQueue()
        for id in 1...4 as ClosedRange<Int64> { queue.add(Self.transfer(id)) }
        for id in [3, 1, 4] as [Int64] { queue.set(id, .waiting(.network, until: 100 + id)) }
        queue.set(2, .waiting(.retry, until: 50))
        #expect(queue.waiting(for: .network).map(\.id) == [1, 3, 4] && queue.waiting(for: .retry).map(\.id) == [2])
        queue.set(1, .queued)
        queue.remove(3)
        queue.set(4, .waiting(.retry, until: 60))
        #expect(!queue.isWaiting(for: .network) && queue.waiting(for: .retry).map(\.id) == [2, 4])
        #expect(queue.due(at: 55).queued == [2])
        #expect(queue.waiting(for: .retry).map(\.id) == [4] && !queue.isWaiting(for: .login))
    }

    @Test("Alarms of times at which nothing waits any more do not pile up, and none that counts is lost") func alarms()
    {
        var queue = TransferQueue()
        queue.add(Self.transfer(1))
        for turn in 1...10_000 as ClosedRange<Int64> {
            queue.set(1, .waiting(.retry, until: 1_000_000 + turn))
            queue.set(1, .queued)
        }
        queue.set(1, .waiting(.retry, until: 2_000_000))
        #expect(queue.alarmCount <= 4 + 64 + 1)
        #expect(queue.due(at: 1_999_999).queued.isEmpty && queue.due(at: 2_000_000).queued == [1])
    }

    @Test("The foreground first, then priority, then who asked first") func order() {
        var queue = TransferQueue()
        queue.add(Self.transfer(1, "a", "https://1/"))
        queue.add(Self.transfer(2, "a", "https://2/", priority: 5))
        queue.add(Self.transfer(3, "b", "https://3/"))
        queue.add(Self.transfer(4, "b", "https://4/", priority: -1))
        let one = TransferQueue.Limits(connections: 1, perApp: 1, perServer: 1)
        var order: [Int64] = []
        for _ in 0..<4 {
            let begun = Self.begin(&queue, one, foreground: ["b"])
            #expect(begun.count == 1)
            order += begun
            queue.remove(begun[0])
        }
        #expect(order == [3, 4, 2, 1])
        #expect(queue.apps.isEmpty && queue.count == 0)
    }

    @Test("A discretionary one that may not run now is in nobody's way") func discretionary() {
        var queue = TransferQueue()
        queue.add(Self.transfer(1, isDiscretionary: true))
        queue.add(Self.transfer(2))
        #expect(Self.begin(&queue, mayRun: { $1 == .prompt }) == [2])
        #expect(queue[1]?.state == .queued)
        #expect(Self.begin(&queue) == [1])
    }

    @Test("What waits is queued when its time comes, and what takes too long is told") func times() {
        var queue = TransferQueue()
        var limited = Self.transfer(1)
        limited.expiresAt = 100
        queue.add(limited)
        queue.add(Self.transfer(2))
        #expect(Self.begin(&queue) == [1, 2])
        queue.set(1, .waiting(.retry, until: 50))
        queue.set(2, .waiting(.login, until: nil))
        #expect(queue.nextAlarm == 50 && queue.runningCount == 0)
        #expect(queue.due(at: 49) == ([], []))
        #expect(queue.due(at: 50) == ([1], []) && queue.nextAlarm == 100)
        #expect(Self.begin(&queue) == [1])
        #expect(queue.due(at: 100) == ([], [1]), "also one that runs")
        #expect(queue.nextAlarm == nil && queue[2]?.state == .waiting(.login, until: nil))
        queue.set(2, .queued)
        queue.remove(1)
        #expect(Self.begin(&queue) == [2])
    }

    @Test("A transfer that left the queue and came back has one place in it") func places() {
        var queue = TransferQueue()
        queue.add(Self.transfer(1))
        queue.set(1, .waiting(.retry, until: 9))
        queue.set(1, .queued)
        queue.set(1, .waiting(.space, until: 8))
        #expect(Self.begin(&queue).isEmpty)
        _ = queue.due(at: 20)
        #expect(Self.begin(&queue) == [1] && Self.begin(&queue).isEmpty)
        queue.update(1) {
            $0.bytes = 7
            $0.state = .queued
        }
        #expect(queue[1]?.bytes == 7 && queue[1]?.state == .running, "where it stands is not changed by the way")
    }

    @Test("A session is counted until its last one is over") func sessions() {
        var queue = TransferQueue()
        queue.add(Self.transfer(1, session: "x"))
        queue.add(Self.transfer(2, session: "x"))
        queue.add(Self.transfer(3, session: "y"))
        #expect(queue.count(of: "x", "a") == 2 && queue.count(of: "y", "a") == 1 && queue.count(of: "x", "b") == 0)
        queue.remove(1)
        #expect(queue.remove(1) == nil)
        queue.remove(3)
        #expect(queue.count(of: "x", "a") == 1 && queue.count(of: "y", "a") == 0)
        #expect(queue.transfers(of: "a").map(\.id) == [2])
        var silent = Self.transfer(4, session: "x")
        silent.events = false
        queue.add(silent)
        queue.remove(2)
        #expect(queue.wantsEvents(of: "x", "a"), "one that is over wanted them")
        queue.remove(4)
        #expect(!queue.wantsEvents(of: "x", "a"))
        queue.add(silent)
        #expect(!queue.wantsEvents(of: "x", "a"))
    }

    @Test("What an event costs does not grow with how many wait") func many() {
        var queue = TransferQueue()
        let count: Int64 = 10_000
        for id in 1...count { queue.add(Self.transfer(id, "a\(id % 3)", "https://h\(id % 7)/", priority: id % 5)) }
        var looks = 0
        var over = 0
        while let next = queue.next(
            Self.limits,
            isInForeground: { _ in false },
            user: { _ in "" },
            mayRun: { _, _ in
                looks += 1
                return true
            }
        ) {
            queue.set(next.id, .running)
            queue.set(next.id, .waiting(.retry, until: next.id))
            _ = queue.due(at: count)
            queue.remove(next.id)
            over += 1
        }
        #expect(over == count)
        #expect(looks <= Int(count) * 7, "a look at each lane of an app, and not at each transfer")
    }

    @Test("It is kept as it is, without credentials, and one that ran is queued") func kept() throws {
        var transfer = Self.transfer(1, session: "x")
        transfer.order.credentials = TransferCredentials(user: "me", password: "secret")
        transfer.order.headers = [TransferHeader(name: "A", value: "b")]
        transfer.order.validator = TransferValidator(condition: "\"e\"", total: 9)
        (transfer.events, transfer.retriesPost, transfer.token, transfer.expiresAt) = (false, true, 1 << 63 | 2, 77)
        (transfer.attempts, transfer.failures, transfer.bytes, transfer.status) = (3, 2, 5, 503)
        (transfer.reason, transfer.error, transfer.realm, transfer.scheme) = ("r", "e", "q", "basic")
        transfer.state = .running
        let bytes = transfer.json.serialised()
        #expect(!String(decoding: bytes, as: UTF8.self).contains("secret"))
        var expected = transfer
        expected.order.credentials = nil
        expected.state = .queued
        #expect(try Transfer(json: JSON.parse(bytes)) == expected)
        expected.state = .waiting(.login, until: nil)
        #expect(try Transfer(json: expected.json) == expected)
        expected.state = .waiting(.space, until: 8)
        #expect(try Transfer(json: expected.json) == expected)
        #expect(throws: FieldError.self) { try Transfer(json: ["app": "a"]) }
    }

    @Test("Of a server's text a part is kept, even if all of it counts as one character") func texts() {
        let family = String(repeating: "\u{1f468}\u{200d}", count: 10_000) + "\u{1f467}"
        for text in [family, String(repeating: "a", count: 10_000)] {
            #expect(Transfer.bounded(text).utf8.count <= 4 * 512)
            #expect(text.utf8.starts(with: Transfer.bounded(text).utf8))
        }
        #expect(Transfer.bounded("the server says 503") == "the server says 503")
    }

    @Test("Delays double to ten minutes, vary by a tenth, and heed the server") func delays() {
        func seconds(_ failures: Int64, asked: Int64? = nil, _ chance: Double = 0.5) -> Double {
            Double(RetryDelay.microseconds(failures: failures, asked: asked, chance: chance)) / 1_000_000
        }
        #expect([1, 2, 3, 10, 11, 1000].map { seconds($0) } == [1, 2, 4, 512, 600, 600])
        #expect(seconds(1, 0) == 0.9 && abs(seconds(1, 1) - 1.1) < 0.001)
        #expect(seconds(1, asked: 30) == 30 && seconds(1, asked: 99_999) == 3600 && seconds(5, asked: -3) == 16)
    }
}
