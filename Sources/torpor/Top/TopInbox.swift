// SPDX-License-Identifier: Apache-2.0

import Linux
import TopView
import TorporAPI

/// What comes for the screen from other threads.
enum TopNews: Sendable {
    case supervisor(SupervisorInfo)
    case list([AppSummary], asked: Int64)
    case memory(MemoryStatus)
    case mayChange(Bool)
    case events([EventRecord])
    case history([EventRecord], since: Int64)
    case details(app: String, [String])
    /// What it showed last; nil: nothing.
    case snapshot(app: String, TopSnapshot?)
    case log(app: String, [LogLine], isFirst: Bool)
    case logTrouble(app: String, String)
    case said(String, TopModel.Message.Kind)
    case lost(String)
}

/// A place where other threads put news, and a descriptor that tells when there are some.
final class TopInbox: Sendable {
    private let news = Monitor<[TopNews]>([])
    private let counter: EventCounter

    /// Errors: out of descriptors.
    init() throws(Errno) { counter = try EventCounter() }

    /// Readable when there is something.
    var descriptor: Int32 { counter.raw }

    /// Puts something in; from any thread.
    func put(_ one: TopNews) {
        news.withLock { $0.append(one) }
        counter.signal()
    }

    /// Takes all that there is.
    func take() -> [TopNews] {
        counter.drain()
        return news.withLock { all in
            defer { all = [] }
            return all
        }
    }
}
