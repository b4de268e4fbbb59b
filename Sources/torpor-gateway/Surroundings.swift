import Configuration
import Gateway
import Linux

/// What all that listens has in common.
struct Surroundings: Sendable {
    let queue: PostQueue
    let log: GatewayLog
    let secrets: Secrets
    let maxPayload: Int
    let stop: Stop
}

/// That the program shall end, for all threads.
final class Stop: Sendable {
    /// Readable once it shall.
    let counter: EventCounter

    init() throws(Errno) {
        counter = try EventCounter()
        for number in [Signal.terminate, Signal.interrupt] { try Signal.count(number, with: counter) }
    }

    /// Whether it shall end.
    var isRequested: Bool { wait(.zero) }

    /// Waits so long; true as soon as it shall end.
    func wait(_ time: Duration?) -> Bool { (try? Descriptor.wait(counter.raw, timeout: time)) ?? true }
}

/// How long to wait before something is tried again: from a second to a minute.
struct Backoff {
    private var last = Duration.zero

    mutating func next() -> Duration {
        last = min(max(.seconds(1), last * 2), .seconds(60))
        return last
    }

    mutating func reset() { last = .zero }
}
