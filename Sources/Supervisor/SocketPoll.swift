import EventLoop
import Lifecycle
import Linux

/// Looks at the sockets of suspended apps that cannot be copied: the kernel's diagnostics are read twice a second, beside
/// the loop, for all of them together, and only while there are such apps.
final class SocketPoll {
    typealias Queues = [UInt32: SocketQueue]
    /// Told what waits, and what waited at the look before; nil at the first.
    typealias Handler = (_ queues: Queues, _ before: Queues?) -> Void

    private struct Polled {
        let sockets: Set<UInt32>
        let handler: Handler
        var before: Queues?
    }

    private let loop: EventLoop
    private var polled: [AppID: Polled] = [:]
    private let answers = Monitor<[(queues: Queues, cost: Duration)]>([])
    private var doorbell: EventCounter?
    private var source: IOSource?
    private var timer: TimerSource?
    /// Whose sockets are being looked at.
    private var underWay: Set<AppID>?

    private static let interval = Duration.milliseconds(500)
    /// A look takes at most that part of the time.
    private static let share = 20

    init(_ loop: EventLoop) { self.loop = loop }

    func add(_ app: AppID, _ sockets: Set<UInt32>, _ handler: @escaping Handler) {
        guard !sockets.isEmpty else { return }
        polled[app] = Polled(sockets: sockets, handler: handler)
        if underWay == nil { arm(after: .zero) }
    }

    func remove(_ app: AppID) {
        guard polled.removeValue(forKey: app) != nil else { return }
        underWay?.remove(app)
        if polled.isEmpty { timer?.disarm() }
    }

    private func arm(after time: Duration) {
        if timer == nil { timer = try? loop.timer { [weak self] in self?.look() } }
        timer?.arm(after: time)
    }

    private func look() {
        guard underWay == nil, !polled.isEmpty else { return }
        let sockets = polled.values.reduce(into: Set<UInt32>()) { $0.formUnion($1.sockets) }
        underWay = Set(polled.keys)
        do throws(Errno) {
            let doorbell = try bell()
            let answers = self.answers
            try WorkerThread.start(named: "sockets") {
                let start = Clock.monotonic()
                let queues = (try? SocketQueues.read(sockets)) ?? [:]
                let cost = Clock.monotonic() - start
                answers.withLock { $0.append((queues, cost)) }
                doorbell.signal()
            }
        } catch {
            // No room for a thread: there may be at the next time.
            underWay = nil
            arm(after: Self.interval)
        }
    }

    private func bell() throws(Errno) -> EventCounter {
        if let doorbell { return doorbell }
        let doorbell = try EventCounter()
        source = try loop.watch(doorbell.raw, .readable) { [weak self] _ in self?.answered() }
        self.doorbell = doorbell
        return doorbell
    }

    private func answered() {
        doorbell?.drain()
        let answer = answers.withLock { state in
            defer { state = [] }
            return state.last
        }
        let apps = underWay ?? []
        underWay = nil
        guard let answer else { return }
        for id in apps {
            guard let one = polled[id] else { continue }
            let queues = answer.queues.filter { one.sockets.contains($0.key) }
            polled[id]?.before = queues
            one.handler(queues, one.before)
        }
        if !polled.isEmpty { arm(after: max(Self.interval, answer.cost * Self.share)) }
    }
}
