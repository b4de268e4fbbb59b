// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import Lifecycle
import Linux
import Processes

/// An app with clients that was woken for an event and is suspended again when its background time ends. Shortly before
/// that end, torpord extends the time in three cases: a client waits for an answer, data moves on an incoming
/// connection, or the app uses the processor while such a connection is open. Otherwise the app could be suspended in
/// the middle of an answer.
final class ServingApp: EventRoom {
    private let app: AppRuntime
    private let tree: ProcessTree
    private unowned let owner: ConnectionWatch
    var wakes: Wakes { owner.wakes }
    private var timer: TimerSource?
    /// When the app's background time ends, as known when the timer was armed.
    private var end: Duration?
    private var finder: SocketFinder?
    private let since: Duration
    private var lookedAt: Duration
    private var processorTime: Duration?

    /// The least interval between two checks.
    private static let pause = Duration.milliseconds(50)
    /// How long before the end of the background time torpord checks the app's connections.
    private static let margin = Duration.milliseconds(250)
    /// An app that uses less than 1/`share` of one processor counts as idle.
    private static let share = 100

    init(_ app: AppRuntime, _ tree: ProcessTree, _ owner: ConnectionWatch) {
        self.app = app
        self.tree = tree
        self.owner = owner
        since = owner.now
        lookedAt = since
        processorTime = tree.processorTime()
    }

    /// Whether the app is still in the background for an event, and will be suspended after it.
    var goesOn: Bool {
        let machine = machine(app)
        return app.run.tree === tree && machine.goal == .background && machine.sleepsAgain
    }

    /// Called when the app's state or background time may have changed: arms the timer for the new end.
    func look() {
        let machine = machine(app)
        let grant = machine.deadlines.first { $0.kind == .backgroundTime }?.at
        guard machine.state == .background, machine.transition == nil, let grant, grant != end else { return }
        end = grant
        if timer == nil { timer = try? loop.timer { [weak self] in self?.timeIsNearlyOver() } }
        timer?.arm(at: max(now + Self.pause, grant - Self.margin))
    }

    private func timeIsNearlyOver() {
        finder?.cancel()
        finder = SocketFinder(tree, loop) { [weak self] in self?.found($0) }
        finder?.find()
    }

    private func found(_ finder: SocketFinder) {
        self.finder = nil
        let given = sockets.places(of: app)
        if finder.obstacle == nil {
            let copies = finder.takeCopies()
            let open = clients(of: copies.map(\.facts), given).map { copies[$0].traffic }
            for copy in copies { copy.descriptor.close() }
            return judge(open)
        }
        // If the inode numbers of the app's sockets are unknown, find the connections by port.
        let ports = finder.numbers.isEmpty ? Set(given.keys) : []
        owner.poll.ask(finder.numbers, at: ports, in: finder.namespaces) { [weak self] queues in
            guard let self else { return }
            let queues = Array(queues.values)
            judge(clients(of: queues, given).map { queues[$0].traffic })
        }
    }

    /// The indices of the sockets that are clients' connections to the app and may wake the app.
    private func clients(of sockets: [some WatchableSocket], _ given: [UInt64: WakeManner]) -> [Int] {
        let wish = ConnectionWish(app.specification)
        let places = ListeningPlaces(own: Set(sockets.filter(\.listens).map(\.place)), given: given)
        return sockets.indices.filter { wish.manner(ofClient: sockets[$0], places) != .none }
    }

    private func judge(_ open: [SocketTraffic]) {
        guard goesOn else { return }
        let isBusy = isBusy(open)
        lookedAt = now
        processorTime = tree.processorTime()
        // Extend the app's background time by starting it again from now.
        if isBusy { try? request(.wake(Wake()), of: app.id) }
    }

    private func isBusy(_ open: [SocketTraffic]) -> Bool {
        guard !open.isEmpty else { return false }
        let span = now - lookedAt
        if let before = processorTime, let now = tree.processorTime(), (now - before) * Self.share > span {
            return true
        }
        return open.contains { isInUse($0, span) }
    }

    private func isInUse(_ traffic: SocketTraffic, _ span: Duration) -> Bool {
        let most = app.specification.answerTime
        // For Unix sockets, the kernel does not report when data last moved.
        guard let quiet = traffic.quiet else { return most.map { now - since < $0 } ?? true }
        if quiet < span { return true }
        if traffic.unread > 0 || traffic.unsent > 0, most.map({ quiet < $0 }) ?? true { return true }
        return traffic.owesAnswer(app.specification)
    }
}
