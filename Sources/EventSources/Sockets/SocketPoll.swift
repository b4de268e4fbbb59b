// SPDX-License-Identifier: Apache-2.0

import Engine
import EventLoop
import Lifecycle
import Linux

/// Polls the sockets of suspended apps if the sockets cannot be copied. While there are such apps, a background
/// thread reads the kernel's socket diagnostics twice a second, for all of them together.
final class SocketPoll {
    typealias Queues = [UInt32: SocketQueue]
    /// Called with the current queues and those of the previous poll; `before` is nil at the first poll.
    typealias Handler = (_ queues: Queues, _ before: Queues?) -> Void

    private struct Polled {
        let sockets: Set<UInt32>
        let ports: Set<UInt64>
        let namespaces: [ForeignNamespace]
        let handler: Handler
        var before: Queues?
    }

    private let loop: EventLoop
    private var polled: [AppID: Polled] = [:]
    private let work: BackgroundWorker
    private var timer: TimerSource?
    /// The apps whose sockets the current poll reads; nil if no poll is in progress.
    private var underWay: Set<AppID>?

    private static let interval = Duration.milliseconds(500)
    /// Polling takes at most a twentieth of a thread's time: after a slow poll, the interval is this many times the
    /// poll's duration.
    private static let share = 20

    private struct Answer: Sendable {
        /// Nil if the kernel does not report them.
        let queues: Queues?
        let cost: Duration
    }

    init(_ loop: EventLoop) {
        self.loop = loop
        work = BackgroundWorker(loop, named: "sockets")
    }

    /// Polls the sockets with these inode numbers, and the sockets at these ports, until ``remove(_:)`` is called.
    /// `namespaces`: the other network namespaces in which the app has sockets.
    func add(
        _ app: AppID,
        _ sockets: Set<UInt32>,
        at ports: Set<UInt64>,
        in namespaces: [ForeignNamespace] = [],
        _ handler: @escaping Handler
    ) {
        guard !sockets.isEmpty || !ports.isEmpty else { return }
        polled[app] = Polled(sockets: sockets, ports: ports, namespaces: namespaces, handler: handler)
        if underWay == nil { arm(after: .zero) }
    }

    func remove(_ app: AppID) {
        guard polled.removeValue(forKey: app) != nil else { return }
        underWay?.remove(app)
        if polled.isEmpty { timer?.disarm() }
    }

    /// Reads the queues of these sockets once, on a background thread.
    func ask(
        _ sockets: Set<UInt32>,
        at ports: Set<UInt64>,
        in namespaces: [ForeignNamespace] = [],
        _ completion: @escaping (Queues) -> Void
    ) {
        guard !sockets.isEmpty || !ports.isEmpty else { return completion([:]) }
        work.ask({ (try? SocketQueues.read(sockets, at: ports, in: namespaces)) ?? [:] }, completion)
    }

    /// Finds the connections at these ports that no process has accepted (``SocketQueues/unaccepted(at:)``), on a
    /// background thread. `completion` gets nil if the kernel does not report them.
    func unaccepted(at ports: Set<UInt64>, _ completion: @escaping ([UInt64: Set<UInt64>]?) -> Void) {
        work.ask({ try? SocketQueues.unaccepted(at: ports) }, completion)
    }

    private func arm(after time: Duration) {
        if timer == nil { timer = try? loop.timer { [weak self] in self?.look() } }
        timer?.arm(after: time)
    }

    private func look() {
        guard underWay == nil, !polled.isEmpty else { return }
        let sockets = polled.values.reduce(into: Set<UInt32>()) { $0.formUnion($1.sockets) }
        let ports = polled.values.reduce(into: Set<UInt64>()) { $0.formUnion($1.ports) }
        let namespaces = polled.values.flatMap(\.namespaces)
        underWay = Set(polled.keys)
        work.ask(
            {
                let start = Clock.monotonic()
                let queues = try? SocketQueues.read(sockets, at: ports, in: namespaces)
                return Answer(queues: queues, cost: Clock.monotonic() - start)
            },
            { [weak self] (answer: Answer) in self?.answered(answer) }
        )
    }

    private func answered(_ answer: Answer) {
        let apps = underWay ?? []
        underWay = nil
        for id in apps {
            guard let all = answer.queues, let one = polled[id] else { continue }
            let queues = all.filter {
                one.sockets.contains($0.key) || !$0.value.isElsewhere && one.ports.contains($0.value.place)
            }
            polled[id]?.before = queues
            one.handler(queues, one.before)
        }
        if !polled.isEmpty { arm(after: max(Self.interval, answer.cost * Self.share)) }
    }
}
