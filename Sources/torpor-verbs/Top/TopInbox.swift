// SPDX-License-Identifier: Apache-2.0

import Linux
import TopView
import TorporAPI

/// A message to the thread of the screen from another thread.
enum TopNews: Sendable {
    case supervisor(SupervisorInfo)
    case list([AppSummary], asked: Int64)
    case memory(MemoryStatus)
    case mayChange(Bool)
    case events([EventRecord])
    case history([EventRecord], since: Int64)
    case details(app: String, [String])
    /// The app's last snapshot; nil if there is none.
    case snapshot(app: String, TopSnapshot?)
    case log(app: String, [LogLine], isFirst: Bool)
    case logTrouble(app: String, String)
    case said(String, TopModel.Message.Kind)
    case lost(String)
}

/// A queue of news from other threads. Its descriptor becomes readable when the queue is not empty.
final class TopInbox: Sendable {
    private let news = Monitor<[TopNews]>([])
    private let counter: EventCounter

    /// Creates an empty queue. Throws if no file descriptor is left.
    init() throws(Errno) { counter = try EventCounter() }

    /// The descriptor to watch, which is readable while the queue is not empty.
    var descriptor: Int32 { counter.raw }

    /// Adds news. May be called from any thread.
    func put(_ one: TopNews) {
        news.withLock { $0.append(one) }
        counter.signal()
    }

    func take() -> [TopNews] {
        counter.drain()
        return news.withLock { all in
            defer { all = [] }
            return all
        }
    }
}
